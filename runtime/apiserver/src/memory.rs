//! A storage that lasts as long as the process: for nodes that are run for a while, and for events.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use serde_json::Value;

use crate::changes::{Change, Changes, Watch};
use crate::storage::{Expected, Key, Page, Scope, Shared, Storage, StorageError, revision_of, set_revision};

/// So many changes are remembered for watches.
const CHANGES: usize = 1024;

/// Keeps objects in memory.
#[derive(Debug)]
pub struct Memory {
    objects: Mutex<BTreeMap<Key, Shared>>,
    changes: Changes,
}

impl Default for Memory {
    fn default() -> Self {
        Self::new(CHANGES)
    }
}

impl Memory {
    /// Remembers so many changes for watches.
    pub fn new(changes: usize) -> Self {
        // Revision 0 means "any" to clients.
        Self { objects: Mutex::default(), changes: Changes::new(changes, 1) }
    }

    fn objects(&self) -> MutexGuard<'_, BTreeMap<Key, Shared>> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Storage for Memory {
    fn revision(&self) -> u64 {
        self.changes.revision()
    }

    async fn get(&self, key: &Key) -> Result<Option<Shared>, StorageError> {
        Ok(self.objects().get(key).cloned())
    }

    async fn list(&self, scope: &Scope, after: Option<&Key>) -> Result<Page, StorageError> {
        let first = Key::new(scope.resource.clone(), scope.namespace.as_deref().unwrap_or_default(), "");
        let start = match after {
            Some(after) if *after >= first => Bound::Excluded(after),
            _ => Bound::Included(&first),
        };
        let objects = self.objects();
        let range = objects.range::<Key, _>((start, Bound::Unbounded));
        let items = range.take_while(|(key, _)| scope.has(key)).map(|(_, object)| object.clone()).collect();
        Ok(Page { revision: self.changes.revision(), items })
    }

    async fn put(&self, key: &Key, expected: Expected, mut object: Value) -> Result<Shared, StorageError> {
        let mut objects = self.objects();
        let before = objects.get(key).cloned();
        let holds = match (expected, &before) {
            (Expected::Absent, before) => before.is_none(),
            (Expected::Revision(_), None) => false,
            (Expected::Revision(revision), Some(before)) => revision == revision_of(before),
        };
        if !holds {
            return Err(StorageError::Conflict);
        }
        let revision = self.changes.revision() + 1;
        set_revision(&mut object, revision);
        let object = Arc::new(object);
        objects.insert(key.clone(), object.clone());
        self.changes.push(Change { revision, key: key.clone(), before, after: Some(object.clone()), removed: None });
        Ok(object)
    }

    async fn delete(&self, key: &Key, revision: u64) -> Result<Shared, StorageError> {
        let mut objects = self.objects();
        if objects.get(key).is_none_or(|object| revision_of(object) != revision) {
            return Err(StorageError::Conflict);
        }
        let before = objects.remove(key).ok_or(StorageError::Conflict)?;
        let revision = self.changes.revision() + 1;
        let mut removed = (*before).clone();
        set_revision(&mut removed, revision);
        let removed = Arc::new(removed);
        let change =
            Change { revision, key: key.clone(), before: Some(before), after: None, removed: Some(removed.clone()) };
        self.changes.push(change);
        Ok(removed)
    }

    fn watch(&self, scope: Scope, since: u64) -> Result<Watch, StorageError> {
        self.changes.watch(scope, since)
    }
}
