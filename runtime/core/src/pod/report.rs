//! The pod's status, as it is to be published.

use alloc::string::String;
use alloc::vec::Vec;

use super::ending::Cause;
use super::slot::{HookRun, Slot};
use super::{Out, Pod};
use crate::api_status::{self, StartFailure, StatusInput};
use crate::conditions;
use crate::io::Action;
use crate::reasons;
use crate::status::{Condition, Phase, PodStatus, Word};
use crate::{status_manager, termination_message};

/// A status is at rest after two or three looks. That it would ever come to rest is not proven for every record.
const MOST_LOOKS: usize = 8;

impl Pod {
    /// Makes the status anew and publishes it if it changed.
    ///
    /// A status also depends on the one before it, so upstream's comes to rest after a few syncs; this one does at once.
    pub(super) fn report(&mut self, out: &mut Out<'_>) {
        let mut changed = false;
        for _ in 0..MOST_LOOKS {
            if !self.renew_status(out) {
                break;
            }
            changed = true;
        }
        if changed && !self.gone {
            out.order(Action::StatusChanged { pod: self.uid.clone() });
        }
    }

    /// Makes the status anew. Returns true if it changed.
    fn renew_status(&mut self, out: &Out<'_>) -> bool {
        self.observe_generation();
        let over = self.ending.is_some() && self.all_down();
        if !self.is_seated() {
            let merged = status_manager::merge(&self.status, self.unseated_status(), false, out.now);
            let changed = merged != self.status;
            self.status = merged;
            return changed;
        }
        let failed_by_node = self.ending.as_ref().and_then(|ending| ending.cause.status());
        let start_failures = self.start_failures();
        let mut new = api_status::generate(StatusInput {
            meta: &self.meta,
            spec: &self.spec,
            runtime: &self.runtime,
            old: &self.status,
            deleting: self.deletion.is_some(),
            terminal: over,
            start_failures: &start_failures,
            failed_by_node: failed_by_node.as_ref().map(|(reason, message)| (reason, *message)),
            now: out.now,
        });
        termination_message::share(&mut new, self.spec.all_containers().count());
        if let Some((reason, message)) = &failed_by_node
            && new.phase == Phase::Failed
        {
            // Also if its containers ended well: that isn't why it ended.
            (new.reason, new.message) = (reason.clone(), String::from(*message));
        }
        if over {
            status_manager::terminate(&self.meta, &self.spec, &mut new);
        }
        add_restart_in_place(&mut new);
        new.qos_class = self.status.qos_class;
        new.observed_generation = self.observed_generation();
        self.add_resources(&mut new);
        if let Some(Cause::Node(verdict)) = self.ending.as_ref().map(|ending| &ending.cause)
            && let Some(disruption) = verdict.disruption
            && !self.status.phase.is_terminal()
        {
            new.conditions.retain(|condition| condition.kind != reasons::DISRUPTION_TARGET);
            new.conditions.push(self.disruption_target(disruption, verdict.message.clone()));
        }
        // As long as the pod isn't over, a container may still run (again), whatever the statuses look like (PHASE-08).
        let merged = status_manager::merge(&self.status, new, !over, out.now);
        let changed = merged != self.status;
        self.status = merged;
        changed
    }

    /// Why containers don't run that would. In a pod that ends none would.
    fn start_failures(&self) -> Vec<StartFailure> {
        if self.ending.is_some() {
            return Vec::new();
        }
        self.slots.iter().filter_map(|slot| self.start_failure(slot)).collect()
    }

    fn start_failure(&self, slot: &Slot) -> Option<StartFailure> {
        let (reason, message) = match (&slot.hold, slot.live()) {
            (Some(hold), _) => (hold.reason.clone(), hold.message.clone()),
            // It is not Running before its postStart hook is over (HOOK-01).
            (None, Some(live)) if live.post_start != HookRun::Over => {
                let plain = self.spec.init_containers.is_empty();
                let reason = if plain { reasons::CONTAINER_CREATING } else { reasons::POD_INITIALIZING };
                (Word::Borrowed(reason), String::new())
            }
            (None, _) => return None,
        };
        Some(StartFailure { container: String::from(&*slot.name), reason, message })
    }
}

/// The condition of a restart in place has two names: upstream's, and the one of its documents (RESTART-09).
fn add_restart_in_place(status: &mut PodStatus) {
    let conditions = &mut status.conditions;
    if let Some(upstreams) = conditions::find(conditions, reasons::ALL_CONTAINERS_RESTARTING).cloned() {
        conditions.push(Condition { kind: Word::Borrowed(reasons::POD_RESTART_IN_PLACE), ..upstreams });
    }
}
