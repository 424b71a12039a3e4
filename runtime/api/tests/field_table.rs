//! The page of fields says what the decoder does.

use husk_api::{decode, field_table_markdown, gate_table_markdown};

#[test]
fn the_page_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/manifest-fields.md");
    let page = std::fs::read_to_string(path).expect("docs/manifest-fields.md is part of the repository");
    let command = "cargo run -p husk-api --example manifest_fields > docs/manifest-fields.md";
    assert!(page == field_table_markdown(), "docs/manifest-fields.md is out of date; renew it with: {command}");
}

/// Reads the pod with one more line in its spec, and gives the paths warned about and refused.
fn verdict(spec: &str) -> (Vec<String>, Vec<String>) {
    let text = format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\nspec:\n  containers: [{{name: c, image: i}}]\n  {spec}\n"
    );
    let decoded = decode(&text, "pod.yaml");
    let paths = |problems: &[husk_api::Problem]| problems.iter().map(|problem| problem.path.clone()).collect();
    (paths(&decoded.warnings), paths(&decoded.errors))
}

#[test]
fn no_field_is_silently_ignored() {
    let none: Vec<String> = Vec::new();
    let one = |path: &str| vec![path.to_owned()];
    assert_eq!(verdict("hostname: h"), (none.clone(), none.clone()));
    assert_eq!(verdict("nodeSelector: {a: b}"), (one("spec.nodeSelector"), none.clone()));
    assert_eq!(verdict("volumes: [{name: v, nfs: {}}]"), (none.clone(), one("spec.volumes[0].nfs")));
    let path = "volumes: [{name: v, hostPath: {path: /v, type: Socket}}]";
    assert_eq!(verdict(path), (none.clone(), one("spec.volumes[0].hostPath.type")));
    assert_eq!(verdict(&path.replace("Socket", "Directory")), (none.clone(), none.clone()));
    assert_eq!(verdict("nodeSelectr: {a: b}"), (none, one("spec.nodeSelectr")));
}

#[test]
fn the_page_of_gates_says_what_is_so() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/feature-gates.md");
    let page = std::fs::read_to_string(path).expect("docs/feature-gates.md is part of the repository");
    let remedy = "run `cargo run -p husk-api --example feature_gates > docs/feature-gates.md`";
    assert_eq!(page, gate_table_markdown(), "{remedy}");
}
