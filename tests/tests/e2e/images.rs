//! `husk image`: the store of images by hand.

use std::fs;
use std::path::Path;
use std::process::{Output, Stdio};

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

    fn image(&self, args: &[&str]) -> Output {
        let data = self.path().join("data");
        let mut command = command();
        command.current_dir(self.path()).arg("image").args(args).arg("--data-dir").arg(data);
        command.stdin(Stdio::null()).output().expect("husk starts")
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
