//! The lanes: a bar of states per container, marks above it, probes below it.

use husk_core::Instant;
use husk_timeline::{Lane, LaneState, Mark, Role, Timeline};

use super::axis::Axis;
use super::canvas::{Canvas, Text};
use super::labels::{self, Label};
use super::{LEFT, RIGHT, WIDTH, at, between};

/// Room for marks and their labels.
const MARKS: f64 = 20.0;
/// Height of the bar.
const BAR: f64 = 20.0;
/// Height of a row of probes.
const PROBES: f64 = 11.0;
/// Space under a lane.
const GAP: f64 = 12.0;
/// Space between init containers and app containers.
pub(super) const GROUP_GAP: f64 = 12.0;
/// Probes closer than this are drawn as one.
const PROBE_ROOM: f64 = 5.0;

/// Height of a lane.
pub(super) fn height(lane: &Lane) -> f64 {
    MARKS + BAR + lane.probe_kinds.len() as f64 * PROBES + GAP
}

/// How many gaps between groups there are.
pub(super) fn groups(timeline: &Timeline) -> f64 {
    let starts = timeline.lanes.windows(2).filter(|pair| is_init(&pair[0]) && !is_init(&pair[1])).count();
    starts as f64
}

/// Draws all lanes from `top` down.
pub(super) fn draw(canvas: &mut Canvas, axis: &Axis, timeline: &Timeline, top: f64) {
    let mut y = top;
    let mut last: Option<&Lane> = None;
    for lane in &timeline.lanes {
        if last.is_some_and(|last| is_init(last) && !is_init(lane)) {
            canvas.line(24.0, y + 2.0, WIDTH - RIGHT, y + 2.0, "split");
            y += GROUP_GAP;
        }
        draw_lane(canvas, axis, timeline, lane, y);
        y += height(lane);
        last = Some(lane);
    }
}

fn is_init(lane: &Lane) -> bool {
    matches!(lane.role, Role::Init | Role::Sidecar)
}

fn draw_lane(canvas: &mut Canvas, axis: &Axis, timeline: &Timeline, lane: &Lane, top: f64) {
    let bar = top + MARKS;
    canvas.text(24.0, bar + 14.5, &shorten(&lane.name, 15), Text::class("name"));
    canvas.text(24.0, bar + 0.5, lane.role.as_str(), Text::class("tag"));
    for (from, to, state) in timeline.spans(&lane.states) {
        let instance = 1 + lane.exits.iter().filter(|exit| exit.at <= from).count();
        draw_state(canvas, axis, timeline, (from, to, state), bar, instance);
    }
    draw_marks(canvas, axis, timeline, lane, bar);
    for (row, kind) in lane.probe_kinds.iter().enumerate() {
        let y = bar + BAR + 8.0 + row as f64 * PROBES;
        let name = kind.as_str().to_lowercase();
        canvas.text(LEFT - 12.0, y + 3.0, &name, Text::class("tag").end());
        let mut drawn: Option<(f64, bool)> = None;
        let room = axis.time(PROBE_ROOM);
        let probes = lane.probes.iter().filter(|probe| probe.kind == *kind);
        let each = probes.flat_map(|probe| probe.times(room).map(|at| (at, probe.ok)));
        for (at, ok) in each.filter(|(at, _)| *at >= timeline.begin) {
            let x = axis.x(at);
            if drawn.is_some_and(|(last, known)| known == ok && x - last < PROBE_ROOM) {
                continue;
            }
            drawn = Some((x, ok));
            if ok {
                canvas.dot(x, y, 2.4, "probe-ok");
            } else {
                canvas.cross(x, y, 2.4, "probe-bad");
            }
        }
    }
}

