//! Init containers and sidecars (INIT-01, INIT-02, SIDE-01, SIDE-02).

use alloc::format;
use alloc::string::String;

use super::{ContainerToKill, PodActions, PodView, any_regular_container_active, resize};
use crate::restart;
use crate::runtime::{Instance, InstanceState, StopReason, Verdict};
use crate::spec::{ContainerKind, ContainerSpec};

/// What a look at one init container says about those after it.
enum Step {
    /// Nothing to be said.
    Stay,
    /// It is done (or started, if a sidecar): the next one's turn.
    Next,
    /// The pod can't go on.
    Fail,
}

/// Computes what the init containers need. Returns true if app containers may run.
///
/// Walks backwards, because instances of completed init containers may be gone: what counts is the last one that is known.
pub(super) fn compute(view: PodView<'_>, actions: &mut PodActions) -> bool {
    let containers = &view.spec.init_containers;
    if containers.is_empty() {
        return true;
    }
    let mut initialized = any_regular_container_active(view.spec, view.runtime);
    // True once a later container is known to have had its turn: then only sidecars are looked after.
    let mut passed = initialized;
    let mut start = alloc::vec::Vec::new();
    for (index, container) in containers.iter().enumerate().rev() {
        let Some(instance) = view.runtime.newest(&container.name) else {
            if passed && container.is_sidecar() {
                start.push(index);
            }
            continue;
        };
        if passed && !container.is_sidecar() {
            continue;
        }
        match look_at(view, index, container, instance, actions, &mut start) {
            Step::Stay => {}
            Step::Next if index + 1 == containers.len() => initialized = true,
            Step::Next if !passed => start.push(index + 1),
            Step::Next => {}
            Step::Fail => {
                actions.kill_pod = true;
                actions.init_containers_to_start.clear();
                return false;
            }
        }
        passed = true;
    }
    if !passed {
        start.push(0);
    }
    start.sort_unstable();
    actions.init_containers_to_start = start;
    initialized
}

/// Has any app container got an instance at all?
pub(super) fn any_regular_container_created(view: PodView<'_>) -> bool {
    view.spec.containers.iter().any(|c| view.runtime.newest(&c.name).is_some())
}

fn look_at(
    view: PodView<'_>,
    index: usize,
    container: &ContainerSpec,
    instance: &Instance,
    actions: &mut PodActions,
    start: &mut alloc::vec::Vec<usize>,
) -> Step {
    let policy = view.spec.restart_policy;
    match (instance.state, container.is_sidecar()) {
        (InstanceState::Created, _) | (InstanceState::Exited, true) => {
            // Created but not started: the runtime failed half-way. A sidecar that ended always comes back.
            start.push(index);
            Step::Stay
        }
        (InstanceState::Running, false) => Step::Stay,
        (InstanceState::Running, true) => sidecar(view, index, container, instance, actions, start),
        (InstanceState::Exited, false) if instance.exit_code == 0 && instance.stopped_for.is_none() => Step::Next,
        (InstanceState::Exited, false) => {
            if view.deleting || !restart::should_restart_exited(container, policy, instance) {
                return Step::Fail;
            }
            start.push(index);
            Step::Stay
        }
        (InstanceState::Unknown, is_sidecar) => {
            if !is_sidecar && !restart::should_restart_on_failure(container, policy) {
                return Step::Fail;
            }
            kill(index, StopReason::Unknown, unknown_message(), actions);
            start.push(index);
            Step::Stay
        }
    }
}

fn sidecar(
    view: PodView<'_>,
    index: usize,
    container: &ContainerSpec,
    instance: &Instance,
    actions: &mut PodActions,
    start: &mut alloc::vec::Vec<usize>,
) -> Step {
    let name = &container.name;
    let mut restart = |reason, message| {
        kill(index, reason, message, actions);
        start.push(index);
    };
    if container.startup_probe.is_some() {
        match instance.verdicts.startup {
            Some(Verdict::Success) => {}
            Some(Verdict::Failure) => {
                restart(StopReason::StartupProbe, format!("Init container {name} failed startup probe"));
                return Step::Stay;
            }
            Some(Verdict::Unknown) | None => return Step::Stay,
        }
    }
    if instance.changed {
        restart(StopReason::Changed, format!("Init container {name} definition changed"));
    } else if container.liveness_probe.is_some() && instance.verdicts.liveness == Some(Verdict::Failure) {
        restart(StopReason::LivenessProbe, format!("Init container {name} failed liveness probe"));
    } else if !resize::keep(view, ContainerKind::Init, index, container, actions) {
        start.push(index);
    }
    Step::Next
}

fn kill(index: usize, reason: StopReason, message: String, actions: &mut PodActions) {
    actions.containers_to_kill.push(ContainerToKill { kind: ContainerKind::Init, index, reason, message });
}

fn unknown_message() -> String {
    String::from("Init container is in \"unknown\" state, try killing it before restart")
}
