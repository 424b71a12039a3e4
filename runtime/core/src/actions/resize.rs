//! Resources that change in place (RES-11).

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::{ContainerToKill, PodActions, PodView};
use crate::runtime::StopReason;
use crate::spec::{ContainerKind, ContainerSpec, ResizeRestartPolicy, ResourceList, Resources};

/// Resources last applied, per container.
pub type Actuated = BTreeMap<String, Resources>;

/// Per resource the containers to update, those that shrink first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResizeUpdates {
    /// CPU, in order.
    pub cpu: Vec<String>,
    /// Memory, in order.
    pub memory: Vec<String>,
    /// The pod's own limits have to be updated as well.
    pub pod: bool,
}

const CPU: &str = "cpu";
const MEMORY: &str = "memory";

/// Notes the updates of a running container. Returns false if it has to be stopped and started for it.
pub(super) fn keep(
    view: PodView<'_>,
    kind: ContainerKind,
    index: usize,
    container: &ContainerSpec,
    actions: &mut PodActions,
) -> bool {
    let Some(current) = view.actuated.and_then(|all| all.get(&container.name)) else { return true };
    let wanted = &container.resources;
    let change = |resource| Change::of(resource, wanted, current);
    let (cpu, memory) = (change(CPU), change(MEMORY));
    let needs_restart = |resource: &str, change: &Change| {
        let policy = container.resize_policy.get(resource).copied().unwrap_or_default();
        change.any() && policy == ResizeRestartPolicy::RestartContainer
    };
    if needs_restart(CPU, &cpu) || needs_restart(MEMORY, &memory) {
        let message = format!("Container {} resize requires restart", container.name);
        actions.containers_to_kill.push(ContainerToKill { kind, index, reason: StopReason::Resize, message });
        actions.updates.pod = true;
        return false;
    }
    memory.note(&container.name, &mut actions.updates.memory);
    cpu.note(&container.name, &mut actions.updates.cpu);
    true
}

/// Wanted against current amounts of one resource, in base units.
struct Change {
    limit: (i64, i64),
    request: (i64, i64),
}

impl Change {
    fn of(resource: &str, wanted: &Resources, current: &Resources) -> Self {
        let amount = |list: &ResourceList| match list.get(resource) {
            None => 0,
            Some(quantity) if resource == CPU => quantity.milli_value(),
            Some(quantity) => quantity.value(),
        };
        Self {
            limit: (amount(&wanted.limits), amount(&current.limits)),
            request: (amount(&wanted.requests), amount(&current.requests)),
        }
    }

    fn any(&self) -> bool {
        self.limit.0 != self.limit.1 || self.request.0 != self.request.1
    }

    /// Decreases come before increases, so that the sum never rises on the way.
    fn note(&self, name: &str, updates: &mut Vec<String>) {
        let (wanted, current) = if self.limit.0 != self.limit.1 { self.limit } else { self.request };
        match wanted.cmp(&current) {
            core::cmp::Ordering::Greater => updates.push(name.into()),
            core::cmp::Ordering::Less => updates.insert(0, name.into()),
            core::cmp::Ordering::Equal => {}
        }
    }
}
