//! Whether a pod has its place on the node, and what it says as long as it hasn't (RES-08, META-10).

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec;

use serde::{Deserialize, Serialize};

use super::ending::{Cause, NodeVerdict};
use super::{Out, Pod};
use crate::event::EventKind;
use crate::io::Action;
use crate::placement::Peer;
use crate::reasons;
use crate::status::{Condition, ConditionStatus, Phase, PodStatus, Word};

/// Does a pod have its place?
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Seat {
    /// Not yet; reason and message of PodScheduled.
    Waiting { reason: Word, message: String },
    /// Yes: it counts, and its containers may run.
    Taken,
    /// The node refused it for good.
    Refused,
}

impl Pod {
    /// It has its place from now on.
    pub(crate) fn take_seat(&mut self, out: &mut Out<'_>) {
        self.seat = Seat::Taken;
        self.nomination = None;
        self.status.start_time = Some(out.now);
        let (namespace, name) = (&self.meta.namespace, &self.meta.name);
        let message = alloc::format!("Successfully assigned {namespace}/{name} to {}", out.config.node_name);
        self.event(out, None, EventKind::Normal, "Scheduled", message);
    }

    /// It has to wait, and says why. People are told when the reason changes.
    pub(crate) fn wait_for_seat(&mut self, reason: &'static str, message: String, out: &mut Out<'_>) {
        let seat = Seat::Waiting { reason: Word::Borrowed(reason), message };
        if self.seat == seat {
            return;
        }
        if let Seat::Waiting { message, .. } = &seat
            && reason != reasons::SCHEDULING_GATED
        {
            self.event(out, None, EventKind::Warning, "FailedScheduling", message.clone());
        }
        self.seat = seat;
    }

    /// The node refuses it: phase Failed, nothing of it ever runs.
    pub(crate) fn refuse(&mut self, reason: impl Into<Word>, message: String, out: &mut Out<'_>) {
        let reason = reason.into();
        self.seat = Seat::Refused;
        self.status.start_time = Some(out.now);
        let event = self.recorder.record(
            &self.uid,
            out.now,
            String::new(),
            EventKind::Warning,
            reason.clone(),
            message.clone(),
        );
        out.order(Action::Record { event });
        let message = alloc::format!("Pod was rejected: {message}");
        self.end(Cause::Node(NodeVerdict { reason, message, disruption: None, grace_seconds: Some(0) }), out);
    }

    pub(crate) fn is_waiting(&self) -> bool {
        matches!(self.seat, Seat::Waiting { .. })
    }

    pub(crate) fn is_seated(&self) -> bool {
        self.seat == Seat::Taken
    }

    /// Something of the node is still in its hands.
    pub(crate) fn holds_resources(&self) -> bool {
        self.is_seated() && !self.is_torn_down()
    }

    /// How other pods see it.
    pub(crate) fn as_peer(&self) -> Peer<'_> {
        Peer { namespace: &self.meta.namespace, labels: &self.meta.labels, placement: &self.spec.placement }
    }

    /// Status of a pod that never had a place.
    pub(super) fn unseated_status(&self) -> PodStatus {
        let (status, reason, message) = match &self.seat {
            Seat::Waiting { reason, message } => (ConditionStatus::False, reason.clone(), message.clone()),
            Seat::Taken | Seat::Refused => (ConditionStatus::True, Cow::Borrowed(""), String::new()),
        };
        let observed_generation = self.meta.generation;
        let scheduled = Condition {
            kind: Cow::Borrowed(reasons::POD_SCHEDULED),
            status,
            reason,
            message,
            last_transition_time: None,
            observed_generation,
        };
        let mut new = PodStatus {
            observed_generation,
            conditions: vec![scheduled],
            start_time: self.status.start_time,
            qos_class: self.status.qos_class,
            ..PodStatus::default()
        };
        if let Some(Cause::Node(verdict)) = self.ending.as_ref().map(|ending| &ending.cause) {
            new.phase = Phase::Failed;
            new.reason = verdict.reason.clone();
            new.message = verdict.message.clone();
        }
        new
    }
}
