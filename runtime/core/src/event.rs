//! Events for people (NODE-02).

use alloc::string::String;

use crate::io::PodUid;
use crate::status::Word;
use crate::time::Instant;

/// Something that a person who looks after the pod wants to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// About which pod.
    pub pod: PodUid,
    /// Container it is about, as in `spec.containers{app}`; empty if about the pod.
    pub field_path: String,
    /// Normal or Warning.
    pub kind: EventKind,
    /// As in `BackOff`, `Killing`.
    pub reason: Word,
    /// For people.
    pub message: String,
    /// How often it happened in this series, this time included.
    pub count: u32,
    /// When it first happened in this series.
    pub first_seen: Instant,
    /// When it happened last.
    pub last_seen: Instant,
}

/// `type` of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// For information.
    Normal,
    /// Something to look at.
    Warning,
}
