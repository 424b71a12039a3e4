//! The node shuts down: pods end by priority, critical ones last (TERM-10).

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::Node;
use super::seats::Seats;
use crate::disruption::Disruption;
use crate::io::PodUid;
use crate::pod::NodeVerdict;
use crate::reasons;
use crate::spec::SYSTEM_CRITICAL_PRIORITY;
use crate::status::Word;
use crate::time::{Duration, Instant};

/// A shutdown that is under way.
#[derive(Debug)]
pub(super) struct Shutdown {
    /// What is still to come: from which priority on, and how long. The last is next.
    steps: Vec<(i32, Duration)>,
    /// Who has to end before the next step.
    waits_for: BTreeSet<PodUid>,
    /// When the next step comes in any case.
    until: Instant,
    over: bool,
}

impl Shutdown {
    /// When a step is due that ends anybody, or the last one is over.
    pub(super) fn next_wake(&self, seats: &Seats) -> Option<Instant> {
        let (mut due, mut steps) = (self.until, self.steps.iter().rev().peekable());
        while let Some((from, period)) = steps.next() {
            if seats.any_stays(*from, steps.peek().map(|(next, _)| *next)) {
                break;
            }
            due = due + *period;
        }
        (!self.over).then_some(due)
    }

    pub(super) const fn is_over(&self) -> bool {
        self.over
    }

    pub(super) fn ended(&mut self, uid: &PodUid) {
        self.waits_for.remove(uid);
    }
}

impl Node {
    pub(super) fn shut_down(&mut self, now: Instant, grace: Duration, critical: Duration) {
        if self.shutdown.is_some() {
            return;
        }
        let critical = critical.min(grace);
        let steps = Vec::from([(SYSTEM_CRITICAL_PRIORITY, critical), (i32::MIN, grace - critical)]);
        self.shutdown = Some(Shutdown { steps, waits_for: BTreeSet::new(), until: now, over: false });
        self.go_on_shutting_down(now);
    }

    /// Takes the next step once nobody of the last one is left, or its time is over.
    pub(super) fn go_on_shutting_down(&mut self, now: Instant) {
        while let Some(shutdown) = &mut self.shutdown
            && !shutdown.over
            && (shutdown.waits_for.is_empty() || shutdown.until <= now)
        {
            let Some((from, period)) = shutdown.steps.pop() else {
                shutdown.over = true;
                return;
            };
            let below = shutdown.steps.last().map(|(next, _)| *next);
            // A step that ends nobody is no reason to be woken up: it may be taken later than it was due.
            let begun = if self.seats.any_stays(from, below) { now } else { shutdown.until.min(now) };
            shutdown.until = begun + period;
            let in_step = |priority: i32| priority >= from && below.is_none_or(|below| priority < below);
            let all: Vec<PodUid> = self
                .pods
                .iter()
                .filter(|pod| pod.holds_resources() && in_step(pod.spec.priority()))
                .map(|pod| pod.uid.clone())
                .collect();
            shutdown.waits_for.extend(all.iter().cloned());
            for uid in all {
                self.end_for_shutdown(now, &uid, period);
            }
        }
    }

    fn end_for_shutdown(&mut self, now: Instant, uid: &PodUid, period: Duration) {
        let period = i64::try_from(period.as_secs()).unwrap_or(i64::MAX);
        self.with_pod(now, uid, |pod, out| {
            let own = pod.spec.termination_grace_period_seconds.unwrap_or(period);
            let verdict = NodeVerdict {
                reason: Word::Borrowed(reasons::TERMINATED),
                message: reasons::TERMINATED_MESSAGE.into(),
                disruption: Some(Disruption::TerminationByKubelet),
                grace_seconds: Some(own.min(period)),
            };
            pod.terminate(verdict, out);
        });
    }
}
