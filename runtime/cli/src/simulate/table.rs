//! The timeline as a table of what changed, and as JSON.

use std::fmt::Write;

use husk_core::Instant;
use husk_core::status::ConditionStatus;
use serde::Serialize;

use super::timeline::Timeline;
use husk_sim::Span;

/// Something that changed.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Row {
    /// Seconds since the beginning.
    pub(crate) seconds: f64,
    #[serde(skip)]
    at: Instant,
    /// Name of the container; absent if about the pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) container: Option<String>,
    /// `phase`, `condition`, `state` or `event`.
    pub(crate) kind: Kind,
    /// Phase, condition, state or reason.
    pub(crate) what: String,
    /// More about it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) detail: String,
    /// Something to look at.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) warning: bool,
}

/// What kind of thing changed; in this order within an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
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
pub(crate) fn rows(timeline: &Timeline) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut push = |at: Instant, container: Option<&str>, kind, what: &str, detail: String, warning| {
        let container = container.map(str::to_owned);
        let seconds = at.since_epoch().as_secs_f64();
        rows.push(Row { seconds, at, container, kind, what: what.into(), detail, warning });
    };
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
        let status = match change.status {
            ConditionStatus::True => "True",
            ConditionStatus::False => "False",
            ConditionStatus::Unknown => "Unknown",
        };
        let what = format!("{}={status}", change.kind);
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

/// The table for people.
pub(crate) fn table(timeline: &Timeline) -> String {
    let rows = rows(timeline);
    let who = |row: &Row| row.container.clone().unwrap_or_else(|| "(pod)".into());
    let width = |cell: &dyn Fn(&Row) -> usize, title: &str| rows.iter().map(cell).max().unwrap_or(0).max(title.len());
    let time = |row: &Row| Span(row.at.since_epoch()).to_string();
    let (t, w, x) = (
        width(&|row| time(row).len(), "TIME"),
        width(&|row| who(row).len(), "CONTAINER"),
        width(&|row| row.what.len(), "WHAT"),
    );
    let mut out = String::new();
    let mut line = |a: &str, b: &str, c: &str, d: &str, e: &str| {
        let text = format!("{a:>t$}  {b:<w$}  {c:<9}  {d:<x$}  {e}");
        out.push_str(text.trim_end());
        out.push('\n');
    };
    line("TIME", "CONTAINER", "KIND", "WHAT", "DETAIL");
    for row in &rows {
        let kind = match row.kind {
            Kind::Pod => "pod",
            Kind::Event if row.warning => "event !",
            Kind::Event => "event",
            Kind::State => "state",
            Kind::Condition => "condition",
            Kind::Phase => "phase",
        };
        line(&time(row), &who(row), kind, &row.what, &row.detail);
    }
    out.push_str(&summary(timeline));
    out
}

/// How it ended, in a few lines.
fn summary(timeline: &Timeline) -> String {
    let mut out = String::new();
    let end = Span(timeline.duration());
    let verb = if timeline.gone.is_some() { "gone" } else { timeline.last_phase().as_str() };
    let _ = write!(out, "\n{} is {verb} after {end}.", timeline.pod);
    let restarts: Vec<_> =
        timeline.lanes.iter().filter(|l| l.restarts > 0).map(|l| format!("{} {}", l.name, l.restarts)).collect();
    if !restarts.is_empty() {
        let _ = write!(out, " Restarts: {}.", restarts.join(", "));
    }
    out.push('\n');
    out
}

/// The timeline for programs.
pub(crate) fn json(timeline: &Timeline) -> serde_json::Value {
    let lanes: Vec<_> = timeline
        .lanes
        .iter()
        .map(|lane| {
            let probes: Vec<_> = lane
                .probes
                .iter()
                .map(|p| {
                    let kind = p.kind.as_str().to_lowercase();
                    serde_json::json!({"seconds": p.at.since_epoch().as_secs_f64(), "kind": kind, "success": p.ok})
                })
                .collect();
            let restarts = lane.restarts;
            serde_json::json!({"name": lane.name, "role": lane.role, "restartCount": restarts, "probes": probes})
        })
        .collect();
    serde_json::json!({
        "pod": timeline.pod,
        "seconds": timeline.duration().as_secs_f64(),
        "phase": timeline.last_phase().as_str(),
        "gone": timeline.gone.is_some(),
        "containers": lanes,
        "changes": rows(timeline),
    })
}
