//! Another node that takes over by records, and has to order the same from then on.

use husk_core::io::PodUid;
use husk_core::record::{Interruption, PodRecord};
use husk_core::{Action, Input, Instant, Node, NodeConfig};

use crate::broken::{Broken, rule};
use crate::referee::check_record;

/// A node made from the records of another.
pub(super) struct Heir {
    node: Node,
}

impl Heir {
    /// Takes over at this instant.
    pub(super) fn of<'a>(
        node: &Node,
        now: Instant,
        config: &NodeConfig,
        pods: impl Iterator<Item = &'a PodUid>,
        circumstances: impl Iterator<Item = Input>,
    ) -> Result<Self, Broken> {
        let mut records = Vec::new();
        for record in pods.filter_map(|uid| node.record(uid)) {
            let bytes = record.to_bytes();
            check_record(now, &record, &bytes)?;
            records.extend(PodRecord::from_bytes(&bytes));
        }
        records.sort_by_key(PodRecord::accepted);
        let mut heir = Self { node: Node::new(config.clone()) };
        // What the node has is known before anybody could get a place that isn't his.
        for input in circumstances {
            heir.node.handle(now, input);
        }
        for record in records {
            heir.node.handle(now, Input::Restored { record: Box::new(record), after: Interruption::Handover });
        }
        let order = heir.node.poll_action();
        rule!(order.is_none(), now, "who takes over has nothing to do", "it orders {order:?}");
        let (own, heirs) = (node.next_wake(), heir.node.next_wake());
        rule!(own == heirs, now, "who takes over wakes at the same time", "{own:?}, the heir {heirs:?}");
        Ok(heir)
    }

    /// It is told the same.
    pub(super) fn tell(&mut self, now: Instant, input: Option<Input>) {
        match input {
            Some(input) => self.node.handle(now, input),
            None => self.node.advance(now),
        }
    }

    /// It has to order the same.
    pub(super) fn check(&mut self, now: Instant, action: Option<&Action>, node: &Node) -> Result<(), Broken> {
        let own = self.node.poll_action();
        rule!(own.as_ref() == action, now, "who takes over orders the same", "{action:?}, the heir {own:?}");
        if let Some(Action::StatusChanged { pod }) = action {
            let (status, heirs) = (node.status(pod), self.node.status(pod));
            rule!(status == heirs, now, "who takes over shows the same", "{status:?}, the heir {heirs:?}");
        }
        Ok(())
    }

    /// And it has to want to be woken at the same time.
    pub(super) fn check_wake(&self, now: Instant, node: &Node) -> Result<(), Broken> {
        let (wake, heirs) = (node.next_wake(), self.node.next_wake());
        rule!(wake == heirs, now, "who takes over wakes at the same time", "{wake:?}, the heir {heirs:?}");
        Ok(())
    }
}
