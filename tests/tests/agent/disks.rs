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
