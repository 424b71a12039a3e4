//! Ends that others bring about: preemption, taints, eviction, shutdown (COND-06, DISR-04, DISR-05, RES-09, TERM-10).

use alloc::string::String;

use super::ending::{Cause, NodeVerdict};
use super::{Out, Pod};
use crate::disruption::Disruption;
use crate::event::EventKind;
use crate::reasons;
use crate::scheduling::{self, Taint};
use crate::status::{Condition, ConditionStatus, Word};
use crate::time::Duration;

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
        let Some(grace) = grace.and_then(|grace| u64::try_from(grace).ok()) else { return };
        for index in 0..self.slots.len() {
            self.shrink_stop(index, out.now + Duration::from_secs(grace), out);
        }
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
