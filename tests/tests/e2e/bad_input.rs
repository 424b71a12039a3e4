//! What can't be run is refused with a message that names file, field and remedy; nothing is started.

use std::fs;
use std::path::Path;
use std::process::Output;

use crate::husk::{BAD_INPUT, SUCCEEDED, command, output};

/// Runs a manifest in a folder where it can have files beside it.
fn refuse(folder: &Path, manifest: &str) -> String {
    let path = folder.join("pod.yaml");
    fs::write(&path, manifest).expect("written");
    let refused = output(&["run", &path.display().to_string(), "-o", "json"]);
    said(&refused)
}

fn said(refused: &Output) -> String {
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(BAD_INPUT), "{said}");
    assert!(refused.stdout.is_empty(), "something was started: {}", String::from_utf8_lossy(&refused.stdout));
    said
}

fn pod(spec: &str) -> String {
    format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: bad}}\nspec:\n{spec}\n")
}

fn with_image(image: &str) -> String {
    pod(&format!("  containers:\n  - {{name: app, image: {image}}}"))
}

#[test]
fn manifests_that_make_no_sense() {
    let folder = tempfile::tempdir().expect("a folder");
    let app = "  containers:\n  - {name: app, image: busybox";
    for (manifest, words) in [
        ("a: [b\nc: }".to_owned(), &["pod.yaml:", "this is not YAML"][..]),
        (pod(&format!("{app}}}\n  - {{name: app, image: busybox}}")), &["spec.containers[1].name", "app"]),
        (
            pod(&format!(
                "  initContainers:\n  - {{name: i, image: busybox, livenessProbe: {{exec: {{command: [x]}}}}}}\n{app}}}"
            )),
            &["spec.initContainers[0].livenessProbe"],
        ),
        (
            pod(&format!("{app}, livenessProbe: {{exec: {{command: [x]}}, tcpSocket: {{port: 1}}}}}}")),
            &["spec.containers[0].livenessProbe"],
        ),
        (
            pod(&format!(
                "{app}, restartPolicyRules: [{{action: Restart, exitCodes: {{operator: In, values: [1]}}}}]}}"
            )),
            &["spec.containers[0].restartPolicy"],
        ),
        (
            pod(&format!("{app}, resources: {{requests: {{memory: 2Gi}}, limits: {{memory: 1Gi}}}}}}")),
            &["spec.containers[0].resources.requests", "limit"],
        ),
        (pod(&format!("  activeDeadlineSeconds: -5\n{app}}}")), &["spec.activeDeadlineSeconds", "-5"]),
        (
            pod(&format!("{app}, readinessProbe: {{tcpSocket: {{port: 80}}, periodSeconds: -1}}}}")),
            &["spec.containers[0].readinessProbe.periodSeconds"],
        ),
        (pod(&format!("{app}, livenesProbe: {{}}}}")), &["spec.containers[0].livenesProbe", "livenessProbe"]),
        (pod("  containers:\n  - {name: a/b, image: busybox}"), &["spec.containers[0].name", "a/b"]),
        (pod("  containers:\n  - {name: a b, image: busybox}"), &["spec.containers[0].name", "a b"]),
        (
            pod(&format!("  containers:\n  - {{name: {}, image: busybox}}", "a".repeat(300))),
            &["spec.containers[0].name"],
        ),
    ] {
        let said = refuse(folder.path(), &manifest);
        for word in words {
            assert!(said.contains(word), "`{word}` is not in: {said}\n{manifest}");
        }
        assert!(said.contains("pod.yaml:") && said.contains("nothing was started"), "{said}");
    }
}

#[test]
fn all_mistakes_are_told_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let manifest = pod("  restartPolicy: Sometimes\n  containers:\n  - {name: A, image: busybox}\n  - {name: ok}");
    let said = refuse(folder.path(), &manifest);
    for field in ["spec.restartPolicy", "spec.containers[0].name", "spec.containers[1].image"] {
        assert!(said.contains(field), "{said}");
    }
}

