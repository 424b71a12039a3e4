//! The timeline as a table of what changed.

use std::fmt::Write;

use husk_core::Instant;
use husk_sim::Span;
use husk_timeline::{Kind, Row, Timeline, rows};

use super::clock::local;
use crate::out::printable;

/// The table for people. What really happened has a time by their clock as well.
pub(crate) fn table(timeline: &Timeline) -> String {
    let rows = rows(timeline);
    let width = |cell: fn(&Row) -> &str, title: &str| {
        rows.iter().map(|row| cell(row).chars().count()).max().unwrap_or(0).max(title.len())
    };
    let after = |row: &Row| Span(timeline.after(row.at)).to_string();
    let t = rows.iter().map(|row| after(row).len()).max().unwrap_or(0).max("AFTER".len());
    let (w, x) = (width(who, "CONTAINER"), width(|row| &row.what, "WHAT"));
    let mut out = String::new();
    let mut line = |clock: &str, [after, who, kind, what, detail]: [&str; 5]| {
        let text = format!("{clock}{after:>t$}  {who:<w$}  {kind:<9}  {what:<x$}  {detail}");
        out.push_str(text.trim_end());
        out.push('\n');
    };
    let is_real = timeline.start.is_some();
    let titles = ["CONTAINER", "KIND", "WHAT", "DETAIL"];
    let [who_title, kind, what, detail] = titles;
    match is_real {
        true => line(&format!("{:<19}  ", "TIME"), ["AFTER", who_title, kind, what, detail]),
        false => line("", ["TIME", who_title, kind, what, detail]),
    }
    for row in &rows {
        let kind = match row.kind {
            Kind::Node => "node",
            Kind::Pod => "pod",
            Kind::Event if row.warning => "event !",
            Kind::Event => "event",
            Kind::State => "state",
            Kind::Condition => "condition",
            Kind::Phase => "phase",
        };
        let clock = timeline.wall(row.at).map(|time| format!("{}  ", local(time))).unwrap_or_default();
        line(&clock, [&after(row), who(row), kind, &row.what, &printable(&row.detail)]);
    }
    out.push_str(&summary(timeline));
    out
}

fn who(row: &Row) -> &str {
    match (row.kind, &row.container) {
        (Kind::Node, _) => "(node)",
        (_, Some(container)) => container,
        (_, None) => "(pod)",
    }
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
    if let Some(since) = timeline.complete_since.filter(|since| *since > timeline.begin) {
        let _ = writeln!(out, "{}", what_is_missing(timeline, since));
    }
    out
}

/// Why there isn't more of the time before.
fn what_is_missing(timeline: &Timeline, since: Instant) -> String {
    let time = timeline.wall(since).map_or_else(|| Span(timeline.after(since)).to_string(), local);
    match timeline.interruptions.iter().any(|(at, _)| *at == since) {
        true => format!("Before {time} the agent was another: of that time it knows what the pod's record says."),
        false => format!("Before {time} more happened than the agent keeps: of that time only what lasted is here."),
    }
}
