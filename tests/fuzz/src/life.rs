//! What happens in the life of a node that a fuzzer draws.

use arbitrary::{Arbitrary, Unstructured};

use crate::shape::{Change, PodShape};

/// Longer lives show nothing that shorter ones don't.
const MOST_OPERATIONS: usize = 500;

/// A life.
#[derive(Clone, Debug)]
pub struct Life {
    /// Updates are any specs, also those that validation would refuse: nothing is expected but that the node bears it.
    pub(crate) wild: bool,
    /// `terminated-pod-gc-threshold` is small.
    pub(crate) collects: bool,
    pub(crate) operations: Vec<Operation>,
}

impl<'a> Arbitrary<'a> for Life {
    /// As many operations as there are bytes for: a derived one would end each list after one or two.
    fn arbitrary(drawn: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        let (wild, collects) = (drawn.ratio(1, 8)?, drawn.ratio(1, 4)?);
        let mut operations = Vec::new();
        while !drawn.is_empty() && operations.len() < MOST_OPERATIONS {
            operations.push(Operation::arbitrary(drawn)?);
        }
        Ok(Self { wild, collects, operations })
    }
}

/// Something that happens. Numbers choose among what there is at that moment.
#[derive(Clone, Debug, Arbitrary)]
pub(crate) enum Operation {
    /// A pod is created; if there is one already it is updated, or (`again`) another one with its name comes.
    Apply {
        pod: u8,
        again: bool,
        shape: PodShape,
    },
    /// A pod is changed.
    Update {
        pod: u8,
        change: Change,
    },
    /// An order is answered, well or badly.
    Answer {
        order: u8,
        well: bool,
    },
    /// All open orders are answered, and those that follow.
    AnswerAll,
    /// An order is answered as if it were of another attempt.
    Stale {
        order: u8,
        attempt: u8,
    },
    /// An instance ends by itself.
    Exit {
        instance: u8,
        code: u8,
    },
    /// It traps for want of memory.
    OutOfMemory {
        instance: u8,
    },
    /// Time passes, but not beyond the next wake-up.
    Wait {
        millis: u16,
    },
    /// Time passes to the next wake-up.
    Wake,
    /// Time passes, whatever is due.
    Jump {
        seconds: u16,
    },
    Delete {
        pod: u8,
        grace: Option<u8>,
    },
    Evict {
        pod: u8,
        why: u8,
        grace: Option<u8>,
    },
    LimitExceeded {
        pod: u8,
    },
    Condition {
        pod: u8,
        gate: bool,
        holds: bool,
    },
    NodeChanged(NodeShape),
    Pressure {
        resource: u8,
        lasts: bool,
        grace: u8,
        known: u8,
    },
    Shutdown {
        grace: u8,
        critical: u8,
    },
    Group {
        gang: Option<u8>,
        composite: bool,
        parent: bool,
    },
    GroupGone {
        composite: bool,
    },
    /// The agent ends, or the board, and goes on from what was persisted.
    Interrupt {
        reboot: bool,
    },
    /// Another node takes over; from now on it has to do what the first one does.
    HandOver,
}

/// What a node has and is.
#[derive(Clone, Copy, Debug, Arbitrary)]
pub(crate) struct NodeShape {
    pub(crate) limited: bool,
    pub(crate) cpu: u8,
    pub(crate) pods: u8,
    pub(crate) taint: Option<bool>,
    pub(crate) cordoned: bool,
    pub(crate) zone: bool,
}
