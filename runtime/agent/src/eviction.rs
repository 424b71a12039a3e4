//! When the node is short of memory or disk: what is looked at, and what has to be left of it (RES-09).
//!
//! Thresholds are the kubelet's (<https://kubernetes.io/docs/concepts/scheduling-eviction/node-pressure-eviction/>). Who has to go is the
//! core's decision; here is when.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use husk_core::eviction::{PodUsage, Pressure, Shortage};
use husk_core::quantity::{Notation, Quantity};
use husk_core::{Input, Instant};

/// Less memory than this, or than so many hundredths of it where that is less, is too little for the node itself.
const LEAST_MEMORY: u64 = 100 << 20;
const LEAST_PERCENT: f64 = 5.0;

/// What may run short.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Signal {
    /// `memory.available`: bytes that somebody could have.
    Memory,
    /// `nodefs.available` and `imagefs.available`, which are one here: bytes of the disk of the data folder.
    Disk,
    /// `nodefs.inodesFree` and `imagefs.inodesFree`: files that could be made there.
    Inodes,
}

impl Signal {
    /// The signal that a KubeletConfiguration calls so.
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "memory.available" => Self::Memory,
            "nodefs.available" | "imagefs.available" => Self::Disk,
            "nodefs.inodesFree" | "imagefs.inodesFree" => Self::Inodes,
            _ => return None,
        })
    }

    fn pressure(self) -> Pressure {
        match self {
            Self::Memory => Pressure::Memory,
            Self::Disk | Self::Inodes => Pressure::Disk,
        }
    }
}

/// How much has to be left.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    /// So much.
    Of(u64),
    /// So many hundredths of all there is.
    Percent(f64),
    /// So many hundredths, and no more than so much.
    PercentUpTo(f64, u64),
}

impl Amount {
    fn of(self, capacity: u64) -> u64 {
        let part = |percent: f64| (capacity as f64 * percent / 100.0) as u64;
        match self {
            Self::Of(amount) => amount,
            Self::Percent(percent) => part(percent),
            Self::PercentUpTo(percent, most) => part(percent).min(most),
        }
    }
}

impl FromStr for Amount {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(percent) = text.strip_suffix('%') {
            let percent = percent.parse().ok().filter(|percent: &f64| (0.0..100.0).contains(percent));
            return percent.map(Self::Percent).ok_or_else(|| format!("`{text}` must be from 0% to less than 100%"));
        }
        let amount = Quantity::parse(text).map_err(|error| error.to_string())?;
        u64::try_from(amount.value()).map(Self::Of).map_err(|_| format!("`{text}` must not be negative"))
    }
}

/// What has to be left, and what happens if it isn't.
#[derive(Clone, Debug, PartialEq)]
pub struct EvictionConfig {
    /// `evictionHard`: pods go at once.
    pub hard: Vec<(Signal, Amount)>,
    /// `evictionSoft` with `evictionSoftGracePeriod`: pods go when it has been so for that long.
    pub soft: Vec<(Signal, Amount, Duration)>,
    /// `evictionMaxPodGracePeriod`, in seconds: the most grace that a pod has that goes for a soft threshold.
    pub max_pod_grace: i64,
    /// `evictionPressureTransitionPeriod`: the node is said to be short for so long after it was.
    pub transition: Duration,
}

impl Default for EvictionConfig {
    fn default() -> Self {
        Self {
            hard: vec![(Signal::Memory, Amount::PercentUpTo(LEAST_PERCENT, LEAST_MEMORY))],
            soft: Vec::new(),
            max_pod_grace: 0,
            transition: Duration::from_secs(300),
        }
    }
}

/// Fields of a KubeletConfiguration, as they are written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Written<'a> {
    pub(crate) hard: Option<&'a BTreeMap<String, String>>,
    pub(crate) soft: &'a BTreeMap<String, String>,
    pub(crate) soft_grace: &'a BTreeMap<String, Duration>,
    pub(crate) max_pod_grace: Option<i64>,
    pub(crate) transition: Option<Duration>,
}

impl EvictionConfig {
    /// From what is written. Whoever writes `evictionHard` gives all of it: as with the kubelet, what isn't there isn't looked at.
    pub(crate) fn read(written: Written<'_>) -> Result<Self, String> {
        let own = Self::default();
        let hard = match written.hard {
            None => own.hard,
            Some(hard) => {
                let read = |(name, text): (&String, &String)| read("evictionHard", name, text);
                hard.iter().map(read).collect::<Result<_, _>>()?
            }
        };
        let mut soft = Vec::new();
        for (name, text) in written.soft {
            let (signal, amount) = read("evictionSoft", name, text)?;
            let grace = written.soft_grace.get(name);
            let grace = grace.ok_or_else(|| format!("evictionSoftGracePeriod.{name}: say how long, as in 1m30s"))?;
            soft.push((signal, amount, *grace));
        }
        if let Some(name) = written.soft_grace.keys().find(|name| !written.soft.contains_key(*name)) {
            return Err(format!("evictionSoftGracePeriod.{name}: there is no evictionSoft.{name} that it is for"));
        }
        let max_pod_grace = written.max_pod_grace.unwrap_or(own.max_pod_grace);
        if max_pod_grace < 0 {
            return Err("evictionMaxPodGracePeriod: must not be negative".into());
        }
        Ok(Self { hard, soft, max_pod_grace, transition: written.transition.unwrap_or(own.transition) })
    }

