//! The node is short of something: looked at from time to time, and told to the core, which says who has to go (RES-09).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};
use std::time::Duration;

use husk_core::event::EventKind;
use husk_core::eviction::{PodUsage, Pressure};
use husk_core::io::PodUid;
use husk_core::quantity::{Notation, Quantity};
use husk_core::reasons;
use k8s_openapi::api::core::v1::Pod;
use tokio::time::{Interval, MissedTickBehavior};

use super::{Answer, Driver};
use crate::eviction::{self, Left, Signal, Verdict};
use crate::notice::Notice;
use crate::sandbox::Sandbox;

/// How often what is left is looked at: memory goes fast, and there is no kernel here that would tell when it does.
const PERIOD: Duration = Duration::from_secs(1);

/// What was seen.
#[derive(Default)]
pub(super) struct Seen {
    left: BTreeMap<Signal, Left>,
    /// Bytes of the disk that pods use; looked at while there is too little of it.
    of_disk: Vec<(PodUid, u64)>,
}

/// When to look.
pub(super) fn looks() -> Interval {
    let mut looks = tokio::time::interval(PERIOD);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    looks
}

impl Driver {
    /// Somebody uses something, or it isn't known yet that the shortage is over.
    pub(super) fn may_be_short(&self) -> bool {
        !self.pods.is_empty() || self.judge.shortages().next().is_some()
    }

    /// Looks what is left, beside everything else: disks may hang.
    pub(super) fn look_what_is_left(&mut self) {
        if self.looks_what_is_left {
            return;
        }
        self.looks_what_is_left = true;
        let data_dir = self.config.data_dir.clone();
        let is_short_of_disk = self.judge.shortages().any(|pressure| pressure == Pressure::Disk);
        let pods =
            self.pods.iter().filter(|_| is_short_of_disk).filter_map(|(uid, local)| {
                Some((uid.clone(), local.pod.clone(), Arc::downgrade(local.sandbox.as_ref()?)))
            });
        let pods: Vec<(PodUid, Arc<Pod>, Weak<Sandbox>)> = pods.collect();
        self.answer_blocking(move || {
            let used = |(uid, pod, sandbox): (PodUid, Arc<Pod>, Weak<Sandbox>)| {
                Some((uid, sandbox.upgrade()?.volumes.used(&pod)))
            };
            let of_disk = pods.into_iter().filter_map(used).collect();
            Answer::Seen(Seen { left: eviction::look(&data_dir), of_disk })
        });
    }

    /// Tells the core. Not while somebody is ending for it: first is to be seen what that sets free.
    pub(super) fn saw_what_is_left(&mut self, seen: Seen) {
        self.looks_what_is_left = false;
        if self.somebody_goes() {
            return;
        }
        let was_short: BTreeSet<Pressure> = self.judge.shortages().collect();
        for verdict in self.judge.judge(self.now(), &seen.left) {
            match &verdict {
                Verdict::Short { pressure, .. } if !was_short.contains(pressure) => {
                    tracing::warn!("the node is {verdict}");
                    let message = format!("Attempting to reclaim {}", pressure.resource());
                    self.tell_of_node(EventKind::Warning, "EvictionThresholdMet", message);
                    if *pressure == Pressure::Disk {
                        // What nobody uses goes first.
                        self.collect_images();
                        continue;
                    }
                }
                Verdict::Short { .. } => {}
                Verdict::Over(pressure) => {
                    tracing::info!("the node has {verdict}");
                    let message = format!("Node {} status is now: {}", self.config.node_name, relief(*pressure));
                    self.tell_of_node(EventKind::Normal, relief(*pressure), message);
                }
            }
            let input = verdict.input(|pressure| self.usage(pressure, &seen));
            self.fact(input);
        }
        let short: BTreeSet<Pressure> = self.judge.shortages().collect();
        self.short_of.send_if_modified(|known| std::mem::replace(known, short.clone()) != short);
    }

    fn tell_of_node(&self, kind: EventKind, reason: &'static str, message: String) {
        self.tell(Notice::Node { at: self.now(), kind, reason, message });
    }

    fn somebody_goes(&self) -> bool {
        let is_short = self.judge.shortages().next().is_some();
        is_short
            && self.pods.iter().any(|(uid, local)| {
                let record = local.sandbox.as_ref().and_then(|_| self.node.record(uid));
                record.is_some_and(|record| record.ended_by_node() == Some(reasons::EVICTED))
            })
    }

    /// Who uses how much of what is short.
    fn usage(&self, pressure: Pressure, seen: &Seen) -> Vec<PodUsage> {
        match pressure {
            Pressure::Memory => self.memory_by_pod(),
            Pressure::Disk => {
                let used = |(pod, bytes): &(PodUid, u64)| PodUsage {
                    pod: pod.clone(),
                    total: quantity(*bytes),
                    containers: Vec::new(),
                };
                seen.of_disk.iter().map(used).collect()
            }
            Pressure::Pid => Vec::new(),
        }
    }

    fn memory_by_pod(&self) -> Vec<PodUsage> {
        let with_share = self.pods.iter().filter_map(|(uid, local)| Some((uid, local.share.as_ref()?)));
        let mut pods: BTreeMap<&PodUid, PodUsage> = with_share
            .map(|(uid, share)| {
                let total = quantity(share.memory().used);
                (uid, PodUsage { pod: uid.clone(), total, containers: Vec::new() })
            })
            .collect();
        for (instance, container) in self.running() {
            if let Some(pod) = pods.get_mut(&instance.pod) {
                pod.containers.push((instance.container.to_string(), quantity(container.memory().used)));
            }
        }
        pods.into_values().collect()
    }
}

/// The node's event when it is not short any more, as upstream has it.
fn relief(pressure: Pressure) -> &'static str {
    match pressure {
        Pressure::Memory => "NodeHasSufficientMemory",
        Pressure::Disk => "NodeHasNoDiskPressure",
        Pressure::Pid => "NodeHasSufficientPID",
    }
}

fn quantity(bytes: u64) -> Quantity {
    Quantity::new(i64::try_from(bytes).unwrap_or(i64::MAX), Notation::Binary)
}
