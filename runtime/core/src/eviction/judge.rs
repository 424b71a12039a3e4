//! Holds what is left against what has to be, in the order in which a node is looked at.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::fmt;

use super::{EvictionConfig, PodUsage, Pressure, Shortage, Signal, Threshold};
use crate::io::Input;
use crate::quantity::{Notation, Quantity};
use crate::time::Instant;

/// How much there is, and how much of it is left: bytes, or files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// Is left.
    pub available: u64,
    /// There is.
    pub capacity: u64,
}

/// What was seen of each signal that was looked at; none where that can't be found out, which is no shortage.
pub type Look = BTreeMap<Signal, Option<Left>>;

/// Holds what is left against what has to be.
#[derive(Clone, Debug)]
pub struct Judge {
    config: EvictionConfig,
    /// Since when thresholds are met. A hard and a soft one of the same signal are two.
    met: BTreeMap<(Signal, Kind), Instant>,
    /// Of what the node is short, and when that was seen last.
    short: BTreeMap<Pressure, Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Hard,
    Soft,
}

/// What there is to say of one kind of shortage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Less is left than has to be.
    Short {
        /// Of what.
        signal: Signal,
        /// What has to be left.
        threshold: u64,
        /// What is left.
        available: u64,
        /// Most grace of the pod that has to go for it, in seconds; none if nobody has to go yet.
        grace_seconds: Option<i64>,
    },
    /// It is over.
    Over(Pressure),
}

impl Judge {
    /// One that has seen nothing yet.
    pub fn new(config: EvictionConfig) -> Self {
        Self { config, met: BTreeMap::new(), short: BTreeMap::new() }
    }

    /// Judges by other thresholds from now on. What is known of those that stay is not forgotten.
    pub fn configure(&mut self, config: EvictionConfig) {
        self.config = config;
        let is_known = |(signal, kind): &(Signal, Kind)| {
            self.config.thresholds.iter().any(|known| (known.signal, Kind::of(known)) == (*signal, *kind))
        };
        self.met.retain(|key, _| is_known(key));
    }

    /// Of what the node is short, or was a while ago (`evictionPressureTransitionPeriod`).
    pub fn shortages(&self) -> impl Iterator<Item = Pressure> {
        self.short.keys().copied()
    }

    /// Judges what was seen now. What wasn't looked at is as it was.
    pub fn judge(&mut self, now: Instant, look: &Look) -> Vec<Verdict> {
        let mut found: BTreeMap<Pressure, Verdict> = BTreeMap::new();
        let looked_at = self.config.thresholds.iter().filter(|known| look.contains_key(&known.signal));
        for threshold in looked_at {
            let key = (threshold.signal, Kind::of(threshold));
            let Some(least) =
                look[&threshold.signal].and_then(|left| threshold.is_met(left, self.met.contains_key(&key)))
            else {
                self.met.remove(&key);
                continue;
            };
            let since = *self.met.entry(key).or_insert(now);
            let verdict = Verdict::Short {
                signal: threshold.signal,
                threshold: least.0,
                available: least.1,
                grace_seconds: match threshold.grace_period {
                    None => Some(0),
                    Some(period) if now.saturating_since(since) >= period => Some(self.config.max_pod_grace_seconds),
                    Some(_) => None,
                },
            };
            let pressure = threshold.signal.pressure();
            self.short.insert(pressure, now);
            let worst = found.entry(pressure).or_insert_with(|| verdict.clone());
            if verdict.urgency() < worst.urgency() {
                *worst = verdict;
            }
        }
        let mut verdicts: Vec<Verdict> = found.into_values().collect();
        for pressure in look.keys().map(|signal| signal.pressure()) {
            if self.is_over(now, pressure) {
                self.short.remove(&pressure);
                verdicts.push(Verdict::Over(pressure));
            }
        }
        verdicts
    }

    fn is_over(&self, now: Instant, pressure: Pressure) -> bool {
        let is_met = self.met.keys().any(|(signal, _)| signal.pressure() == pressure);
        let last = self.short.get(&pressure);
        !is_met && last.is_some_and(|last| now.saturating_since(*last) >= self.config.transition)
    }
}

impl Kind {
    fn of(threshold: &Threshold) -> Self {
        if threshold.grace_period.is_some() { Self::Soft } else { Self::Hard }
    }
}

impl Threshold {
    /// What has to be left and what is, if that is too little. One that was met stays so until the minimum is reclaimed.
    fn is_met(&self, left: Left, was_met: bool) -> Option<(u64, u64)> {
        let least = self.least.of(left.capacity);
        let enough = if was_met { least.saturating_add(self.reclaim.of(left.capacity)) } else { least };
        (left.available < enough).then_some((least, left.available))
    }
}