    /// What is the node's own of a capacity because of hard thresholds, as with the kubelet: pods can't have it.
    pub(crate) fn reserved(&self, signal: Signal, capacity: u64) -> u64 {
        let amounts = self.hard.iter().filter(|(known, _)| *known == signal);
        amounts.map(|(_, amount)| amount.of(capacity)).max().unwrap_or(0)
    }
}

fn read(field: &str, name: &str, text: &str) -> Result<(Signal, Amount), String> {
    let signal = Signal::named(name).ok_or_else(|| match name {
        "pid.available" => format!("{field}.{name}: pods have no processes here; leave it out"),
        _ => format!(
            "{field}.{name}: no such signal: there are memory.available, nodefs.available, nodefs.inodesFree, \
             imagefs.available and imagefs.inodesFree"
        ),
    })?;
    let amount = text.parse().map_err(|error| format!("{field}.{name}: {error}"))?;
    Ok((signal, amount))
}

/// How much there is, and how much of it is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Left {
    pub(crate) available: u64,
    pub(crate) capacity: u64,
}

/// What is left now. What can't be found out isn't in it.
pub(crate) fn look(data_dir: &Path) -> BTreeMap<Signal, Left> {
    let mut left = BTreeMap::new();
    if let Some((available, capacity)) = crate::machine::memory_available() {
        left.insert(Signal::Memory, Left { available, capacity });
    }
    if let Ok(disk) = rustix::fs::statvfs(data_dir) {
        let bytes = |blocks: u64| blocks.saturating_mul(disk.f_frsize);
        left.insert(Signal::Disk, Left { available: bytes(disk.f_bavail), capacity: bytes(disk.f_blocks) });
        // Some file systems have as many as they need, and say 0.
        if disk.f_files > 0 {
            left.insert(Signal::Inodes, Left { available: disk.f_favail, capacity: disk.f_files });
        }
    }
    left
}

/// Holds what is left against what has to be.
#[derive(Debug)]
pub(crate) struct Judge {
    config: EvictionConfig,
    /// Since when less than a soft threshold is left.
    soft_since: BTreeMap<Signal, Instant>,
    /// Of what the node is short, and when that was seen last.
    short: BTreeMap<Pressure, Instant>,
}

/// What the judge says of one kind of shortage.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Verdict {
    /// Somebody has to go.
    Short { pressure: Pressure, threshold: Quantity, available: Quantity, grace_seconds: i64 },
    /// It is over.
    Over(Pressure),
}

impl Judge {
    pub(crate) fn new(config: EvictionConfig) -> Self {
        Self { config, soft_since: BTreeMap::new(), short: BTreeMap::new() }
    }

    /// Of what the node is short.
    pub(crate) fn shortages(&self) -> impl Iterator<Item = Pressure> {
        self.short.keys().copied()
    }

    /// What there is to say now.
    pub(crate) fn judge(&mut self, now: Instant, left: &BTreeMap<Signal, Left>) -> Vec<Verdict> {
        let met = |signal: Signal, amount: Amount| {
            let left = left.get(&signal)?;
            let threshold = amount.of(left.capacity);
            (left.available < threshold).then_some((signal, threshold, left.available))
        };
        let hard: Vec<_> = self.config.hard.iter().filter_map(|(signal, amount)| met(*signal, *amount)).collect();
        let mut soft = Vec::new();
        for (signal, amount, grace) in &self.config.soft {
            match met(*signal, *amount) {
                Some(found) => {
                    let since = *self.soft_since.entry(*signal).or_insert(now);
                    soft.extend((now.saturating_since(since) >= *grace).then_some(found));
                }
                None => _ = self.soft_since.remove(signal),
            }
        }
        let mut verdicts = Vec::new();
        for pressure in [Pressure::Memory, Pressure::Disk] {
            let of = |found: &&(Signal, u64, u64)| found.0.pressure() == pressure;
            let worst = hard.iter().find(of).map(|found| (found, 0));
            let worst = worst.or_else(|| soft.iter().find(of).map(|found| (found, self.config.max_pod_grace)));
            if let Some(((signal, threshold, available), grace_seconds)) = worst {
                self.short.insert(pressure, now);
                let [threshold, available] = [*threshold, *available].map(|amount| quantity(*signal, amount));
                verdicts.push(Verdict::Short { pressure, threshold, available, grace_seconds });
            } else if let Some(last) = self.short.get(&pressure)
                && now.saturating_since(*last) >= self.config.transition
            {
                self.short.remove(&pressure);
                verdicts.push(Verdict::Over(pressure));
            }
        }
        verdicts
    }
}