#[test]
fn images_that_cannot_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    fs::write(at("text.wasm"), "#!/bin/sh\necho hello\n").expect("written");
    fs::write(at("entry.wat"), "(module (func (export \"helper\")))").expect("written");
    let imports = "(component (import \"acme:rocket/launch@1.0.0\" (instance (export \"fire\" (func)))))";
    fs::write(at("rocket.wat"), imports).expect("written");
    fs::write(at("cut.wasm"), b"\0asm\x01\0\0\0\x01\x40\x01\x60").expect("written");
    for (image, words) in [
        ("mysql:8", &["mysql", "--image"][..]),
        ("./missing.wasm", &["missing.wasm"]),
        ("./text.wasm", &["text.wasm", "not a Wasm file"]),
        ("./cut.wasm", &["cut.wasm", "truncated"]),
        ("./rocket.wat", &["rocket.wat", "acme:rocket/launch"]),
        ("./entry.wat", &["entry.wat", "entry"]),
    ] {
        let said = refuse(folder.path(), &with_image(image));
        for word in words {
            assert!(said.contains(word), "`{word}` is not in: {said}");
        }
        assert!(said.contains("spec.containers[0].image"), "{said}");
    }
}

#[test]
fn a_host_path_that_is_not_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let missing = folder.path().join("missing");
    let spec = format!(
        "  volumes:\n  - {{name: v, hostPath: {{path: {}}}}}\n  containers:\n  - {{name: app, image: busybox}}",
        missing.display()
    );
    let said = refuse(folder.path(), &pod(&spec));
    assert!(said.contains("spec.volumes[0].hostPath.path") && said.contains("DirectoryOrCreate"), "{said}");
}

#[test]
fn files_that_are_no_manifests() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("big.yaml");
    let line = "# nothing but a very long comment, line after line after line\n";
    fs::write(&path, line.repeat(100_000_000 / line.len() + 1)).expect("written");
    let refused = output(&["run", &path.display().to_string()]);
    let said_of_big = said(&refused);
    assert!(said_of_big.contains("big.yaml") && said_of_big.contains("is longer than"), "{said_of_big}");

    let bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n".to_owned()
        + &('b'..='i')
            .zip('a'..='h')
            .map(|(name, last)| format!("{name}: &{name} [{}]\n", vec![format!("*{last}"); 9].join(",")))
            .collect::<String>();
    // A pod that would be valid without it.
    let indented: String = bomb.lines().map(|line| format!("    {line}\n")).collect();
    let carrier = with_image("busybox")
        .replace("metadata: {name: bad}", &format!("metadata:\n  name: bad\n  labels:\n{indented}"));
    let said_of_bomb = refuse(folder.path(), &carrier);
    assert!(said_of_bomb.contains("pod.yaml") && said_of_bomb.contains("unfold"), "{said_of_bomb}");

    let missing = output(&["run", "no/such/pod.yaml"]);
    assert!(said(&missing).contains("no/such/pod.yaml"));

    let nothing = command().args(["run"]).output().expect("husk starts");
    assert_eq!(nothing.status.code(), Some(BAD_INPUT));
}

#[test]
fn nothing_to_run_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    for nothing in ["", "---\n", "apiVersion: v1\nkind: List\nitems: []\n"] {
        let said = refuse(folder.path(), nothing);
        assert!(said.contains("pod.yaml") && (said.contains("no object") || said.contains("no pod")), "{said}");
    }
}

#[test]
fn folders_that_cannot_be_used() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, file) = (folder.path().join("pod.yaml"), folder.path().join("file"));
    fs::write(folder.path().join("tiny.wat"), "(module (func (export \"_start\")))").expect("written");
    fs::write(&path, pod("  restartPolicy: Never\n  containers:\n  - {name: app, image: ./tiny.wat}"))
        .expect("written");
    fs::write(&file, "").expect("written");
    let (path, file) = (path.display().to_string(), file.display().to_string());
    for flag in ["--data-dir", "--cache-dir"] {
        let said = said(&output(&["run", &path, flag, &file]));
        assert!(said.contains(&file), "{said}");
    }
    // Nobody asked for this one.
    let mut run = command();
    run.args(["run", &path]).env_remove("HUSK_CACHE").env("XDG_CACHE_HOME", &file);
    let ran = run.output().expect("husk starts");
    let said = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(SUCCEEDED), "{said}");
    assert!(said.contains("warning") && said.contains(&file), "{said}");
}

#[test]
fn check_says_where_and_exits_with_2() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("pod.yaml");
    fs::write(&path, pod("  containers:\n  - name: App\n    image: busybox")).expect("written");
    let checked = output(&["check", &path.display().to_string()]);
    assert_eq!(checked.status.code(), Some(BAD_INPUT));
    let said = String::from_utf8_lossy(&checked.stderr);
    assert!(said.contains("pod.yaml:6: error: spec.containers[0].name"), "{said}");
}
