//! Will a container be restarted? Policies and rules (RESTART-01, RESTART-07, RESTART-08).

use crate::runtime::{Instance, InstanceState, StopReason};
use crate::spec::{ContainerSpec, ExitCodeOperator, RestartAction, RestartPolicy, RestartRule};

/// The policy that holds for a container: its own, or else the pod's (RESTART-07).
pub fn effective_policy(container: &ContainerSpec, pod: RestartPolicy) -> RestartPolicy {
    container.restart_policy.unwrap_or(pod)
}

/// The first rule that matches an exit code. Rules count only beside a restart policy of the container (RESTART-08).
pub fn matching_rule(container: &ContainerSpec, exit_code: i32) -> Option<&RestartRule> {
    container.restart_policy?;
    container.restart_policy_rules.iter().find(|rule| {
        let listed = rule.values.contains(&exit_code);
        match rule.operator {
            ExitCodeOperator::In => listed,
            ExitCodeOperator::NotIn => !listed,
        }
    })
}

/// The exit code asks for a restart of every container of the pod (RESTART-09).
pub fn asks_to_restart_all(container: &ContainerSpec, exit_code: i32) -> bool {
    matching_rule(container, exit_code).is_some_and(|rule| rule.action == RestartAction::RestartAllContainers)
}

/// May a container that ended with this exit code run again? Rules first, then the policy that holds.
pub fn should_restart_after_exit(container: &ContainerSpec, pod: RestartPolicy, exit_code: i32) -> bool {
    if matching_rule(container, exit_code).is_some() {
        return true;
    }
    match effective_policy(container, pod) {
        RestartPolicy::Always => true,
        RestartPolicy::OnFailure => exit_code != 0,
        RestartPolicy::Never => false,
    }
}

/// May a container run again after the node stopped it because of a failure? Rules are not asked.
pub fn should_restart_on_failure(container: &ContainerSpec, pod: RestartPolicy) -> bool {
    effective_policy(container, pod) != RestartPolicy::Never
}

/// Does a container want to be started, given its newest instance?
///
/// An instance that a probe or hook had stopped counts as failed whatever its exit code (RESTART-10), if no rule is for that
/// code; one that was stopped because of a change is replaced under every policy (POD-08).
pub fn should_start(container: &ContainerSpec, pod: RestartPolicy, deleting: bool, newest: Option<&Instance>) -> bool {
    if deleting {
        return false;
    }
    let Some(instance) = newest else { return true };
    match instance.state {
        InstanceState::Running => false,
        InstanceState::Unknown | InstanceState::Created => true,
        InstanceState::Exited => should_restart_exited(container, pod, instance),
    }
}

/// May a container run again after this instance, which has exited?
pub fn should_restart_exited(container: &ContainerSpec, pod: RestartPolicy, exited: &Instance) -> bool {
    match exited.stopped_for {
        Some(StopReason::Changed | StopReason::Resize | StopReason::RestartAllContainers | StopReason::Interrupted) => {
            true
        }
        Some(StopReason::LivenessProbe | StopReason::StartupProbe | StopReason::PostStartHook) => {
            // It has exited all the same, so its rules are asked first (RESTART-08).
            matching_rule(container, exited.exit_code).is_some() || should_restart_on_failure(container, pod)
        }
        Some(StopReason::PodEnds | StopReason::Unknown) | None => {
            should_restart_after_exit(container, pod, exited.exit_code)
        }
    }
}
