//! Many random lives, on all cores, until one breaks a rule or there were enough.

use std::any::Any;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use husk_core::Instant;

use crate::broken::Broken;
use crate::counts::Counts;
use crate::play::{End, play_out};
use crate::random::{self, Case};
use crate::span::Span;

/// How a run came out.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// What was covered.
    pub counts: Counts,
    /// The seed that failed, the lowest if several did, and how.
    pub failed: Option<(u64, Broken)>,
}

/// Plays the cases of the seeds from that on, until there were so many steps.
pub fn run(first: u64, steps: u64, threads: usize, progress: impl Fn(&Counts) + Sync) -> Outcome {
    let outcome = Mutex::new(Outcome::default());
    let (next, stop) = (AtomicU64::new(first), AtomicBool::new(false));
    thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    let mut counts = Counts::default();
                    let result = judge(&random::case(seed), &mut counts);
                    let Ok(mut outcome) = outcome.lock() else { return };
                    outcome.counts.add(counts);
                    outcome.counts.cases += 1;
                    if let Err(broken) = result
                        && outcome.failed.as_ref().is_none_or(|(other, _)| seed < *other)
                    {
                        outcome.failed = Some((seed, broken));
                    }
                    if outcome.failed.is_some() || outcome.counts.steps >= steps {
                        stop.store(true, Ordering::Relaxed);
                    }
                    progress(&outcome.counts);
                }
            });
        }
    });
    outcome.into_inner().unwrap_or_default()
}

/// Plays a case to its end. A panic of the core breaks a rule as well.
///
/// # Errors
/// The rule that was broken.
pub fn judge(case: &Case, counts: &mut Counts) -> Result<(), Broken> {
    let until = case.scenario.until.unwrap_or(Span::secs(600));
    let played = panic::catch_unwind(AssertUnwindSafe(|| {
        play_out(&case.subjects, &case.scenario, until.0, counts).map(drop_end(until))
    }));
    match played {
        Ok(played) => played?,
        Err(panic) => {
            let seen = said(&*panic);
            Err(Broken { rule: "the core does not panic", at: Instant::ZERO, seen })
        }
    }
}

/// All pods were deleted in time, so nothing more happens at the end.
fn drop_end(until: Span) -> impl Fn(End) -> Result<(), Broken> {
    move |end| match end {
        End::Over(_) => Ok(()),
        End::Cut(at) => {
            let seen = format!("something would still happen after {until}");
            Err(Broken { rule: "it comes to rest", at, seen })
        }
    }
}

fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it says nothing").to_owned()
}
