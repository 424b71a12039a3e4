//! What is looked at, and what has to be left of it: the kubelet's signals and thresholds
//! (<https://kubernetes.io/docs/concepts/scheduling-eviction/node-pressure-eviction/>).

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::str::FromStr;

use super::Pressure;
use crate::quantity::Quantity;
use crate::time::Duration;

/// Less memory than this, or than so many hundredths of it where that is less, is too little for the node itself.
const LEAST_MEMORY: u64 = 100 << 20;
const LEAST_PERCENT: f64 = 5.0;

/// What may run short, by the name that a KubeletConfiguration has for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Signal {
    /// `memory.available`: bytes of memory that somebody could have.
    MemoryAvailable,
    /// `nodefs.available`: bytes that are free on the disk of volumes and root directories.
    NodefsAvailable,
    /// `nodefs.inodesFree`: files that could be made there.
    NodefsInodesFree,
    /// `imagefs.available`: bytes that are free on the disk of images.
    ImagefsAvailable,
    /// `imagefs.inodesFree`: files that could be made there.
    ImagefsInodesFree,
}

impl Signal {
    /// All there are.
    pub const ALL: [Self; 5] = [
        Self::MemoryAvailable,
        Self::NodefsAvailable,
        Self::NodefsInodesFree,
        Self::ImagefsAvailable,
        Self::ImagefsInodesFree,
    ];

    /// The signal of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|signal| signal.as_str() == name)
    }

    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::MemoryAvailable => "memory.available",
            Self::NodefsAvailable => "nodefs.available",
            Self::NodefsInodesFree => "nodefs.inodesFree",
            Self::ImagefsAvailable => "imagefs.available",
            Self::ImagefsInodesFree => "imagefs.inodesFree",
        }
    }

    /// What the node is short of when too little is left.
    pub const fn pressure(self) -> Pressure {
        match self {
            Self::MemoryAvailable => Pressure::Memory,
            Self::NodefsAvailable | Self::ImagefsAvailable => Pressure::Disk,
            Self::NodefsInodesFree | Self::ImagefsInodesFree => Pressure::Inodes,
        }
    }
}

/// How much of something.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    /// So much: bytes, or files.
    Of(u64),
    /// So many hundredths of all there is.
    Percent(f64),
    /// So many hundredths, and no more than so much.
    PercentUpTo(f64, u64),
}

impl Amount {
    /// How much that is of a capacity.
    pub fn of(self, capacity: u64) -> u64 {
        let part = |percent: f64| (capacity as f64 * percent / 100.0) as u64;
        match self {
            Self::Of(amount) => amount,
            Self::Percent(percent) => part(percent),
            Self::PercentUpTo(percent, most) => part(percent).min(most),
        }
    }

    /// As upstream has it, `0%` and `100%` say that something isn't looked at.
    pub fn is_no_threshold(self) -> bool {
        matches!(self, Self::Percent(percent) if percent <= 0.0 || percent >= 100.0)
    }
}

impl FromStr for Amount {
    type Err = String;

    /// A quantity, as in `100Mi`, or a part, as in `10%`.
    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(percent) = text.strip_suffix('%') {
            let percent = percent.parse().ok().filter(|percent: &f64| (0.0..=100.0).contains(percent));
            return percent.map(Self::Percent).ok_or_else(|| format!("`{text}` must be from 0% to 100%"));
        }
        let amount = Quantity::parse(text).map_err(|error| error.to_string())?;
        u64::try_from(amount.value()).map(Self::Of).map_err(|_| format!("`{text}` must not be negative"))
    }
}

/// What has to be left of one thing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Threshold {
    /// Of what.
    pub signal: Signal,
    /// How much.
    pub least: Amount,
    /// How long less may be left before pods go (`evictionSoftGracePeriod`); none for a hard threshold, for which they go at once.
    pub grace_period: Option<Duration>,
    /// So much more than that has to be left before it is enough again (`evictionMinimumReclaim`).
    pub reclaim: Amount,
}

/// When pods go because the node runs short.
#[derive(Clone, Debug, PartialEq)]
pub struct EvictionConfig {
    /// `evictionHard` and `evictionSoft`: one of each kind for a signal.
    pub thresholds: Vec<Threshold>,
    /// `evictionMaxPodGracePeriod`, in seconds: the most grace that a pod has that goes for a soft threshold.
    pub max_pod_grace_seconds: i64,
    /// `evictionPressureTransitionPeriod`: the node is said to be short for so long after it was.
    pub transition: Duration,
}

impl Default for EvictionConfig {
    /// Pods go for memory alone. A disk may be full of what isn't theirs, and then their end would help nobody; what they write themselves
    /// has its own limits (`sizeLimit`), and a pod that was evicted doesn't come back by itself on a device without controllers.
    fn default() -> Self {
        Self {
            thresholds: vec![Threshold {
                signal: Signal::MemoryAvailable,
                least: Amount::PercentUpTo(LEAST_PERCENT, LEAST_MEMORY),
                grace_period: None,
                reclaim: Amount::Of(0),
            }],
            max_pod_grace_seconds: 0,
            transition: Duration::from_secs(300),
        }
    }
}

impl EvictionConfig {
    /// How much of a capacity is no pod's because it has to be left in any case: the hard threshold.
    pub fn reserved(&self, signal: Signal, capacity: u64) -> u64 {
        let hard = self.thresholds.iter().filter(|known| known.signal == signal && known.grace_period.is_none());
        hard.map(|threshold| threshold.least.of(capacity)).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: RES-09
    #[test]
    fn the_default_is_less_for_small_machines_and_of_memory_alone() {
        let of = |capacity| EvictionConfig::default().reserved(Signal::MemoryAvailable, capacity);
        assert_eq!(of(256 << 20), (256 << 20) / 20);
        assert_eq!(of(16 << 30), 100 << 20);
        assert_eq!(EvictionConfig::default().reserved(Signal::NodefsAvailable, 1 << 30), 0);
    }

    #[test]
    fn amounts_are_quantities_or_parts() {
        let read = |text: &str| text.parse::<Amount>();
        assert_eq!(read("100Mi"), Ok(Amount::Of(100 << 20)));
        assert_eq!(read("12.5%").map(|amount| amount.of(1000)), Ok(125));
        assert!(["0%", "100%"].iter().all(|text| read(text).is_ok_and(Amount::is_no_threshold)));
        assert!(!read("0").expect("an amount").is_no_threshold());
        for wrong in ["", "%", "-1%", "101%", "NaN%", "-1", "some"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
