//! One look at a pod: decide anew from the whole state, and carry out what that says.

use alloc::format;
use alloc::vec::Vec;

use super::ending::Cause;
use super::slot::{HookRun, Slot};
use super::{Out, Pod, SandboxState};
use crate::actions::{self, PodActions, PodView};
use crate::io::Action;
use crate::restart;
use crate::runtime::{InstanceState, StopReason};
use crate::spec::{ContainerKind, ContainerSpec};
use crate::time::Instant;

impl Pod {
    /// Brings everything up to date. Does nothing that isn't due, so it can be called any time.
    pub(crate) fn sync(&mut self, out: &mut Out<'_>) {
        if self.is_waiting() && self.ending.is_none() {
            return self.report(out);
        }
        self.drive_hooks(out);
        self.leave_tainted_node(out);
        if self.ending.is_none() && self.active_deadline().is_some_and(|at| at <= out.now) {
            self.end(Cause::DeadlineExceeded, out);
        }
        if self.ending.is_none() && self.phase_is_final() {
            // Sidecars don't keep it, whatever state they are in (SIDE-06).
            self.end(Cause::Finished, out);
        }
        if self.ending.is_none() && !self.blocked {
            self.decide(out);
        }
        for index in 0..self.slots.len() {
            if self.ending.is_none() {
                self.settle_hold(index, out);
            }
            self.drive_stop(index, out);
        }
        self.drive_probes(out);
        if self.ending.is_some() {
            self.drive_ending(out);
        }
        self.announce_resize(out);
        self.report(out);
        self.vanish_if_over(out);
    }

    /// When this pod has to be looked at, if nothing happens before.
    pub(crate) fn next_wake(&self, now: Instant) -> Option<Instant> {
        self.next_wake_but_probes(now).into_iter().chain(self.next_probe()).min()
    }

    /// The same without probes; what was due until `now` has had its time.
    pub(super) fn next_wake_but_probes(&self, now: Instant) -> Option<Instant> {
        let tried_again = self.tried_again(now);
        let slots = self.slots.iter().enumerate().filter_map(|(index, slot)| slot.live()?.next_wake(self.waits(index)));
        let shown = self.slots.iter().filter_map(|slot| slot.hold.as_ref()?.then.as_ref().map(|(at, ..)| *at));
        // A pod that ends starts nothing any more.
        let shown = shown.filter(|_| self.ending.is_none());
        let sandbox = match self.sandbox {
            SandboxState::None { retry_at } if self.ending.is_none() => retry_at,
            _ => None,
        };
        let deadline = self.active_deadline().into_iter().chain(self.taint_deadline).chain(self.next_resize(now));
        let deadline = deadline.filter(|_| self.ending.is_none());
        slots.chain(shown).chain(tried_again).chain(sandbox).chain(deadline).min()
    }

    /// When the next container is tried again that waits for that and for nothing else. One whose time has come and who still isn't
    /// started doesn't want to be: its policy says no, or it isn't its turn.
    fn tried_again(&self, now: Instant) -> Option<Instant> {
        let retry_at = |slot: &Slot| slot.hold.as_ref()?.retry_at.filter(|at| *at > now && slot.is_idle());
        if self.ending.is_some() || self.blocked || self.slots.iter().all(|slot| retry_at(slot).is_none()) {
            return None;
        }
        let actions = actions::compute(self.view());
        if actions.create_sandbox {
            return None;
        }
        self.to_start(&actions).filter_map(|index| retry_at(&self.slots[index])).min()
    }

    /// All app containers ended, and none will run again.
    fn phase_is_final(&self) -> bool {
        let policy = self.spec.restart_policy;
        let ended_for_good = |container: &ContainerSpec| {
            let newest = self.runtime.newest(&container.name);
            newest.is_some_and(|newest| {
                newest.state == InstanceState::Exited && !restart::should_restart_exited(container, policy, newest)
            })
        };
        !self.spec.containers.is_empty() && self.spec.containers.iter().all(ended_for_good)
    }

    fn decide(&mut self, out: &mut Out<'_>) {
        if !self.restart_all && actions::restart_all_wanted(&self.spec, &self.runtime, &self.status) {
            self.restart_all = true;
            // How the containers were, before they are removed: a restart that nobody saw would look like a loss.
            self.report(out);
        }
        let actions = actions::compute(self.view());
        if self.restart_all {
            return self.reset(out);
        }
        if actions.create_sandbox {
            return self.set_up(actions.attempt, out);
        }
        self.stop_some(&actions, out);
        if actions.kill_pod && !self.waits_for_exit_codes(&actions) {
            return self.end(Cause::Finished, out);
        }
        self.update_resources(&actions.updates, out);
        self.start_some(&actions, out);
    }

