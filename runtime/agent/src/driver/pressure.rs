//! The node is short of something: looked at from time to time, and told to the core, which says who has to go (RES-09).
//!
//! Memory goes fast and is looked at often, in a moment. A disk is looked at in steps, each beside everything else and none before the one
//! before has answered: what is left; if that is too little, what is left when all that nobody uses was removed; if that is too little as
//! well, who uses how much. So a disk that is slow, or hangs, delays no look at memory.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Weak};
use std::time::Duration;

use husk_core::Instant;
use husk_core::event::EventKind;
use husk_core::eviction::{EvictionConfig, Judge, Look, PodUsage, Pressure, Verdict};
use husk_core::io::PodUid;
use husk_core::quantity::{Notation, Quantity};
use tokio::time::{Interval, MissedTickBehavior};

use super::on_disk::OnDisk;
use super::{Answer, Driver};
use crate::machine;
use crate::notice::Notice;
use crate::pod::LocalPod;
use crate::volumes::DiskUse;

/// How often memory is looked at while there are pods: there is no kernel here that would tell when it goes.
const MEMORY_PERIOD: Duration = Duration::from_secs(1);
/// How often a disk is, and memory without pods: the kubelet's period.
const PERIOD: Duration = Duration::from_secs(10);

/// What the node is short of, as far as it was looked at.
pub(super) struct Shortages {
    judge: Judge,
    /// Of what somebody has to go for.
    urgent: BTreeSet<Pressure>,
    /// Held by who looks at the disk.
    turn: Weak<Turn>,
}

/// There is one at a time, and it ends with who holds it, however that ends.
pub(super) struct Turn;

/// What was seen of the disk.
pub(super) struct Seen {
    /// When the oldest of it was.
    at: Instant,
    look: Look,
    step: Step,
    turn: Arc<Turn>,
}

/// How far a look at the disk went.
enum Step {
    /// It was measured.
    Look,
    /// What nobody uses was removed before.
    Cleaned,
    /// What pods use was measured as well.
    Walked(Vec<(PodUid, OnDisk)>),
}

impl Shortages {
    /// Nobody goes before it is said by which thresholds: who is to hear of it has to be there.
    pub(super) fn new() -> Self {
        let judge = Judge::new(EvictionConfig { thresholds: Vec::new(), ..EvictionConfig::default() });
        Self { judge, urgent: BTreeSet::new(), turn: Weak::new() }
    }

    /// The turn to look at the disk, if nobody has it.
    fn take_turn(&mut self) -> Option<Arc<Turn>> {
        if self.turn.strong_count() > 0 {
            return None;
        }
        let turn = Arc::new(Turn);
        self.turn = Arc::downgrade(&turn);
        Some(turn)
    }
}

/// When to look at memory, and when at the rest.
pub(super) fn looks() -> [Interval; 2] {
    [MEMORY_PERIOD, PERIOD].map(|period| {
        let mut looks = tokio::time::interval(period);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        looks
    })
}

impl Driver {
    /// These thresholds hold from now on.
    pub(super) fn set_evictions(&mut self, config: EvictionConfig) {
        self.shortages.judge.configure(config);
        self.look_what_is_left();
    }

    /// Looks at memory and begins to look at the disk.
    pub(super) fn look_what_is_left(&mut self) {
        self.look_at_memory();
        if let Some(turn) = self.shortages.take_turn() {
            let (at, data_dir) = (self.now(), self.config.data_dir.clone());
            self.answer_blocking(move || {
                Answer::SawDisk(Seen { at, look: machine::look_at_disk(&data_dir), step: Step::Look, turn })
            });
        }
    }

    pub(super) fn look_at_memory(&mut self) {
        let (now, look) = (self.now(), machine::look_at_memory());
        self.bound_memory();
        for verdict in self.judge(now, &look) {
            // What a compiler holds goes before any pod does, and is seen to be free at the next look.
            let goes = verdict.is_urgent() && !self.engine.stop_compiling();
            let usage = goes.then(|| self.memory_by_pod());
            self.press(now, &verdict, usage);
        }
    }

    /// Guests together may have what is for pods, and not more than there is: who grows faster than anybody looks meets that, and not the
    /// kernel, which would end them all.
    pub(super) fn bound_memory(&self) {
        let there_is = machine::memory().map(|memory| self.engine.memory_used().saturating_add(memory.available));
        let bounds = [self.ground.machine.memory_for_pods(), there_is];
        self.engine.set_memory_limit(bounds.into_iter().flatten().min());
    }

