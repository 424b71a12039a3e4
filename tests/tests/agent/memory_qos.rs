//! What is kept of the node's memory for pods that don't hold it yet, by configuration.

use std::fs;

use serde_json::{Value, json};

use crate::world::{World, shell};

/// Takes all that it gets.
const HOG: &str = r#"(module (memory (export "memory") 1)
    (func (export "_start") (loop $l (drop (memory.grow (i32.const 16))) (br $l))))"#;

/// An agent whose pods have 64 MiB together, and of whose memory nothing has to be left beyond that.
fn small(policy: &str) -> World {
    let own = "evictionHard: {memory.available: 0%}";
    let mut world = World::configured(own);
    let node = world.get("/api/v1/nodes/edge-7").expect("an answer").ok();
    let capacity = node["status"]["capacity"]["memory"].as_str().expect("an amount");
    let reserved = husk_core::quantity::Quantity::parse(capacity).expect("a quantity").value() - (64 << 20);
    world.kill();
    world.configure(&format!("systemReserved: {{memory: {reserved}}}\n{own}\nmemoryReservationPolicy: {policy}\n"));
    world.start();
    world
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
