//! Families `kill_grace` and `effective_grace`: how long may something take to stop?

use husk_core::grace::{container_grace_seconds, pod_grace, stop_timeout_seconds};
use husk_core::runtime::StopReason;
use husk_core::spec::{ContainerSpec, PodSpec};
use serde_json::{Value, json};

use super::objects::probe;

pub(super) fn kill_grace(input: &Value) -> Value {
    let probe = probe(&json!({"terminationGracePeriodSeconds": input["probeTerminationGracePeriodSeconds"]}));
    let (liveness_probe, startup_probe) = (Some(probe.clone()), Some(probe));
    let container = ContainerSpec { liveness_probe, startup_probe, ..ContainerSpec::default() };
    let termination_grace_period_seconds = input["terminationGracePeriodSeconds"].as_i64();
    let pod = PodSpec { termination_grace_period_seconds, ..PodSpec::default() };
    let reason = match input["reason"].as_str() {
        Some("LivenessProbe") => Some(StopReason::LivenessProbe),
        Some("StartupProbe") => Some(StopReason::StartupProbe),
        Some("Unknown") => Some(StopReason::Unknown),
        _ => None,
    };
    let deletion = input["deletionGracePeriodSeconds"].as_i64();
    let grace = container_grace_seconds(&pod, &container, deletion, reason, input["override"].as_i64());
    json!({"stopTimeoutSeconds": stop_timeout_seconds(grace)})
}

pub(super) fn effective_grace(input: &Value) -> Value {
    let seconds = |field: &str| input[field].as_i64();
    let grace = pod_grace(
        seconds("currentGraceSeconds"),
        seconds("deletionGracePeriodSeconds"),
        seconds("override"),
        seconds("terminationGracePeriodSeconds"),
    );
    json!({"graceSeconds": grace.seconds, "shortened": grace.shortened})
}
