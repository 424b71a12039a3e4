//! Family `api_status`: the whole status from the runtime's view.

use husk_core::api_status::{StartFailure, StatusInput, generate};
use husk_core::runtime::{Instance, RuntimeStatus, Sandbox, Verdict, Verdicts};
use husk_core::spec::PodMeta;
use husk_core::time::Instant;
use serde_json::Value;

use super::objects;

pub(super) fn answer(input: &Value) -> Value {
    let status = generate(StatusInput {
        meta: &PodMeta::default(),
        spec: &objects::pod_spec(&input["spec"]),
        runtime: &RuntimeStatus {
            ips: Vec::new(),
            sandboxes: match input["sandbox"].as_str() {
                Some("ready") => vec![Sandbox { ready: true, has_ip: true, ..Sandbox::default() }],
                Some("notready") => vec![Sandbox { ready: false, has_ip: true, ..Sandbox::default() }],
                _ => Vec::new(),
            },
            instances: objects::list(&input["runtimeContainers"], |found| instance(found, &input["probeResults"])),
        },
        old: &objects::pod_status(&input["oldStatus"]),
        deleting: objects::flag(&input["deleting"]),
        terminal: objects::flag(&input["terminal"]),
        start_failures: &objects::list(&input["startFailures"], |failure| StartFailure {
            container: objects::text(&failure["name"]),
            reason: objects::text(&failure["reason"]).into(),
            message: objects::text(&failure["message"]),
        }),
        failed_by_node: None,
        now: Instant::ZERO,
    });
    objects::status_json(&status)
}

fn instance(instance: &Value, results: &Value) -> Instance {
    let id = objects::text(&instance["id"]);
    let verdict = |kind: &str| match results[&id][kind].as_str() {
        Some("success") => Some(Verdict::Success),
        Some("failure") => Some(Verdict::Failure),
        Some(_) => Some(Verdict::Unknown),
        None => None,
    };
    Instance {
        verdicts: Verdicts { liveness: None, readiness: verdict("readiness"), startup: verdict("startup") },
        // What the cases' runtime is called.
        id: format!("t://{id}"),
        ..objects::instance(instance)
    }
}
