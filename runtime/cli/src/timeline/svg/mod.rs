//! The timeline as a picture: a lane per container on one axis of time, the pod's phase above.
//!
//! The picture carries its own style sheet with a light and a dark palette, so that it looks right in a README on either ground.

mod axis;
mod canvas;
mod labels;
mod lanes;
mod legend;
mod palette;

use husk_core::Instant;
use husk_core::status::{ConditionStatus, Phase};
use husk_sim::Span;
use husk_timeline::Timeline;

use self::axis::Axis;
use self::canvas::{Canvas, Text};
use super::clock::local;

/// Width of the picture.
const WIDTH: f64 = 1120.0;
/// Where time begins: left of it are the names.
const LEFT: f64 = 158.0;
/// Free space at the right.
const RIGHT: f64 = 28.0;
/// Height of the head: title and what the picture shows.
const HEAD: f64 = 64.0;
/// Height of the band of phases.
const PHASE: f64 = 22.0;

/// Draws a timeline. `about` is the line under the title.
pub(crate) fn draw(timeline: &Timeline, about: &str) -> String {
    let axis = Axis::new(timeline, LEFT, WIDTH - RIGHT);
    let mut canvas = Canvas::new(WIDTH);
    canvas.text(24.0, 30.0, &timeline.pod, Text::class("title"));
    canvas.text(24.0, 49.0, about, Text::class("soft"));

    let lanes_top = HEAD + PHASE + 20.0;
    let heights: Vec<f64> = timeline.lanes.iter().map(lanes::height).collect();
    let lanes_bottom = lanes_top + heights.iter().sum::<f64>() + lanes::GROUP_GAP * lanes::groups(timeline);
    axis.draw_grid(&mut canvas, HEAD, lanes_bottom);
    draw_phases(&mut canvas, &axis, timeline);
    lanes::draw(&mut canvas, &axis, timeline, lanes_top);
    draw_interruptions(&mut canvas, &axis, timeline, lanes_bottom);
    draw_deletions(&mut canvas, &axis, timeline, lanes_bottom);
    axis.draw_ticks(&mut canvas, lanes_bottom);
    let bottom = legend::draw(&mut canvas, timeline, 24.0, WIDTH - RIGHT, lanes_bottom + 46.0);
    canvas.finish(bottom + 20.0, &format!("Timeline of pod {}", timeline.pod))
}

/// The band of phases, and under it a thin strip that is green while the pod is Ready.
fn draw_phases(canvas: &mut Canvas, axis: &Axis, timeline: &Timeline) {
    canvas.text(24.0, HEAD + 15.0, "pod", Text::class("name"));
    canvas.text(LEFT - 12.0, HEAD + 15.0, "phase", Text::class("tag").end());
    for (from, to, phase) in timeline.spans(&timeline.phases) {
        let (x, width) = axis.stretch(from, to);
        let class = match phase {
            Phase::Pending => "phase-pending",
            Phase::Running => "phase-running",
            Phase::Succeeded => "phase-succeeded",
            Phase::Failed => "phase-failed",
            Phase::Unknown => "phase-unknown",
        };
        let title = format!("{} {}", phase.as_str(), between(timeline, from, to));
        canvas.bar(x, HEAD, width, PHASE, class, &title);
        if labels::fits(phase.as_str(), width) {
            canvas.text(x + 8.0, HEAD + 15.0, phase.as_str(), Text::class("on-phase"));
        }
    }
    let ready: Vec<_> = timeline.conditions.iter().filter(|c| c.kind == "Ready").map(|c| (c.at, c.status)).collect();
    canvas.text(LEFT - 12.0, HEAD + PHASE + 12.0, "ready", Text::class("tag").end());
    for (from, to, status) in timeline.spans(&ready) {
        let (x, width) = axis.stretch(from, to);
        let class = if *status == ConditionStatus::True { "s-ready" } else { "not-ready" };
        canvas.bar(x, HEAD + PHASE + 6.0, width, 5.0, class, &format!("Ready {}", between(timeline, from, to)));
    }
}

/// Lines down through all lanes where the pod was asked to go and where it was gone.
fn draw_deletions(canvas: &mut Canvas, axis: &Axis, timeline: &Timeline, bottom: f64) {
    let gone = timeline.gone.map(|gone| axis.x(gone));
    for (n, deleted) in timeline.deleted.iter().enumerate() {
        let x = axis.x(*deleted);
        canvas.line(x, HEAD - 6.0, x, bottom, "cut");
        let word = if n == 0 { "delete" } else { "delete again" };
        let text = Text::class("cut-label");
        match gone {
            Some(gone) if gone - x < 50.0 => canvas.text(x + 2.0, HEAD - 10.0, word, text.end()),
            _ => canvas.text(x, HEAD - 10.0, word, text.middle()),
        }
    }
    if let Some(x) = gone {
        canvas.line(x, HEAD - 6.0, x, bottom, "gone");
        canvas.text(x - 2.0, HEAD - 10.0, "gone", Text::class("tick"));
    }
}

/// Lines down through all lanes where all instances ended and none had to.
fn draw_interruptions(canvas: &mut Canvas, axis: &Axis, timeline: &Timeline, bottom: f64) {
    for (when, what) in &timeline.interruptions {
        let x = axis.x(*when);
        canvas.line(x, HEAD - 6.0, x, bottom, "gone");
        let text = Text::class("tick");
        let label = format!("{} {}", what.words(), at(timeline, *when));
        let text = if x > WIDTH - RIGHT - labels::width(&label) { text.end() } else { text };
        canvas.text(x, HEAD - 10.0, &label, text);
    }
}

/// After what time, and when that was by people's clocks.
fn at(timeline: &Timeline, instant: Instant) -> String {
    let after = Span(timeline.after(instant));
    timeline.wall(instant).map_or_else(|| after.to_string(), |time| format!("{after} ({})", local(time)))
}

fn between(timeline: &Timeline, from: Instant, to: Instant) -> String {
    format!("from {} to {}", at(timeline, from), at(timeline, to))
}