    fn view(&self) -> PodView<'_> {
        PodView {
            spec: &self.spec,
            deleting: self.deletion.is_some(),
            restart_all: self.restart_all,
            runtime: &self.runtime,
            actuated: Some(&self.resize.actuated),
        }
    }

    /// Is somebody being stopped whose exit code may match a rule? Then that decides whether the pod is over (RESTART-08).
    fn waits_for_exit_codes(&self, actions: &PodActions) -> bool {
        actions.containers_to_kill.iter().any(|kill| {
            let container = self.spec.containers.get(kill.index).filter(|_| kill.kind == ContainerKind::App);
            container.is_some_and(|container| !container.restart_policy_rules.is_empty())
        })
    }

    fn set_up(&mut self, attempt: u32, out: &mut Out<'_>) {
        let SandboxState::None { retry_at } = self.sandbox else { return };
        if retry_at.is_some_and(|at| at > out.now) {
            return;
        }
        self.sandbox = SandboxState::SettingUp { attempt };
        out.order(Action::SetUp { pod: self.uid.clone(), attempt });
    }

    fn stop_some(&mut self, actions: &PodActions, out: &mut Out<'_>) {
        for kill in &actions.containers_to_kill {
            let Some(index) = self.slot_of(kill.kind, kill.index) else { continue };
            let grace = self.kill_grace(index, kill.reason);
            if kill.reason == StopReason::Changed {
                self.slots[index].forget_failures();
            }
            self.begin_stop(index, kill.reason, kill.message.clone(), grace, Vec::new(), out);
        }
    }

    fn start_some(&mut self, actions: &PodActions, out: &mut Out<'_>) {
        for index in self.to_start(actions).collect::<Vec<_>>() {
            self.try_start(index, out);
        }
    }

    /// Who is to be started, if nothing holds him back.
    fn to_start(&self, actions: &PodActions) -> impl Iterator<Item = usize> {
        let lists = [
            (ContainerKind::Ephemeral, &actions.ephemeral_containers_to_start),
            (ContainerKind::Init, &actions.init_containers_to_start),
            (ContainerKind::App, &actions.containers_to_start),
        ];
        let places = lists.into_iter().flat_map(|(kind, list)| list.iter().map(move |&place| (kind, place)));
        let slots = places.filter_map(|(kind, place)| self.slot_of(kind, place));
        slots.filter(|&index| !self.waits_for_lost_sidecars(index))
    }

    /// RestartAllContainers: everything is killed and removed, then the pod begins anew in its sandbox (RESTART-09).
    fn reset(&mut self, out: &mut Out<'_>) {
        for index in 0..self.slots.len() {
            if self.slots[index].kind != ContainerKind::Ephemeral {
                let message = format!("Container {} is restarted with all containers", self.slots[index].name);
                self.kill_now(index, StopReason::RestartAllContainers, message, out);
            }
        }
        let busy = |slot: &Slot| slot.kind != ContainerKind::Ephemeral && !slot.is_idle();
        if self.slots.iter().any(busy) {
            return;
        }
        self.forget_for_restart(out);
        self.decide(out);
    }

    /// Nothing of them runs: instances of all but ephemeral containers are removed, so that the pod begins anew.
    fn forget_for_restart(&mut self, out: &mut Out<'_>) {
        for index in 0..self.slots.len() {
            let waits = self.asked_to_restart_all(index) || self.waits_since_it_asked(index);
            if self.slots[index].kind != ContainerKind::Ephemeral && !waits {
                (self.slots[index].hold, self.slots[index].last_exit) = (None, None);
            }
        }
        let spec = &self.spec;
        self.runtime.instances.retain(|i| spec.ephemeral_containers.iter().any(|c| c.name == i.name));
        self.restart_all = false;
        self.report(out);
    }

    /// Did the end of this container ask for the restart of all? Then it has to wait before it runs again, so that this can't go
    /// on without a pause.
    fn asked_to_restart_all(&self, index: usize) -> bool {
        let newest = self.runtime.newest(&self.slots[index].name);
        newest.is_some_and(|instance| {
            let by_itself = matches!(
                instance.stopped_for,
                None | Some(StopReason::LivenessProbe | StopReason::StartupProbe | StopReason::PostStartHook)
            );
            by_itself && restart::asks_to_restart_all(self.container(index), instance.exit_code)
        })
    }

    /// Did it ask for an earlier restart of all, and is still held back for that? Others who ask meanwhile don't let it go: two that do so
    /// in turns would go on without a pause.
    fn waits_since_it_asked(&self, index: usize) -> bool {
        // Of everybody else who ended there is an instance.
        let slot = &self.slots[index];
        slot.last_exit.is_some() && self.runtime.newest(&slot.name).is_none()
    }

    /// Hooks that the core times itself.
    fn drive_hooks(&mut self, out: &mut Out<'_>) {
        for index in 0..self.slots.len() {
            let Some(live) = self.slots[index].live_mut() else { continue };
            if live.post_start.wake().is_some_and(|until| until <= out.now) {
                live.post_start = HookRun::Over;
                self.post_start_over(index, out);
            }
        }
    }
}
