//! Who computes next: shares of the processors by request, bounds by limit (RES-02, RES-03, RES-12).
//!
//! As Linux does it for the kubelet's cgroups: pods compete with pods, and a container with the others of its pod, each in
//! proportion to what it requests. Who has a limit uses so much in a period of 100 ms and then waits for the next one, also if
//! nobody else wants to compute. Nobody is ever ended for what he uses.
//!
//! What was used is told by whoever lets them compute: the time of a thread on gateways, fuel on boards. There is no clock here.

mod order;
mod queue;
mod quota;

use crate::time::Duration;

pub use queue::{Member, Pod, RunQueue, Turn, Usage};
pub use quota::{PERIOD, QuotaStats};

/// A container keeps its turn for so long at most while others wait: long enough that changing turns costs nothing, short enough that
/// nobody notices that he waits.
pub const QUANTUM: Duration = Duration::from_millis(1);

/// What a pod or a container has of the processors, in thousandths of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuShare {
    /// `requests.cpu`. 0 has the least of all, and everything that the others leave.
    pub request: u64,
    /// `limits.cpu`; none without one.
    pub limit: Option<u64>,
}

impl CpuShare {
    /// Weight among those that compute at the same time, as the kubelet gives it to a cgroup
    /// (<https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/#how-pods-with-resource-limits-are-run>):
    /// 1024 for one processor, between 2 and 262,144.
    pub fn weight(self) -> u64 {
        (self.request.saturating_mul(1024) / 1000).clamp(2, 262_144)
    }

    /// What may be used in each [`PERIOD`]: at least one millisecond, as for a cgroup.
    pub fn quota(self) -> Option<Duration> {
        let millis_per_second = self.limit.filter(|limit| *limit > 0)?;
        let used = u128::from(millis_per_second) * PERIOD.as_nanos() / 1000;
        Some(Duration::from_nanos(u64::try_from(used).unwrap_or(u64::MAX)).max(Duration::from_millis(1)))
    }
}