impl Verdict {
    /// The sooner comes first: who has no grace, who has some, who needn't go yet.
    fn urgency(&self) -> (bool, i64) {
        match self {
            Self::Short { grace_seconds, .. } => (grace_seconds.is_none(), grace_seconds.unwrap_or(0)),
            Self::Over(_) => (true, i64::MAX),
        }
    }

    /// Somebody has to go.
    pub fn is_urgent(&self) -> bool {
        matches!(self, Self::Short { grace_seconds: Some(_), .. })
    }

    /// What it is about.
    pub const fn pressure(&self) -> Pressure {
        match self {
            Self::Short { signal, .. } => signal.pressure(),
            Self::Over(pressure) => *pressure,
        }
    }

    /// As the node is told it: with what pods used of it, all of it as of then. Without that nobody goes.
    pub fn input(&self, as_of: Instant, usage: Option<Vec<PodUsage>>) -> Input {
        let shortage = match *self {
            Self::Short { signal, threshold, available, grace_seconds } => Some(Box::new(Shortage {
                threshold: signal.quantity(threshold),
                available: signal.quantity(available),
                grace_seconds: grace_seconds.filter(|_| usage.is_some()),
                as_of,
                usage: usage.unwrap_or_default(),
            })),
            Self::Over(_) => None,
        };
        Input::Pressure { resource: self.pressure(), shortage }
    }
}

