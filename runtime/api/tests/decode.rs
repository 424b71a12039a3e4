//! Manifests in, objects or helpful problems out.

use husk_api::{Decoded, Object, Problem, decode, pod_of};

fn read(text: &str) -> Decoded {
    decode(text, "pod.yaml")
}

fn errors(text: &str) -> Vec<String> {
    read(text).errors.iter().map(Problem::to_string).collect()
}

fn pod(spec: &str) -> String {
    format!("apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\nspec:\n{spec}")
}

#[test]
fn seed_manifests_decode_without_a_problem() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/seeds");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(directory).expect("the seeds are part of the repository") {
        let path = entry.expect("readable").path();
        let text = std::fs::read_to_string(&path).expect("readable");
        let decoded = decode(&text, "seed");
        assert_eq!(decoded.errors, [], "{}", path.display());
        assert_eq!(decoded.documents.len(), 1, "{}", path.display());
        let pod = pod_of(&decoded.documents[0].object).expect("every seed has a pod");
        assert!(!pod.spec.expect("every seed has a spec").containers.is_empty());
        let name = path.file_stem().expect("a file").to_string_lossy().into_owned();
        assert_eq!(!decoded.warnings.is_empty(), name == "ml-worker", "{:?}", decoded.warnings);
        names.push(name);
    }
    assert_eq!(names.len(), 12);
}

