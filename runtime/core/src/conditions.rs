//! The conditions that the node sets on a pod (COND-01, COND-03, COND-04, COND-08).
//!
//! They are made without `lastTransitionTime`; [`crate::status_manager::merge`] knows what was before and puts it in.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::actions;
use crate::reasons;
use crate::runtime::RuntimeStatus;
use crate::spec::{ContainerSpec, PodSpec, RestartAction};
use crate::status::{Condition, ConditionStatus, ContainerState, ContainerStatus, Phase, PodStatus};
use crate::statuses::Statuses;

/// What conditions depend on.
#[derive(Clone, Copy, Debug)]
pub struct ConditionInput<'a> {
    /// What the pod is asked to be.
    pub spec: &'a PodSpec,
    /// `metadata.generation`.
    pub generation: i64,
    /// The pod's phase.
    pub phase: Phase,
    /// How its containers are; none if that isn't known at all.
    pub statuses: Option<Statuses<'a>>,
    /// The status so far.
    pub old: &'a PodStatus,
}

/// `PodReadyToStartContainers`: there is exactly one ready sandbox, it is the newest, and it has an address.
pub fn ready_to_start_containers(input: ConditionInput<'_>, runtime: &RuntimeStatus) -> Condition {
    let one_ready = runtime.sandboxes.iter().filter(|s| s.ready).count() == 1;
    let usable = runtime.sandboxes.first().is_some_and(|sandbox| {
        let host_network = input.spec.host_network;
        sandbox.ready && sandbox.host_network == host_network && (sandbox.has_ip || host_network)
    });
    condition(reasons::POD_READY_TO_START_CONTAINERS, input.generation, Finding::plain(one_ready && usable))
}

/// `Initialized`: all init containers are done, or an app container has been started already.
pub fn initialized(input: ConditionInput<'_>) -> Condition {
    condition(reasons::INITIALIZED, input.generation, initialized_finding(input))
}

/// `ContainersReady`: all app containers and sidecars are ready.
pub fn containers_ready(input: ConditionInput<'_>) -> Condition {
    condition(reasons::CONTAINERS_READY, input.generation, containers_ready_finding(input))
}

/// `Ready`: ContainersReady, and every readiness gate's condition, found in `present`, is True (COND-04).
pub fn ready(input: ConditionInput<'_>, containers_ready: &Condition, present: &[Condition]) -> Condition {
    let finding = if containers_ready.status == ConditionStatus::True {
        gates_finding(&input.spec.readiness_gates, present)
    } else {
        // Word for word the same: it says why already.
        Finding { holds: false, reason: containers_ready.reason.clone(), message: containers_ready.message.clone() }
    };
    condition(reasons::READY, input.generation, finding)
}

/// `AllContainersRestarting`: every container is being restarted in place (RESTART-09). It carries no observed generation.
pub fn all_containers_restarting(input: ConditionInput<'_>, runtime: &RuntimeStatus) -> Condition {
    let finding = match terminal_reason(input.phase) {
        Some(reason) => Finding::no(reason, String::new()),
        // With no instance left there is nothing more to remove.
        None if !actions::cleaned_up(input.spec, runtime)
            && actions::restart_all_wanted(input.spec, runtime, input.old) =>
        {
            Finding {
                holds: true,
                reason: Cow::Borrowed(reasons::RESTART_ALL_CONTAINERS_STARTED),
                message: reasons::RESTART_ALL_CONTAINERS_STARTED_MESSAGE.into(),
            }
        }
        None => Finding::plain(false),
    };
    condition(reasons::ALL_CONTAINERS_RESTARTING, 0, finding)
}

/// May an exit code of some container restart all of them?
pub fn has_restart_all_rule(spec: &PodSpec) -> bool {
    let mut rules = spec.init_containers.iter().chain(&spec.containers).flat_map(|c| &c.restart_policy_rules);
    rules.any(|rule| rule.action == RestartAction::RestartAllContainers)
}

/// The condition of that type.
pub fn find<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|c| c.kind == kind)
}

/// Is the condition of that type there, and True?
pub fn is_true(conditions: &[Condition], kind: &str) -> bool {
    find(conditions, kind).is_some_and(|c| c.status == ConditionStatus::True)
}

/// What `ContainersReady` and `Ready` say in a terminal phase; none in others.
pub(crate) fn terminal_reason(phase: Phase) -> Option<&'static str> {
    match phase {
        Phase::Succeeded => Some(reasons::POD_COMPLETED),
        Phase::Failed => Some(reasons::POD_FAILED),
        Phase::Pending | Phase::Running | Phase::Unknown => None,
    }
}

/// What a condition says, apart from whose it is.
struct Finding {
    holds: bool,
    reason: Cow<'static, str>,
    message: String,
}

