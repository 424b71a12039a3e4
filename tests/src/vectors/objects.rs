//! Kubernetes objects of the cases, cut down to what matters, to and from the core's types.

use std::time::Duration;

use husk_core::quantity::Quantity;
use husk_core::runtime::{Instance, InstanceState};
use husk_core::spec::{ContainerSpec, PodSpec, Probe};
use husk_core::status::{Condition, ConditionStatus, ContainerState, ContainerStatus, Phase, PodStatus, Terminated};
use k8s_openapi::api::core::v1 as k8s;
use serde_json::{Value, json};

/// A pod spec, by way of the objects that Husk reads; the default one if it isn't there.
pub(super) fn pod_spec(spec: &Value) -> PodSpec {
    let spec: Option<k8s::PodSpec> = serde_json::from_value(spec.clone()).expect("the case has a pod spec");
    husk_api::core_spec(&k8s::Pod { spec, ..k8s::Pod::default() })
}

/// A container, by the same way.
pub(super) fn container(container: Value) -> ContainerSpec {
    pod_spec(&json!({"containers": [container]})).containers.remove(0)
}

/// A probe, by the same way.
pub(super) fn probe(probe: &Value) -> Probe {
    container(json!({"livenessProbe": probe})).liveness_probe.expect("it was just given")
}

/// An instance as the runtime reports it.
pub(super) fn instance(instance: &Value) -> Instance {
    Instance {
        name: text(&instance["name"]),
        state: match instance["state"].as_str() {
            Some("created") => InstanceState::Created,
            Some("running") => InstanceState::Running,
            Some("exited") => InstanceState::Exited,
            _ => InstanceState::Unknown,
        },
        restart_count: instance["restartCount"].as_u64().unwrap_or_default() as u32,
        exit_code: code(&instance["exitCode"]),
        reason: text(&instance["reason"]).into(),
        ..Instance::default()
    }
}

pub(super) fn pod_status(status: &Value) -> PodStatus {
    PodStatus {
        phase: phase(&status["phase"]),
        reason: text(&status["reason"]).into(),
        message: text(&status["message"]),
        conditions: list(&status["conditions"], condition),
        init_container_statuses: list(&status["initContainerStatuses"], container_status),
        container_statuses: list(&status["containerStatuses"], container_status),
        ..PodStatus::default()
    }
}

pub(super) fn phase(phase: &Value) -> Phase {
    let all = [Phase::Running, Phase::Succeeded, Phase::Failed, Phase::Unknown];
    all.into_iter().find(|p| phase == p.as_str()).unwrap_or_default()
}

pub(super) fn condition(condition: &Value) -> Condition {
    Condition {
        kind: text(&condition["type"]).into(),
        status: match condition["status"].as_str() {
            Some("True") => ConditionStatus::True,
            Some("False") => ConditionStatus::False,
            _ => ConditionStatus::Unknown,
        },
        reason: text(&condition["reason"]).into(),
        message: text(&condition["message"]),
        last_transition_time: None,
        observed_generation: condition["observedGeneration"].as_i64().unwrap_or_default(),
    }
}

pub(super) fn container_status(status: &Value) -> ContainerStatus {
    ContainerStatus {
        name: text(&status["name"]),
        state: match &status["state"] {
            state if state.get("running").is_some() => ContainerState::Running { started_at: Default::default() },
            state => match state.get("terminated") {
                Some(end) => ContainerState::Terminated(terminated(end)),
                None => ContainerState::Waiting {
                    reason: text(&state["waiting"]["reason"]).into(),
                    message: text(&state["waiting"]["message"]),
                },
            },
        },
        last_state: status["lastState"].get("terminated").map(terminated),
        ready: flag(&status["ready"]),
        started: flag(&status["started"]),
        restart_count: status["restartCount"].as_u64().unwrap_or_default() as u32,
        container_id: text(&status["containerID"]),
        ..ContainerStatus::default()
    }
}

fn terminated(end: &Value) -> Terminated {
    Terminated {
        exit_code: code(&end["exitCode"]),
        reason: text(&end["reason"]).into(),
        message: text(&end["message"]),
        container_id: text(&end["containerID"]),
        ..Terminated::default()
    }
}

pub(super) fn status_json(status: &PodStatus) -> Value {
    json!({
        "phase": status.phase.as_str(),
        "reason": status.reason,
        "message": status.message,
        "conditions": status.conditions.iter().map(condition_json).collect::<Vec<_>>(),
        "initContainerStatuses": status.init_container_statuses.iter().map(container_json).collect::<Vec<_>>(),
        "containerStatuses": status.container_statuses.iter().map(container_json).collect::<Vec<_>>(),
    })
}

pub(super) fn condition_json(condition: &Condition) -> Value {
    json!({
        "type": condition.kind,
        "status": match condition.status {
            ConditionStatus::True => "True",
            ConditionStatus::False => "False",
            ConditionStatus::Unknown => "Unknown",
        },
        "reason": condition.reason,
        "message": condition.message,
        "observedGeneration": condition.observed_generation,
    })
}

fn container_json(status: &ContainerStatus) -> Value {
    json!({
        "name": status.name,
        "state": match &status.state {
            ContainerState::Waiting { reason, message } => json!({"waiting": {"reason": reason, "message": message}}),
            ContainerState::Running { .. } => json!({"running": {}}),
            ContainerState::Terminated(end) => json!({"terminated": terminated_json(end)}),
        },
        "lastState": status.last_state.as_ref().map(|end| json!({"terminated": terminated_json(end)})),
        "ready": status.ready,
        "started": status.started,
        "restartCount": status.restart_count,
        "containerID": status.container_id,
    })
}

fn terminated_json(end: &Terminated) -> Value {
    json!({
        "exitCode": end.exit_code,
        "reason": end.reason,
        "message": end.message,
        "containerID": end.container_id,
    })
}

/// The items of a list; none if it isn't there.
pub(super) fn list<T>(items: &Value, read: impl Fn(&Value) -> T) -> Vec<T> {
    items.as_array().into_iter().flatten().map(read).collect()
}

pub(super) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

pub(super) fn flag(value: &Value) -> bool {
    value.as_bool().unwrap_or_default()
}

fn code(value: &Value) -> i32 {
    value.as_i64().unwrap_or_default() as i32
}

/// A quantity; zero if it isn't there.
pub(super) fn quantity(value: &Value) -> Quantity {
    value.as_str().map(|text| Quantity::parse(text).expect("the case has a quantity")).unwrap_or_default()
}

pub(super) fn seconds(value: &Value) -> Duration {
    Duration::from_secs(value.as_u64().unwrap_or_default())
}
