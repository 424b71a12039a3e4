//! Manifests on their way to an agent: in order, with every mistake, and with the files beside them.

use std::path::Path;

use crate::device::Device;

fn pod(name: &str, image: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec:\n  terminationGracePeriodSeconds: 1\n  containers:\n  - name: app\n    image: {image}\n    command: [sh, -c, sleep 1000]\n"
    )
}

// spec: POD-01
#[test]
fn documents_are_applied_one_after_the_other_and_an_error_says_where_it_is() {
    let device = Device::start();
    let map = |name: &str| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n");
    let stream = [map("first"), pod("second", "busybox"), map("third")].join("---\n");
    let said = device.with_input(&["apply", "-f", "-"], &stream).ok();
    assert_eq!(said, "configmap/first created\npod/second created\nconfigmap/third created\n");
    let json = r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "fourth"}}
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "fifth"}}"#;
    let said = device.with_input(&["apply", "-f", "-"], json).ok();
    assert_eq!(said, "configmap/fourth created\nconfigmap/fifth created\n");
    // A mistake that can be seen from here keeps all of the stream from being applied; one that the server finds does not.
    let broken = [map("sixth"), pod("seventh", "busybox").replace("name: app", "name: App")].join("---\n");
    let err = device.with_input(&["apply", "-f", "-"], &broken).failed();
    assert!(err.contains("-:11: error: spec.containers[0].name: Invalid value"), "{err}");
    assert_eq!(device.husk(&["get", "cm", "sixth", "--ignore-not-found"]).ok(), "");
}

// spec: POD-02
#[test]
fn misspelt_fields_are_errors_and_what_has_no_effect_is_a_warning() {
    let device = Device::start();
    let misspelt = pod("web", "busybox").replace("    image", "    livenesProbe: {}\n    image");
    let err = device.with_input(&["apply", "-f", "-"], &misspelt).failed();
    let wanted = "spec.containers[0].livenesProbe: unknown field; did you mean `livenessProbe`?";
    assert!(err.contains(wanted), "{err}");
    let spec = |field: &str| pod("web", "busybox").replace("spec:\n", &format!("spec:\n  {field}\n"));
    let err =
        device.with_input(&["apply", "-f", "-"], &spec("volumes: [{name: v, nfs: {server: a, path: /b}}]")).failed();
    assert!(err.contains("spec.volumes[0].nfs"), "{err}");
    // What only an agent honours is nothing to warn about here; what nobody honours is.
    let said = device.with_input(&["apply", "-f", "-"], &spec("shareProcessNamespace: true\n  priority: 7"));
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.err.contains("warning: spec.shareProcessNamespace: it has no effect"), "{}", said.err);
    assert!(!said.err.contains("spec.priority"), "{}", said.err);
}

#[test]
fn an_image_beside_its_manifest_is_found_wherever_the_agent_is() {
    let device = Device::start();
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("written");
        path.display().to_string()
    };
    write("own.wat", r#"(module (memory (export "memory") 1) (func (export "_start")))"#);
    let ends = |name: &str| {
        let wanted = ["wait", "--for=jsonpath={.status.phase}=Succeeded", &format!("pod/{name}"), "--timeout=60s"];
        device.husk(&wanted).ok();
    };
    let of_file = |name: &str, image: &str| {
        let kind = format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec:\n  restartPolicy: Never\n");
        format!("{kind}  containers:\n  - name: app\n    image: {image}\n")
    };
    let file = write("web.yaml", &of_file("web", "./own.wat"));
    assert_eq!(device.husk(&["apply", "-f", &file]).ok(), "pod/web created\n");
    ends("web");
    assert_eq!(device.husk(&["apply", "-f", &file]).ok(), "pod/web unchanged\n");
    let image = device.husk(&["get", "pod", "web", "-o", "jsonpath={.spec.containers[0].image}"]).ok();
    assert!(Path::new(&image).is_absolute() && image.ends_with("/own.wat"), "{image}");
    // By a relative path, as people write it.
    write("db.yaml", &of_file("db", "own.wat"));
    let mut create = device.command(&["create", "-f", "db.yaml"]);
    let output = create.current_dir(folder.path()).output().expect("husk starts");
    assert!(output.status.success(), "{output:?}");
    ends("db");
    let lost = write("lost.yaml", &of_file("lost", "missing.wasm"));
    let err = device.husk(&["apply", "-f", &lost]).failed();
    let wanted = "lost.yaml:8: error: spec.containers[0].image: there is no ";
    assert!(err.contains(wanted) && err.contains("relative to the folder of its manifest"), "{err}");
}