impl Signal {
    /// Bytes in units as people write them, files as a number.
    fn quantity(self, amount: u64) -> Quantity {
        let notation = if self.pressure() == Pressure::Inodes { Notation::Decimal } else { Notation::Binary };
        Quantity::new(i64::try_from(amount).unwrap_or(i64::MAX), notation)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short { signal, threshold, available, .. } => {
                let [threshold, available] = [*threshold, *available].map(|amount| signal.quantity(amount));
                write!(f, "{} is {available}, and {threshold} have to be left", signal.as_str())
            }
            Self::Over(pressure) => write!(f, "there is enough {} again", pressure.resource()),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::{String, ToString};
    use alloc::vec;

    use super::super::Amount;
    use super::*;
    use crate::time::Duration;

    const MEMORY: Signal = Signal::MemoryAvailable;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    fn hard(signal: Signal, least: u64) -> Threshold {
        Threshold { signal, least: Amount::Of(least), grace_period: None, reclaim: Amount::Of(0) }
    }

    fn soft(signal: Signal, least: u64, seconds: u64) -> Threshold {
        Threshold { grace_period: Some(Duration::from_secs(seconds)), ..hard(signal, least) }
    }

    fn judge(thresholds: Vec<Threshold>) -> Judge {
        let transition = Duration::from_secs(10);
        Judge::new(EvictionConfig { thresholds, max_pod_grace_seconds: 60, transition })
    }

    fn left(available: u64) -> Look {
        [(MEMORY, Some(Left { available, capacity: 1000 }))].into()
    }

    fn short(threshold: u64, available: u64, grace_seconds: Option<i64>) -> Vec<Verdict> {
        vec![Verdict::Short { signal: MEMORY, threshold, available, grace_seconds }]
    }

    // spec: RES-09
    #[test]
    fn a_hard_threshold_holds_at_once_and_a_soft_one_after_its_grace_period() {
        let mut judge = judge(vec![hard(MEMORY, 100), soft(MEMORY, 200, 30)]);
        assert_eq!(judge.judge(at(0), &left(200)), []);
        assert_eq!(judge.judge(at(1), &left(199)), short(200, 199, None), "the node is short, and nobody goes yet");
        assert_eq!(judge.shortages().collect::<Vec<_>>(), [Pressure::Memory]);
        assert_eq!(judge.judge(at(30), &left(150)), short(200, 150, None));
        assert_eq!(judge.judge(at(31), &left(150)), short(200, 150, Some(60)));
        // From the beginning once there was enough.
        assert_eq!(judge.judge(at(32), &left(200)), []);
        assert_eq!(judge.judge(at(33), &left(199)), short(200, 199, None));
        assert_eq!(judge.judge(at(40), &left(99)), short(100, 99, Some(0)), "the hard one is the worse");
    }

    // spec: RES-09
    #[test]
    fn a_soft_threshold_has_its_own_time_beside_a_hard_one_of_the_same_signal() {
        // The hard one is the higher: that the soft one is met is seen only later.
        let mut judge = judge(vec![hard(MEMORY, 300), soft(MEMORY, 200, 30)]);
        assert_eq!(judge.judge(at(0), &left(250)), short(300, 250, Some(0)));
        judge.judge(at(29), &left(150));
        judge.configure(EvictionConfig { thresholds: vec![soft(MEMORY, 200, 30)], ..judge.config.clone() });
        assert_eq!(judge.judge(at(30), &left(150)), short(200, 150, None), "since 29");
        assert_eq!(judge.judge(at(59), &left(150)), short(200, 150, Some(60)));
        // And the hard one is not over because the soft one is.
        let mut judge = self::judge(vec![hard(MEMORY, 300), soft(MEMORY, 200, 30)]);
        judge.judge(at(0), &left(150));
        assert_eq!(judge.judge(at(1), &left(250)), short(300, 250, Some(0)));
        assert_eq!(judge.judge(at(31), &left(150)), short(300, 150, Some(0)), "begun anew");
        judge.configure(EvictionConfig { thresholds: vec![soft(MEMORY, 200, 30)], ..judge.config.clone() });
        assert_eq!(judge.judge(at(32), &left(150)), short(200, 150, None));
    }

    // spec: RES-09
    #[test]
    fn the_node_is_short_for_a_while_after_it_was() {
        let mut judge = judge(vec![hard(MEMORY, 100)]);
        assert_eq!(judge.judge(at(0), &left(99)), short(100, 99, Some(0)));
        assert_eq!(judge.judge(at(5), &left(100)), []);
        assert_eq!(judge.judge(at(6), &left(99)), short(100, 99, Some(0)));
        assert_eq!(judge.judge(at(15), &left(500)), []);
        assert_eq!(judge.shortages().count(), 1);
        assert_eq!(judge.judge(at(16), &left(500)), [Verdict::Over(Pressure::Memory)]);
        assert_eq!(judge.shortages().count(), 0);
        assert_eq!(judge.judge(at(17), &left(500)), []);
        assert_eq!(judge.judge(at(18), &[(MEMORY, None)].into()), [], "what isn't known is no shortage");
    }

    // spec: RES-09
    #[test]
    fn a_shortage_whose_threshold_is_gone_is_over_as_well() {
        let mut judge = judge(vec![hard(MEMORY, 100)]);
        judge.judge(at(0), &left(99));
        judge.configure(EvictionConfig { thresholds: vec![], ..judge.config.clone() });
        assert_eq!(judge.judge(at(9), &left(99)), []);
        assert_eq!(judge.judge(at(10), &left(99)), [Verdict::Over(Pressure::Memory)]);
    }

    // spec: RES-09
    #[test]
    fn it_is_enough_again_once_the_minimum_is_reclaimed() {
        let mut judge = judge(vec![Threshold { reclaim: Amount::Of(50), ..hard(MEMORY, 100) }]);
        assert_eq!(judge.judge(at(0), &left(120)), [], "it wasn't too little before");
        assert_eq!(judge.judge(at(1), &left(99)), short(100, 99, Some(0)));
        assert_eq!(judge.judge(at(2), &left(149)), short(100, 149, Some(0)));
        assert_eq!(judge.judge(at(3), &left(150)), []);
        assert_eq!(judge.judge(at(4), &left(120)), []);
    }

    // spec: RES-09
    #[test]
    fn a_disk_is_short_of_bytes_or_of_files() {
        let mut judge = judge(vec![
            hard(Signal::NodefsAvailable, 100),
            hard(Signal::ImagefsAvailable, 150),
            hard(Signal::NodefsInodesFree, 5),
        ]);
        let look = |bytes, files| -> Look {
            let bytes = Some(Left { available: bytes, capacity: 1000 });
            let files = Some(Left { available: files, capacity: 1000 });
            [(Signal::NodefsAvailable, bytes), (Signal::ImagefsAvailable, bytes), (Signal::NodefsInodesFree, files)]
                .into()
        };
        let said = |verdicts: Vec<Verdict>| verdicts.iter().map(ToString::to_string).collect::<Vec<String>>();
        assert_eq!(judge.judge(at(0), &look(150, 5)), []);
        assert_eq!(said(judge.judge(at(1), &look(99, 5))), ["nodefs.available is 99, and 100 have to be left"]);
        assert_eq!(said(judge.judge(at(2), &look(149, 5))), ["imagefs.available is 149, and 150 have to be left"]);
        assert_eq!(said(judge.judge(at(3), &look(150, 4))), ["nodefs.inodesFree is 4, and 5 have to be left"]);
        assert_eq!(judge.judge(at(4), &left(0)), [], "that says nothing of the disk");
        assert_eq!(judge.shortages().collect::<Vec<_>>(), [Pressure::Disk, Pressure::Inodes]);
    }
}
