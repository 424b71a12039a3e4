//! Stopping one container: preStop, its turn, stop signal, KILL (HOOK-02, TERM-02).

use alloc::string::String;
use alloc::vec::Vec;

use super::slot::{HookRun, SlotState, Stop, StopStep};
use super::{Out, Pod};
use crate::event::EventKind;
use crate::io::{Action, Hook};
use crate::runtime::{InstanceState, StopReason};
use crate::spec::Handler;
use crate::status::Word;
use crate::time::{Duration, Instant};

/// What a container gets between its stop signal and KILL, however little of its grace is left.
const MINIMUM_GRACE: Duration = Duration::from_secs(2);

impl Pod {
    /// Begins to stop what a container runs or is about to run. Nothing happens if it is being stopped already.
    pub(super) fn begin_stop(
        &mut self,
        index: usize,
        reason: StopReason,
        message: String,
        grace: Duration,
        waits_for: Vec<usize>,
        out: &mut Out<'_>,
    ) {
        match &self.slots[index].state {
            SlotState::Live(live) if live.stop.is_none() => {}
            SlotState::Live(_) | SlotState::Idle => return,
            SlotState::Pulling { .. } | SlotState::Starting { .. } => {
                return self.kill_now(index, reason, message, out);
            }
        }
        self.event(out, Some(index), EventKind::Normal, "Killing", message);
        self.abandon_post_start(index, out);
        let hook = self.container(index).pre_stop.filter(|_| !grace.is_zero());
        let deadline = out.now + grace;
        let Some(live) = self.slots[index].live_mut() else { return };
        let attempt = live.attempt;
        let pre_stop = match hook {
            None => HookRun::Over,
            Some(Handler::Sleep(seconds)) => {
                HookRun::Sleeping { until: out.now + Duration::from_secs(u64::from(seconds)) }
            }
            Some(_) => HookRun::Running,
        };
        live.stop = Some(Stop { reason, deadline, pre_stop, waits_for, step: StopStep::PreStop });
        if pre_stop == HookRun::Running {
            let instance = self.instance_ref(index, attempt);
            out.order(Action::RunHook { instance, hook: Hook::PreStop });
        }
        self.drive_stop(index, out);
    }

    /// Ends what a container runs or is about to run, without any grace.
    pub(super) fn kill_now(&mut self, index: usize, reason: StopReason, message: String, out: &mut Out<'_>) {
        if self.slots[index].live().is_some_and(|live| live.stop.is_none()) {
            self.event(out, Some(index), EventKind::Normal, "Killing", message);
            self.abandon_post_start(index, out);
        }
        let attempt = match &mut self.slots[index].state {
            SlotState::Idle => return,
            state @ SlotState::Pulling { .. } => {
                // The answer will be stale; nothing of it runs.
                *state = SlotState::Idle;
                return;
            }
            SlotState::Starting { unwanted: Some(_), .. } => return,
            SlotState::Starting { attempt, unwanted, .. } => {
                *unwanted = Some(reason);
                *attempt
            }
            SlotState::Live(live) => {
                match &mut live.stop {
                    Some(stop) if stop.step == StopStep::Killed => return,
                    Some(stop) => stop.step = StopStep::Killed,
                    none => *none = Some(Stop::killed(reason, out.now)),
                }
                live.attempt
            }
        };
        self.silence_probes(index);
        let instance = self.instance_ref(index, attempt);
        out.order(Action::Kill { instance });
    }

    /// Nobody waits any more for what its postStart hook has to say: it runs, and is being stopped.
    fn abandon_post_start(&mut self, index: usize, out: &mut Out<'_>) {
        let Some(live) = self.slots[index].live_mut() else { return };
        let (attempt, was) = (live.attempt, core::mem::replace(&mut live.post_start, HookRun::Over));
        if was == HookRun::Over {
            return;
        }
        let instance = self.instance_ref(index, attempt);
        if let Some(newest) = self.runtime.instances.iter_mut().find(|i| *i.name == *instance.container) {
            newest.state = InstanceState::Running;
        }
        if was == HookRun::Running {
            out.order(Action::CancelHook { instance, hook: Hook::PostStart });
        }
    }

    /// Its postStart hook failed: it is stopped and its policy applies (HOOK-01).
    pub(super) fn stop_failed_hook(&mut self, index: usize, out: &mut Out<'_>) {
        let grace = self.kill_grace(index, StopReason::PostStartHook);
        let message = String::from("FailedPostStartHook");
        self.begin_stop(index, StopReason::PostStartHook, message, grace, Vec::new(), out);
    }

    /// Grace only ever shrinks (TERM-05).
    pub(super) fn shrink_stop(&mut self, index: usize, deadline: Instant, out: &mut Out<'_>) {
        let Some(stop) = self.slots[index].live_mut().and_then(|live| live.stop.as_mut()) else { return };
        stop.deadline = stop.deadline.min(deadline);
        if let StopStep::Signalled { kill_at } = &mut stop.step {
            *kill_at = (*kill_at).min(stop.deadline.max(out.now + MINIMUM_GRACE));
        }
    }

    /// Goes on with a stop as far as time and the others allow.
    pub(super) fn drive_stop(&mut self, index: usize, out: &mut Out<'_>) {
        let waits = self.waits(index);
        let Some(live) = self.slots[index].live_mut() else { return };
        let attempt = live.attempt;
        let Some(stop) = live.stop.as_mut() else { return };
        let spent = out.now >= stop.deadline;
        if stop.step == StopStep::PreStop {
            if stop.pre_stop.wake().is_some_and(|until| until <= out.now) {
                stop.pre_stop = HookRun::Over;
            }
            if stop.pre_stop == HookRun::Over || spent {
                stop.step = StopStep::Turn;
            }
        }
        match stop.step {
            StopStep::Turn if !waits || spent => {
                stop.step = StopStep::Signalled { kill_at: stop.deadline.max(out.now + MINIMUM_GRACE) };
                let signal = self.stop_signal(index);
                let instance = self.instance_ref(index, attempt);
                out.order(Action::Signal { instance, signal });
            }
            StopStep::Signalled { kill_at } if kill_at <= out.now => {
                stop.step = StopStep::Killed;
                self.silence_probes(index);
                let instance = self.instance_ref(index, attempt);
                out.order(Action::Kill { instance });
            }
            StopStep::PreStop | StopStep::Turn | StopStep::Signalled { .. } | StopStep::Killed => {}
        }
    }

    /// Does this container wait for others to end before it gets its signal (SIDE-04)?
    pub(super) fn waits(&self, index: usize) -> bool {
        let stop = self.slots[index].live().and_then(|live| live.stop.as_ref());
        stop.is_some_and(|stop| stop.waits_for.iter().any(|&other| !matches!(self.slots[other].state, SlotState::Idle)))
    }

    fn stop_signal(&self, index: usize) -> Word {
        match &self.container(index).stop_signal {
            None => Word::Borrowed("SIGTERM"),
            Some(signal) => Word::Owned(signal.clone()),
        }
    }
}
