//! Disks under volumes: a pod whose volume can't be looked into any more has failed (PHASE-10).

use std::collections::HashSet;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use husk_core::Input;
use husk_core::io::PodUid;
use tokio::time::{Interval, MissedTickBehavior};

use super::{Answer, Driver};
use crate::sandbox::Sandbox;

/// How often all disks are looked at.
const PERIOD: Duration = Duration::from_secs(5);

/// Pods whose disks had failed at the last look.
#[derive(Clone, Debug, Default)]
pub(super) struct Disks(Arc<Mutex<Seen>>);

#[derive(Debug, Default)]
struct Seen {
    suspects: HashSet<PodUid>,
    told: HashSet<PodUid>,
}

/// When to look.
pub(super) fn looks() -> Interval {
    let mut looks = tokio::time::interval(PERIOD);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    looks
}

impl Driver {
    /// Looks at the disks of all pods, beside everything else: a disk that hangs keeps nobody from running.
    pub(super) fn look_at_disks(&self) {
        let sandboxes = self.pods.iter().filter_map(|(uid, local)| Some((uid, local.sandbox.as_ref()?)));
        let pods: Vec<(PodUid, Weak<Sandbox>)> = sandboxes
            .filter(|(_, sandbox)| sandbox.volumes.have_disks())
            .map(|(uid, sandbox)| (uid.clone(), Arc::downgrade(sandbox)))
            .collect();
        if pods.is_empty() {
            return;
        }
        let (disks, answer) = (self.disks.clone(), self.answer.clone());
        tokio::task::spawn_blocking(move || {
            for (pod, message) in disks.look(&pods) {
                // Should the driver be gone, its pods are as well.
                let _ = answer.send(Answer::Fact(Input::LimitExceeded { pod, message }));
            }
        });
    }
}

impl Disks {
    /// What failed at two looks in a row is told, once: a stick that is pulled out and put in again has not failed.
    fn look(&self, pods: &[(PodUid, Weak<Sandbox>)]) -> Vec<(PodUid, String)> {
        // The look before may hang.
        let Ok(mut seen) = self.0.try_lock() else { return Vec::new() };
        let failing: Vec<(&PodUid, String)> =
            pods.iter().filter_map(|(pod, sandbox)| Some((pod, sandbox.upgrade()?.volumes.failed_disk()?))).collect();
        let failed: Vec<_> = failing
            .iter()
            .filter(|(pod, _)| seen.suspects.contains(*pod) && !seen.told.contains(*pod))
            .map(|(pod, message)| ((*pod).clone(), message.clone()))
            .collect();
        seen.told.retain(|told| pods.iter().any(|(pod, _)| pod == told));
        seen.told.extend(failed.iter().map(|(pod, _)| pod.clone()));
        seen.suspects = failing.into_iter().map(|(pod, _)| pod.clone()).collect();
        failed
    }
}
