//! Objects of the API in the agent's store.

use std::collections::VecDeque;
use std::sync::Arc;

use async_trait::async_trait;
use husk_apiserver::{Change, Expected, Feed, Key, Page, Scope, Shared, Storage, StorageError, Watch, set_revision};
use husk_store::{Batch, ChangeKind, CommitError, Committed, Expect, Object, ObjectKey, Store, WatchError};
use serde_json::Value;
use tokio::sync::watch;

use super::health::Health;
use crate::clock::Clock;

/// Resources whose status is worked out anew by the agent after each start: it changes often and wears no flash.
const STATUS_IN_MEMORY: [&str; 3] = ["nodes", "poddisruptionbudgets.policy", "pods"];
/// Changes that a watch takes from the store at once.
const CHUNK: usize = 64;

/// The store as the API server sees it.
pub(crate) struct StoreStorage {
    store: Arc<Store>,
    clock: Clock,
    /// The store's version, whenever that changes.
    version: watch::Receiver<u64>,
    health: Arc<Health>,
}

impl StoreStorage {
    /// `version` is told by the store.
    pub(crate) fn new(store: Arc<Store>, clock: Clock, version: watch::Receiver<u64>, health: Arc<Health>) -> Self {
        Self { store, clock, version, health }
    }

    async fn commit(&self, batch: Batch) -> Result<Committed, StorageError> {
        let (store, now) = (self.store.clone(), self.clock.now());
        let written = tokio::task::spawn_blocking(move || store.commit(now, batch)).await;
        written.map_err(|error| StorageError::Failed(error.to_string()))?.map_err(|error| match error {
            CommitError::Conflict(_) => StorageError::Conflict,
            CommitError::Disk(refusal) => {
                self.health.store.failed(&refusal);
                StorageError::Failed(refusal.to_string())
            }
            CommitError::Invalid(_) => StorageError::Failed(error.to_string()),
        })
    }
}

#[async_trait]
impl Storage for StoreStorage {
    fn revision(&self) -> u64 {
        self.store.version()
    }

    async fn get(&self, key: &Key) -> Result<Option<Shared>, StorageError> {
        self.store.object(&key_of(key)).map(|object| value_of(&object)).transpose()
    }

    async fn list(&self, scope: &Scope, after: Option<&Key>) -> Result<Page, StorageError> {
        let list =
            self.store.list(husk_store::Scope { resource: &scope.resource, namespace: scope.namespace.as_deref() });
        let after = after.map(key_of);
        let left = list.objects.iter().filter(|object| after.as_ref().is_none_or(|after| object.key > *after));
        Ok(Page { revision: list.version, items: left.map(|object| value_of(object)).collect::<Result<_, _>>()? })
    }

    async fn put(&self, key: &Key, expected: Expected, mut object: Value) -> Result<Shared, StorageError> {
        let expect = match expected {
            Expected::Absent => Expect::Absent,
            Expected::Revision(revision) => Expect::Version(revision),
        };
        let status = match object.as_object_mut() {
            Some(fields) if STATUS_IN_MEMORY.contains(&&*key.resource) => fields.remove("status"),
            _ => None,
        };
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("resourceVersion");
        }
        let uid = object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        let (key, body) = (key_of(key), bytes_of(&object)?);
        let before = self.store.object(&key);
        let same_body = before.is_some_and(|before| *before.uid == *uid && *before.body == *body);
        let batch = match status {
            // A new status alone needs no disk.
            Some(status) if same_body && expected != Expected::Absent => {
                Batch::new().status(key, bytes_of(&status)?, expect)
            }
            Some(status) => {
                Batch::new().put(key.clone(), &uid, body, expect).status(key, bytes_of(&status)?, Expect::Present)
            }
            None => Batch::new().put(key, &uid, body, expect),
        };
        written(self.commit(batch).await?)
    }

    async fn delete(&self, key: &Key, revision: u64) -> Result<Shared, StorageError> {
        written(self.commit(Batch::new().delete(key_of(key), Expect::Version(revision))).await?)
    }

    fn watch(&self, scope: Scope, since: u64) -> Result<Watch, StorageError> {
        let mut reader = Reader {
            store: self.store.clone(),
            scope,
            taken: since,
            given: since,
            waiting: VecDeque::new(),
            version: self.version.clone(),
        };
        // Says at once if it can't begin there.
        reader.take()?;
        Ok(Box::new(reader))
    }
}

struct Reader {
    store: Arc<Store>,
    scope: Scope,
    /// Changes up to here were taken from the store.
    taken: u64,
    /// And up to here given out.
    given: u64,
    waiting: VecDeque<Arc<husk_store::Change>>,
    version: watch::Receiver<u64>,
}

impl Reader {
    /// Takes what there is. Says whether there may be more.
    fn take(&mut self) -> Result<bool, StorageError> {
        let scope = husk_store::Scope { resource: &self.scope.resource, namespace: self.scope.namespace.as_deref() };
        let found = self.store.changes(scope, self.taken, CHUNK).map_err(|error| match error {
            WatchError::Expired { since, oldest } => StorageError::Expired { asked: since, oldest },
            WatchError::Ahead { since, current } => StorageError::Future { asked: since, current },
        })?;
        let went_on = found.version != self.taken;
        self.taken = found.version;
        self.waiting.extend(found.changes);
        Ok(went_on)
    }
}

#[async_trait]
impl Feed for Reader {
    async fn next(&mut self) -> Result<Arc<Change>, StorageError> {
        loop {
            if let Some(change) = self.waiting.pop_front() {
                self.given = change.version();
                return change_of(&self.scope, &change).map(Arc::new);
            }
            self.given = self.taken;
            self.version.mark_unchanged();
            if !self.take()? && self.version.changed().await.is_err() {
                return Err(StorageError::Failed("the store is closed".into()));
            }
        }
    }

    fn revision(&self) -> u64 {
        self.given
    }
}

fn change_of(scope: &Scope, change: &husk_store::Change) -> Result<Change, StorageError> {
    let (object, before) = (value_of(&change.object)?, change.previous.as_deref().map(value_of).transpose()?);
    let key = &change.object.key;
    let key = Key::new(scope.resource.clone(), key.namespace(), key.name());
    let (after, removed) = match change.kind {
        ChangeKind::Added | ChangeKind::Modified => (Some(object), None),
        ChangeKind::Deleted => (None, Some(object)),
    };
    Ok(Change { revision: change.version(), key, before, after, removed })
}

fn key_of(key: &Key) -> ObjectKey {
    ObjectKey::new(&key.resource, &key.namespace, &key.name)
}

/// An object as clients know it: with its version and its status.
fn value_of(object: &Object) -> Result<Shared, StorageError> {
    let read = |bytes: &[u8]| {
        let read = serde_json::from_slice::<Value>(bytes);
        read.map_err(|error| StorageError::Failed(format!("{} is damaged in the store: {error}", object.key)))
    };
    let mut value = read(&object.body)?;
    if let (Some(status), Some(fields)) = (&object.status, value.as_object_mut()) {
        fields.insert("status".into(), read(status)?);
    }
    set_revision(&mut value, object.version);
    Ok(Arc::new(value))
}

fn bytes_of(value: &Value) -> Result<Vec<u8>, StorageError> {
    serde_json::to_vec(value).map_err(|error| StorageError::Failed(error.to_string()))
}

/// What the last write of a batch made.
fn written(committed: Committed) -> Result<Shared, StorageError> {
    let object = committed.objects.last().ok_or(StorageError::Conflict)?;
    value_of(object)
}
