//! Is there room for a pod on the node? (RES-08, RES-14)

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::quantity::Quantity;
use crate::scheduling::Taint;
use crate::selector::Labels;
use crate::spec::ResourceList;

/// A limit that isn't shared: each container has its own fuel to burn (RES-05).
pub const FUEL: &str = "husk.dev/fuel";

/// What the node has and is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeState {
    /// `status.allocatable`; none if nothing is limited. `cpu`, `memory`, `ephemeral-storage` and `pods` that aren't listed are
    /// not limited; of other resources, such as devices, there is only what is listed.
    pub allocatable: Option<ResourceList>,
    /// `metadata.labels`.
    pub labels: Labels,
    /// `spec.taints`.
    pub taints: Vec<Taint>,
    /// `spec.unschedulable`.
    pub cordoned: bool,
    /// `kubernetes.io/os` of the device; empty if it takes pods for any (POD-10).
    pub os: String,
}

/// A resource that does not suffice.
#[derive(Clone, Debug, PartialEq)]
pub struct Insufficient {
    /// Its name.
    pub resource: String,
    /// What the pod asks for.
    pub requested: Quantity,
    /// What others have.
    pub used: Quantity,
    /// What there is.
    pub capacity: Quantity,
}

/// What does not suffice for these requests, if `used` is given away already.
pub fn insufficient(node: &NodeState, used: &ResourceList, requests: &ResourceList) -> Vec<Insufficient> {
    let Some(allocatable) = &node.allocatable else { return Vec::new() };
    let lacking = requests.iter().filter(|(_, amount)| !amount.is_zero()).filter_map(|(resource, requested)| {
        let capacity = capacity(allocatable, resource)?;
        let used = used.get(resource).cloned().unwrap_or_default();
        let fits = used.checked_add(requested).is_some_and(|sum| sum <= capacity);
        (!fits).then(|| Insufficient { resource: resource.clone(), requested: requested.clone(), used, capacity })
    });
    lacking.collect()
}

/// What there is of a resource; none if there is no limit.
pub fn capacity(allocatable: &ResourceList, resource: &str) -> Option<Quantity> {
    let native = matches!(resource, "cpu" | "memory" | "ephemeral-storage" | "pods") || resource == FUEL;
    allocatable.get(resource).cloned().or_else(|| (!native).then_some(Quantity::ZERO))
}

impl Insufficient {
    /// As the scheduler says it: `Insufficient cpu`.
    pub fn reason(&self) -> String {
        match self.resource.as_str() {
            "pods" => "Too many pods".to_string(),
            resource => format!("Insufficient {resource}"),
        }
    }

    /// As the node says it: status reason `OutOfcpu`.
    pub fn status_reason(&self) -> String {
        format!("OutOf{}", self.resource)
    }

    /// As the node says it: its message, with figures (CPU in thousandths).
    pub fn message(&self) -> String {
        let amount =
            |quantity: &Quantity| if self.resource == "cpu" { quantity.milli_value() } else { quantity.value() };
        format!(
            "Node didn't have enough resource: {}, requested: {}, used: {}, capacity: {}",
            self.resource,
            amount(&self.requested),
            amount(&self.used),
            amount(&self.capacity)
        )
    }
}

/// Why a pod waits, of all the reasons of the only node: `0/1 nodes are available: 1 Insufficient cpu.`
pub fn unschedulable(mut reasons: Vec<String>) -> String {
    reasons.sort();
    let counted: Vec<String> = reasons.iter().map(|reason| format!("1 {reason}")).collect();
    format!("0/1 nodes are available: {}.", counted.join(", "))
}

/// Adds to what is given away.
pub(crate) fn charge(used: &mut ResourceList, more: &ResourceList) {
    for (resource, amount) in more {
        used.entry(resource.clone()).or_default().add_saturating(amount);
    }
}

/// Takes back what was given away.
pub(crate) fn release(used: &mut ResourceList, less: &ResourceList) {
    for (resource, amount) in less {
        let left = used.get(resource).and_then(|sum| sum.checked_sub(amount)).filter(|left| left.signum() > 0);
        match left {
            Some(left) => used.insert(resource.clone(), left),
            None => used.remove(resource),
        };
    }
}
