//! What facts change. Nothing is decided here; [`Pod::sync`] does that afterwards.

use alloc::format;
use alloc::string::String;

use super::ending::Cause;
use super::slot::{Hold, HookRun, Live, SlotState, Stop};
use super::{Out, Pod, SandboxState};
use crate::event::EventKind;
use crate::io::{Action, Hook, Input, InstanceRef, Outcome, Trap};
use crate::reasons;
use crate::restart;
use crate::runtime::{Instance, InstanceState, Sandbox, StopReason};
use crate::spec::Handler;
use crate::status::{Condition, Word};
use crate::time::{Duration, Instant};

/// Time between two tries to make a sandbox.
const SANDBOX_RETRY: Duration = Duration::from_secs(10);

/// Instances that are remembered per container: the current one and the one before (STATE-04).
const REMEMBERED: usize = 2;

/// Exit code of what was made but could not be started.
const START_ERROR_CODE: i32 = 128;

impl Pod {
    /// Takes a fact about this pod. Stale ones change nothing.
    pub(crate) fn observe(&mut self, input: Input, out: &mut Out<'_>) {
        match input {
            // Handled by the node, which knows which pods there are.
            Input::Applied { .. }
            | Input::Restored { .. }
            | Input::NodeChanged { .. }
            | Input::Pressure { .. }
            | Input::Shutdown { .. }
            | Input::GroupApplied { .. }
            | Input::GroupRemoved { .. }
            // See `Pod::hear_probe`.
            | Input::ProbeResult { .. } => {}
            Input::DeleteRequested { grace_seconds, .. } => self.delete(grace_seconds, out),
            Input::SandboxReady { attempt, ips, .. } => self.sandbox_ready(attempt, ips),
            Input::SandboxFailed { attempt, reason, message, .. } => self.sandbox_failed(attempt, reason, message, out),
            Input::TryAgain { .. } => self.try_again(out.now),
            Input::ImageReady { instance, image_id, pulled } => {
                self.image_ready(&instance, image_id, pulled, out);
            }
            Input::ImageFailed { instance, reason, message } => self.image_failed(&instance, reason, message, out),
            Input::Started { instance, id } => self.started(&instance, id, false, out),
            Input::StartFailed { instance, reason, message } => self.start_failed(&instance, reason, message, out),
            Input::Exited { instance, outcome, message } => self.exited(&instance, outcome, message, out),
            Input::HookDone { instance, hook, result } => self.hook_done(&instance, hook, result, out),
            Input::Remark { instance, reason, message } => {
                let index = self.slot_named(&instance.container);
                if let Some(index) = index.filter(|index| self.slots[*index].current(instance.attempt).is_some()) {
                    self.event(out, Some(index), EventKind::Warning, reason, message);
                }
            }
            Input::ConditionSet { condition, .. } => self.condition_set(condition, out),
            Input::Evict { disruption, grace_seconds, .. } => self.disrupt(disruption, grace_seconds, out),
            Input::LimitExceeded { message, .. } => self.limit_exceeded(message, out),
            Input::ResourcesUpdated { instance, revision } => self.resources_updated(&instance, revision),
            Input::ResourcesFailed { instance, revision, message } => {
                self.resources_failed(&instance, revision, message, out);
            }
            Input::TornDown { attempt, .. } => {
                if self.sandbox == (SandboxState::TearingDown { attempt }) {
                    self.torn_down();
                }
            }
        }
    }

    fn sandbox_ready(&mut self, attempt: u32, ips: alloc::vec::Vec<String>) {
        if self.sandbox != (SandboxState::SettingUp { attempt }) {
            return;
        }
        self.sandbox = SandboxState::Ready { attempt };
        self.runtime.sandboxes = alloc::vec![Sandbox {
            ready: true,
            attempt,
            has_ip: !ips.is_empty(),
            host_network: self.spec.host_network,
        }];
        self.runtime.ips = ips;
    }

    fn sandbox_failed(&mut self, attempt: u32, reason: Word, message: String, out: &mut Out<'_>) {
        if self.sandbox != (SandboxState::SettingUp { attempt }) {
            return;
        }
        self.sandbox = SandboxState::None { retry_at: Some(out.now + SANDBOX_RETRY) };
        let event = self.recorder.record(&self.uid, out.now, String::new(), EventKind::Warning, reason, message);
        out.order(Action::Record { event });
    }

    fn try_again(&mut self, now: Instant) {
        if let SandboxState::None { retry_at: Some(at) } = &mut self.sandbox {
            *at = now.min(*at);
        }
        let holds = self.slots.iter_mut().filter_map(|slot| slot.hold.as_mut());
        for hold in holds.filter(|hold| hold.reason == reasons::CREATE_CONTAINER_CONFIG_ERROR) {
            hold.retry_at = hold.retry_at.map(|at| now.min(at));
        }
    }

