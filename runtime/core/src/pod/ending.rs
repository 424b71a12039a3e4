//! The end of a pod: deleted, finished, or past its deadline (TERM-01, TERM-02, POD-09).

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::slot::SlotState;
use super::{Out, Pod, SandboxState};
use crate::deletion::{self, Deletion};
use crate::event::EventKind;
use crate::grace;
use crate::io::Action;
use crate::reasons;
use crate::runtime::StopReason;
use crate::termination_order;
use crate::time::{Duration, Instant};

/// `terminationGracePeriodSeconds` where none is given.
const DEFAULT_GRACE_SECONDS: i64 = 30;

/// A pod that ends.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Ending {
    pub(super) cause: Cause,
}

/// Why a pod ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Cause {
    /// Its containers ended and none will restart.
    Finished,
    /// Somebody deleted it.
    Deleted,
    /// `activeDeadlineSeconds` passed.
    DeadlineExceeded,
}

impl Cause {
    /// Reason and message of the status.
    pub(super) const fn status(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::DeadlineExceeded => Some((reasons::DEADLINE_EXCEEDED, reasons::DEADLINE_EXCEEDED_MESSAGE)),
            Self::Finished | Self::Deleted => None,
        }
    }
}

impl Pod {
    /// Somebody asked for the pod's end. Grace only ever shrinks (TERM-05); 0 makes the object disappear at once (TERM-06).
    pub(super) fn delete(&mut self, requested: Option<i64>, out: &mut Out<'_>) {
        let target = deletion::Target {
            deletion: self.deletion,
            spec_grace_seconds: self.spec.termination_grace_period_seconds.or(Some(DEFAULT_GRACE_SECONDS)),
            scheduled: true,
            phase: self.status.phase,
        };
        let deletion = match deletion::decide(&target, requested, out.now) {
            deletion::Verdict::Pending => return,
            deletion::Verdict::RemoveNow => Deletion { grace_seconds: 0, timestamp: out.now },
            deletion::Verdict::Begin(deletion) | deletion::Verdict::Shorten(deletion) => deletion,
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

    /// Begins the pod's end: every container is stopped, sidecars after the apps, in reverse order (SIDE-04, SIDE-05).
    pub(super) fn end(&mut self, cause: Cause, out: &mut Out<'_>) {
        self.ending = Some(Ending { cause });
        self.restart_all = false;
        if let Some((reason, message)) = cause.status() {
            self.event(out, None, EventKind::Normal, reason, message);
        }
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
        seconds(grace::container_grace_seconds(&self.spec, self.container(index), deletion, Some(reason), None))
    }

    /// Goes on with the end of the pod: once all is down, its sandbox is removed, and then the object of a deleted pod.
    pub(super) fn drive_ending(&mut self, out: &mut Out<'_>) {
        if !self.all_down() {
            return;
        }
        match self.sandbox {
            SandboxState::None { .. } => self.sandbox = SandboxState::TornDown,
            SandboxState::SettingUp { attempt } | SandboxState::Ready { attempt } => {
                self.sandbox = SandboxState::TearingDown { attempt };
                out.order(Action::Teardown { pod: self.uid.clone(), attempt });
            }
            SandboxState::TearingDown { .. } | SandboxState::TornDown => {}
        }
        if self.sandbox == SandboxState::TornDown {
            self.runtime.sandboxes.clear();
        }
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
