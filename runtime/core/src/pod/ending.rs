//! The end of a pod: deleted, finished, or past its deadline (TERM-01, TERM-02, POD-09).

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::slot::SlotState;
use super::{Out, Pod, SandboxState};
use crate::deletion::{self, Deletion};
use crate::disruption::Disruption;
use crate::event::EventKind;
use crate::grace::{self, DEFAULT_GRACE_SECONDS};
use crate::io::Action;
use crate::reasons;
use crate::runtime::StopReason;
use crate::status::Word;
use crate::termination_order;
use crate::time::{Duration, Instant};

/// A pod that ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Ending {
    pub(super) cause: Cause,
}

/// Why a pod ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Cause {
    /// Its containers ended and none will restart.
    Finished,
    /// Somebody deleted it.
    Deleted,
    /// `activeDeadlineSeconds` passed.
    DeadlineExceeded,
    /// The node refused it, or ended it.
    Node(NodeVerdict),
}

/// What the node says of a pod that it refuses or ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NodeVerdict {
    /// `status.reason`.
    pub(crate) reason: Word,
    /// `status.message`.
    pub(crate) message: String,
    /// It is no fault of the pod.
    pub(crate) disruption: Option<Disruption>,
    /// Instead of the pod's own grace.
    pub(crate) grace_seconds: Option<i64>,
}

impl Cause {
    /// Reason and message of the status.
    pub(super) fn status(&self) -> Option<(Word, &str)> {
        match self {
            Self::DeadlineExceeded => {
                Some((Word::Borrowed(reasons::DEADLINE_EXCEEDED), reasons::DEADLINE_EXCEEDED_MESSAGE))
            }
            Self::Node(verdict) => Some((verdict.reason.clone(), &verdict.message)),
            Self::Finished | Self::Deleted => None,
        }
    }
}

impl Pod {
    /// Somebody asked for the pod's end. Grace only ever shrinks (TERM-05); 0 makes the object disappear at once (TERM-06).
    pub(crate) fn delete(&mut self, requested: Option<i64>, out: &mut Out<'_>) {
        if self.gone {
            return;
        }
        let target = deletion::Target {
            deletion: self.deletion,
            spec_grace_seconds: self.spec.termination_grace_period_seconds.or(Some(DEFAULT_GRACE_SECONDS)),
            scheduled: !self.is_waiting(),
            phase: self.status.phase,
        };
        let deletion = match deletion::decide(&target, requested, out.now) {
            deletion::Verdict::Pending => return,
            deletion::Verdict::RemoveNow => Deletion { grace_seconds: 0, timestamp: out.now },
            deletion::Verdict::Shorten(deletion) => deletion,
            deletion::Verdict::Begin(deletion) => {
                self.raise_generation();
                deletion
            }
        };
        self.deletion = Some(deletion);
        out.order(Action::StatusChanged { pod: self.uid.clone() });
        if deletion.grace_seconds == 0 {
            return self.force(out);
        }
        if self.ending.is_none() {
            self.end(Cause::Deleted, out);
        }
        for index in 0..self.slots.len() {
            self.shrink_stop(index, deletion.timestamp, out);
        }
    }

    /// The object disappears first, then what runs is killed (TERM-06).
    fn force(&mut self, out: &mut Out<'_>) {
        self.vanish(out);
        self.ending.get_or_insert(Ending { cause: Cause::Deleted });
        self.restart_all = false;
        self.forget_probes();
        for index in 0..self.slots.len() {
            let message = self.stopping(index);
            self.kill_now(index, StopReason::PodEnds, message, out);
        }
    }

    /// The object disappears; what is left of the pod is cleaned up behind it.
    fn vanish(&mut self, out: &mut Out<'_>) {
        if !self.gone {
            self.gone = true;
            out.order(Action::Gone { pod: self.uid.clone() });
        }
    }

