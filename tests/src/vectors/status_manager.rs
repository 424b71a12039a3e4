//! Family `status_manager`: the end of a status, what may change, and what gets published.

use husk_core::spec::PodMeta;
use husk_core::status_manager::{check_transition, merge, terminate};
use husk_core::time::Instant;
use serde_json::{Value, json};

use super::objects;

pub(super) fn answer(input: &Value) -> Value {
    let spec = objects::pod_spec(&input["spec"]);
    if input.get("status").is_some() {
        let mut status = objects::pod_status(&input["status"]);
        terminate(&PodMeta::default(), &spec, &mut status);
        return objects::status_json(&status);
    }
    let [old, new] = ["oldStatus", "newStatus"].map(|name| objects::pod_status(&input[name]));
    if input.get("spec").is_some() {
        return match check_transition(&spec, &old, &new) {
            Ok(()) => json!({}),
            Err(illegal) => json!({"error": illegal.to_string()}),
        };
    }
    let could_have_running = objects::flag(&input["couldHaveRunningContainers"]);
    objects::status_json(&merge(&old, new, could_have_running, Instant::ZERO))
}
