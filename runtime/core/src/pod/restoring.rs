//! A pod that goes on from its record after its instances were lost (TERM-07, TERM-11, INIT-06).

use alloc::string::String;

use super::ending::Cause;
use super::probing::has_started;
use super::slot::{Hold, Slot, SlotState};
use super::{Out, Pod, SandboxState};
use crate::event::EventKind;
use crate::io::Action;
use crate::reasons;
use crate::record::Interruption;
use crate::runtime::{Instance, InstanceState, StopReason};
use crate::spec::{ContainerKind, RestartPolicy};
use crate::status::Word;
use crate::time::Instant;

impl Pod {
    /// Can a pod be like that? Says what of it can't.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        if *self.uid.0 != *self.meta.uid {
            return Err("its uid is not the uid of its metadata");
        }
        if self.slots.len() != self.spec.all_containers().count() {
            return Err("its containers are not those of its spec");
        }
        let mut place = [0; 3];
        for (slot, (kind, container)) in self.slots.iter().zip(self.spec.all_containers()) {
            let place = &mut place[kind as usize];
            if (slot.kind, slot.index, &*slot.name) != (kind, *place, &*container.name) {
                return Err("its containers are not those of its spec");
            }
            *place += 1;
            let waits_for = slot.live().and_then(|live| live.stop.as_ref()).map(|stop| &*stop.waits_for);
            if waits_for.unwrap_or_default().iter().any(|&other| other >= self.slots.len()) {
                return Err("a container waits for one that does not exist");
            }
        }
        let names = || self.slots.iter().map(|slot| &*slot.name);
        if names().enumerate().any(|(index, name)| names().take(index).any(|other| other == name)) {
            return Err("two of its containers have the same name");
        }
        Ok(())
    }

    /// Its instances are lost: what ran is to be started again, or the pod goes on to end.
    pub(crate) fn begin_again(&mut self, after: Interruption, out: &mut Out<'_>) {
        self.distrust_the_future(out);
        let had_sandbox = self.had_sandbox();
        let revived = self.ending.is_none();
        // As upstream has it for a lost sandbox: what may run only once is not run again.
        let fails = revived
            && !self.restart_all
            && after == Interruption::Reboot
            && self.spec.restart_policy == RestartPolicy::Never
            && !self.runtime.instances.is_empty();
        for index in 0..self.slots.len() {
            self.lose_instance(index, after, fails, out);
            self.forget_probe_counts(index);
        }
        self.lose_sandbox(after, fails);
        if revived && had_sandbox {
            let message = "Pod sandbox changed, it will be killed and re-created.";
            self.event(out, None, EventKind::Normal, "SandboxChanged", message);
        }
        // How its containers ended has to be seen before they are forgotten.
        self.report(out);
        if fails {
            self.end(Cause::Finished, out);
        } else if revived && after == Interruption::Reboot {
            self.forget_init_containers();
        }
        if self.gone {
            // Nobody knows whether that was carried out.
            out.order(Action::Gone { pod: self.uid.clone() });
        }
    }

    fn had_sandbox(&self) -> bool {
        matches!(self.sandbox, SandboxState::Ready { .. } | SandboxState::TearingDown { .. })
    }

    /// No instant that has passed is later than now, and nothing waits longer than it ever would.
    fn distrust_the_future(&mut self, out: &Out<'_>) {
        let now = out.now;
        let latest = now + out.config.crash_loop.max.max(out.config.image_pull.max);
        let past = |at: &mut Option<Instant>| *at = at.map(|at| at.min(now));
        past(&mut self.status.start_time);
        for slot in &mut self.slots {
            past(&mut slot.last_exit);
            if let Some(Hold { retry_at: Some(at), .. }) = &mut slot.hold {
                *at = (*at).min(latest);
            }
        }
    }

    /// A container has no order and no instance any more.
    fn lose_instance(&mut self, index: usize, after: Interruption, fails: bool, out: &mut Out<'_>) {
        let slot = &mut self.slots[index];
        let SlotState::Live(live) = core::mem::take(&mut slot.state) else { return };
        let stopped_for = match live.stop {
            Some(stop) => stop.reason,
            None if fails || self.ending.is_some() => StopReason::PodEnds,
            None => StopReason::Interrupted,
        };
        slot.hold = None;
        // That it ended with the agent is no failure of its own.
        let counts = !matches!(stopped_for, StopReason::Interrupted | StopReason::RestartAllContainers);
        slot.last_exit = counts.then_some(out.now);
        let (reason, message) = match (stopped_for, after) {
            (StopReason::Interrupted, Interruption::Reboot) => (reasons::NODE_REBOOTED, reasons::ENDED_WITH_THE_NODE),
            (StopReason::Interrupted, _) => (reasons::AGENT_RESTARTED, reasons::ENDED_WITH_THE_AGENT),
            (StopReason::PodEnds, _) => (reasons::CONTAINER_STATUS_UNKNOWN, reasons::LOST_AT_TERMINATION),
            _ => (reasons::ERROR, ""),
        };
        let name = slot.name.clone();
        if let Some(newest) = self.runtime.instances.iter_mut().find(|instance| *instance.name == *name) {
            *newest = Instance {
                state: InstanceState::Exited,
                finished_at: Some(out.now),
                exit_code: reasons::EXIT_CODE_UNKNOWN,
                reason: Word::Borrowed(reason),
                message: String::from(message),
                stopped_for: Some(stopped_for),
                ..core::mem::take(newest)
            };
        }
        self.disarm_probes(index, out);
    }

    fn lose_sandbox(&mut self, after: Interruption, fails: bool) {
        if self.ending.is_some() || fails {
            // It is removed, perhaps once more.
            if let SandboxState::SettingUp { attempt } | SandboxState::TearingDown { attempt } = self.sandbox {
                self.sandbox = SandboxState::Ready { attempt };
            }
            return;
        }
        if self.sandbox != SandboxState::TornDown {
            self.sandbox = SandboxState::None { retry_at: None };
        }
        match after {
            Interruption::Reboot => self.runtime.sandboxes.iter_mut().for_each(|sandbox| sandbox.ready = false),
            // The same one is set up again.
            Interruption::AgentRestart | Interruption::Handover => self.runtime.sandboxes.clear(),
        }
    }

    /// Sidecars that were lost come back before what they serve, as at the first start (SIDE-01). One that fails on its way doesn't
    /// hold up the others for ever: then it is as with any other crash.
    pub(super) fn waits_for_lost_sidecars(&self, index: usize) -> bool {
        let own = &self.slots[index];
        let comes_back = |slot: &Slot| {
            let container = self.container_of(slot);
            let mut instances = self.runtime.of(&slot.name);
            let lost = |instance: Option<&Instance>| {
                instance.is_some_and(|instance| instance.stopped_for == Some(StopReason::Interrupted))
            };
            match instances.next() {
                Some(Instance { state: InstanceState::Created, .. }) => lost(instances.next()),
                Some(newest @ Instance { state: InstanceState::Running, .. }) => {
                    !has_started(container, newest) && lost(instances.next())
                }
                newest => lost(newest),
            }
        };
        let before = self.slots.iter().filter(|slot| match own.kind {
            ContainerKind::Init => slot.kind == ContainerKind::Init && slot.index < own.index,
            ContainerKind::App => slot.kind == ContainerKind::Init,
            ContainerKind::Ephemeral => false,
        });
        before.filter(|slot| self.container_of(slot).is_sidecar()).any(comes_back)
    }

    /// A board that starts anew has lost what init containers did, unless it was on disk: they run again (INIT-06).
    fn forget_init_containers(&mut self) {
        for slot in self.slots.iter_mut().filter(|slot| slot.kind == ContainerKind::Init) {
            let newest = self.runtime.newest(&slot.name);
            if newest.is_some_and(|i| i.state == InstanceState::Exited && i.exit_code == 0 && i.stopped_for.is_none()) {
                // It completed: to run again is no crash.
                (slot.hold, slot.last_exit) = (None, None);
            }
        }
        let spec = &self.spec;
        self.runtime.instances.retain(|instance| spec.init_containers.iter().all(|c| c.name != instance.name));
    }
}
