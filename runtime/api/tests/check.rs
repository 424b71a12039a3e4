//! Bad input of every sort is named with its field and a remedy.

use husk_api::{Problem, check, default_pod, pod_of, validate_pod};

fn errors(text: &str) -> Vec<String> {
    check(text, "pod.yaml").errors.iter().map(Problem::to_string).collect()
}

/// A pod with one container, whose fields and whose pod's fields are given in flow style.
fn pod(container: &str, spec: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\nspec:\n  containers:\n  - {{name: c, image: i{container}}}\n{spec}"
    )
}

#[test]
fn seed_manifests_are_valid() {
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/seeds")).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(check(&std::fs::read_to_string(&path).unwrap(), "seed").errors, [], "{}", path.display());
    }
}

// spec: POD-03
#[test]
fn all_violations_of_an_object_are_reported_at_once() {
    let long = "a".repeat(300);
    let text = format!(
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a/b\nspec:\n  initContainers:\n  - name: same\n    image: i\n    \
         livenessProbe: {{tcpSocket: {{port: 80}}}}\n  containers:\n  - name: same\n    image: i\n  - name: a b\n    image: i\n  \
         - name: {long}\n    image: i\n"
    );
    let errors = errors(&text);
    let expected = [
        "pod.yaml, document 1, line 4: metadata.name: Invalid value \"a/b\": a lowercase RFC 1123 subdomain must",
        "pod.yaml, document 1, line 7: spec.initContainers[0].name: Duplicate value \"same\": it stands there already; use another",
        "pod.yaml, document 1, line 9: spec.initContainers[0].livenessProbe: Forbidden: may not be set for init containers",
        "pod.yaml, document 1, line 13: spec.containers[1].name: Invalid value \"a b\": a lowercase RFC 1123 label must",
        "pod.yaml, document 1, line 15: spec.containers[2].name: Invalid value \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…\": \
         must be no more than 63 characters",
    ];
    assert_eq!(errors.len(), expected.len(), "{errors:#?}");
    for (error, start) in errors.iter().zip(expected) {
        assert!(error.starts_with(start), "{error}");
    }
}

#[test]
fn bad_input_names_field_and_rule() {
    let table = [
        (
            pod(", livenessProbe: {exec: {command: [x]}, tcpSocket: {port: 1}}", ""),
            "spec.containers[0].livenessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type",
        ),
        (
            pod(", restartPolicyRules: [{action: Restart, exitCodes: {operator: In, values: [1]}}]", ""),
            "spec.containers[0].restartPolicy: Required value: must specify restartPolicy when restart rules are used",
        ),
        (
            pod(", resources: {requests: {memory: 2Gi}, limits: {memory: 1Gi}}", ""),
            "spec.containers[0].resources.requests: Invalid value: must be less than or equal to memory limit of 1Gi",
        ),
        (
            pod(", resources: {limits: {cpu: -1}}", ""),
            "limits[cpu]: Invalid value -1: must be greater than or equal to 0",
        ),
        (
            pod(", livenessProbe: {exec: {command: [x]}, periodSeconds: -1}", ""),
            "livenessProbe.periodSeconds: Invalid value -1: must be greater than or equal to 0",
        ),
        (
            pod("", "  activeDeadlineSeconds: -5\n"),
            "spec.activeDeadlineSeconds: Invalid value -5: must be between 1 and",
        ),
        (
            pod(", volumeMounts: [{name: v, mountPath: /v}]", ""),
            "spec.containers[0].volumeMounts[0].name: Not found \"v\": the pod defines nothing of that name",
        ),
        (
            pod("", "  restartPolicy: Sometimes\n"),
            "spec.restartPolicy: Unsupported value \"Sometimes\": supported values",
        ),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n".into(),
            "spec.containers: Required value: it must be given",
        ),
        (
            format!("{}---\n{}", pod("", ""), pod("", "")),
            "document 2, line 10: metadata.name: Pod \"p\" is in the file already, at line 1; rename one of them",
        ),
    ];
    for (text, part) in table {
        let errors = errors(&text);
        assert!(errors.iter().any(|error| error.contains(part)), "{part}\n{errors:#?}");
    }
}

#[test]
fn templates_are_checked_under_their_own_paths() {
    let job = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec:\n  template:\n    spec:\n      containers:\n      \
               - {name: C, image: i}\n";
    let errors_of_job = errors(job);
    assert!(
        errors_of_job[0].contains("line 6: spec.template.spec.restartPolicy: Unsupported value: supported values: ")
    );
    assert!(errors_of_job[1].contains("line 8: spec.template.spec.containers[0].name: Invalid value \"C\""));
    let deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec:\n  selector: {matchLabels: {a: b}}\n  \
                      template:\n    metadata: {labels: {a: c}}\n    spec:\n      containers: [{name: c, image: i}]\n";
    let found = errors(deployment);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("spec.template.metadata.labels: Invalid value: `selector` does not match"));
}

#[test]
fn a_name_may_be_generated() {
    let with = |metadata: &str| pod("", "").replace("{name: p}", metadata);
    assert_eq!(check(&with("{generateName: p-}"), "f").errors, []);
    assert!(
        errors(&with("{labels: {a: b}}"))[0]
            .contains("metadata.name: Required value: name or generateName is required")
    );
    assert!(errors(&with("{generateName: Pod-}"))[0].contains("metadata.generateName: Invalid value \"Pod-\""));
}

#[test]
fn a_defaulted_pod_of_a_seed_is_valid_again() {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/seeds/sidecar-job.yaml")).unwrap();
    let mut pod = pod_of(&check(&text, "seed").documents[0].object).unwrap();
    default_pod(&mut pod);
    let once = pod.clone();
    default_pod(&mut pod);
    assert_eq!(pod, once, "defaulting twice changes nothing");
    assert_eq!(validate_pod(&pod), []);
}
