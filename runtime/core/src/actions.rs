//! What one look at a pod says has to be done: containers to start, to stop, to reset.
//!
//! Level triggered, as upstream's `computePodActions`: everything is computed anew from the state, so that a lost edge can't
//! wedge a pod.

mod init;
mod resize;
mod restart_all;

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

pub use resize::{Actuated, ResizeUpdates};
pub use restart_all::{cleaned_up, wanted as restart_all_wanted};

use crate::restart;
use crate::runtime::{Instance, InstanceState, RuntimeStatus, StopReason, Verdict};
use crate::spec::{ContainerKind, ContainerSpec, PodSpec, Resources, RestartPolicy};

/// What is known of a pod when its actions are computed.
#[derive(Clone, Copy, Debug)]
pub struct PodView<'a> {
    /// What the pod is asked to be.
    pub spec: &'a PodSpec,
    /// `deletionTimestamp` is set.
    pub deleting: bool,
    /// Every container is to be restarted in place (RESTART-09).
    pub restart_all: bool,
    /// What the runtime reports.
    pub runtime: &'a RuntimeStatus,
    /// Resources last applied per container, where resizing in place is possible.
    pub actuated: Option<&'a BTreeMap<String, Resources>>,
}

/// What has to be done. Lists of containers to start are indexes into the list of the pod's spec.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodActions {
    /// The pod is over, or its sandbox is lost: stop what runs.
    pub kill_pod: bool,
    /// A sandbox has to be made, with this attempt number.
    pub create_sandbox: bool,
    /// Attempt number of the sandbox.
    pub attempt: u32,
    /// Init containers to start, in order.
    pub init_containers_to_start: Vec<usize>,
    /// App containers to start, in order.
    pub containers_to_start: Vec<usize>,
    /// Ephemeral containers to start, in order.
    pub ephemeral_containers_to_start: Vec<usize>,
    /// Running instances to stop.
    pub containers_to_kill: Vec<ContainerToKill>,
    /// Instances to remove, in order, for a restart in place.
    pub containers_to_reset: Vec<ContainerToReset>,
    /// Updates of resources in place, in order.
    pub updates: ResizeUpdates,
}

/// A running instance that has to be stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerToKill {
    /// Which list the container stands in.
    pub kind: ContainerKind,
    /// Where in that list.
    pub index: usize,
    /// Why.
    pub reason: StopReason,
    /// For people.
    pub message: String,
}

/// An instance that has to be removed for a restart in place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerToReset {
    /// Name of the container.
    pub name: String,
    /// Which of its instances, counted from the newest.
    pub instance: usize,
    /// It must be stopped first.
    pub kill: bool,
}

/// Computes what has to be done.
pub fn compute(view: PodView<'_>) -> PodActions {
    let mut actions = PodActions::default();
    let changed = sandbox_changed(view, &mut actions);
    if view.restart_all {
        actions.containers_to_reset = restart_all::reset_list(view);
        return actions;
    }
    if changed {
        with_new_sandbox(view, &mut actions);
        return actions;
    }
    for (index, container) in view.spec.ephemeral_containers.iter().enumerate() {
        if view.runtime.newest(&container.name).is_none() {
            actions.ephemeral_containers_to_start.push(index);
        }
    }
    let initialized = init::compute(view, &mut actions);
    if actions.kill_pod || !initialized {
        return actions;
    }
    let mut kept = 0;
    for (index, container) in view.spec.containers.iter().enumerate() {
        match view.runtime.newest(&container.name) {
            Some(instance) if instance.state == InstanceState::Running => {
                kept += usize::from(keep_running(view, index, container, instance, &mut actions));
            }
            newest => start_if_wanted(view, index, container, newest, &mut actions),
        }
    }
    if kept == 0 && actions.containers_to_start.is_empty() {
        actions.kill_pod = true;
        // Sidecars must not keep a finished pod alive (SIDE-06).
        actions.init_containers_to_start.clear();
    }
    actions
}

