//! From the core's status to the object that clients read.

use std::collections::BTreeMap;

use husk_core::Instant;
use husk_core::spec::ResourceList;
use husk_core::status as core_status;
use jiff::Timestamp;
use k8s_openapi::api::core::v1 as k8s;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// The wall-clock time of [`Instant::ZERO`]: what a shell adds to the core's monotonic time to show it to people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wall(pub Timestamp);

impl Wall {
    /// The wall-clock time of an instant, in whole seconds as everywhere in the API.
    pub fn time(&self, instant: Instant) -> Time {
        Time(self.timestamp(instant))
    }

    /// The same as a plain timestamp.
    pub fn timestamp(&self, instant: Instant) -> Timestamp {
        let exact = self.0.saturating_add(instant.since_epoch()).unwrap_or(Timestamp::MAX);
        Timestamp::from_second(exact.as_second()).unwrap_or(exact)
    }
}

/// `status` as clients see it.
pub fn status_object(status: &core_status::PodStatus, wall: &Wall) -> k8s::PodStatus {
    let containers = |statuses: &[core_status::ContainerStatus]| {
        let statuses: Vec<_> = statuses.iter().map(|status| container(status, wall)).collect();
        (!statuses.is_empty()).then_some(statuses)
    };
    let pod_ips: Vec<_> = status.pod_ips.iter().map(|ip| k8s::PodIP { ip: ip.clone() }).collect();
    k8s::PodStatus {
        observed_generation: some_number(status.observed_generation),
        phase: Some(status.phase.as_str().into()),
        conditions: Some(status.conditions.iter().map(|status| condition(status, wall)).collect()),
        message: some_text(&status.message),
        reason: some_text(&status.reason),
        pod_ip: status.pod_ips.first().cloned(),
        pod_ips: (!pod_ips.is_empty()).then_some(pod_ips),
        start_time: status.start_time.map(|at| wall.time(at)),
        init_container_statuses: containers(&status.init_container_statuses),
        container_statuses: containers(&status.container_statuses),
        ephemeral_container_statuses: containers(&status.ephemeral_container_statuses),
        qos_class: status.qos_class.map(|class| class.as_str().into()),
        ..k8s::PodStatus::default()
    }
}

fn condition(condition: &core_status::Condition, wall: &Wall) -> k8s::PodCondition {
    let status = match condition.status {
        core_status::ConditionStatus::True => "True",
        core_status::ConditionStatus::False => "False",
        core_status::ConditionStatus::Unknown => "Unknown",
    };
    k8s::PodCondition {
        type_: condition.kind.to_string(),
        status: status.into(),
        reason: some_text(&condition.reason),
        message: some_text(&condition.message),
        last_transition_time: condition.last_transition_time.map(|at| wall.time(at)),
        observed_generation: some_number(condition.observed_generation),
        ..k8s::PodCondition::default()
    }
}

fn container(status: &core_status::ContainerStatus, wall: &Wall) -> k8s::ContainerStatus {
    let last_state = status
        .last_state
        .as_ref()
        .map(|last| k8s::ContainerState { terminated: Some(terminated(last, wall)), ..k8s::ContainerState::default() });
    k8s::ContainerStatus {
        name: status.name.clone(),
        state: Some(state(&status.state, wall)),
        last_state,
        ready: status.ready,
        started: Some(status.started),
        restart_count: i32::try_from(status.restart_count).unwrap_or(i32::MAX),
        image: status.image.clone(),
        image_id: status.image_id.clone(),
        container_id: some_text(&status.container_id),
        resources: status.resources.as_ref().map(|resources| k8s::ResourceRequirements {
            requests: amounts(&resources.requests),
            limits: amounts(&resources.limits),
            ..k8s::ResourceRequirements::default()
        }),
        allocated_resources: amounts(&status.allocated_resources),
        ..k8s::ContainerStatus::default()
    }
}

fn state(state: &core_status::ContainerState, wall: &Wall) -> k8s::ContainerState {
    let mut object = k8s::ContainerState::default();
    match state {
        core_status::ContainerState::Waiting { reason, message } => {
            let waiting = k8s::ContainerStateWaiting { reason: some_text(reason), message: some_text(message) };
            object.waiting = Some(waiting);
        }
        core_status::ContainerState::Running { started_at } => {
            object.running = Some(k8s::ContainerStateRunning { started_at: Some(wall.time(*started_at)) });
        }
        core_status::ContainerState::Terminated(ended) => object.terminated = Some(terminated(ended, wall)),
    }
    object
}

fn terminated(ended: &core_status::Terminated, wall: &Wall) -> k8s::ContainerStateTerminated {
    k8s::ContainerStateTerminated {
        exit_code: ended.exit_code,
        signal: (ended.signal != 0).then_some(ended.signal),
        reason: some_text(&ended.reason),
        message: some_text(&ended.message),
        started_at: ended.started_at.map(|at| wall.time(at)),
        finished_at: ended.finished_at.map(|at| wall.time(at)),
        container_id: some_text(&ended.container_id),
    }
}

fn amounts(list: &ResourceList) -> Option<BTreeMap<String, Quantity>> {
    let written = list.iter().map(|(name, amount)| (name.clone(), Quantity(amount.to_string())));
    (!list.is_empty()).then(|| written.collect())
}

fn some_text(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.into())
}

fn some_number(number: i64) -> Option<i64> {
    (number != 0).then_some(number)
}
