//! What is persisted of a pod: the whole truth (TERM-11, STATE-04).
//!
//! A shell persists [`PodRecord::to_bytes`] of [`Node::record`](crate::Node::record) after [`Action::Persist`], drops it after
//! [`Action::Forget`], and hands the records to a new node with [`Input::Restored`] before anything else.
//!
//! # Time
//! A record holds instants of the node's monotonic time. That time has to go on when the agent or the board starts again: the
//! shell takes the latest [`PodRecord::saved_at`] of all records (or a later instant that it persisted itself) as the instant
//! of its start, plus the time that has passed since where it knows (after a restart of the agent the system's monotonic clock
//! tells; a board without a real-time clock can't know, and the time without power does not count). So no delay is ever
//! measured with the wall clock (RESTART-12). What a record says of the future is cut to what can be true all the same.
//!
//! # What happens to containers
//! [`Interruption`] says what became of the instances. A node that takes over from another in the same process goes on as if
//! nothing had happened: the same facts give the same orders. After the end of the agent or of the board no instance is
//! left, because containers are instances inside the agent:
//!
//! * A container that ran is started again, at once and whatever its restart policy, since nothing of the pod's asked for its end.
//!   Its guest begins anew, so this **counts as a restart**: `restartCount` rises by one and `lastState` says
//!   `AgentRestarted` or `NodeRebooted`. A count that stayed the same would hide that the guest lost its memory; a count
//!   that began anew is what TERM-11 forbids. It is no failure of the container's: its back-off stays where it was.
//! * Sidecars that ran come back before what they serve.
//! * A container that waits for its back-off goes on to wait for the rest of it; one that completed stays completed.
//! * Init containers that completed aren't run again after the agent's end. After the board's end volumes in memory
//!   are empty, so they are, once each (INIT-06), and as upstream has it for a lost sandbox, a pod of restart policy Never
//!   that had begun fails instead.
//! * A container that started again isn't ready before its own probes say so. So a pod that was Ready is not until then, and one
//!   that was not Ready can't become so on the way (NODE-03).
//! * A pod that was being deleted or had ended starts nothing any more, and its `deletionTimestamp` stands: what remains is to
//!   remove its sandbox (TERM-07). A terminal pod stays terminal.
//! * The sandbox is made again; the shell gives it the address that the status has.
//!
//! # Format
//! A version byte, then the record in the postcard format. What is read is checked, so that any bytes give an error or a record
//! that the node can go on with. A simple running pod takes less than 1 KiB.
//!
//! [`Action::Persist`]: crate::Action::Persist
//! [`Action::Forget`]: crate::Action::Forget
//! [`Input::Restored`]: crate::Input::Restored

use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::deletion::Deletion;
use crate::event::Event;
use crate::io::PodUid;
use crate::pod::Pod;
use crate::spec::{PodMeta, PodSpec};
use crate::status::PodStatus;
use crate::time::Instant;

/// Version of the format. Any change of what a pod is made of is another version, and records of the ones before have to be read
/// on: there are devices with such bytes. `tests/record/version-1` has some, which are never written anew.
const VERSION: u8 = 1;

/// What has to survive of one pod.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PodRecord {
    saved_at: Instant,
    pod: Pod,
}

/// What happened to a pod's instances between its record and its restoration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interruption {
    /// Nothing: they run on, and orders that aren't answered yet will be.
    Handover,
    /// The agent ended, by a crash or for an upgrade, and all instances with it. Volumes are as they were.
    AgentRestart,
    /// The board was without power or started anew: volumes in memory are empty as well.
    Reboot,
}

/// Why bytes are no record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordError {
    /// There are none.
    Empty,
    /// Written in another version of the format.
    Version(u8),
    /// Not of the format: cut off or damaged.
    Malformed,
    /// More bytes than the record has.
    TrailingBytes(usize),
    /// Of the format, but no pod can be like that; says what of it.
    Impossible(&'static str),
}

impl PodRecord {
    pub(crate) fn new(saved_at: Instant, pod: &Pod) -> Self {
        Self { saved_at, pod: pod.to_record() }
    }

    pub(crate) fn into_pod(self) -> Pod {
        self.pod
    }

    /// Whose record it is.
    pub fn uid(&self) -> &PodUid {
        &self.pod.uid
    }

    /// The node's time when the record was made; the node's time after a restoration must go on from there.
    pub const fn saved_at(&self) -> Instant {
        self.saved_at
    }

    /// The node's count of pods when it took this one: the order in which records are handed in.
    pub const fn accepted(&self) -> u64 {
        self.pod.accepted
    }

    /// The pod's status when the record was made.
    pub const fn status(&self) -> &PodStatus {
        &self.pod.status
    }

    /// Whose record it is, by name.
    pub const fn meta(&self) -> &PodMeta {
        &self.pod.meta
    }

    /// What the pod was asked to be.
    pub const fn spec(&self) -> &PodSpec {
        &self.pod.spec
    }

    /// The deletion that was under way.
    pub const fn deletion(&self) -> Option<Deletion> {
        self.pod.deletion
    }

    /// The newest of each series of events about it.
    pub fn events(&self) -> impl Iterator<Item = &Event> {
        self.pod.events()
    }

    /// Has it ended, or was it about to? Then it needs nothing of the node any more.
    pub fn is_ending(&self) -> bool {
        self.pod.is_ending()
    }

    /// Was it being deleted?
    pub const fn is_leaving(&self) -> bool {
        self.pod.deletion.is_some()
    }

    /// Why the node ends it or has ended it, if that was the node's own doing: a reason as in its status, which may not say so yet.
    pub fn ended_by_node(&self) -> Option<&str> {
        self.pod.ended_by_node()
    }

    /// The bytes to persist.
    pub fn to_bytes(&self) -> Vec<u8> {
        // Fails for sequences of unknown length and for a full buffer: there are no such sequences, and a vector grows.
        postcard::to_extend(self, Vec::from([VERSION])).unwrap_or_default()
    }

    /// The record that was persisted.
    ///
    /// # Errors
    /// The bytes are not a record, or one of a pod that can't be.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, RecordError> {
        let (&version, rest) = bytes.split_first().ok_or(RecordError::Empty)?;
        if version != VERSION {
            return Err(RecordError::Version(version));
        }
        let (record, rest) = postcard::take_from_bytes::<Self>(rest).map_err(|_| RecordError::Malformed)?;
        if !rest.is_empty() {
            return Err(RecordError::TrailingBytes(rest.len()));
        }
        record.pod.check().map_err(RecordError::Impossible)?;
        Ok(record)
    }
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the pod's record is empty")?,
            Self::Version(version) => {
                write!(f, "the pod's record is of format version {version}, this agent reads version {VERSION}")?;
            }
            Self::Malformed => f.write_str("the pod's record is cut off or damaged")?,
            Self::TrailingBytes(count) => {
                write!(f, "the pod's record is followed by {count} bytes that aren't its own")?
            }
            Self::Impossible(what) => write!(f, "the pod's record is damaged: {what}")?,
        }
        f.write_str("; delete it and the pod is started anew from its object")
    }
}

impl core::error::Error for RecordError {}
