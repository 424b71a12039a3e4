//! API objects as they are kept.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::key::ObjectKey;

/// Version of the format of a stored object.
const VERSION: u8 = 1;

/// An API object. To the store its JSON is just bytes.
///
/// `status` is kept apart and in memory only: whatever Husk shows there is worked out again from pod records after a start,
/// and so a status that changes each second wears no flash. It also means that who writes the spec and who writes the status
/// can't undo each other's work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// What it is called.
    pub key: ObjectKey,
    /// `metadata.uid`.
    pub uid: Arc<str>,
    /// `metadata.resourceVersion`: the store's version when it last changed. Put it into what you send; the body has an old one
    /// or none.
    pub version: u64,
    /// Its JSON without `status`.
    pub body: Arc<[u8]>,
    /// The JSON of its status; none before it was set in this run.
    pub status: Option<Arc<[u8]>>,
}

impl Object {
    /// About as many bytes of memory as it takes.
    pub(crate) fn weight(&self) -> usize {
        self.body.len() + self.status.as_ref().map_or(0, |status| status.len()) + 128
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let stored = Stored { version: self.version, uid: &self.uid, body: &self.body };
        // Fails for sequences of unknown length and for a full buffer: there are no such sequences, and a vector grows.
        postcard::to_extend(&stored, Vec::from([VERSION])).unwrap_or_default()
    }

    pub(crate) fn from_bytes(key: ObjectKey, bytes: &[u8]) -> Option<Self> {
        let (&VERSION, rest) = bytes.split_first()? else { return None };
        let stored: Stored<'_> = postcard::from_bytes(rest).ok()?;
        Some(Self { key, uid: stored.uid.into(), version: stored.version, body: stored.body.into(), status: None })
    }
}

#[derive(Serialize, Deserialize)]
struct Stored<'a> {
    version: u64,
    uid: &'a str,
    body: &'a [u8],
}

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// It is new.
    Added,
    /// Its body or its status is another.
    Modified,
    /// It is gone.
    Deleted,
}

/// One change, for watches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// What happened.
    pub kind: ChangeKind,
    /// The object afterwards; a deleted one as it was last, with the version of its deletion.
    pub object: Arc<Object>,
    /// The object before. A watch with a selector needs it: what matched and matches no more is `DELETED` to it.
    pub previous: Option<Arc<Object>>,
}

impl Change {
    /// The store's version after the change.
    pub fn version(&self) -> u64 {
        self.object.version
    }
}
