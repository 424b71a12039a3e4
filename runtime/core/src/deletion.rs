//! What a request to delete a pod does to the object (TERM-01, TERM-05).

use serde::{Deserialize, Serialize};

use crate::status::Phase;
use crate::time::{Duration, Instant};

/// A deletion that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deletion {
    /// `deletionGracePeriodSeconds`.
    pub grace_seconds: i64,
    /// `deletionTimestamp`: when the grace is over.
    pub timestamp: Instant,
}

/// What is to be done about a request to delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The first request: the object is being deleted from now on. Raises the generation.
    Begin(Deletion),
    /// A request with less grace: the deletion under way is cut short.
    Shorten(Deletion),
    /// Nothing: the deletion under way is as fast already.
    Pending,
    /// The object goes at once.
    RemoveNow,
}

/// What is known about the pod that is to be deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The deletion under way, if any.
    pub deletion: Option<Deletion>,
    /// `terminationGracePeriodSeconds` of its spec.
    pub spec_grace_seconds: Option<i64>,
    /// A node took it.
    pub scheduled: bool,
    /// Its phase.
    pub phase: Phase,
}

/// Decides about a request to delete, with `requested` seconds of grace if it says so. Grace only ever shrinks.
pub fn decide(target: &Target, requested: Option<i64>, now: Instant) -> Verdict {
    // Less than no grace is a mistake that means "quickly".
    let grace_or_one = |seconds: i64| if seconds < 0 { 1 } else { seconds };
    let Some(under_way) = target.deletion else {
        let runs = target.scheduled && !target.phase.is_terminal();
        let grace = requested.or(target.spec_grace_seconds).unwrap_or(0);
        let grace_seconds = if runs { grace_or_one(grace) } else { 0 };
        return Verdict::Begin(Deletion { grace_seconds, timestamp: now + seconds(grace_seconds) });
    };
    if under_way.grace_seconds == 0 {
        return Verdict::RemoveNow;
    }
    match requested.map(grace_or_one) {
        Some(grace_seconds) if grace_seconds < under_way.grace_seconds => {
            // Counted from the first request.
            let began = under_way.timestamp.since_epoch().saturating_sub(seconds(under_way.grace_seconds));
            let timestamp = Instant::ZERO + began + seconds(grace_seconds);
            // What is over already is over now, and only a second is left to whoever counts from now.
            let grace_seconds = if timestamp < now { grace_seconds.min(1) } else { grace_seconds };
            Verdict::Shorten(Deletion { grace_seconds, timestamp: timestamp.max(now) })
        }
        _ => Verdict::Pending,
    }
}

fn seconds(seconds: i64) -> Duration {
    Duration::from_secs(seconds.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::from_secs(100);

    fn running(deletion: Option<Deletion>) -> Target {
        Target { deletion, spec_grace_seconds: Some(30), scheduled: true, phase: Phase::Running }
    }

    #[test]
    fn the_first_request_takes_the_pods_own_grace_unless_it_says_otherwise() {
        let begun = |grace_seconds, at| Verdict::Begin(Deletion { grace_seconds, timestamp: Instant::from_secs(at) });
        assert_eq!(decide(&running(None), None, NOW), begun(30, 130));
        assert_eq!(decide(&running(None), Some(5), NOW), begun(5, 105));
    }

    #[test]
    fn a_pod_that_does_not_run_needs_no_grace() {
        let ended = Target { phase: Phase::Succeeded, ..running(None) };
        let nowhere = Target { scheduled: false, ..running(None) };
        for target in [ended, nowhere] {
            assert_eq!(decide(&target, Some(30), NOW), Verdict::Begin(Deletion { grace_seconds: 0, timestamp: NOW }));
        }
    }

    #[test]
    fn a_second_request_can_only_shorten() {
        let pending = running(Some(Deletion { grace_seconds: 30, timestamp: Instant::from_secs(120) }));
        assert_eq!(decide(&pending, Some(60), NOW), Verdict::Pending);
        assert_eq!(decide(&pending, Some(30), NOW), Verdict::Pending);
        assert_eq!(decide(&pending, None, NOW), Verdict::Pending);
        let shorter = Deletion { grace_seconds: 15, timestamp: Instant::from_secs(105) };
        assert_eq!(decide(&pending, Some(15), NOW), Verdict::Shorten(shorter));
        let just_over = Deletion { grace_seconds: 10, timestamp: NOW };
        assert_eq!(decide(&pending, Some(10), NOW), Verdict::Shorten(just_over));
        let over = Deletion { grace_seconds: 1, timestamp: NOW };
        assert_eq!(decide(&pending, Some(5), NOW), Verdict::Shorten(over));
        assert_eq!(decide(&pending, Some(1), NOW), Verdict::Shorten(over));
    }

    #[test]
    fn nothing_is_left_to_wait_for_after_a_forced_deletion() {
        let forced = running(Some(Deletion { grace_seconds: 0, timestamp: NOW }));
        assert_eq!(decide(&forced, Some(30), NOW), Verdict::RemoveNow);
    }
}