    /// Tells the core what was seen of the disk, or goes on to the next step before somebody has to go for it.
    pub(super) fn saw_disk(&mut self, seen: Seen) {
        let Seen { at, look, step, turn } = seen;
        let verdicts = self.judge(at, &look);
        let is_urgent = verdicts.iter().any(Verdict::is_urgent);
        for verdict in verdicts {
            let usage = match &step {
                Step::Walked(pods) if verdict.is_urgent() => Some(usage_of_disk(pods, verdict.pressure())),
                _ => None,
            };
            self.press(at, &verdict, usage);
        }
        match step {
            Step::Look if is_urgent => self.clean(turn),
            Step::Cleaned if is_urgent => self.walk(turn),
            _ => {}
        }
    }

    /// What nobody uses goes before anybody has to: images, and compiled code.
    fn clean(&self, turn: Arc<Turn>) {
        let wanted = self.pods.values().flat_map(LocalPod::image_names).collect();
        let (images, engine) = (self.ground.images.clone(), self.engine.clone());
        let (clock, data_dir) = (self.clock, self.config.data_dir.clone());
        self.answer_blocking(move || {
            let freed = images.give_up_unused(&wanted).saturating_add(engine.forget_unused_code());
            if freed > 0 {
                tracing::info!(bytes = freed, "removed images and compiled code that nobody uses: the disk is short");
            }
            let at = clock.now();
            Answer::SawDisk(Seen { at, look: machine::look_at_disk(&data_dir), step: Step::Cleaned, turn })
        });
    }

    /// Looks who uses how much of the disk: any pod, whether it was set up or not, for what it had before the agent started is there.
    fn walk(&self, turn: Arc<Turn>) {
        let places = self.places(self.pods.keys());
        let (at, data_dir) = (self.now(), self.config.data_dir.clone());
        self.answer_blocking(move || {
            let pods = places.into_iter().map(|(pod, places)| (pod, places.measure())).collect();
            Answer::SawDisk(Seen { at, look: machine::look_at_disk(&data_dir), step: Step::Walked(pods), turn })
        });
    }

    /// Holds what was seen against what has to be left, and tells those who want to know of what the node is short now.
    fn judge(&mut self, now: Instant, look: &Look) -> Vec<Verdict> {
        let before = self.conditions();
        let verdicts = self.shortages.judge.judge(now, look);
        let looked_at: BTreeSet<Pressure> = look.keys().map(|signal| signal.pressure()).collect();
        let urgent = verdicts.iter().filter(|verdict| verdict.is_urgent());
        let urgent: BTreeMap<Pressure, &Verdict> = urgent.map(|verdict| (verdict.pressure(), verdict)).collect();
        self.shortages.urgent.retain(|pressure| !looked_at.contains(pressure) || urgent.contains_key(pressure));
        for (pressure, verdict) in urgent {
            if self.shortages.urgent.insert(pressure) {
                tracing::warn!("the node is short: {verdict}");
                let message = format!("Attempting to reclaim {}", pressure.resource());
                self.tell_of_node(EventKind::Warning, "EvictionThresholdMet", message);
            }
        }
        let after = self.conditions();
        for condition in before.symmetric_difference(&after) {
            let reason = said(condition, after.contains(condition));
            tracing::info!("the node's status is now: {reason}");
            let message = format!("Node {} status is now: {reason}", self.config.node_name);
            self.tell_of_node(EventKind::Normal, reason, message);
        }
        self.short_of.send_if_modified(|known| std::mem::replace(known, after.clone()) != after);
        verdicts
    }

