//! The latest changes, for watches.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::error::WatchError;
use crate::object::Change;

/// Bounded in number and bytes, but for the newest one; in memory only, so that a watch from before a start is expired.
#[derive(Debug)]
pub(crate) struct History {
    changes: VecDeque<Arc<Change>>,
    /// Every change after this version is here.
    floor: u64,
    weight: usize,
    max_changes: usize,
    max_bytes: usize,
}

impl History {
    pub(crate) fn new(floor: u64, max_changes: usize, max_bytes: usize) -> Self {
        Self { changes: VecDeque::new(), floor, weight: 0, max_changes, max_bytes }
    }

    pub(crate) fn push(&mut self, change: Arc<Change>) {
        self.weight += weight(&change);
        self.changes.push_back(change);
        // The newest stays however large it is: otherwise one large object would end every watch.
        while self.changes.len() > 1 && (self.changes.len() > self.max_changes || self.weight > self.max_bytes) {
            let Some(oldest) = self.changes.pop_front() else { break };
            self.weight -= weight(&oldest);
            self.floor = oldest.version();
        }
    }

    /// Changes after version `since`, oldest first.
    pub(crate) fn since(&self, since: u64) -> Result<impl Iterator<Item = &Arc<Change>>, WatchError> {
        if since < self.floor {
            return Err(WatchError::Expired { since, oldest: self.floor });
        }
        let first = self.changes.partition_point(|change| change.version() <= since);
        Ok(self.changes.range(first..))
    }
}

/// The object before is counted as well, since nothing else may hold it any more.
fn weight(change: &Change) -> usize {
    change.object.weight() + change.previous.as_ref().map_or(0, |object| object.weight())
}
