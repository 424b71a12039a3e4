//! Family `termination_order`: who waits for whom when a pod stops?

use std::collections::BTreeMap;

use husk_core::termination_order::waits_for;
use serde_json::{Value, json};

use super::objects::{list, pod_spec, text};

pub(super) fn answer(input: &Value) -> Value {
    let spec = pod_spec(&input["spec"]);
    let running: Vec<String> = list(&input["running"], text);
    let is_running = |name: &str| running.iter().any(|other| other == name);
    let mut order: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for name in &running {
        let mut others = waits_for(&spec, name, is_running);
        others.sort_unstable();
        order.insert(name, others);
    }
    json!({"waitsFor": order, "waves": waves(&order)})
}

/// In each wave everybody ends who has nobody left to wait for.
fn waves<'a>(order: &BTreeMap<&'a str, Vec<&'a str>>) -> Vec<Vec<&'a str>> {
    let mut left = order.clone();
    let mut waves = Vec::new();
    while !left.is_empty() {
        let free = |others: &Vec<&str>| !others.iter().any(|other| left.contains_key(other));
        let wave: Vec<&str> = left.iter().filter(|(_, others)| free(others)).map(|(name, _)| *name).collect();
        assert!(!wave.is_empty(), "they wait for each other: {left:?}");
        left.retain(|name, _| !wave.contains(name));
        waves.push(wave);
    }
    waves
}