    /// Conditions of the node that are true.
    fn conditions(&self) -> BTreeSet<&'static str> {
        self.shortages.judge.shortages().map(Pressure::condition).collect()
    }

    /// Tells the core. If somebody goes for that he is counted.
    fn press(&mut self, as_of: Instant, verdict: &Verdict, usage: Option<Vec<PodUsage>>) {
        let before = self.node.last_evicted().cloned();
        self.fact(verdict.input(as_of, usage));
        if let Verdict::Short { signal, .. } = verdict
            && self.node.last_evicted() != before.as_ref()
        {
            self.metrics.evicted(*signal);
        }
    }

    fn tell_of_node(&self, kind: EventKind, reason: &'static str, message: String) {
        self.tell(Notice::Node { at: self.now(), kind, reason, message });
    }

    /// What pods hold of memory: what the engine counts of their containers, and volumes in it. All are in it: who hasn't begun holds
    /// nothing.
    fn memory_by_pod(&self) -> Vec<PodUsage> {
        let of = |(uid, local): (&PodUid, &LocalPod)| {
            let guests = local.share.as_ref().map_or(0, |share| share.memory().used);
            let volumes = local.sandbox.as_ref().map_or(0, |sandbox| sandbox.volumes.memory());
            let total = bytes(guests.saturating_add(volumes));
            (uid.clone(), PodUsage { pod: uid.clone(), total, containers: Vec::new() })
        };
        let mut pods: HashMap<PodUid, PodUsage> = self.pods.iter().map(of).collect();
        for (instance, container) in self.running() {
            if let Some(pod) = pods.get_mut(&instance.pod) {
                pod.containers.push((instance.container.to_string(), bytes(container.memory().used)));
            }
        }
        pods.into_values().collect()
    }
}

fn usage_of_disk(pods: &[(PodUid, OnDisk)], pressure: Pressure) -> Vec<PodUsage> {
    let amount = |used: &DiskUse| match pressure {
        Pressure::Inodes => Quantity::new(i64::try_from(used.inodes).unwrap_or(i64::MAX), Notation::Decimal),
        Pressure::Disk | Pressure::Memory | Pressure::Pid => bytes(used.bytes),
    };
    let of = |(pod, on_disk): &(PodUid, OnDisk)| PodUsage {
        pod: pod.clone(),
        total: amount(&on_disk.total),
        containers: on_disk.containers.iter().map(|(name, used)| (name.clone(), amount(used))).collect(),
    };
    pods.iter().map(of).collect()
}

fn bytes(bytes: u64) -> Quantity {
    Quantity::new(i64::try_from(bytes).unwrap_or(i64::MAX), Notation::Binary)
}

/// The node's event when a condition changes, as upstream has it.
fn said(condition: &str, is_true: bool) -> &'static str {
    match (condition, is_true) {
        ("MemoryPressure", true) => "NodeHasInsufficientMemory",
        ("MemoryPressure", false) => "NodeHasSufficientMemory",
        ("DiskPressure", true) => "NodeHasDiskPressure",
        ("DiskPressure", false) => "NodeHasNoDiskPressure",
        (_, true) => "NodeHasInsufficientPID",
        (_, false) => "NodeHasSufficientPID",
    }
}

#[cfg(test)]
mod tests {
    use super::super::on_disk::Places;
    use super::*;

    // spec: RES-09
    #[test]
    fn the_disk_is_looked_at_once_at_a_time_and_again_however_the_look_before_ended() {
        let mut shortages = Shortages::new();
        let turn = shortages.take_turn().expect("nobody looks");
        assert!(shortages.take_turn().is_none());
        let broken = std::thread::spawn(move || {
            let _turn = turn;
            // As a fault in a look would, but without a word about it in the output.
            std::panic::resume_unwind(Box::new("broken"));
        });
        assert!(broken.join().is_err());
        assert!(shortages.take_turn().is_some());
    }

    // spec: RES-09
    #[test]
    fn what_a_pod_has_on_the_disk_is_volumes_and_root_directories_in_bytes_and_in_files() {
        let place = tempfile::tempdir().expect("a folder");
        let make = |name: &str, sizes: &[usize]| {
            let folder = place.path().join(name);
            std::fs::create_dir(&folder).expect("made");
            for (n, size) in sizes.iter().enumerate() {
                std::fs::write(folder.join(n.to_string()), vec![7; *size]).expect("written");
            }
            folder
        };
        let (folder, root) = (make("volumes", &[64 << 10, 1, 1]), make("root", &[256 << 10]));
        let containers = vec![("app".to_owned(), vec![root])];
        let measured = Places { folder, containers }.measure();
        let gone = Places { folder: place.path().join("gone"), containers: vec![] }.measure();
        let pods = [("u1".into(), measured), ("u2".into(), gone)];
        let disk = usage_of_disk(&pods, Pressure::Disk);
        let of = |usage: &Quantity| usage.value() >> 10;
        assert!((320..400).contains(&of(&disk[0].total)), "{disk:?}");
        assert!((256..300).contains(&of(&disk[0].containers[0].1)), "{disk:?}");
        assert!(disk[1].total.is_zero());
        let files = usage_of_disk(&pods, Pressure::Inodes);
        assert_eq!((files[0].total.value(), files[0].containers[0].1.value()), (4, 1));
    }
}
