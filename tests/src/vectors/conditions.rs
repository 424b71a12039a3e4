//! Family `conditions`: the conditions that the node sets, each on its own.

use husk_core::conditions::{self, ConditionInput};
use husk_core::runtime::{RuntimeStatus, Sandbox};
use husk_core::status::PodStatus;
use husk_core::statuses::Statuses;
use serde_json::Value;

use super::objects;

pub(super) fn answer(input: &Value) -> Value {
    let spec = objects::pod_spec(&input["spec"]);
    let known = input["statuses"].is_array();
    let statuses = objects::list(&input["statuses"], objects::container_status);
    let present = objects::list(&input["conditions"], objects::condition);
    let old = PodStatus {
        conditions: objects::list(&input["oldConditions"], objects::condition),
        container_statuses: objects::list(&input["oldStatuses"], objects::container_status),
        ..PodStatus::default()
    };
    let runtime = RuntimeStatus {
        sandboxes: objects::list(&input["sandboxes"], |sandbox| Sandbox {
            ready: objects::flag(&sandbox["ready"]),
            has_ip: sandbox["ip"].is_string(),
            ..Sandbox::default()
        }),
        instances: objects::list(&input["runtimeContainers"], objects::instance),
        ..RuntimeStatus::default()
    };
    let facts = ConditionInput {
        spec: &spec,
        generation: input["generation"].as_i64().unwrap_or_default(),
        phase: objects::phase(&input["phase"]),
        statuses: known.then_some(Statuses { init: &[], app: &statuses }),
        old: &old,
    };
    let containers_ready = conditions::containers_ready(facts);
    let all = [
        conditions::ready_to_start_containers(facts, &runtime),
        conditions::initialized(facts),
        conditions::ready(facts, &containers_ready, &present),
        containers_ready,
        conditions::all_containers_restarting(facts, &runtime),
    ];
    all.iter().map(objects::condition_json).collect()
}
