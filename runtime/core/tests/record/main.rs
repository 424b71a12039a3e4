//! Pods that go on from their persisted records: after the end of the agent, after a reboot of the board.

mod bytes;
mod edge_cases;
mod format;
mod golden;
mod interrupted;
#[path = "../world/mod.rs"]
mod world;

use husk_core::record::Interruption::{self, AgentRestart, Reboot};
use husk_core::spec::RestartPolicy::Always;
use husk_core::spec::{ContainerSpec, Handler, PodSpec, Probe, RestartPolicy};
use husk_core::status::ConditionStatus;
use world::{Script, World, container, exits, pod, probe};

pub(crate) const BOTH: [Interruption; 2] = [AgentRestart, Reboot];

pub(crate) fn app(policy: RestartPolicy) -> PodSpec {
    pod(policy, vec![], vec![container("a0")])
}

pub(crate) fn with_inits() -> PodSpec {
    pod(Always, vec![container("i0"), container("i1")], vec![container("a0")])
}

pub(crate) const INITS: fn() -> [(&'static str, Script); 2] = || [("i0", exits(2, 0)), ("i1", exits(3, 0))];

pub(crate) fn last_reason(world: &World, name: &str) -> String {
    world.container(name).last_state.map(|end| end.reason.to_string()).unwrap_or_default()
}

pub(crate) fn ready_probe() -> ContainerSpec {
    let readiness_probe = Some(Probe { initial_delay_seconds: 5, ..probe(Handler::HttpGet) });
    ContainerSpec { readiness_probe, ..container("a0") }
}

pub(crate) fn readiness(world: &World) -> ConditionStatus {
    world.condition("Ready").status
}

/// Was the pod ever shown as ready since then?
pub(crate) fn was_ready_since(world: &World, since: usize) -> bool {
    world.statuses[since..]
        .iter()
        .any(|(_, status)| status.conditions.iter().any(|c| c.kind == "Ready" && c.status == ConditionStatus::True))
}
