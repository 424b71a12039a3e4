//! `husk image`: the store of images by hand.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::husk::{BAD_INPUT, SUCCEEDED, command};

struct Device(TempDir);

impl Device {
    fn new() -> Self {
        let device = Self(tempfile::tempdir().expect("a folder"));
        fs::write(device.0.path().join("app.wat"), r#"(module (func (export "_start")))"#).expect("written");
        device
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn command(&self, args: &[&str]) -> Command {
        let data = self.path().join("data");
        let mut command = command();
        command.current_dir(self.path()).arg("image").args(args).arg("--data-dir").arg(data).stdin(Stdio::null());
        command
    }

    fn image(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("husk starts")
    }

    fn said(&self, args: &[&str]) -> String {
        let output = self.image(args);
        assert_eq!(output.status.code(), Some(SUCCEEDED), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    }

    fn refused(&self, args: &[&str]) -> String {
        let output = self.image(args);
        assert_eq!(output.status.code(), Some(BAD_INPUT), "{}", String::from_utf8_lossy(&output.stdout));
        String::from_utf8(output.stderr).expect("text")
    }

    fn list(&self) -> Vec<Value> {
        serde_json::from_str(&self.said(&["ls", "-o", "json"])).expect("JSON")
    }
}

#[test]
fn an_image_comes_and_goes() {
    let device = Device::new();
    assert_eq!(device.said(&["ls"]).lines().count(), 1);
    assert!(!device.path().join("data").exists(), "looking makes nothing");
    let imported = device.said(&["import", "app.wat", "--name", "team/app:1.0"]);
    assert!(imported.starts_with("imported docker.io/team/app:1.0 sha256:"), "{imported}");
    device.said(&["import", "app.wat"]);
    let table = device.said(&["ls"]);
    assert!(table.starts_with("IMAGE ") && table.contains("docker.io/library/app:latest "), "{table}");
    let [image] = device.list().try_into().expect("one image");
    assert_eq!(image["names"], serde_json::json!(["docker.io/library/app:latest", "docker.io/team/app:1.0"]));
    assert_eq!(image["inUse"], false);
    let inspected: Value = serde_json::from_str(&device.said(&["inspect", "app"])).expect("JSON");
    assert_eq!(inspected[0]["digest"], image["digest"]);
    assert_eq!(inspected[0]["manifest"]["layers"][0]["mediaType"], "application/wasm");
    assert_eq!(device.said(&["rm", "app"]), "removed docker.io/library/app:latest\n");
    assert!(device.said(&["gc"]).starts_with("0 images removed"));
    assert!(device.said(&["gc", "--all"]).contains("1 images removed"));
    assert_eq!(device.list(), [Value::Null; 0]);
}

/// Power cuts are worse only in what the disk forgets, which is not in its place before it is synced.
#[test]
fn an_import_that_is_killed_leaves_a_store_that_works() {
    let device = Device::new();
    let folder = device.path().join("tools");
    fs::create_dir(&folder).expect("made");
    fs::copy(device.path().join("app.wat"), folder.join("app.wat")).expect("copied");
    for n in 0..64_u8 {
        fs::write(folder.join(format!("data-{n}")), vec![n; 256 * 1024]).expect("written");
    }
    let mut killed = 0;
    for round in 0..25 {
        let mut import = device.command(&["import", "tools", "--name", "tools:1"]);
        let mut import = import.stdout(Stdio::null()).spawn().expect("husk starts");
        std::thread::sleep(Duration::from_millis(round * 12));
        import.kill().expect("killed");
        killed += u32::from(import.wait().expect("ended").code().is_none());
        for image in device.list() {
            assert_eq!(image["names"], serde_json::json!(["docker.io/library/tools:1"]));
            device.said(&["inspect", "tools:1"]);
        }
    }
    assert!(killed > 0, "each of them was faster");
    device.said(&["import", "tools", "--name", "tools:1"]);
    let images = device.path().join("data/images");
    let count = |folder: &str| fs::read_dir(images.join(folder)).expect("a folder").count();
    assert_eq!((count("blobs/sha256"), count("roots"), count("staging")), (3, 1, 0));

    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  restartPolicy: Never\n  containers:\n";
    let pod = format!("{pod}  - {{name: app, image: 'tools:1', imagePullPolicy: Never}}\n");
    fs::write(device.path().join("pod.yaml"), pod).expect("written");
    let mut run = command();
    run.current_dir(device.path()).args(["run", "pod.yaml", "--data-dir", "data"]);
    let run = run.stdin(Stdio::null()).output().expect("husk starts");
    assert_eq!(run.status.code(), Some(SUCCEEDED), "{}", String::from_utf8_lossy(&run.stderr));
}

#[test]
fn what_is_wrong_is_named() {
    let device = Device::new();
    fs::write(device.path().join("script.wasm"), "#!/bin/sh\n").expect("written");
    for (args, words) in [
        (&["import", "script.wasm"][..], &["script.wasm", "not a Wasm file"][..]),
        (&["import", "nowhere.tar"], &["nowhere.tar"]),
        (&["import", "app.wat", "--name", "A B"], &["A B", "invalid reference format"]),
        (&["rm", "nothing"], &["nothing", "husk image ls"]),
        (&["inspect", "nothing:1"], &["nothing:1"]),
        (&["gc", "--high", "50"], &["imageGCLowThresholdPercent"]),
    ] {
        let said = device.refused(args);
        for word in words {
            assert!(said.contains(word), "`{word}` is not in: {said}");
        }
    }
    assert_eq!(device.list(), [Value::Null; 0]);
}
