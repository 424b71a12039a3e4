//! What a new status may change of the published one, and how a status ends (PHASE-08, COND-02).

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::api_status;
use crate::conditions;
use crate::reasons;
use crate::restart;
use crate::spec::{ContainerSpec, PodMeta, PodSpec, RestartPolicy};
use crate::status::{Condition, ConditionStatus, ContainerState, ContainerStatus, Phase, PodStatus, Terminated};
use crate::time::Instant;

/// The status to publish: `new` over `old`.
///
/// * Conditions of others are kept as they are in `old`; those of the node come from `new`.
/// * A terminal phase is held back, with its reason and message, while containers could still run (PHASE-08).
/// * DisruptionTarget is published together with the terminal phase.
/// * `lastTransitionTime` moves only when a condition's status changes (COND-02).
pub fn merge(old: &PodStatus, mut new: PodStatus, could_have_running_containers: bool, now: Instant) -> PodStatus {
    let ends = !old.phase.is_terminal() && new.phase.is_terminal();
    let mut published = Vec::with_capacity(old.conditions.len().max(new.conditions.len()) + 1);
    published.extend(old.conditions.iter().filter(|c| !reasons::is_owned_by_node(&c.kind)).cloned());
    for condition in core::mem::take(&mut new.conditions) {
        let due = reasons::is_owned_by_node(&condition.kind)
            || (reasons::is_shared_by_node(&condition.kind) && ends && !could_have_running_containers);
        if due {
            replace_or_append(&mut published, condition);
        }
    }
    new.conditions = published;

    if ends && could_have_running_containers {
        new.phase = old.phase;
        new.reason = old.reason.clone();
        new.message = old.message.clone();
    }
    withdraw_readiness(&mut new);
    set_transition_times(&old.conditions, &mut new.conditions, now);
    new
}

/// Gives a status its end: nothing of the pod runs any more, and nothing will.
///
/// Containers that are not known to have ended are said to have been lost. Not those that have never been started: app
/// containers of a pod that never got that far, and the init containers that were still to come.
pub fn terminate(meta: &PodMeta, spec: &PodSpec, status: &mut PodStatus) {
    if has_been_initialized(spec, status) {
        status.container_statuses.iter_mut().for_each(fill_in_end);
    }
    let last_reached = status.init_container_statuses.iter().rposition(has_left_waiting);
    // The first one had its turn in any case.
    let reached = last_reached.map_or(1, |last| last + 1);
    status.init_container_statuses.iter_mut().take(reached).for_each(fill_in_end);

    if !meta.is_static && !status.phase.is_terminal() {
        status.phase = Phase::Failed;
    }
}

/// May container statuses change from `old` to `new`? A container that has ended for good stays so.
///
/// # Errors
/// The container that would live again against its policy.
pub fn check_transition(spec: &PodSpec, old: &PodStatus, new: &PodStatus) -> Result<(), IllegalTransition> {
    if spec.restart_policy == RestartPolicy::Always || conditions::has_restart_all_rule(spec) {
        return Ok(());
    }
    let apps = (false, &spec.containers, &old.container_statuses, &new.container_statuses);
    let inits = (true, &spec.init_containers, &old.init_container_statuses, &new.init_container_statuses);
    for (init, specs, old, new) in [apps, inits] {
        let revived = old.iter().find(|was| {
            let is = new.iter().find(|is| is.name == was.name);
            let ended_for_good = end(was).is_some_and(|end| is_final(spec, specs, was, end));
            ended_for_good && is.is_some_and(|is| end(is).is_none())
        });
        if let Some(status) = revived {
            return Err(IllegalTransition { container: status.name.clone(), init });
        }
    }
    Ok(())
}

/// A container that had ended for good is said to live.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IllegalTransition {
    /// Which.
    pub container: String,
    /// It is an init container.
    pub init: bool,
}

impl fmt::Display for IllegalTransition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.init { "init container" } else { "container" };
        write!(f, "terminated {kind} {} attempted illegal transition to non-terminated state", self.container)
    }
}

impl core::error::Error for IllegalTransition {}

fn replace_or_append(conditions: &mut Vec<Condition>, condition: Condition) {
    match conditions.iter_mut().find(|c| c.kind == condition.kind) {
        Some(present) => *present = condition,
        None => conditions.push(condition),
    }
}

/// A pod in a terminal phase isn't ready, even if its probes have not been told yet.
fn withdraw_readiness(status: &mut PodStatus) {
    let Some(reason) = conditions::terminal_reason(status.phase) else { return };
    let claims_ready =
        [reasons::READY, reasons::CONTAINERS_READY].iter().any(|kind| conditions::is_true(&status.conditions, kind));
    if !claims_ready {
        return;
    }
    let observed_generation = status.observed_generation;
    for kind in [reasons::CONTAINERS_READY, reasons::READY] {
        replace_or_append(
            &mut status.conditions,
            Condition {
                kind: Cow::Borrowed(kind),
                status: ConditionStatus::False,
                reason: Cow::Borrowed(reason),
                message: String::new(),
                last_transition_time: None,
                observed_generation,
            },
        );
    }
}

fn set_transition_times(old: &[Condition], new: &mut [Condition], now: Instant) {
    for condition in new {
        let before = conditions::find(old, &condition.kind).filter(|before| before.status == condition.status);
        condition.last_transition_time = before.and_then(|before| before.last_transition_time).or(Some(now));
    }
}

/// Has any app container ever been started, or could it have been?
fn has_been_initialized(spec: &PodSpec, status: &PodStatus) -> bool {
    if spec.init_containers.is_empty() || status.container_statuses.iter().any(has_left_waiting) {
        return true;
    }
    let Some(last) = status.init_container_statuses.last() else { return false };
    match spec.init_containers.iter().find(|c| c.name == last.name) {
        Some(container) if container.is_sidecar() => {
            matches!(last.state, ContainerState::Running { .. }) && last.started
        }
        Some(_) => end(last).into_iter().chain(&last.last_state).any(|end| end.exit_code == 0),
        None => false,
    }
}

fn has_left_waiting(status: &ContainerStatus) -> bool {
    !matches!(status.state, ContainerState::Waiting { .. }) || status.last_state.is_some()
}

fn fill_in_end(status: &mut ContainerStatus) {
    if end(status).is_none() {
        status.state = ContainerState::Terminated(api_status::lost(reasons::LOST_AT_TERMINATION));
    }
}

fn is_final(spec: &PodSpec, specs: &[ContainerSpec], status: &ContainerStatus, end: &Terminated) -> bool {
    // Under OnFailure a failed container may come back whatever its own policy says, as upstream has it.
    if spec.restart_policy == RestartPolicy::OnFailure && end.exit_code != 0 {
        return false;
    }
    let container = specs.iter().find(|c| c.name == status.name);
    container.is_none_or(|c| !restart::should_restart_after_exit(c, spec.restart_policy, end.exit_code))
}

fn end(status: &ContainerStatus) -> Option<&Terminated> {
    match &status.state {
        ContainerState::Terminated(end) => Some(end),
        ContainerState::Waiting { .. } | ContainerState::Running { .. } => None,
    }
}