    /// The reason of the node that ends it, if the node does.
    pub(crate) fn ended_by_node(&self) -> Option<&str> {
        match &self.ending.as_ref()?.cause {
            Cause::Node(verdict) => Some(&verdict.reason),
            Cause::Finished | Cause::Deleted | Cause::DeadlineExceeded => None,
        }
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.ending.is_some()
    }

    /// Nothing is left of what it had of the node.
    pub(super) fn is_torn_down(&self) -> bool {
        self.sandbox == SandboxState::TornDown
    }

    /// Begins the pod's end: every container is stopped, sidecars after the apps, in reverse order (SIDE-04, SIDE-05).
    pub(super) fn end(&mut self, cause: Cause, out: &mut Out<'_>) {
        if cause == Cause::DeadlineExceeded {
            let message = reasons::DEADLINE_EXCEEDED_MESSAGE;
            self.event(out, None, EventKind::Normal, reasons::DEADLINE_EXCEEDED, message);
        }
        self.ending = Some(Ending { cause });
        self.restart_all = false;
        self.retire_probes(out);
        // One that is just being started counts: it is down only once its start is answered.
        let may_run = |name: &str| {
            let state = self.slot_named(name).map(|index| &self.slots[index].state);
            matches!(state, Some(SlotState::Starting { .. } | SlotState::Live(_)))
        };
        let waits: Vec<Vec<usize>> = self
            .slots
            .iter()
            .map(|slot| {
                let others = termination_order::waits_for(&self.spec, &slot.name, may_run);
                others.into_iter().filter_map(|other| self.slot_named(other)).collect()
            })
            .collect();
        for (index, waits_for) in waits.into_iter().enumerate() {
            let message = self.stopping(index);
            let grace = self.kill_grace(index, StopReason::PodEnds);
            self.begin_stop(index, StopReason::PodEnds, message, grace, waits_for, out);
        }
    }

    fn stopping(&self, index: usize) -> String {
        format!("Stopping container {}", self.slots[index].name)
    }

    /// How long a container gets when it is stopped for that reason.
    pub(super) fn kill_grace(&self, index: usize, reason: StopReason) -> Duration {
        let deletion = self.deletion.map(|deletion| deletion.grace_seconds);
        let instead = match self.ending.as_ref().map(|ending| &ending.cause) {
            Some(Cause::Node(verdict)) => verdict.grace_seconds,
            _ => None,
        };
        seconds(grace::container_grace_seconds(&self.spec, self.container(index), deletion, Some(reason), instead))
    }

    /// Goes on with the end of the pod: once all is down, its sandbox is removed, and then the object of a deleted pod.
    pub(super) fn drive_ending(&mut self, out: &mut Out<'_>) {
        if !self.all_down() {
            return;
        }
        match self.sandbox {
            SandboxState::None { .. } => self.torn_down(),
            SandboxState::SettingUp { attempt } | SandboxState::Ready { attempt } => {
                self.sandbox = SandboxState::TearingDown { attempt };
                out.order(Action::Teardown { pod: self.uid.clone(), attempt });
            }
            SandboxState::TearingDown { .. } | SandboxState::TornDown => {}
        }
    }

    /// Nothing is left of its sandbox.
    pub(super) fn torn_down(&mut self) {
        self.sandbox = SandboxState::TornDown;
        self.runtime.sandboxes.clear();
    }

    /// The object of a deleted pod disappears when nothing is left of it (PHASE-09).
    pub(super) fn vanish_if_over(&mut self, out: &mut Out<'_>) {
        if self.deletion.is_some() && self.sandbox == SandboxState::TornDown {
            self.vanish(out);
        }
    }

    /// `activeDeadlineSeconds`, as an instant (POD-09).
    pub(super) fn active_deadline(&self) -> Option<Instant> {
        let start = self.status.start_time?;
        let limit = self.spec.active_deadline_seconds?;
        Some(start + seconds(limit))
    }
}

fn seconds(seconds: i64) -> Duration {
    Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}
