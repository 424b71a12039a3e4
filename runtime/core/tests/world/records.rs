//! Worlds that go on from records.

use std::time::Duration;

use husk_core::io::{Input, InstanceRef, Outcome};
use husk_core::node::{Node, NodeConfig};
use husk_core::record::{Interruption, PodRecord};

use super::{Script, World};

impl World {
    /// A world whose pod goes on from a record, as of the moment when that was made.
    pub(crate) fn from_record(bytes: &[u8], after: Interruption, scripts: &[(&str, Script)]) -> Self {
        let record = Box::new(PodRecord::from_bytes(bytes).expect("a record"));
        let mut world = Self::empty(NodeConfig::default(), scripts);
        (world.uid, world.now) = (record.uid().clone(), record.saved_at());
        world.applied.push(world.uid.clone());
        world.stored.insert(world.uid.clone(), bytes.to_vec());
        match after {
            Interruption::Handover => world.input(Input::Restored { record, after }),
            Interruption::AgentRestart | Interruption::Reboot => world.interrupt(after, 0.0),
        }
        world
    }

    /// That instance of the pod runs, as a world knows that took over its pod from a record.
    pub(crate) fn runs(&mut self, container: &str, attempt: u32) -> InstanceRef {
        let instance = InstanceRef { pod: self.uid.clone(), container: container.into(), attempt };
        self.running.insert(instance.clone(), self.now);
        instance
    }

    /// It ends by itself so many seconds from now.
    pub(crate) fn will_end(&mut self, instance: InstanceRef, after: u64, outcome: Outcome) {
        self.answer(Duration::from_secs(after), Input::Exited { instance, outcome, message: String::new() });
    }

    /// A new node, with every pod as its record says: as it is now, or, if nobody could ask any more, as it was persisted.
    pub(super) fn restored(&self, after: Interruption) -> Node {
        let now = || self.applied.iter().filter_map(|uid| Some(self.node.record(uid)?.to_bytes()));
        let bytes: Vec<_> = match after {
            Interruption::Handover => now().collect(),
            Interruption::AgentRestart | Interruption::Reboot => self.stored.values().cloned().collect(),
        };
        let records = bytes.iter().map(|bytes| PodRecord::from_bytes(bytes).expect("a valid record"));
        let mut records: Vec<_> = records.collect();
        records.sort_by_key(PodRecord::accepted);
        let mut node = Node::new(self.config.clone());
        for input in &self.about_node {
            node.handle(self.now, input.clone());
        }
        for record in records.into_iter().map(Box::new) {
            node.handle(self.now, Input::Restored { record, after });
        }
        node
    }

    /// The agent ends, or the board, and comes back after so many seconds.
    pub(crate) fn interrupt(&mut self, after: Interruption, seconds: f64) {
        self.now = self.now + Duration::from_secs_f64(seconds);
        self.due.clear();
        self.running.clear();
        // Of pods of which something is left it is told again that they are gone.
        self.gone.retain(|pod| !self.stored.contains_key(pod));
        let mut again = self.restored(after);
        self.node = self.restored(after);
        self.carry_out(Some(&mut again));
        self.check_at_rest(self.now);
    }
}
