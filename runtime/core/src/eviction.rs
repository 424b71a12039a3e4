//! When the node runs short: by which thresholds, and who has to go (RES-09).

mod judge;
mod storage;
mod thresholds;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::{Ordering, Reverse};
use core::fmt::Write as _;

use serde::{Deserialize, Serialize};

pub use self::judge::{Judge, Left, Look, Verdict};
pub use self::storage::StorageLimits;
pub use self::thresholds::{Amount, EvictionConfig, Signal, Threshold};
use crate::io::PodUid;
use crate::quantity::Quantity;
use crate::spec::PodSpec;
use crate::time::Instant;

/// What the node runs short of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Pressure {
    /// Memory.
    Memory,
    /// Disk: file systems of containers, logs, emptyDir volumes together.
    Disk,
    /// Processes; nobody can request them.
    Pid,
    /// Files of the disk, however small they are; nobody can request them.
    Inodes,
}

impl Pressure {
    /// What is short, as messages name it.
    pub const fn resource(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Disk => "ephemeral-storage",
            Self::Pid => "pids",
            Self::Inodes => "inodes",
        }
    }

    /// The node's condition.
    pub const fn condition(self) -> &'static str {
        match self {
            Self::Memory => "MemoryPressure",
            Self::Disk | Self::Inodes => "DiskPressure",
            Self::Pid => "PIDPressure",
        }
    }

    /// Key of the `NoSchedule` taint that goes with it.
    pub const fn taint(self) -> &'static str {
        match self {
            Self::Memory => "node.kubernetes.io/memory-pressure",
            Self::Disk | Self::Inodes => "node.kubernetes.io/disk-pressure",
            Self::Pid => "node.kubernetes.io/pid-pressure",
        }
    }
}

/// A shortage, as it was observed. It is observed again and again as long as it lasts; each time the next pod goes, once the one before
/// is gone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shortage {
    /// What has to be left.
    pub threshold: Quantity,
    /// What is left.
    pub available: Quantity,
    /// Most grace that a pod gets, in seconds: 0 if there is no time (a hard threshold), none if nobody has to go yet (a soft one in its
    /// grace period, or something else is given up first).
    pub grace_seconds: Option<i64>,
    /// When all this was measured.
    pub as_of: Instant,
    /// Who uses how much of it. Every pod that has its place should be in it.
    pub usage: Vec<PodUsage>,
}

/// How much a pod uses of what is short.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PodUsage {
    /// The pod.
    pub pod: PodUid,
    /// All of it together, volumes included.
    pub total: Quantity,
    /// Of it each container, by name.
    pub containers: Vec<(String, Quantity)>,
}

/// Why a pod was evicted, with figures, as upstream says it.
pub fn message(pressure: Pressure, shortage: &Shortage, spec: &PodSpec, usage: Option<&PodUsage>) -> String {
    let resource = pressure.resource();
    let Shortage { threshold, available, .. } = shortage;
    let mut message =
        format!("The node was low on resource: {resource}. Threshold quantity: {threshold}, available: {available}. ");
    for (name, used) in usage.into_iter().flat_map(|usage| &usage.containers) {
        let request = spec.container(name).and_then(|(_, container)| container.resources.requests.get(resource));
        let request = request.cloned().unwrap_or_default();
        if *used > request {
            let _ = write!(
                message,
                "Container {name} was using {used}, request is {request}, has larger consumption of {resource}. "
            );
        }
    }
    message
}

/// A pod that could go.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate<T> {
    /// Whatever the caller knows it by.
    pub pod: T,
    /// `priority`, 0 if none.
    pub priority: i32,
    /// How much it uses of what is short; none if nobody knows.
    pub usage: Option<Quantity>,
    /// How much of it the pod requested.
    pub request: Quantity,
}

/// Puts those that have to go first to the front; equals stay in their order.
///
/// Pods that nobody has figures about go first: the pressure may be theirs. Then who uses more than was requested, then the
/// less important, then who uses most above the request. For processes there is no request to exceed.
pub fn rank<T>(candidates: &mut [Candidate<T>], pressure: Pressure) {
    candidates.sort_by(|a, b| compare(a, b, pressure));
}

/// The same, in groups of equals.
pub fn rank_in_groups<T>(mut candidates: Vec<Candidate<T>>, pressure: Pressure) -> Vec<Vec<Candidate<T>>> {
    rank(&mut candidates, pressure);
    let mut groups: Vec<Vec<Candidate<T>>> = Vec::new();
    for candidate in candidates {
        match groups.last_mut() {
            Some(group) if compare(&group[0], &candidate, pressure).is_eq() => group.push(candidate),
            _ => groups.push(alloc::vec![candidate]),
        }
    }
    groups
}

fn compare<T>(a: &Candidate<T>, b: &Candidate<T>, pressure: Pressure) -> Ordering {
    let key = |candidate: &Candidate<T>| {
        let excess = candidate.usage.as_ref().map(|usage| match pressure {
            Pressure::Memory | Pressure::Disk | Pressure::Inodes => {
                usage.checked_sub(&candidate.request).unwrap_or_default()
            }
            Pressure::Pid => usage.clone(),
        });
        let exceeds = pressure != Pressure::Pid && excess.as_ref().is_none_or(|e| !e.is_zero() && !e.is_negative());
        let unknown = pressure != Pressure::Pid && excess.is_none();
        (Reverse(unknown), Reverse(exceeds), candidate.priority, Reverse(excess.is_none()), Reverse(excess))
    };
    key(a).cmp(&key(b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantity::Notation;

    fn candidate(pod: &'static str, priority: i32, usage: Option<i64>, request: i64) -> Candidate<&'static str> {
        let bytes = |bytes| Quantity::new(bytes, Notation::Binary);
        Candidate { pod, priority, usage: usage.map(bytes), request: bytes(request) }
    }

    #[test]
    fn overuse_comes_before_priority_and_priority_before_amount() {
        let mut pods = [
            candidate("modest", -5, Some(10), 20),
            candidate("important", 100, Some(90), 10),
            candidate("glutton", 0, Some(80), 10),
            candidate("nibbler", 0, Some(30), 10),
            candidate("unknown", 1000, None, 10),
        ];
        rank(&mut pods, Pressure::Memory);
        assert_eq!(pods.map(|c| c.pod), ["unknown", "glutton", "nibbler", "important", "modest"]);
    }
}
