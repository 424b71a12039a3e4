//! A timeline as rows, each something that changed.

use husk_core::Instant;
use husk_core::status::ConditionStatus;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::moment;
use crate::timeline::Timeline;

/// Something that changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// Seconds since the beginning.
    pub seconds: f64,
    /// When that was by people's clocks.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "moment")]
    pub time: Option<Timestamp>,
    /// The same instant as the timeline has it.
    #[serde(skip)]
    pub at: Instant,
    /// Name of the container; absent if about the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// What kind of thing changed.
    pub kind: Kind,
    /// Phase, condition, state or reason.
    pub what: String,
    /// More about it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// Something to look at.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub warning: bool,
}

/// What kind of thing changed; in this order within an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The agent or the board started again.
    Node,
    /// The pod was asked to go, or is gone.
    Pod,
    /// An event was recorded.
    Event,
    /// A container changed its state.
    State,
    /// A condition changed its status.
    Condition,
    /// The pod changed its phase.
    Phase,
}

/// The rows of a timeline, in order of time.
pub fn rows(timeline: &Timeline) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut push = |at: Instant, container: Option<&str>, kind, what: &str, detail: String, warning| {
        let container = container.map(str::to_owned);
        let (seconds, time) = (timeline.after(at).as_secs_f64(), timeline.wall(at));
        rows.push(Row { seconds, time, at, container, kind, what: what.into(), detail, warning });
    };
    for (at, interruption) in &timeline.interruptions {
        push(*at, None, Kind::Node, interruption.as_str(), String::new(), false);
    }
    for at in &timeline.deleted {
        push(*at, None, Kind::Pod, "delete", String::new(), false);
    }
    if let Some(at) = timeline.gone {
        push(at, None, Kind::Pod, "gone", String::new(), false);
    }
    for event in &timeline.events {
        let times = if event.count > 1 { format!(" (x{})", event.count) } else { String::new() };
        let detail = format!("{}{times}", event.message);
        push(event.at, event.container.as_deref(), Kind::Event, &event.reason, detail, event.warning);
    }
    for lane in &timeline.lanes {
        for (at, state) in &lane.states {
            push(*at, Some(&lane.name), Kind::State, state.as_str(), state.detail(), false);
        }
    }
    for change in &timeline.conditions {
        let what = format!("{}={}", change.kind, written(change.status));
        let detail = match (change.reason.as_str(), change.message.as_str()) {
            (reason, "") => reason.to_owned(),
            (reason, message) => format!("{reason}: {message}"),
        };
        push(change.at, None, Kind::Condition, &what, detail, false);
    }
    for (at, phase) in &timeline.phases {
        push(*at, None, Kind::Phase, phase.as_str(), String::new(), false);
    }
    rows.sort_by_key(|row| (row.at, row.kind));
    rows
}

const fn written(status: ConditionStatus) -> &'static str {
    match status {
        ConditionStatus::True => "True",
        ConditionStatus::False => "False",
        ConditionStatus::Unknown => "Unknown",
    }
}
