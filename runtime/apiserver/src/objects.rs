//! Objects for those who look after them: the handlers here, and the agent.

use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::changes::Watch;
use crate::delete::is_over;
use crate::event_correlator::Correlator;
use crate::incoming::now;
use crate::resource::Resource;
use crate::resources::EVENTS;
use crate::status::ApiError;
use crate::storage::{Expected, Key, Page, Scope, Shared, Storage, StorageError, revision_of};

/// So often a change is tried if others come in between.
const ATTEMPTS: usize = 16;

/// All objects. Clones share them.
#[derive(Clone)]
pub struct Objects {
    storage: Arc<dyn Storage>,
    /// Resources that are kept elsewhere.
    others: Vec<(Arc<str>, Arc<dyn Storage>)>,
    /// How many events were created.
    pub(crate) events: Arc<AtomicUsize>,
    /// What was heard of them.
    pub(crate) correlator: Arc<Mutex<Correlator>>,
}

impl Objects {
    /// Objects in a storage.
    pub fn new(storage: Arc<dyn Storage>) -> Self {
        Self { storage, others: Vec::new(), events: Arc::default(), correlator: Arc::default() }
    }

    /// With one resource in another storage: events don't have to survive a power cut, and shouldn't wear the flash.
    #[must_use]
    pub fn with(mut self, resource: &str, storage: Arc<dyn Storage>) -> Self {
        self.others.push((resource.into(), storage));
        self
    }

    /// The storage of a resource.
    pub fn storage(&self, resource: &str) -> &dyn Storage {
        let other = self.others.iter().find(|(name, _)| **name == *resource);
        other.map_or(&*self.storage, |(_, storage)| &**storage)
    }

    /// An object.
    pub async fn get(&self, key: &Key) -> Result<Option<Shared>, StorageError> {
        self.storage(&key.resource).get(key).await
    }

    /// All objects of a scope.
    pub async fn list(&self, scope: &Scope) -> Result<Page, StorageError> {
        self.storage(&scope.resource).list(scope, None).await
    }

    /// What changes in a scope after a revision.
    pub fn watch(&self, scope: Scope, since: u64) -> Result<Watch, StorageError> {
        self.storage(&scope.resource).watch(scope, since)
    }

    /// Writes an object that isn't there yet.
    pub async fn create(&self, key: &Key, object: Value) -> Result<Shared, StorageError> {
        if &*key.resource == EVENTS.plural {
            self.make_room_for_events().await?;
        }
        self.storage(&key.resource).put(key, Expected::Absent, object).await
    }

    /// Changes an object, whatever others do to it meanwhile; gives it as it is afterwards, and none if it isn't there. `change` says
    /// whether there is anything to write, and may be asked again about a newer object.
    pub async fn update(
        &self,
        key: &Key,
        mut change: impl FnMut(&mut Value) -> bool,
    ) -> Result<Option<Shared>, StorageError> {
        let storage = self.storage(&key.resource);
        for _ in 0..ATTEMPTS {
            let Some(current) = storage.get(key).await? else { return Ok(None) };
            let mut object = (*current).clone();
            if !change(&mut object) {
                return Ok(Some(current));
            }
            match storage.put(key, Expected::Revision(revision_of(&current)), object).await {
                Err(StorageError::Conflict) => tokio::task::yield_now().await,
                other => return other.map(Some),
            }
        }
        Err(StorageError::Failed(format!("{} is changed all the time", key.name)))
    }

    /// Removes an object, if it still is the one with that uid.
    pub async fn remove(&self, key: &Key, uid: &str) -> Result<(), StorageError> {
        let storage = self.storage(&key.resource);
        for _ in 0..ATTEMPTS {
            let Some(current) = storage.get(key).await?.filter(|object| object["metadata"]["uid"] == uid) else {
                return Ok(());
            };
            match storage.delete(key, revision_of(&current)).await {
                Err(StorageError::Conflict) => tokio::task::yield_now().await,
                other => return other.map(|_| ()),
            }
        }
        Err(StorageError::Failed(format!("{} is changed all the time", key.name)))
    }
}

impl Objects {
    /// A pod's node has ended it: the object goes now, or, where somebody's finalizer keeps it, with the last of those.
    pub async fn end(&self, key: &Key, uid: &str) -> Result<(), StorageError> {
        let ended = self.update(key, |object| {
            let metadata = &mut object["metadata"];
            if metadata["uid"] != uid || metadata["deletionGracePeriodSeconds"] == 0 {
                return false;
            }
            if metadata["deletionTimestamp"].is_null() {
                metadata["deletionTimestamp"] = now().to_string().into();
            }
            metadata["deletionGracePeriodSeconds"] = 0.into();
            true
        });
        match ended.await? {
            Some(object) if is_over(&object) => self.remove(key, uid).await,
            _ => Ok(()),
        }
    }
}

impl std::fmt::Debug for Objects {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Objects").finish_non_exhaustive()
    }
}

/// What a client is told about a failure of the storage.
pub(crate) fn api_error(error: StorageError, resource: &Resource, name: &str) -> ApiError {
    match error {
        StorageError::Conflict => ApiError::outdated(resource, name),
        StorageError::Expired { .. } => ApiError::expired(error.to_string()),
        StorageError::Future { .. } => {
            let mut told = ApiError::new(504, "Timeout", error.to_string());
            told.details.insert("retryAfterSeconds".into(), 1.into());
            told.causes([crate::status::Cause {
                reason: "ResourceVersionTooLarge",
                message: "Too large resource version".into(),
                field: String::new(),
            }])
        }
        StorageError::Failed(message) => ApiError::internal(message),
    }
}
