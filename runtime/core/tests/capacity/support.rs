//! Short hands for nodes with little room and pods that need some.

use husk_core::Input;
use husk_core::admission::NodeState;
use husk_core::node::NodeConfig;
use husk_core::quantity::Quantity;
use husk_core::spec::RestartPolicy::Always;
use husk_core::spec::{ContainerSpec, PodMeta, PodSpec, ResourceList, Resources};

use crate::world::{World, container, meta, pod};

pub(crate) fn amounts(list: &[(&str, &str)]) -> ResourceList {
    list.iter().map(|(name, amount)| ((*name).into(), Quantity::parse(amount).expect("an amount"))).collect()
}

pub(crate) fn asking(name: &str, requests: &[(&str, &str)]) -> ContainerSpec {
    let resources = Resources { requests: amounts(requests), ..Resources::default() };
    ContainerSpec { resources, ..container(name) }
}

/// A pod with one container, `a0`.
pub(crate) fn asking_pod(requests: &[(&str, &str)]) -> PodSpec {
    pod(Always, vec![], vec![asking("a0", requests)])
}

pub(crate) fn important(priority: i32, spec: PodSpec) -> PodSpec {
    PodSpec { priority: Some(priority), ..spec }
}

/// The pod may use as much as it asks for, and no more: Guaranteed, if it asks for CPU and memory.
pub(crate) fn limited(mut spec: PodSpec) -> PodSpec {
    for container in &mut spec.containers {
        container.resources.limits = container.resources.requests.clone();
    }
    spec
}

pub(crate) fn node(allocatable: &[(&str, &str)]) -> NodeState {
    let labels = [("zone".to_owned(), "a".to_owned())].into();
    NodeState { allocatable: Some(amounts(allocatable)), labels, os: "linux".into(), ..NodeState::default() }
}

pub(crate) fn change(world: &mut World, state: NodeState) {
    world.input(Input::NodeChanged { state: Box::new(state) });
}

/// A world without pods on a node with that much.
pub(crate) fn world_with(allocatable: &[(&str, &str)]) -> World {
    let mut world = World::empty(NodeConfig::default(), &[]);
    change(&mut world, node(allocatable));
    world
}

pub(crate) fn static_meta(name: &str, uid: &str) -> PodMeta {
    PodMeta { is_static: true, ..meta(name, uid) }
}

/// Reason and message of PodScheduled, if it is False.
pub(crate) fn waits(world: &World, uid: &str) -> Option<(String, String)> {
    let scheduled = world.condition_of(uid, "PodScheduled").expect("every pod says whether it has a place");
    let waits = scheduled.status == husk_core::status::ConditionStatus::False;
    waits.then(|| (scheduled.reason.to_string(), scheduled.message))
}

pub(crate) fn why(world: &World, uid: &str) -> String {
    waits(world, uid).unwrap_or_else(|| panic!("{uid} has its place")).1
}
