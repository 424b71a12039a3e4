//! The pod's status, as it is to be published.

use alloc::string::String;
use alloc::vec::Vec;

use super::{Out, Pod};
use crate::api_status::{self, StartFailure, StatusInput};
use crate::io::Action;
use crate::status::Word;
use crate::status_manager;

impl Pod {
    /// Makes the status anew and publishes it if it changed.
    pub(super) fn report(&mut self, out: &mut Out<'_>) {
        let over = self.ending.is_some() && self.all_down();
        let failed_by_node = self.ending.and_then(|ending| ending.cause.status());
        let failed_by_node = failed_by_node.map(|(reason, message)| (Word::Borrowed(reason), message));
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
        if over {
            status_manager::terminate(&self.meta, &self.spec, &mut new);
        }
        let merged = status_manager::merge(&self.status, new, !self.all_down(), out.now);
        if merged != self.status {
            self.status = merged;
            out.order(Action::StatusChanged { pod: self.uid.clone() });
        }
    }

    fn start_failures(&self) -> Vec<StartFailure> {
        let held = self.slots.iter().filter_map(|slot| Some((slot, slot.hold.as_ref()?)));
        held.map(|(slot, hold)| StartFailure {
            container: String::from(&*slot.name),
            reason: hold.reason.clone(),
            message: hold.message.clone(),
        })
        .collect()
    }
}
