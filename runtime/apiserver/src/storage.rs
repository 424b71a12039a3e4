//! Where objects are kept: compare and swap on `metadata.resourceVersion`, lists, and what has changed since.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use crate::changes::Watch;

/// An object is shared by all who look at it, and never changed in place.
pub type Shared = Arc<Value>;

/// Which object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Its resource with its group, as in `pods` and `poddisruptionbudgets.policy`.
    pub resource: Arc<str>,
    /// Its namespace; empty if it has none.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl Key {
    /// Of an object in a namespace, or in none.
    pub fn new(resource: impl Into<Arc<str>>, namespace: &str, name: &str) -> Self {
        Self { resource: resource.into(), namespace: namespace.into(), name: name.into() }
    }
}

/// Objects of one resource, in one namespace or in all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// As in [`Key::resource`].
    pub resource: Arc<str>,
    /// All namespaces if none.
    pub namespace: Option<String>,
}

impl Scope {
    /// Is an object in it?
    pub fn has(&self, key: &Key) -> bool {
        key.resource == self.resource && self.namespace.as_ref().is_none_or(|namespace| *namespace == key.namespace)
    }
}

/// What must hold for a write to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// There is no such object.
    Absent,
    /// It is at exactly this revision.
    Revision(u64),
}

/// Objects in the order of their keys.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// The revision at which they were looked at.
    pub revision: u64,
    /// The objects.
    pub items: Vec<Shared>,
}

/// Why the storage didn't do it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StorageError {
    /// What was expected doesn't hold.
    #[error("the object is not as it was expected to be")]
    Conflict,
    /// Changes since that revision are not known any more.
    #[error("too old resource version: {asked} ({oldest})")]
    Expired {
        /// From where a watch was to go on.
        asked: u64,
        /// From where it could.
        oldest: u64,
    },
    /// That revision doesn't exist yet.
    #[error("Too large resource version: {asked}, current: {current}")]
    Future {
        /// From where a watch was to go on.
        asked: u64,
        /// How far the storage is.
        current: u64,
    },
    /// The disk or the like.
    #[error("{0}")]
    Failed(String),
}

/// Keeps objects.
///
/// Each write gets the next revision, which becomes the object's `metadata.resourceVersion`; a deletion has one too. A write that was
/// answered is kept.
#[async_trait]
pub trait Storage: Send + Sync + 'static {
    /// The revision of the last write.
    fn revision(&self) -> u64;

    /// An object.
    async fn get(&self, key: &Key) -> Result<Option<Shared>, StorageError>;

    /// All objects of a scope after a key, in the order of their keys.
    async fn list(&self, scope: &Scope, after: Option<&Key>) -> Result<Page, StorageError>;

    /// Writes an object and gives it back with its new revision.
    async fn put(&self, key: &Key, expected: Expected, object: Value) -> Result<Shared, StorageError>;

    /// Removes an object that is at a revision. It is given back as it was, but with the revision of its removal.
    async fn delete(&self, key: &Key, revision: u64) -> Result<Shared, StorageError>;

    /// What changes in a scope after a revision.
    fn watch(&self, scope: Scope, since: u64) -> Result<Watch, StorageError>;
}

/// `metadata.resourceVersion` as a number; 0 if it has none.
pub fn revision_of(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Sets `metadata.resourceVersion`.
pub fn set_revision(object: &mut Value, revision: u64) {
    if object.is_object() {
        object["metadata"]["resourceVersion"] = revision.to_string().into();
    }
}