impl Verdict {
    /// As the core is told it.
    pub(crate) fn input(self, usage: impl FnOnce(Pressure) -> Vec<PodUsage>) -> Input {
        match self {
            Self::Short { pressure, threshold, available, grace_seconds } => {
                let shortage = Shortage { threshold, available, grace_seconds, usage: usage(pressure) };
                Input::Pressure { resource: pressure, shortage: Some(Box::new(shortage)) }
            }
            Self::Over(pressure) => Input::Pressure { resource: pressure, shortage: None },
        }
    }
}

/// Bytes in units as people write them, files as a number.
fn quantity(signal: Signal, amount: u64) -> Quantity {
    let notation = if signal == Signal::Inodes { Notation::Decimal } else { Notation::Binary };
    Quantity::new(i64::try_from(amount).unwrap_or(i64::MAX), notation)
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short { pressure, threshold, available, .. } => {
                write!(f, "short of {}: {available} left of {threshold} that have to be", pressure.resource())
            }
            Self::Over(pressure) => write!(f, "enough {} again", pressure.resource()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    fn left(memory: u64) -> BTreeMap<Signal, Left> {
        [(Signal::Memory, Left { available: memory, capacity: 1000 })].into()
    }

    fn short(threshold: u64, available: u64, grace_seconds: i64) -> Vec<Verdict> {
        let [threshold, available] = [threshold, available].map(|bytes| quantity(Signal::Memory, bytes));
        vec![Verdict::Short { pressure: Pressure::Memory, threshold, available, grace_seconds }]
    }

    // spec: RES-09
    #[test]
    fn a_hard_threshold_holds_at_once_and_a_soft_one_after_its_grace() {
        let mut judge = Judge::new(EvictionConfig {
            hard: vec![(Signal::Memory, Amount::Of(100))],
            soft: vec![(Signal::Memory, Amount::Percent(20.0), Duration::from_secs(30))],
            max_pod_grace: 60,
            transition: Duration::from_secs(10),
        });
        assert_eq!(judge.judge(at(0), &left(200)), []);
        assert_eq!(judge.judge(at(1), &left(199)), []);
        assert_eq!(judge.judge(at(30), &left(150)), []);
        assert_eq!(judge.judge(at(31), &left(150)), short(200, 150, 60));
        // From the beginning once there was enough.
        assert_eq!(judge.judge(at(32), &left(200)), []);
        assert_eq!(judge.judge(at(33), &left(199)), []);
        assert_eq!(judge.judge(at(40), &left(99)), short(100, 99, 0));
        assert_eq!(judge.shortages().collect::<Vec<_>>(), [Pressure::Memory]);
        assert_eq!(judge.judge(at(49), &left(500)), []);
        assert_eq!(judge.judge(at(50), &left(500)), [Verdict::Over(Pressure::Memory)]);
        assert_eq!(judge.judge(at(51), &left(500)), []);
        assert_eq!(judge.judge(at(52), &BTreeMap::new()), [], "what isn't known is no shortage");
    }

    #[test]
    fn disk_is_short_of_bytes_or_of_files() {
        let mut judge = Judge::new(EvictionConfig {
            hard: vec![(Signal::Disk, Amount::Percent(10.0)), (Signal::Inodes, Amount::Of(5))],
            ..EvictionConfig::default()
        });
        let of = |disk, inodes| -> BTreeMap<_, _> {
            [(Signal::Disk, disk), (Signal::Inodes, inodes)]
                .map(|(signal, available)| (signal, Left { available, capacity: 1000 }))
                .into()
        };
        assert_eq!(judge.judge(at(0), &of(100, 5)), []);
        let said = |verdicts: Vec<Verdict>| verdicts.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(
            said(judge.judge(at(1), &of(99, 5))),
            ["short of ephemeral-storage: 99 left of 100 that have to be"]
        );
        assert_eq!(said(judge.judge(at(2), &of(100, 4))), ["short of ephemeral-storage: 4 left of 5 that have to be"]);
    }

    #[test]
    fn the_default_is_less_for_small_machines() {
        let of = |capacity| EvictionConfig::default().reserved(Signal::Memory, capacity);
        assert_eq!(of(256 << 20), (256 << 20) / 20);
        assert_eq!(of(16 << 30), 100 << 20);
        assert_eq!(EvictionConfig::default().reserved(Signal::Disk, 1 << 30), 0);
    }

    #[test]
    fn this_machine_says_what_is_left() {
        let left = look(Path::new("/"));
        let memory = left[&Signal::Memory];
        assert!(memory.available > 0 && memory.available <= memory.capacity);
        assert!(left[&Signal::Disk].available <= left[&Signal::Disk].capacity);
    }
}
