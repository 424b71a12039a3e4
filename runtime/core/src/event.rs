//! Events for people (NODE-02).

use alloc::collections::VecDeque;
use alloc::string::String;

use serde::{Deserialize, Serialize};

use crate::io::PodUid;
use crate::status::Word;
use crate::time::Instant;

/// Something that a person who looks after the pod wants to know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

impl Event {
    /// Name of the container that it is about; none if it is about the pod.
    pub fn container(&self) -> Option<&str> {
        let (_, name) = self.field_path.split_once('{')?;
        name.strip_suffix('}')
    }
}

/// `type` of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EventKind {
    /// For information.
    Normal,
    /// Something to look at.
    Warning,
}

impl EventKind {
    /// As written in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// How many series a pod remembers; the one that was seen the longest ago is forgotten first.
const SERIES: usize = 64;

/// Counts equal events of one pod into series.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Recorder {
    /// The one seen last is last.
    series: VecDeque<Event>,
}

impl Recorder {
    /// The newest of each series.
    pub(crate) fn events(&self) -> impl Iterator<Item = &Event> {
        self.series.iter()
    }

    /// The event to show: a new one, or an old one with its count risen.
    pub(crate) fn record(
        &mut self,
        pod: &PodUid,
        now: Instant,
        field_path: String,
        kind: EventKind,
        reason: Word,
        message: String,
    ) -> Event {
        let same = |event: &Event| {
            event.reason == reason && event.kind == kind && event.field_path == field_path && event.message == message
        };
        let event = match self.series.iter().position(same).and_then(|at| self.series.remove(at)) {
            Some(event) => Event { count: event.count.saturating_add(1), last_seen: now, ..event },
            None => {
                Event { pod: pod.clone(), field_path, kind, reason, message, count: 1, first_seen: now, last_seen: now }
            }
        };
        if self.series.len() == SERIES {
            self.series.pop_front();
        }
        self.series.push_back(event.clone());
        event
    }
}
