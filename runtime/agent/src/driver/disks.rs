//! Disks under volumes: a pod whose volume can't be looked into any more has failed (PHASE-10).

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use husk_core::Input;
use husk_core::io::PodUid;
use tokio::time::{Interval, MissedTickBehavior};

use super::{Answer, Driver};
use crate::sandbox::Sandbox;
use crate::volumes::DiskNumber;

/// How often all disks are looked at.
const PERIOD: Duration = Duration::from_secs(5);

/// What was seen of disks.
#[derive(Clone, Debug, Default)]
pub(super) struct Disks(Arc<Mutex<Seen>>);

#[derive(Debug, Default)]
struct Seen {
    /// Disks that somebody looks at. A look may hang for as long as the disk does, and others are looked at all the same.
    busy: HashSet<DiskNumber>,
    /// Pods that had failed at the last look at a disk.
    suspects: HashMap<DiskNumber, HashSet<PodUid>>,
    /// Pods of which it was told.
    told: HashSet<PodUid>,
}

/// When to look.
pub(super) fn looks() -> Interval {
    let mut looks = tokio::time::interval(PERIOD);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    looks
}

impl Driver {
    /// Looks at the disks of all pods, at each beside everything else: one that hangs keeps nobody from running.
    pub(super) fn look_at_disks(&self) {
        let mut by_disk: BTreeMap<DiskNumber, Vec<(PodUid, Weak<Sandbox>)>> = BTreeMap::new();
        for (uid, local) in &self.pods {
            let Some(sandbox) = &local.sandbox else { continue };
            for disk in sandbox.volumes.disks() {
                by_disk.entry(disk).or_default().push((uid.clone(), Arc::downgrade(sandbox)));
            }
        }
        self.disks.keep(|disk| by_disk.contains_key(&disk), |pod| self.pods.contains_key(pod));
        for (disk, pods) in by_disk {
            if !self.disks.begin(disk) {
                continue;
            }
            let (disks, answer) = (self.disks.clone(), self.answer.clone());
            tokio::task::spawn_blocking(move || {
                let failing =
                    |(pod, sandbox): (PodUid, Weak<Sandbox>)| Some((pod, sandbox.upgrade()?.volumes.failed_on(disk)?));
                for (pod, message) in disks.end(disk, pods.into_iter().filter_map(failing).collect()) {
                    // Should the driver be gone, its pods are as well.
                    let _ = answer.send(Answer::Fact(Input::LimitExceeded { pod, message }));
                }
            });
        }
    }
}

impl Disks {
    /// Forgets what is gone.
    fn keep(&self, is_disk: impl Fn(DiskNumber) -> bool, is_pod: impl Fn(&PodUid) -> bool) {
        let mut seen = self.seen();
        seen.suspects.retain(|disk, _| is_disk(*disk));
        seen.told.retain(is_pod);
    }

    /// Somebody is to look at a disk. False if somebody does still.
    fn begin(&self, disk: DiskNumber) -> bool {
        self.seen().busy.insert(disk)
    }

    /// What failed at two looks in a row is told, once: a stick that is pulled out and put in again has not failed.
    fn end(&self, disk: DiskNumber, failing: Vec<(PodUid, String)>) -> Vec<(PodUid, String)> {
        let mut seen = self.seen();
        seen.busy.remove(&disk);
        let now = failing.iter().map(|(pod, _)| pod.clone()).collect();
        let before = seen.suspects.insert(disk, now).unwrap_or_default();
        failing.into_iter().filter(|(pod, _)| before.contains(pod) && seen.told.insert(pod.clone())).collect()
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STICK: DiskNumber = DiskNumber(1);
    const OTHER: DiskNumber = DiskNumber(2);

    fn look(disks: &Disks, disk: DiskNumber, failing: &[&str]) -> Option<Vec<(PodUid, String)>> {
        let failing = failing.iter().map(|pod| (PodUid::from(*pod), "gone".to_owned())).collect();
        disks.begin(disk).then(|| disks.end(disk, failing))
    }

    #[test]
    fn what_fails_twice_in_a_row_is_told_once() {
        let (disks, told) = (Disks::default(), vec![(PodUid::from("a"), "gone".to_owned())]);
        assert_eq!(look(&disks, STICK, &["a"]), Some(vec![]));
        assert_eq!(look(&disks, OTHER, &[]), Some(vec![]), "that says nothing of another disk");
        assert_eq!(look(&disks, STICK, &["a", "b"]), Some(told.clone()));
        assert_eq!(look(&disks, STICK, &["a"]), Some(vec![]));
        assert_eq!(look(&disks, STICK, &["a", "b"]), Some(vec![]), "b was well in between");
        // Another pod of that uid, some day.
        disks.keep(|_| true, |_| false);
        assert_eq!(look(&disks, STICK, &["a"]), Some(told));
    }

    #[test]
    fn a_disk_that_hangs_keeps_no_other_from_being_judged() {
        let disks = Disks::default();
        assert!(disks.begin(STICK));
        assert_eq!(look(&disks, OTHER, &["a"]), Some(vec![]));
        assert_eq!(look(&disks, OTHER, &["a"]).map(|told| told.len()), Some(1));
        assert_eq!(look(&disks, STICK, &["b"]), None, "one look at it is enough");
        assert_eq!(disks.end(STICK, Vec::new()), []);
        assert_eq!(look(&disks, STICK, &[]), Some(vec![]));
    }
}
