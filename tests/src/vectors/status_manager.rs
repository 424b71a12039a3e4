//! Family `status_manager`: the end of a status, what may change, and what gets published.

use husk_core::spec::PodMeta;
use husk_core::status_manager::{check_transition, merge, terminate};
use husk_core::time::Instant;
use serde_json::{Value, json};

use super::objects;

pub(super) fn answer(input: &Value) -> Value {
    let status = |name: &str| objects::pod_status(&input[name]);
    let Some(spec) = input.get("spec").map(objects::pod_spec) else {
        let could_have_running = objects::flag(&input["couldHaveRunningContainers"]);
        let merged = merge(&status("oldStatus"), status("newStatus"), could_have_running, Instant::ZERO);
        return objects::status_json(&merged);
    };
    if input.get("status").is_some() {
        let mut status = status("status");
        terminate(&PodMeta::default(), &spec, &mut status);
        return objects::status_json(&status);
    }
    match check_transition(&spec, &status("oldStatus"), &status("newStatus")) {
        Ok(()) => json!({}),
        Err(illegal) => json!({"error": illegal.to_string()}),
    }
}