impl Finding {
    fn plain(holds: bool) -> Self {
        Self { holds, reason: Cow::Borrowed(""), message: String::new() }
    }

    fn no(reason: &'static str, message: String) -> Self {
        Self { holds: false, reason: Cow::Borrowed(reason), message }
    }
}

fn condition(kind: &'static str, observed_generation: i64, finding: Finding) -> Condition {
    Condition {
        kind: Cow::Borrowed(kind),
        status: finding.holds.into(),
        reason: finding.reason,
        message: finding.message,
        last_transition_time: None,
        observed_generation,
    }
}

fn initialized_finding(input: ConditionInput<'_>) -> Finding {
    let Some(statuses) = input.statuses else {
        return match input.spec.init_containers.is_empty() {
            true => Finding::plain(true),
            false => Finding::no(reasons::UNKNOWN_CONTAINER_STATUSES, String::new()),
        };
    };
    let shortfall = Shortfall::of(input.spec.init_containers.iter(), statuses, |container, status| {
        if container.is_sidecar() { status.started } else { status.ready }
    });
    if input.phase == Phase::Succeeded && shortfall.unknown.is_empty() {
        return Finding { holds: true, reason: Cow::Borrowed(reasons::POD_COMPLETED), message: String::new() };
    }
    // Once initialized or started, a pod stays initialized while sidecars, or all containers, restart.
    let already = is_true(&input.old.conditions, reasons::INITIALIZED)
        || input.spec.containers.iter().any(|c| has_started(c, statuses));
    if already || shortfall.is_empty() {
        return Finding::plain(true);
    }
    Finding::no(reasons::CONTAINERS_NOT_INITIALIZED, shortfall.message("incomplete"))
}

fn containers_ready_finding(input: ConditionInput<'_>) -> Finding {
    let Some(statuses) = input.statuses else {
        return Finding::no(reasons::UNKNOWN_CONTAINER_STATUSES, String::new());
    };
    let sidecars = input.spec.init_containers.iter().filter(|c| c.is_sidecar());
    let shortfall = Shortfall::of(sidecars.chain(&input.spec.containers), statuses, |_, status| status.ready);
    match terminal_reason(input.phase) {
        Some(reason) if input.phase == Phase::Failed || shortfall.unknown.is_empty() => {
            Finding::no(reason, String::new())
        }
        _ if shortfall.is_empty() => Finding::plain(true),
        _ => Finding::no(reasons::CONTAINERS_NOT_READY, shortfall.message("unready")),
    }
}

fn gates_finding(gates: &[String], present: &[Condition]) -> Finding {
    let complaints: Vec<String> = gates
        .iter()
        .filter_map(|gate| match find(present, gate).map(|c| c.status) {
            None => Some(format!("corresponding condition of pod readiness gate {gate:?} does not exist.")),
            Some(ConditionStatus::True) => None,
            Some(other) => Some(format!(
                "the status of pod readiness gate {gate:?} is not \"True\", but {}",
                if other == ConditionStatus::False { "False" } else { "Unknown" }
            )),
        })
        .collect();
    match complaints.is_empty() {
        true => Finding::plain(true),
        false => Finding::no(reasons::READINESS_GATES_NOT_READY, complaints.join(", ")),
    }
}

/// Containers that keep a condition from holding.
#[derive(Default)]
struct Shortfall<'a> {
    /// Nothing is known of them.
    unknown: Vec<&'a str>,
    /// They aren't as they should be.
    lacking: Vec<&'a str>,
}

impl<'a> Shortfall<'a> {
    fn of(
        containers: impl Iterator<Item = &'a ContainerSpec>,
        statuses: Statuses<'_>,
        fine: impl Fn(&ContainerSpec, &ContainerStatus) -> bool,
    ) -> Self {
        let mut shortfall = Self::default();
        for container in containers {
            match statuses.find(&container.name) {
                None => shortfall.unknown.push(&container.name),
                Some(status) if !fine(container, status) => shortfall.lacking.push(&container.name),
                Some(_) => {}
            }
        }
        shortfall
    }

    fn is_empty(&self) -> bool {
        self.unknown.is_empty() && self.lacking.is_empty()
    }

    fn message(&self, lacking: &str) -> String {
        let list = |what: &str, names: &[&str]| format!("containers with {what} status: [{}]", names.join(" "));
        match (self.unknown.as_slice(), self.lacking.as_slice()) {
            (unknown, []) => list("unknown", unknown),
            ([], names) => list(lacking, names),
            (unknown, names) => format!("{}, {}", list("unknown", unknown), list(lacking, names)),
        }
    }
}

fn has_started(container: &ContainerSpec, statuses: Statuses<'_>) -> bool {
    // One that waits to be started again does not count, as upstream has it.
    statuses.find(&container.name).is_some_and(|status| !matches!(status.state, ContainerState::Waiting { .. }))
}
