//! The axis of time.

use std::time::Duration;

use husk_core::Instant;
use husk_sim::Span;
use husk_timeline::Timeline;

use super::canvas::{Canvas, Text};

/// Distances between ticks that people like to read, in seconds.
const STEPS: [f64; 19] = [
    0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0, 14400.0,
    21600.0,
];
/// Ticks are at least so far apart.
const TICK_ROOM: f64 = 62.0;
/// No state is drawn narrower than this, so that nothing that happened is invisible.
const NARROWEST: f64 = 1.2;

/// Time to the right.
pub(super) struct Axis {
    left: f64,
    right: f64,
    origin: Instant,
    /// Where it begins and how long it is, in seconds since the origin.
    first: f64,
    seconds: f64,
}

impl Axis {
    /// Of a timeline.
    pub(super) fn new(timeline: &Timeline, left: f64, right: f64) -> Self {
        let first = timeline.after(timeline.begin).as_secs_f64();
        let seconds = (timeline.end - timeline.begin).as_secs_f64().max(0.1);
        Self { left, right, origin: timeline.origin, first, seconds }
    }

    /// Where an instant is.
    pub(super) fn x(&self, at: Instant) -> f64 {
        self.x_of(at.saturating_since(self.origin).as_secs_f64())
    }

    /// How long takes so much room.
    pub(super) fn time(&self, room: f64) -> Duration {
        Duration::from_secs_f64(room * self.seconds / (self.right - self.left))
    }

    fn x_of(&self, seconds: f64) -> f64 {
        self.left + (self.right - self.left) * ((seconds - self.first) / self.seconds).clamp(0.0, 1.0)
    }

    /// Where a stretch is and how wide, with a hair of space to the next.
    pub(super) fn stretch(&self, from: Instant, to: Instant) -> (f64, f64) {
        let (x, end) = (self.x(from), self.x(to));
        (x, (end - x - 0.8).max(NARROWEST))
    }

    /// Faint lines at the ticks.
    pub(super) fn draw_grid(&self, canvas: &mut Canvas, top: f64, bottom: f64) {
        for (x, _) in self.ticks() {
            canvas.line(x, top, x, bottom, "grid");
        }
    }

    /// The axis with its labels.
    pub(super) fn draw_ticks(&self, canvas: &mut Canvas, y: f64) {
        canvas.line(self.left, y, self.right, y, "axis");
        for (x, seconds) in self.ticks() {
            canvas.line(x, y, x, y + 4.0, "axis");
            let label = Span(Duration::from_millis((seconds * 1000.0).round() as u64)).to_string();
            canvas.text(x, y + 17.0, &label, Text::class("tick").middle());
        }
    }

    fn ticks(&self) -> Vec<(f64, f64)> {
        let most = (self.right - self.left) / TICK_ROOM;
        let last = STEPS[STEPS.len() - 1];
        let step = STEPS.into_iter().find(|step| self.seconds / step <= most).unwrap_or_else(|| {
            // Days: as many of the longest step as it takes.
            last * (self.seconds / last / most).ceil()
        });
        let number = (self.first / step).ceil();
        let ticks = (0..).map(|n| (number + f64::from(n)) * step);
        ticks.take_while(|at| *at <= self.first + self.seconds).map(|at| (self.x_of(at), at)).collect()
    }
}
