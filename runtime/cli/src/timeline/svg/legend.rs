//! The legend: only what the picture shows.

use husk_timeline::{LaneState, Timeline};

use super::canvas::{Canvas, Text};
use super::labels;

/// A test whether a state is of a kind.
type Is = fn(&LaneState) -> bool;

const STATES: [(&str, &str, Is); 9] = [
    ("s-waiting", "waiting", |s| matches!(s, LaneState::Waiting(_))),
    ("s-pulling", "pulling the image", |s| matches!(s, LaneState::Pulling)),
    ("s-starting", "starting", |s| matches!(s, LaneState::Starting)),
    ("s-running", "running", |s| matches!(s, LaneState::Running)),
    ("s-ready", "ready", |s| matches!(s, LaneState::Ready)),
    ("s-stopping", "stopping", |s| matches!(s, LaneState::Stopping)),
    ("s-hatched", "back-off", |s| matches!(s, LaneState::BackOff(_))),
    ("s-succeeded", "exited 0", |s| matches!(s, LaneState::Succeeded(_))),
    ("s-failed", "failed", |s| matches!(s, LaneState::Failed(..))),
];

/// Draws it from `top` down, breaking lines at `right`; gives its bottom.
pub(super) fn draw(canvas: &mut Canvas, timeline: &Timeline, left: f64, right: f64, top: f64) -> f64 {
    let states = || timeline.lanes.iter().flat_map(|lane| &lane.states).map(|(_, state)| state);
    let probes = || timeline.lanes.iter().flat_map(|lane| &lane.probes);
    let (mut x, mut y) = (left, top);
    let mut room = |width: f64| {
        if x + width > right {
            (x, y) = (left, y + 20.0);
        }
        x += width;
        (x - width, y)
    };
    for (class, word, is) in STATES {
        if states().any(is) {
            let (x, y) = room(labels::width(word) + 38.0);
            canvas.bar(x, y - 9.0, 16.0, 11.0, class, word);
            canvas.text(x + 21.0, y, word, Text::class("tick"));
        }
    }
    if probes().any(|probe| probe.ok) {
        let (x, y) = room(labels::width("probe succeeded") + 30.0);
        canvas.dot(x + 5.0, y - 3.5, 2.6, "probe-ok");
        canvas.text(x + 13.0, y, "probe succeeded", Text::class("tick"));
    }
    if probes().any(|probe| !probe.ok) {
        let (x, y) = room(labels::width("probe failed") + 30.0);
        canvas.cross(x + 5.0, y - 3.5, 2.6, "probe-bad");
        canvas.text(x + 13.0, y, "probe failed", Text::class("tick"));
    }
    room(0.0).1
}
