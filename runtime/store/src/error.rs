//! What can go wrong, with what to do about it.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::key::ObjectKey;

/// Why there is no store.
#[derive(Debug, Error)]
pub enum OpenError {
    /// Another process has it.
    #[error(
        "{}: another agent{} uses this data directory; stop it or use another --data-dir",
        path.display(),
        by.map(|pid| format!(" (process {pid})")).unwrap_or_default()
    )]
    InUse {
        /// The store's file.
        path: PathBuf,
        /// Its process, if it says so.
        by: Option<u32>,
    },
    /// The disk or the directory doesn't do what a store needs.
    #[error("{name}: can't {doing}: {error}; {}", remedy(error))]
    Io {
        /// The store's file.
        name: String,
        /// What failed.
        doing: &'static str,
        /// Why.
        error: io::Error,
    },
}

/// Why a batch was not committed. Nothing of it is in memory.
#[derive(Debug, Error)]
pub enum CommitError {
    /// An object isn't as expected.
    #[error(transparent)]
    Conflict(#[from] Conflict),
    /// A write that no store takes.
    #[error(transparent)]
    Invalid(#[from] InvalidWrite),
    /// The disk refused. What is in memory stands, and the next commit tries again.
    #[error(transparent)]
    Disk(#[from] DiskError),
}

/// An object isn't as a write expects it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Conflict {
    /// To be created, and is there.
    #[error("{0} already exists")]
    Exists(ObjectKey),
    /// To be changed, and is not there.
    #[error("{0} not found")]
    NotFound(ObjectKey),
    /// Changed since.
    #[error(
        "{key} has resourceVersion {found}, not {expected}; apply your changes to the latest version and try again"
    )]
    Version {
        /// Which.
        key: ObjectKey,
        /// The version that the write was made for.
        expected: u64,
        /// The version it has.
        found: u64,
    },
}

/// A write that no store takes.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InvalidWrite {
    /// Empty or very long, or with a NUL character.
    #[error("{0:?} is no key for an object: its parts must have 1 to 512 bytes and no NUL")]
    Key(ObjectKey),
    /// Larger than an API server would take.
    #[error("{what} has {size} bytes, the limit is {limit}")]
    TooLarge {
        /// What.
        what: String,
        /// Its size.
        size: usize,
        /// What is allowed.
        limit: usize,
    },
    /// A fact's name that the store uses itself.
    #[error("{0}: names of facts that begin with `store.` are the store's own")]
    ReservedFact(String),
    /// Posted, and needs the disk.
    #[error("{0} has to be committed: it is kept on disk")]
    NeedsDisk(String),
}

/// The disk refused a transaction.
#[derive(Debug, Error)]
#[error("{name}: can't write the agent's state: {error}; it is kept in memory and tried again: {}", remedy(error))]
pub struct DiskError {
    /// The store's file.
    pub name: String,
    /// What the system said.
    pub error: io::Error,
}

impl DiskError {
    /// No space is left, or a quota is reached.
    pub fn is_full(&self) -> bool {
        is_full(&self.error)
    }
}

/// Why a watch can't go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum WatchError {
    /// Its version is older than what is remembered: 410 Gone, list anew.
    #[error("too old resource version: {since} ({oldest})")]
    Expired {
        /// Asked for.
        since: u64,
        /// The oldest version that a watch can begin from.
        oldest: u64,
    },
    /// Its version is not from here: upstream's answer is a 504 with this message and a cause, ours a 410 does as well.
    #[error("Too large resource version: {since}, current: {current}")]
    Ahead {
        /// Asked for.
        since: u64,
        /// The latest version.
        current: u64,
    },
}

pub(crate) fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "create the directory or use another --data-dir",
        io::ErrorKind::PermissionDenied => "give the agent's user write access or use another --data-dir",
        io::ErrorKind::ReadOnlyFilesystem => "mount it writable or use another --data-dir",
        _ if is_full(error) => "free space on this disk",
        _ => "check the disk or use another --data-dir",
    }
}
