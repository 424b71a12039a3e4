//! Disks that fail under volumes (PHASE-10).

use serde_json::{Value, json};

use crate::world::{World, shell};

/// A pod that is restarted whatever happens, with a folder of the host.
fn with_folder(folder: &std::path::Path) -> Value {
    let mut spec = shell("while true; do sleep 1; done");
    spec["containers"][0]["volumeMounts"] = json!([{"name": "disk", "mountPath": "/disk"}]);
    spec["volumes"] = json!([{"name": "disk", "hostPath": {"path": folder, "type": "Directory"}}]);
    spec
}

// spec: PHASE-10
#[test]
fn a_pod_fails_with_the_disk_of_its_volume() {
    let mut world = World::new(&[]);
    let (disk, away) = (world.path("disk"), world.path("away"));
    std::fs::create_dir(&disk).expect("a folder");
    world.create("on-disk", &with_folder(&disk));
    world.create("beside", &shell("sleep 1000"));
    world.running("on-disk");
    let beside = world.running("beside");
    // As when a stick is pulled out: what was mounted there is gone.
    std::fs::rename(&disk, &away).expect("renamed");
    let failed = world.pod_until("on-disk", |pod| pod["status"]["phase"] == "Failed");
    let message = failed["status"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("\"disk\"") && message.contains("failed"), "{failed}");
    assert!(failed["status"]["containerStatuses"][0]["state"]["terminated"].is_object(), "{failed}");
    world.until("an event", |world| {
        let events = world.get("/api/v1/namespaces/default/events")?.ok();
        let says =
            |event: &Value| event["involvedObject"]["name"] == "on-disk" && event["message"].as_str() == Some(message);
        events["items"].as_array()?.iter().any(says).then_some(())
    });
    // It stays so when the disk is back, and who has no part in it goes on.
    std::fs::rename(&away, &disk).expect("renamed");
    world.create("on-disk-again", &with_folder(&disk));
    world.running("on-disk-again");
    assert_eq!(world.pod("on-disk").expect("it is kept")["status"]["phase"], "Failed");
    let containers = |pod: &Value| pod["status"]["containerStatuses"].clone();
    assert_eq!(containers(&world.running("beside")), containers(&beside));
}

// spec: PHASE-10
#[test]
fn a_pod_fails_when_another_disk_is_in_the_place_of_its_own() {
    // On no disk that a test has its folders on.
    let other = std::path::Path::new("/proc");
    let mut world = World::new(&[]);
    let (place, disk) = (world.path("place"), world.path("disk"));
    std::fs::create_dir(&disk).expect("a folder");
    let number = |path: &std::path::Path| std::os::unix::fs::MetadataExt::dev(&path.metadata().expect("it is there"));
    assert_ne!(number(other), number(&disk));
    std::os::unix::fs::symlink(&disk, &place).expect("linked");
    world.create("on-disk", &with_folder(&place));
    world.running("on-disk");
    // As when a stick is unmounted: the folder that it was mounted on is there.
    let new = world.path("new");
    std::os::unix::fs::symlink(other, &new).expect("linked");
    std::fs::rename(new, &place).expect("renamed");
    let failed = world.pod_until("on-disk", |pod| pod["status"]["phase"] == "Failed");
    let message = failed["status"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("\"disk\"") && message.contains("not mounted any more"), "{failed}");
}
