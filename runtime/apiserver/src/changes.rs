//! What has changed: how it is read, and a bounded ring of it that any number of watchers read at their own pace.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use tokio::sync::watch;

use crate::storage::{Key, Scope, Shared, StorageError};

/// One write.
#[derive(Clone, Debug)]
pub struct Change {
    /// Its number.
    pub revision: u64,
    /// The object's key.
    pub key: Key,
    /// The object before; none if it is new.
    pub before: Option<Shared>,
    /// The object after; none if it is gone.
    pub after: Option<Shared>,
    /// For a removal: the object as it was, with the revision of the removal.
    pub removed: Option<Shared>,
}

/// Reads changes of a scope one after the other.
#[async_trait]
pub trait Feed: Send {
    /// The next change; waits for it. Who is too slow is told that it missed some. Can be given up and called again.
    async fn next(&mut self) -> Result<Arc<Change>, StorageError>;

    /// Everything up to here has been given out.
    fn revision(&self) -> u64;
}

/// What a storage gives to those who watch it.
pub type Watch = Box<dyn Feed>;

/// The last changes of a storage. Clones share them.
#[derive(Clone, Debug)]
pub struct Changes(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    capacity: usize,
    ring: Mutex<Ring>,
    newest: watch::Sender<u64>,
}

#[derive(Debug)]
struct Ring {
    changes: VecDeque<Arc<Change>>,
    /// The revision before the oldest change that is remembered: watches can go on from here.
    floor: u64,
}

impl Changes {
    /// Remembers nothing before `revision`, and `capacity` changes from there on.
    pub fn new(capacity: usize, revision: u64) -> Self {
        let ring = Mutex::new(Ring { changes: VecDeque::new(), floor: revision });
        Self(Arc::new(Inner { capacity: capacity.max(1), ring, newest: watch::Sender::new(revision) }))
    }

    /// Takes the next change. Revisions only grow.
    pub fn push(&self, change: Change) {
        let revision = change.revision;
        let mut ring = self.ring();
        if ring.changes.len() == self.0.capacity {
            ring.floor = ring.changes.pop_front().map_or(ring.floor, |oldest| oldest.revision);
        }
        ring.changes.push_back(Arc::new(change));
        drop(ring);
        self.0.newest.send_replace(revision);
    }

    /// The revision of the newest change.
    pub fn revision(&self) -> u64 {
        *self.0.newest.borrow()
    }

    /// What changes in a scope after a revision.
    pub fn watch(&self, scope: Scope, since: u64) -> Result<Watch, StorageError> {
        let current = self.revision();
        if since > current {
            return Err(StorageError::Future { asked: since, current });
        }
        let oldest = self.ring().floor;
        if since < oldest {
            return Err(StorageError::Expired { asked: since, oldest });
        }
        Ok(Box::new(Reader { changes: self.clone(), scope, seen: since, newest: self.0.newest.subscribe() }))
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.0.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
struct Reader {
    changes: Changes,
    scope: Scope,
    /// All changes up to here were looked at.
    seen: u64,
    newest: watch::Receiver<u64>,
}

#[async_trait]
impl Feed for Reader {
    async fn next(&mut self) -> Result<Arc<Change>, StorageError> {
        loop {
            self.newest.mark_unchanged();
            if let Some(change) = self.try_next()? {
                return Ok(change);
            }
            // The sender lives in the changes that this holds.
            let _ = self.newest.changed().await;
        }
    }

    fn revision(&self) -> u64 {
        self.seen
    }
}

impl Reader {
    fn try_next(&mut self) -> Result<Option<Arc<Change>>, StorageError> {
        let ring = self.changes.ring();
        if self.seen < ring.floor {
            return Err(StorageError::Expired { asked: self.seen, oldest: ring.floor });
        }
        let start = ring.changes.partition_point(|change| change.revision <= self.seen);
        for change in ring.changes.range(start..) {
            self.seen = change.revision;
            if self.scope.has(&change.key) {
                return Ok(Some(change.clone()));
            }
        }
        Ok(None)
    }
}