fn draw_state(
    canvas: &mut Canvas,
    axis: &Axis,
    timeline: &Timeline,
    (from, to, state): (Instant, Instant, &LaneState),
    y: f64,
    instance: usize,
) {
    let (x, width) = axis.stretch(from, to);
    let (class, on) = match state {
        LaneState::Waiting(_) => ("s-waiting", "on-soft"),
        LaneState::Pulling => ("s-pulling", "on-soft"),
        LaneState::BackOff(_) => ("s-hatched", "on-soft"),
        LaneState::Starting => ("s-starting", "on-soft"),
        LaneState::Running => ("s-running", "on-strong"),
        LaneState::Ready => ("s-ready", "on-strong"),
        LaneState::Stopping => ("s-stopping", "on-strong"),
        LaneState::Succeeded(_) => ("s-succeeded", "on-soft"),
        LaneState::Failed(..) => ("s-failed", "on-soft"),
    };
    let title = format!("{} {} {}", state.as_str(), state.detail(), between(timeline, from, to));
    canvas.bar(x, y, width, BAR, class, title.trim());
    let word = state.as_str();
    let long = match state {
        LaneState::Waiting(reason) if !reason.is_empty() => reason.to_string(),
        LaneState::Succeeded(reason) => reason.to_string(),
        LaneState::Failed(code, reason) => format!("{reason} ({code})"),
        // A hatched bar is hard to read on: its label is in the legend.
        LaneState::BackOff(_) => return,
        LaneState::Running | LaneState::Ready if instance > 1 => format!("{word}, attempt {instance}"),
        _ => word.to_owned(),
    };
    if let Some(text) = [long.as_str(), word].into_iter().find(|text| labels::fits(text, width)) {
        canvas.text(x + 7.0, y + 13.8, text, Text::class(on));
    }
}

/// Ends of instances and events, each a pointer above the bar, labelled where there is room.
fn draw_marks(canvas: &mut Canvas, axis: &Axis, timeline: &Timeline, lane: &Lane, bar: f64) {
    let (mut wanted, mut marks) = (Vec::new(), Vec::new());
    for exit in &lane.exits {
        let x = axis.x(exit.at);
        let well = exit.code == 0;
        let (class, label) = if well { ("well", "well-label") } else { ("bad", "bad-label") };
        marks.push(x);
        canvas.pointer(
            x,
            bar - 1.5,
            class,
            &format!("exit {} {} at {}", exit.code, exit.reason, at(timeline, exit.at)),
        );
        let text = if exit.reason == "OOMKilled" { "OOMKilled".into() } else { format!("exit {}", exit.code) };
        wanted.push(Label { x, text, class: label, rank: 0 });
    }
    for event in timeline.events.iter().filter(|event| event.container.as_deref() == Some(&lane.name)) {
        let x = axis.x(event.at);
        let taken = lane.exits.iter().any(|exit| (axis.x(exit.at) - x).abs() < 0.5);
        if !taken {
            marks.push(x);
            let title = format!("{}: {} at {}", event.reason, event.message, at(timeline, event.at));
            canvas.pointer(x, bar - 1.5, if event.warning { "warn" } else { "event" }, &title);
        }
        if let Some(rank) = rank(event) {
            let class = if event.warning { "warn-label" } else { "event-label" };
            wanted.push(Label { x, text: event.reason.clone(), class, rank });
        }
    }
    for (from, label) in labels::place(wanted, &marks, LEFT - 2.0, WIDTH - RIGHT + 2.0) {
        canvas.text(from, bar - 4.0, &label.text, Text::class(label.class));
    }
}

/// How much an event deserves a label; those of every ordinary start get none.
fn rank(event: &Mark) -> Option<u8> {
    match event.reason.as_str() {
        "Pulling" | "Pulled" | "Created" => None,
        "Unhealthy" | "Killing" => Some(1),
        // The hatching says so already.
        "BackOff" => Some(3),
        "Started" => Some(4),
        _ if event.warning => Some(1),
        _ => Some(2),
    }
}

fn shorten(name: &str, most: usize) -> String {
    if name.chars().count() <= most {
        return name.to_owned();
    }
    let head: String = name.chars().take(most - 1).collect();
    format!("{head}…")
}
