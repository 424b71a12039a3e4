//! Ends that others bring about: preemption, taints, eviction, shutdown (COND-06, DISR-04, DISR-05, RES-09, TERM-10).

use alloc::string::String;

use super::ending::{Cause, NodeVerdict};
use super::slot::StopStep;
use super::{Out, Pod, SandboxState};
use crate::disruption::Disruption;
use crate::event::EventKind;
use crate::eviction::Pressure;
use crate::reasons;
use crate::runtime::StopReason;
use crate::scheduling::{self, Taint};
use crate::status::{Condition, ConditionStatus, Word};
use crate::time::{Duration, Instant};

/// So long after its end what a pod had is waited for before another one goes, as upstream.
const CLEANUP: Duration = Duration::from_secs(30);
/// So long a pod that was lost with the agent is waited for before others go by what they use.
const COMING_BACK: Duration = Duration::from_secs(60);

impl Pod {
    /// Somebody else ends it by deleting it: it says who, and ends with its own grace or the one given.
    pub(crate) fn disrupt(&mut self, disruption: Disruption, grace_seconds: Option<i64>, out: &mut Out<'_>) {
        if !self.status.phase.is_terminal() {
            self.set_condition(self.disruption_target(disruption, disruption.message().into()), out);
        }
        self.delete(grace_seconds, out);
    }

    /// The node ends it; the object stays, and says that it failed.
    ///
    /// One that ends already only has its grace cut (edge case 19).
    pub(crate) fn terminate(&mut self, verdict: NodeVerdict, out: &mut Out<'_>) {
        let grace = verdict.grace_seconds;
        if self.ending.is_none() {
            self.end(Cause::Node(verdict), out);
        }
        if let Some(grace) = grace {
            self.cut_grace(grace, out);
        }
    }

    /// What stops has no more than so many seconds from now on.
    pub(crate) fn cut_grace(&mut self, seconds: i64, out: &mut Out<'_>) {
        let Ok(grace) = u64::try_from(seconds) else { return };
        for index in 0..self.slots.len() {
            self.shrink_stop(index, out.now + Duration::from_secs(grace), out);
        }
    }

    /// It ends, and what it has is expected to be free soon, so that nobody else has to go yet.
    ///
    /// Memory isn't waited for without end: what a disk that hangs keeps from being removed is of the disk. But no other pod could be
    /// removed from such a disk either.
    pub(crate) fn will_set_free(&self, now: Instant, pressure: Pressure) -> bool {
        if matches!(self.sandbox, SandboxState::TearingDown { .. })
            && matches!(pressure, Pressure::Disk | Pressure::Inodes)
        {
            return true;
        }
        let stops = self.slots.iter().filter_map(|slot| slot.live()?.stop.as_ref()).map(|stop| match stop.step {
            StopStep::Signalled { kill_at } => kill_at,
            StopStep::PreStop | StopStep::Turn | StopStep::Killed => stop.deadline,
        });
        let ends = self.runtime.instances.iter().filter_map(|instance| instance.finished_at);
        stops.chain(ends).max().is_some_and(|last| now < last + CLEANUP)
    }

    /// A container of it was lost with the agent or the board a short while ago, and doesn't run again yet.
    pub(crate) fn comes_back(&self, now: Instant) -> bool {
        self.is_seated()
            && self.ending.is_none()
            && self.slots.iter().filter_map(|slot| self.runtime.newest(&slot.name)).any(|newest| {
                let ended = newest.finished_at.filter(|_| newest.stopped_for == Some(StopReason::Interrupted));
                ended.is_some_and(|ended| now < ended + COMING_BACK)
            })
    }

    /// It used more of something than it may; its own doing, no disruption.
    pub(super) fn limit_exceeded(&mut self, message: String, out: &mut Out<'_>) {
        if self.ending.is_some() || !self.is_seated() {
            return;
        }
        self.event(out, None, EventKind::Warning, reasons::EVICTED, message.clone());
        let reason = Word::Borrowed(reasons::EVICTED);
        self.terminate(NodeVerdict { reason, message, disruption: None, grace_seconds: Some(0) }, out);
    }

    /// The node's `NoExecute` taints changed, or it has just come to a node that has some (DISR-05).
    pub(crate) fn mind_taints(&mut self, taints: &[Taint], out: &mut Out<'_>) {
        // One from a file on the node stays whatever happens.
        if self.meta.is_static || !self.is_seated() || self.ending.is_some() {
            return;
        }
        let due = match scheduling::tolerated_seconds(taints, &self.spec.placement.tolerations) {
            None => None,
            // A timer that runs goes on: the taint may have been there for a while. A taint that is new may shorten it.
            Some(seconds) => {
                let due = out.now + Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
                Some(self.taint_deadline.map_or(due, |running| running.min(due)))
            }
        };
        if due.is_none() && self.taint_deadline.is_some() {
            let message = alloc::format!("Cancelling deletion of Pod {}/{}", self.meta.namespace, self.meta.name);
            self.event(out, None, EventKind::Normal, "TaintManagerEviction", message);
        }
        self.taint_deadline = due;
    }

    /// Its time on a tainted node is over.
    pub(super) fn leave_tainted_node(&mut self, out: &mut Out<'_>) {
        if self.ending.is_some() || self.taint_deadline.is_none_or(|due| due > out.now) {
            return;
        }
        self.taint_deadline = None;
        let message = alloc::format!("Marking for deletion Pod {}/{}", self.meta.namespace, self.meta.name);
        self.event(out, None, EventKind::Normal, "TaintManagerEviction", message);
        self.disrupt(Disruption::DeletionByTaintManager, None, out);
    }

    pub(super) fn disruption_target(&self, disruption: Disruption, message: String) -> Condition {
        Condition {
            kind: Word::Borrowed(reasons::DISRUPTION_TARGET),
            status: ConditionStatus::True,
            reason: Word::Borrowed(disruption.as_str()),
            message,
            last_transition_time: None,
            observed_generation: self.meta.generation,
        }
    }

    /// Preempted: it makes room for a more important one (RES-08).
    pub(crate) fn preempt(&mut self, preemptor: &str, out: &mut Out<'_>) {
        let message = alloc::format!("Preempted by pod {preemptor} on node {}", out.config.node_name);
        self.event(out, None, EventKind::Normal, "Preempted", message);
        self.disrupt(Disruption::PreemptionByScheduler, None, out);
    }
}
