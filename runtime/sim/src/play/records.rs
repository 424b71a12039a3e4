//! Where records of pods are while no agent runs.

use std::collections::HashMap;

use husk_core::Instant;
use husk_core::io::{PodUid, Urgency};
use husk_core::record::{Interruption, PodRecord};

use crate::broken::{Broken, rule};

/// Keeps the records of pods.
pub trait Records {
    /// The record of a pod has to be kept, in place of an earlier one.
    fn keep(&mut self, now: Instant, pod: &PodUid, record: Vec<u8>, urgency: Urgency);
    /// Nothing is left of a pod.
    fn forget(&mut self, now: Instant, pod: &PodUid);
    /// The agent ends and begins anew: what there is, in the order in which pods were accepted.
    ///
    /// # Errors
    /// A record can't be read.
    fn reopen(&mut self, now: Instant, after: Interruption) -> Result<Vec<PodRecord>, Broken>;
}

/// Nothing is ever lost.
#[derive(Default)]
pub(super) struct InMemory(HashMap<PodUid, Vec<u8>>);

impl Records for InMemory {
    fn keep(&mut self, _now: Instant, pod: &PodUid, record: Vec<u8>, _urgency: Urgency) {
        self.0.insert(pod.clone(), record);
    }

    fn forget(&mut self, _now: Instant, pod: &PodUid) {
        self.0.remove(pod);
    }

    fn reopen(&mut self, now: Instant, _after: Interruption) -> Result<Vec<PodRecord>, Broken> {
        let mut records = Vec::new();
        for (pod, bytes) in &self.0 {
            match PodRecord::from_bytes(bytes) {
                Ok(record) => records.push(record),
                Err(error) => rule!(false, now, "a record can be read", "that of {pod}: {error}"),
            }
        }
        records.sort_by_key(PodRecord::accepted);
        Ok(records)
    }
}