    fn started(&mut self, at: &InstanceRef, id: String, ended: bool, out: &mut Out<'_>) {
        let Some(index) = self.slot_named(&at.container) else { return };
        let SlotState::Starting { attempt, image_id, hash, unwanted } = &mut self.slots[index].state else { return };
        if *attempt != at.attempt {
            return;
        }
        let (image_id, hash, unwanted) = (core::mem::take(image_id), *hash, *unwanted);
        let (post_start, current) = (self.container(index).post_start, self.container(index).hash);
        self.event(out, Some(index), EventKind::Normal, "Created", "Container created");
        self.event(out, Some(index), EventKind::Normal, "Started", "Container started");
        let post_start = match post_start {
            None => HookRun::Over,
            // It is to be killed, or has ended already: there is nothing to prepare.
            _ if unwanted.is_some() || ended => HookRun::Over,
            Some(Handler::Sleep(seconds)) => {
                HookRun::Sleeping { until: out.now + Duration::from_secs(u64::from(seconds)) }
            }
            Some(_) => {
                out.order(Action::RunHook { instance: at.clone(), hook: Hook::PostStart });
                HookRun::Running
            }
        };
        let slot = &mut self.slots[index];
        let restart_count = slot.restarts;
        slot.restarts = slot.restarts.saturating_add(1);
        slot.hold = None;
        slot.started_hash = Some(hash);
        // KILL is ordered already.
        let stop = unwanted.map(|reason| Stop::killed(reason, out.now));
        slot.state = SlotState::Live(Live { attempt: at.attempt, post_start, stop });
        // Running only once postStart is over (HOOK-01).
        let state = if post_start == HookRun::Over { InstanceState::Running } else { InstanceState::Created };
        self.remember(Instance {
            name: String::from(&*at.container),
            id,
            state,
            restart_count,
            created_at: Some(out.now),
            started_at: Some(out.now),
            image_id,
            changed: hash != current,
            ..Instance::default()
        });
        if state == InstanceState::Running && unwanted.is_none() {
            self.arm_probes(index, out);
        }
    }

    fn remember(&mut self, instance: Instance) {
        let instances = &mut self.runtime.instances;
        instances.reserve_exact(1);
        instances.insert(0, instance);
        let mut seen = 0;
        let name = instances[0].name.clone();
        instances.retain(|i| {
            seen += usize::from(i.name == name);
            i.name != name || seen <= REMEMBERED
        });
    }

    fn start_failed(&mut self, at: &InstanceRef, reason: Word, message: String, out: &mut Out<'_>) {
        let Some(index) = self.slot_named(&at.container) else { return };
        let SlotState::Starting { attempt, image_id, unwanted, .. } = &mut self.slots[index].state else { return };
        if *attempt != at.attempt {
            return;
        }
        let (image_id, unwanted) = (core::mem::take(image_id), unwanted.is_some());
        self.slots[index].state = SlotState::Idle;
        if unwanted {
            return;
        }
        let event_message = format!("Error: {message}");
        self.event(out, Some(index), EventKind::Warning, "Failed", event_message);
        if reason == reasons::RUN_CONTAINER_ERROR {
            // It was made and its start failed: that is an end, too (STATE-03).
            let slot = &mut self.slots[index];
            let restart_count = slot.restarts;
            slot.restarts = slot.restarts.saturating_add(1);
            slot.last_exit = Some(out.now);
            self.remember(Instance {
                name: String::from(&*at.container),
                id: format!("{}-{}-{}", self.uid, at.container, at.attempt),
                state: InstanceState::Exited,
                restart_count,
                created_at: Some(out.now),
                finished_at: Some(out.now),
                exit_code: START_ERROR_CODE,
                reason: Word::Borrowed(reasons::START_ERROR),
                message: message.clone(),
                image_id,
                ..Instance::default()
            });
            let policy = self.spec.restart_policy;
            if !restart::should_restart_after_exit(self.container(index), policy, START_ERROR_CODE) {
                return;
            }
        }
        self.hold_back(index, reason, message, out);
    }

