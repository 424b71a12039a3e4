//! Terminal pods that nobody deletes (TERM-09).

use alloc::collections::BTreeSet;

use super::Node;
use crate::io::PodUid;
use crate::pod::Pod;
use crate::reasons;
use crate::time::Instant;

/// Terminal pods, those first that are to go first: evicted ones, then by age.
#[derive(Debug, Default)]
pub(super) struct Collection {
    terminal: BTreeSet<(bool, u64, PodUid)>,
}

impl Collection {
    pub(super) fn note(&mut self, pod: &Pod) {
        // One that is being deleted already needs nobody to do it.
        if pod.status.phase.is_terminal() && !pod.meta.is_static && pod.deletion.is_none() {
            self.terminal.insert(place(pod));
        }
    }

    pub(super) fn remove(&mut self, pod: &Pod) {
        self.terminal.remove(&place(pod));
    }
}

fn place(pod: &Pod) -> (bool, u64, PodUid) {
    (pod.status.reason != reasons::EVICTED, pod.accepted, pod.uid.clone())
}

impl Node {
    /// Deletes those beyond the threshold.
    pub(super) fn collect(&mut self, now: Instant) {
        let threshold = self.config.terminated_pod_gc_threshold;
        while threshold != 0
            && self.collection.terminal.len() > threshold
            && let Some((.., uid)) = self.collection.terminal.pop_first()
        {
            self.with_pod(now, &uid, |pod, out| pod.delete(Some(0), out));
        }
    }
}