#[test]
fn the_earlier_spelling_of_restart_rules_is_taken_with_a_warning() {
    let decoded =
        read(&std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/seeds/ml-worker.yaml")).unwrap());
    let Object::Pod(pod) = &decoded.documents[0].object else { panic!("not a pod") };
    let sidecar = &pod.spec.as_ref().unwrap().init_containers.as_ref().unwrap()[1];
    let rule = &sidecar.restart_policy_rules.as_ref().unwrap()[0];
    assert_eq!(rule.exit_codes.as_ref().unwrap().values, Some(vec![88]));
    assert_eq!(decoded.warnings[0].path, "spec.initContainers[1].restartPolicyRules[0].onExit");
    assert_eq!(decoded.warnings[0].line, Some(21));
}

#[test]
fn every_mistake_is_named_with_document_line_and_path() {
    let text = "\
apiVersion: v1
kind: Pod
metadata: {name: a}
spec:
  containers:
  - {name: a, image: i}
---
apiVersion: v1
kind: Pod
metadata:
  name: b
spec:
  containers:
  - name: b
    image: i
    livenesProbe: {}
    command: sh
    env:
    - name: A
      value: 8080
    name: c
  terminationGracePeriodSeconds: '5'
";
    let want = [
        "pod.yaml, document 2, line 21: spec.containers[0].name: the key is repeated, it stands on line 14 too; remove one of them",
        "pod.yaml, document 2, line 16: spec.containers[0].livenesProbe: unknown field; did you mean `livenessProbe`?",
        "pod.yaml, document 2, line 17: spec.containers[0].command: expected a list, found the string \"sh\"; \
         write it as [item, …] or with a dash before each item",
        "pod.yaml, document 2, line 20: spec.containers[0].env[0].value: expected a string, found the number 8080; put it in quotes",
        "pod.yaml, document 2, line 22: spec.terminationGracePeriodSeconds: expected an integer, found the string \"5\"; \
         remove the quotes",
    ];
    assert_eq!(errors(text), want);
    assert_eq!(read(text).documents.len(), 1, "the first document is sound");
}

#[test]
fn what_is_no_object_is_explained() {
    let table = [
        ("", "the file has no object in it"),
        ("# nothing\n---\n---\n", "the file has no object in it"),
        ("- a\n- b\n", "found a list"),
        ("hello", "found the string \"hello\""),
        ("kind: Pod\n", "write `apiVersion: v1`"),
        ("apiVersion: v1\n", "the object has no kind; Pod, Job, Deployment"),
        ("apiVersion: v1\nkind: Pot\n", "did you mean Pod?"),
        ("apiVersion: v1\nkind: Service\n", "objects of kind Service are not taken"),
        ("apiVersion: v2\nkind: Pod\n", "write `v1`"),
        ("a: [1, 2\nb: c", "this is not YAML"),
        ("a: b: c", "this is not YAML"),
        ("\u{0}", "this is not YAML"),
        ("{[a]: b}", "a key must be a word"),
    ];
    for (text, part) in table {
        let errors = errors(text);
        assert!(errors.iter().any(|error| error.contains(part)), "{text:?}: {errors:?}");
    }
}

#[test]
fn json_and_lists_are_read_too() {
    let pod =
        r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}"#;
    assert_eq!(read(pod).documents.len(), 1);
    let list = format!(r#"{{"apiVersion": "v1", "kind": "List", "items": [{pod}, {pod}]}}"#);
    let decoded = read(&list);
    assert_eq!((decoded.documents.len(), decoded.errors.len()), (2, 0));
    assert_eq!(read(&format!("{pod}\n{pod}")).documents.len(), 2, "objects in a row");
    let broken = list.replacen("image", "imgae", 1);
    assert!(errors(&broken)[0].contains("items[0].spec.containers[0].imgae: unknown field; did you mean `image`?"));
}

#[test]
fn aliases_and_merge_keys_work_within_bounds() {
    let text = pod("  containers:\n  - &c {name: a, image: i, tty: false}\n  - <<: *c\n    name: b\n");
    let decoded = read(&text);
    assert_eq!(decoded.errors, []);
    let spec = pod_of(&decoded.documents[0].object).unwrap().spec.unwrap();
    assert_eq!(spec.containers[1].name, "b");
    assert_eq!(spec.containers[1].image.as_deref(), Some("i"));
}

#[test]
fn a_billion_laughs_stop_early() {
    let mut text = String::from("a0: &a0 lol\n");
    for level in 1..40 {
        let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
        text.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
    }
    assert!(errors(&text)[0].contains("unfolds to more than"), "{:?}", errors(&text));
    let nested: String =
        (1..60).map(|n| format!("n{n}: &n{n} {}*n{}{}\n", "[".repeat(40), n - 1, "]".repeat(40))).collect();
    let deep = errors(&format!("n0: &n0 x\n{nested}"));
    assert!(deep[0].contains("nested deeper than"), "{deep:?}");
    assert!(errors("a: &a [*a]")[0].contains("an alias inside the value that it names"));
}

#[test]
fn size_and_depth_are_bounded() {
    let large = "#".repeat(husk_api::MAX_BYTES + 1);
    assert!(errors(&large)[0].contains("split it into several files"));
    for open in ["[", "{a: ", "- "] {
        let deep = open.repeat(100_000);
        assert!(errors(&deep)[0].contains("nested deeper than"), "{:?}", errors(&deep));
    }
}

#[test]
fn fields_without_effect_are_warned_about_once() {
    let text = pod(
        "  hostNetwork: true\n  hostPID: false\n  dnsPolicy: ClusterFirst\n  securityContext: {sysctls: [{name: a.b, value: '1'}]}\n  \
         containers:\n  - {name: c, image: i, ports: [{containerPort: 80, hostPort: 80}]}\n",
    );
    let decoded = read(&text);
    let paths: Vec<&str> = decoded.warnings.iter().map(|warning| warning.path.as_str()).collect();
    assert_eq!(paths, ["spec.hostNetwork", "spec.securityContext.sysctls", "spec.containers[0].ports[0].hostPort"]);
    assert!(decoded.warnings[0].message.contains("has no effect"));
}

#[test]
fn numbers_and_modes_mean_what_kubectl_takes_them_for() {
    let text = pod(
        "  terminationGracePeriodSeconds: 1e1\n  volumes:\n  - name: v\n    emptyDir: {sizeLimit: 1024}\n  containers:\n  \
         - name: c\n    image: i\n    resources: {limits: {cpu: 1, memory: 64Mi}}\n",
    );
    let decoded = read(&text);
    assert_eq!(decoded.errors, []);
    let spec = husk_api::core_spec(&pod_of(&decoded.documents[0].object).unwrap());
    assert_eq!(spec.termination_grace_period_seconds, Some(10));
    assert_eq!(spec.containers[0].resources.limits["cpu"].milli_value(), 1000);
    assert!(
        errors(&pod("  containers: [{name: c, resources: {limits: {cpu: lots}}}]\n"))[0].contains("not a quantity")
    );
}

proptest::proptest! {
    #[test]
    fn no_text_makes_it_panic(text in ".{0,200}") {
        let _ = read(&text);
    }

    #[test]
    fn no_yaml_like_text_makes_it_panic(parts in proptest::collection::vec(
        proptest::sample::select(vec![
            "apiVersion: v1\n", "kind: Pod\n", "spec:\n", "  containers:\n", "  - name: a\n", "    image: 5\n", "---\n", "{", "}",
            "[", "]", ": ", "- ", "&a ", "*a", "<<: ", "|\n", ">-\n", "\"", "'", "#", "!!str ", "\t", "  ", "\n", "? ", "~", "0x",
            "items: ", "List", "resources: {limits: {cpu: ", "null",
        ]),
        0..40,
    )) {
        let text = parts.concat();
        for problem in read(&text).errors {
            proptest::prop_assert!(!problem.to_string().contains('\n'));
        }
    }
}