    fn exited(&mut self, at: &InstanceRef, outcome: Outcome, message: String, out: &mut Out<'_>) {
        let Some(index) = self.slot_named(&at.container) else { return };
        if matches!(&self.slots[index].state, SlotState::Starting { attempt, .. } if *attempt == at.attempt) {
            // Its start is answered by its end.
            let id = format!("{}-{}-{}", self.uid, at.container, at.attempt);
            self.started(at, id, true, out);
        }
        let slot = &mut self.slots[index];
        let Some(live) = slot.current(at.attempt) else { return };
        let stopped_for = live.stop.as_ref().map(|stop| stop.reason);
        let post_start = live.post_start;
        let pre_stop = live.stop.as_ref().map_or(HookRun::Over, |stop| stop.pre_stop);
        let past_deadline = self.ending.as_ref().is_some_and(|ending| ending.cause == Cause::DeadlineExceeded);
        let reason = match outcome.reason() {
            reasons::ERROR if past_deadline && stopped_for == Some(StopReason::PodEnds) => reasons::DEADLINE_EXCEEDED,
            reason => reason,
        };
        slot.state = SlotState::Idle;
        slot.hold = None;
        slot.last_exit = Some(out.now);
        for (hook, run) in [(Hook::PostStart, post_start), (Hook::PreStop, pre_stop)] {
            if run == HookRun::Running {
                out.order(Action::CancelHook { instance: at.clone(), hook });
            }
        }
        if let Some(newest) = self.runtime.instances.iter_mut().find(|i| *i.name == *at.container) {
            newest.state = InstanceState::Exited;
            newest.finished_at = Some(out.now);
            newest.exit_code = outcome.exit_code();
            newest.signal = outcome.signal();
            newest.reason = Word::Borrowed(reason);
            newest.message = message;
            newest.stopped_for = stopped_for;
        }
        if outcome == Outcome::Trap(Trap::OutOfMemory) {
            let message = format!("Container {} crossed its memory limit and was ended", at.container);
            self.event(out, Some(index), EventKind::Warning, "OOMKilling", message);
        }
        if stopped_for.is_none() {
            self.ended_by_itself(index, outcome, out);
        }
        self.disarm_probes(index, out);
    }

    /// The end that nobody asked for is told to people (PHASE-06).
    fn ended_by_itself(&mut self, index: usize, outcome: Outcome, out: &mut Out<'_>) {
        let (name, code, reason) = (self.slots[index].name.clone(), outcome.exit_code(), outcome.reason());
        match code {
            0 => self.event(out, Some(index), EventKind::Normal, "Completed", format!("Container {name} completed")),
            _ => {
                let message = format!("Container {name} failed with exit code {code} ({reason})");
                self.event(out, Some(index), EventKind::Warning, "Failed", message);
            }
        }
    }

    fn hook_done(&mut self, at: &InstanceRef, hook: Hook, result: Result<(), String>, out: &mut Out<'_>) {
        let Some(index) = self.slot_named(&at.container) else { return };
        let Some(live) = self.slots[index].current(at.attempt) else { return };
        match hook {
            Hook::PostStart if live.post_start == HookRun::Running => {
                live.post_start = HookRun::Over;
                match result {
                    Ok(()) => self.post_start_over(index, out),
                    Err(error) => {
                        // What went wrong may contain secrets, and events are for everybody.
                        let message = "PostStartHook failed";
                        self.event(out, Some(index), EventKind::Warning, "FailedPostStartHook", message);
                        let reason = Word::Borrowed(reasons::POST_START_HOOK_ERROR);
                        self.slots[index].hold = Some(Hold { reason, message: error, retry_at: None, then: None });
                        self.stop_failed_hook(index, out);
                    }
                }
            }
            Hook::PreStop => {
                let Some(stop) = live.stop.as_mut().filter(|stop| stop.pre_stop == HookRun::Running) else { return };
                stop.pre_stop = HookRun::Over;
                if result.is_err() {
                    let message = "PreStopHook failed";
                    self.event(out, Some(index), EventKind::Warning, "FailedPreStopHook", message);
                }
            }
            Hook::PostStart => {}
        }
    }

    /// The container is Running from now on, and its probes may begin (HOOK-01).
    pub(super) fn post_start_over(&mut self, index: usize, out: &mut Out<'_>) {
        let name = self.slots[index].name.clone();
        if let Some(newest) = self.runtime.instances.iter_mut().find(|i| *i.name == *name) {
            newest.state = InstanceState::Running;
        }
        self.arm_probes(index, out);
    }

    fn condition_set(&mut self, condition: Condition, out: &mut Out<'_>) {
        if !reasons::BUILT_IN_CONDITIONS.contains(&&*condition.kind) {
            self.set_condition(condition, out);
        }
    }

    /// Sets a condition and publishes it, if it is another one.
    pub(super) fn set_condition(&mut self, condition: Condition, out: &mut Out<'_>) {
        let conditions = &mut self.status.conditions;
        let known = conditions.iter_mut().find(|known| known.kind == condition.kind);
        let since =
            known.as_ref().and_then(|known| known.last_transition_time.filter(|_| known.status == condition.status));
        let condition = Condition { last_transition_time: since.or(Some(out.now)), ..condition };
        match known {
            Some(known) if *known == condition => return,
            Some(known) => *known = condition,
            None => conditions.push(condition),
        }
        if !self.gone {
            out.order(Action::StatusChanged { pod: self.uid.clone() });
        }
    }
}
