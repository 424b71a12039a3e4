//! The node is short of memory: somebody has to go (RES-09).

use serde_json::{Value, json};

use crate::static_pods::{MANIFEST, write};
use crate::world::{World, shell};

/// There is never so much left: whoever looks finds the node short.
const SHORT: &str = "evictionHard: {memory.available: 99.9%}\nevictionPressureTransitionPeriod: 1s\n";
const ENOUGH: &str = "evictionHard: {memory.available: 1Mi}\n";

fn with_request(amount: &str) -> Value {
    let mut spec = shell("sleep 100000");
    spec["containers"][0]["resources"] = json!({"requests": {"memory": amount}});
    spec
}

fn is_evicted(pod: &Value) -> bool {
    pod["status"]["phase"] == "Failed" && pod["status"]["reason"] == "Evicted"
}

/// The node's condition MemoryPressure.
fn pressure(world: &World) -> Option<Value> {
    let node = world.get("/api/v1/nodes/edge-7")?.ok();
    let mut conditions = node["status"]["conditions"].as_array()?.iter();
    conditions.find(|condition| condition["type"] == "MemoryPressure").map(|condition| condition["status"].clone())
}

// spec: RES-09
#[test]
fn pods_go_until_there_is_enough_but_not_those_from_files() {
    let mut world = World::configured(ENOUGH);
    write(&world, "stays.yaml", MANIFEST);
    world.create("modest", &with_request("64Mi"));
    world.create("hog", &shell("sleep 100000"));
    for pod in ["modest", "hog"] {
        world.running(pod);
    }
    let stays = world.running("beacon-edge-7");
    assert_eq!(pressure(&world), Some(json!("False")));

    world.kill();
    world.configure(SHORT);
    world.start();
    let hog = world.pod_until("hog", is_evicted);
    let message = hog["status"]["message"].as_str().unwrap_or_default();
    assert!(message.starts_with("The node was low on resource: memory. Threshold quantity: "), "{message}");
    assert!(message.contains("Container app was using ") && message.contains("request is 0"), "{message}");
    let target = |pod: &Value| {
        let conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().any(|condition| condition["type"] == "DisruptionTarget" && condition["status"] == "True")
    };
    assert!(target(&hog), "{hog}");
    // It holds less than it requested, so it is not the first; there is still not enough.
    let modest = world.pod_until("modest", is_evicted);
    let ended = |pod: &Value| {
        let at = &pod["status"]["containerStatuses"][0]["state"]["terminated"]["finishedAt"];
        at.as_str().map(str::to_owned).unwrap_or_else(|| panic!("{pod}"))
    };
    assert!(ended(&hog) <= ended(&modest));
    assert_eq!(pressure(&world), Some(json!("True")));
    world.event("edge-7", "EvictionThresholdMet", "Attempting to reclaim memory");
    // While it is so, nobody comes who asks for nothing.
    world.create("late", &shell("sleep 100000"));
    world.event("late", "FailedScheduling", "");
    assert_eq!(world.pod("late").expect("there")["status"]["phase"], "Pending");
    assert_eq!(world.running("beacon-edge-7")["metadata"]["uid"], stays["metadata"]["uid"]);

    world.kill();
    world.configure(ENOUGH);
    world.start();
    world.running("late");
    assert_eq!(pressure(&world), Some(json!("False")));
}
