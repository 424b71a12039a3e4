//! The agent and `husk image` on one store.

use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use crate::husk::command;
use crate::world::{World, sleeper};

fn image(world: &World, args: &[&str]) -> Output {
    let mut command = command();
    command.current_dir(world.path(".")).arg("image").args(args).arg("--data-dir").arg(world.path("data"));
    command.output().expect("husk starts")
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn write_guest(path: &Path) {
    let name = path.file_name().expect("a file").to_string_lossy();
    std::fs::write(path, sleeper(&name)).expect("written");
}

/// Names of the images of the store.
fn names(world: &World) -> Vec<String> {
    let list: Value = serde_json::from_slice(&image(world, &["ls", "-o", "json"]).stdout).expect("JSON");
    let images = list.as_array().expect("images").iter();
    images
        .flat_map(|image| image["names"].as_array().expect("names"))
        .map(|name| name.as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn what_a_pod_uses_stays_through_kill_9_and_goes_when_the_pod_is_gone() {
    let mut world = World::new(&[]);
    write_guest(&world.path("app.wat"));
    let imported = said(&image(&world, &["import", "app.wat", "--name", "app:1"]));
    let digest = imported.trim().rsplit(' ').next().expect("a digest").to_owned();
    let container = json!({"name": "app", "image": "app:1", "imagePullPolicy": "Never"});
    world.create("web", &json!({"terminationGracePeriodSeconds": 1, "containers": [container]}));
    let pod = world.running("web");
    let status = &pod["status"]["containerStatuses"][0];
    assert_eq!(status["imageID"], format!("docker.io/library/app@{digest}"));

    let kept = |world: &World| {
        let refused = image(world, &["rm", "app:1"]);
        assert!(said(&refused).contains("in use"), "{}", said(&refused));
        assert!(said(&image(world, &["gc", "--all"])).starts_with("0 images removed"));
    };
    kept(&world);
    world.kill();
    world.start();
    world.running("web");
    kept(&world);
    world.delete("web");
    world.gone("web");
    world.until("it is free", |world| image(world, &["rm", "app:1"]).status.success().then_some(()));
    let left: Value = serde_json::from_slice(&image(&world, &["ls", "-o", "json"]).stdout).expect("JSON");
    assert_eq!(left, json!([]));
}

#[test]
fn images_come_from_the_configured_sources() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("config.yaml");
    std::fs::create_dir(folder.path().join("stick")).expect("made");
    write_guest(&folder.path().join("stick/sensor.wat"));
    let source = folder.path().join("stick");
    std::fs::write(&config, format!("husk: {{imageSources: [{source:?}]}}\n")).expect("written");
    let mut world = World::new(&["--config", &config.to_string_lossy()]);
    let spec = json!({"terminationGracePeriodSeconds": 1, "containers": [{"name": "app", "image": "sensor"}]});
    world.create("sensor", &spec);
    world.running("sensor");
    // The stick is pulled out, the device restarts: what is on it starts.
    std::fs::remove_dir_all(source).expect("removed");
    world.kill();
    world.start();
    world.running("sensor");
    world.create("more", &spec);
    world.running("more");
    assert_eq!(world.end(), Some(0), "{}", world.log());
}

#[test]
fn images_that_nobody_uses_go_when_the_disk_is_too_full() {
    let mut world = World::configured("imageGCHighThresholdPercent: 100\n");
    for name in ["app", "old"] {
        write_guest(&world.path(&format!("{name}.wat")));
        let imported = image(&world, &["import", &format!("{name}.wat"), "--name", &format!("{name}:1")]);
        assert!(imported.status.success(), "{}", said(&imported));
    }
    let container = json!({"name": "app", "image": "app:1", "imagePullPolicy": "Never"});
    world.create("web", &json!({"terminationGracePeriodSeconds": 1, "containers": [container]}));
    let before = world.running("web");
    let (app, old) = ("docker.io/library/app:1".to_owned(), "docker.io/library/old:1".to_owned());
    // Any disk is too full for that, but what is young stays.
    world.configure("{imageGCHighThresholdPercent: 1, imageGCLowThresholdPercent: 0, imageMinimumGCAge: 1h}\n");
    world.signal("HUP");
    let message = world.event("edge-7", "FreeDiskSpaceFailed", "Failed to garbage collect required amount of images");
    assert!(message.ends_with("but only found 0 bytes eligible to free."), "{message}");
    assert_eq!(names(&world), [app.clone(), old]);
    world.configure("{imageGCHighThresholdPercent: 1, imageGCLowThresholdPercent: 0, imageMinimumGCAge: 0s}\n");
    world.signal("HUP");
    world.until("only what is used is left", |world| (names(world) == [&*app]).then_some(()));
    assert!(world.log().contains("removed images that nobody uses"), "{}", world.log());
    assert_eq!(world.running("web")["status"]["containerStatuses"], before["status"]["containerStatuses"]);
}
