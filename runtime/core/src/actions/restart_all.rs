//! The action RestartAllContainers (RESTART-09).

use alloc::vec::Vec;

use super::{ContainerToReset, PodView};
use crate::restart;
use crate::runtime::{Instance, InstanceState, RuntimeStatus, StopReason};
use crate::spec::{ContainerSpec, PodSpec};
use crate::status::{Condition, ConditionStatus, ContainerState, PodStatus};

const ALL_CONTAINERS_RESTARTING: &str = "AllContainersRestarting";

/// Are all containers to be restarted? Either a restart is under way, as the status known so far says, or a container ended
/// in a way that asks for it, as the runtime or the status has it.
pub fn wanted(spec: &PodSpec, runtime: &RuntimeStatus, status: &PodStatus) -> bool {
    let under_way = |condition: &Condition| {
        condition.kind == ALL_CONTAINERS_RESTARTING && condition.status == ConditionStatus::True
    };
    let known_to_ask = |container: &ContainerSpec| {
        if !runtime.newest(&container.name).is_some_and(has_ended) {
            return false;
        }
        let statuses = status.init_container_statuses.iter().chain(&status.container_statuses);
        let mut own = statuses.filter(|known| known.name == container.name);
        own.any(|known| match &known.state {
            ContainerState::Terminated(end) => restart::asks_to_restart_all(container, end.exit_code),
            ContainerState::Waiting { .. } | ContainerState::Running { .. } => false,
        })
    };
    status.conditions.iter().any(under_way)
        || asking(spec, runtime).is_some()
        || restarted_containers(spec).any(known_to_ask)
}

/// The container whose end asks for a restart of all, with its exit code.
pub(crate) fn asking<'a>(spec: &'a PodSpec, runtime: &RuntimeStatus) -> Option<(&'a ContainerSpec, i32)> {
    restarted_containers(spec).find_map(|container| {
        let newest = runtime.newest(&container.name)?;
        let asks = has_ended(newest) && restart::asks_to_restart_all(container, newest.exit_code);
        asks.then_some((container, newest.exit_code))
    })
}

/// Is no instance left of the containers that restart together?
pub fn cleaned_up(spec: &PodSpec, runtime: &RuntimeStatus) -> bool {
    restarted_containers(spec).all(|c| runtime.newest(&c.name).is_none())
}

/// Instances to remove: app containers first, then init containers; ephemeral ones stay. Those whose end asked for it go
/// last, so that the reason is not lost if the node stops half-way.
pub(super) fn reset_list(view: PodView<'_>) -> Vec<ContainerToReset> {
    let containers = view.spec.containers.iter().chain(&view.spec.init_containers);
    let instances = containers.flat_map(|container| {
        let instances = view.runtime.of(&container.name).enumerate();
        instances.map(move |(instance, found)| (container, instance, found))
    });
    let asked = |container: &ContainerSpec, found: &Instance| {
        has_ended(found) && restart::asks_to_restart_all(container, found.exit_code)
    };
    let (last, first): (Vec<_>, Vec<_>) = instances.partition(|(container, _, found)| asked(container, found));
    let reset = |(container, instance, found): (&ContainerSpec, usize, &Instance)| ContainerToReset {
        name: container.name.clone(),
        instance,
        kill: found.state != InstanceState::Exited,
    };
    first.into_iter().chain(last).map(reset).collect()
}

/// Has it ended, and not only with the agent? Then its exit code says something.
fn has_ended(instance: &Instance) -> bool {
    instance.state == InstanceState::Exited && instance.stopped_for != Some(StopReason::Interrupted)
}

fn restarted_containers(spec: &PodSpec) -> impl Iterator<Item = &ContainerSpec> {
    spec.init_containers.iter().chain(&spec.containers)
}
