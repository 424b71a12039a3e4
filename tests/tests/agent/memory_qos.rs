//! What is kept of the node's memory for pods that don't hold it yet, by configuration.

use std::fs;

use serde_json::{Value, json};

use crate::world::{World, shell};

/// Takes all that it gets.
const HOG: &str = r#"(module (memory (export "memory") 1)
    (func (export "_start") (loop $l (drop (memory.grow (i32.const 16))) (br $l))))"#;

/// An agent whose pods have 64 MiB together.
fn small(policy: &str) -> World {
    let meminfo = fs::read_to_string("/proc/meminfo").expect("Linux");
    let total = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB"));
    let reserved = total.expect("a line of it").parse::<u64>().expect("a number") - (64 << 10);
    // Nothing has to be left beyond that.
    let eviction = "evictionHard: {memory.available: 0%}";
    World::configured(&format!(
        "systemReserved: {{memory: {reserved}Ki}}\n{eviction}\nmemoryReservationPolicy: {policy}\n"
    ))
}

/// What ends one who takes all.
fn end_of_a_hog(world: &mut World) -> String {
    fs::write(world.path("hog.wat"), HOG).expect("written");
    let image = world.path("hog.wat").display().to_string();
    let spec = json!({"restartPolicy": "Never", "containers": [{"name": "app", "image": image}]});
    world.create("hog", &spec);
    let pod = world.pod_until("hog", |pod| pod["status"]["phase"] == "Failed");
    let ended = &pod["status"]["containerStatuses"][0]["state"]["terminated"];
    assert_eq!((&ended["reason"], &ended["exitCode"]), (&json!("OOMKilled"), &json!(137)), "{ended}");
    ended["message"].as_str().expect("a message").to_owned()
}

fn guaranteed() -> Value {
    let mut spec = shell("sleep 100000");
    spec["containers"][0]["resources"] = json!({"limits": {"cpu": "10m", "memory": "40Mi"}});
    spec
}

// spec: RES-10
#[test]
fn what_guaranteed_pods_request_is_kept_for_them() {
    let mut world = small("TieredReservation");
    world.create("guaranteed", &guaranteed());
    world.running("guaranteed");
    let message = end_of_a_hog(&mut world);
    assert!(message.contains("memory limit of the node") && message.contains("kept for other pods"), "{message}");
    world.delete("guaranteed");
    world.until("it is gone", |world| world.pod("guaranteed").is_none().then_some(()));
    world.delete("hog");
    world.until("it is gone", |world| world.pod("hog").is_none().then_some(()));
    let message = end_of_a_hog(&mut world);
    assert!(!message.contains("kept for other pods"), "nobody is there: {message}");
}

#[test]
fn nothing_is_kept_unless_that_is_configured() {
    let mut world = small("None");
    world.create("guaranteed", &guaranteed());
    world.running("guaranteed");
    let message = end_of_a_hog(&mut world);
    assert!(message.contains("memory limit of the node") && !message.contains("kept"), "{message}");
}