/// Has any regular container got an instance that runs or was made to run, so that initialization must be done?
pub fn any_regular_container_active(spec: &PodSpec, runtime: &RuntimeStatus) -> bool {
    let active = |instance: &Instance| matches!(instance.state, InstanceState::Created | InstanceState::Running);
    spec.containers.iter().filter_map(|container| runtime.newest(&container.name)).any(active)
}

/// A new sandbox is needed if there is none, if the newest isn't ready, or if more than one claims to be.
fn sandbox_changed(view: PodView<'_>, actions: &mut PodActions) -> bool {
    let sandboxes = &view.runtime.sandboxes;
    let Some(newest) = sandboxes.first() else {
        return changed(actions, 0);
    };
    let ready = sandboxes.iter().filter(|s| s.ready).count();
    let wrong_network = newest.host_network != view.spec.host_network;
    let no_address = !view.spec.host_network && !newest.has_ip;
    if ready > 1 || !newest.ready || wrong_network || no_address {
        return changed(actions, newest.attempt.wrapping_add(1));
    }
    actions.attempt = newest.attempt;
    false
}

fn changed(actions: &mut PodActions, attempt: u32) -> bool {
    actions.kill_pod = true;
    actions.create_sandbox = true;
    actions.attempt = attempt;
    true
}

fn with_new_sandbox(view: PodView<'_>, actions: &mut PodActions) {
    let spec = view.spec;
    let ran_before = actions.attempt != 0 && !view.runtime.instances.is_empty();
    if spec.restart_policy == RestartPolicy::Never && ran_before {
        actions.create_sandbox = false;
        return;
    }
    let to_start: Vec<usize> = (0..spec.containers.len())
        .filter(|&index| {
            let container = &spec.containers[index];
            let policy = restart::effective_policy(container, spec.restart_policy);
            policy != RestartPolicy::OnFailure || !succeeded(view.runtime, container)
        })
        .collect();
    if to_start.is_empty() && init::any_regular_container_created(view) {
        actions.create_sandbox = false;
        return;
    }
    if spec.init_containers.is_empty() {
        actions.containers_to_start = to_start;
    } else {
        actions.init_containers_to_start.push(0);
    }
}

fn succeeded(runtime: &RuntimeStatus, container: &ContainerSpec) -> bool {
    runtime.newest(&container.name).is_some_and(|i| i.state == InstanceState::Exited && i.exit_code == 0)
}

fn start_if_wanted(
    view: PodView<'_>,
    index: usize,
    container: &ContainerSpec,
    newest: Option<&Instance>,
    actions: &mut PodActions,
) {
    if !restart::should_start(container, view.spec.restart_policy, view.deleting, newest) {
        return;
    }
    actions.containers_to_start.push(index);
    if newest.is_some_and(|i| i.state == InstanceState::Unknown) {
        // It may still run: make sure that it doesn't.
        actions.containers_to_kill.push(ContainerToKill {
            kind: ContainerKind::App,
            index,
            reason: StopReason::Unknown,
            message: String::from("Container is in \"unknown\" state, try killing it before restart"),
        });
    }
}

/// Keeps a running container, or stops it and perhaps starts another. Returns true if it is kept.
fn keep_running(
    view: PodView<'_>,
    index: usize,
    container: &ContainerSpec,
    instance: &Instance,
    actions: &mut PodActions,
) -> bool {
    let name = &container.name;
    let (reason, mut message) = if instance.changed {
        (StopReason::Changed, format!("Container {name} definition changed"))
    } else if instance.verdicts.liveness == Some(Verdict::Failure) {
        (StopReason::LivenessProbe, format!("Container {name} failed liveness probe"))
    } else if instance.verdicts.startup == Some(Verdict::Failure) {
        (StopReason::StartupProbe, format!("Container {name} failed startup probe"))
    } else {
        let keep = resize::keep(view, ContainerKind::App, index, container, actions);
        if !keep {
            actions.containers_to_start.push(index);
        }
        return keep;
    };
    let restart =
        reason == StopReason::Changed || restart::should_restart_on_failure(container, view.spec.restart_policy);
    if restart {
        message.push_str(", will be restarted");
        actions.containers_to_start.push(index);
    }
    actions.containers_to_kill.push(ContainerToKill { kind: ContainerKind::App, index, reason, message });
    false
}
