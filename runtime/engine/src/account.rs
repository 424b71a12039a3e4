//! Who holds how much memory: containers, pods with them, and the node with all of them (RES-04, RES-10, RES-12).

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use husk_core::memory::{Reservation, Throttle};

/// The guest asked for more memory than its container, its pod or all pods of the node together may have.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("memory limit of {whose}, {limit} bytes, crossed: {used} bytes in use, {asked} more asked for{}", self.kept_for_others())]
pub(crate) struct OutOfMemory {
    whose: Level,
    limit: u64,
    used: u64,
    /// What others are to have.
    kept: u64,
    asked: u64,
}

impl OutOfMemory {
    fn kept_for_others(&self) -> String {
        if self.kept == 0 { String::new() } else { format!(", {} kept for other pods", self.kept) }
    }
}

/// Whose limit: as with cgroups, what one has counts for all above it (RES-04, RES-12).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// All pods together.
    Node,
    /// A pod.
    Pod,
    /// A container.
    Container,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Node => "the node",
            Self::Pod => "the pod",
            Self::Container => "the container",
        })
    }
}

/// What those below hold together, and may hold.
#[derive(Debug)]
pub(crate) struct Account {
    level: Level,
    above: Option<Arc<Account>>,
    held: Mutex<Held>,
}

#[derive(Debug)]
struct Held {
    limit: u64,
    used: u64,
    peak: u64,
    refused: u64,
    /// Of a container: what slows its growth.
    throttle: Option<Throttle>,
    /// Of a pod: what is kept for it, whether it holds it already or not. Of the node: what is kept for pods that don't hold it yet.
    kept: Reservation,
}

impl Held {
    /// What is kept for a pod that doesn't hold it yet.
    fn left_of_kept(&self) -> Reservation {
        self.kept.without(Reservation { hard: self.used, soft: self.used })
    }
}

/// What is held of memory, as a cgroup has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// Bytes in use (`memory.current`).
    pub used: u64,
    /// The most that ever was (`memory.peak`).
    pub peak: u64,
    /// Bytes that may be used; none without a limit (`memory.max`).
    pub limit: Option<u64>,
    /// How often more was asked for (`max` in `memory.events`).
    pub refused: u64,
}

/// A limit can't be lowered to less than what is in use: nothing can be taken from a guest that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the memory limit can't be lowered to {limit} bytes: {used} are in use")]
pub struct InUse {
    /// Bytes that it was to be.
    pub limit: u64,
    /// Bytes that instances hold.
    pub used: u64,
}

impl Drop for Account {
    fn drop(&mut self) {
        self.keep(Reservation::default());
    }
}

impl Account {
    /// Of the node, above all others.
    pub(crate) fn of_node(limit: Option<u64>) -> Self {
        Self::of(Level::Node, None, limit)
    }

    /// Of a pod.
    pub(crate) fn of_pod(node: Arc<Self>, limit: Option<u64>) -> Self {
        Self::of(Level::Pod, Some(node), limit)
    }

    /// Of a container.
    pub(crate) fn of_container(pod: Arc<Self>, limit: Option<u64>) -> Self {
        Self::of(Level::Container, Some(pod), limit)
    }

    pub(crate) fn of(level: Level, above: Option<Arc<Self>>, limit: Option<u64>) -> Self {
        let limit = limit.unwrap_or(u64::MAX);
        let held = Held { limit, used: 0, peak: 0, refused: 0, throttle: None, kept: Reservation::default() };
        Self { level, above, held: Mutex::new(held) }
    }

    /// Another limit from now on. If more is in use, what is there stays and nobody gets any more.
    pub(crate) fn set_limit(&self, limit: Option<u64>) {
        self.held().limit = limit.unwrap_or(u64::MAX);
    }

    /// Another limit from now on, unless more is in use (RES-11).
    pub(crate) fn change_limit(&self, limit: Option<u64>) -> Result<(), InUse> {
        let (limit, mut held) = (limit.unwrap_or(u64::MAX), self.held());
        if held.used > limit {
            return Err(InUse { limit, used: held.used });
        }
        held.limit = limit;
        Ok(())
    }

    /// A container grows slowly from now on where this says so.
    pub(crate) fn set_throttle(&self, throttle: Option<Throttle>) {
        self.held().throttle = throttle;
    }

    /// So much is kept for a pod from now on (`memory.min`, `memory.low`).
    pub(crate) fn keep(&self, kept: Reservation) {
        let mut held = self.held();
        let before = held.left_of_kept();
        held.kept = kept;
        self.tell_node(before, held.left_of_kept());
    }

    /// What is in use, and was.
    pub(crate) fn usage(&self) -> MemoryUse {
        let Held { limit, used, peak, refused, .. } = *self.held();
        MemoryUse { used, peak, limit: (limit < u64::MAX).then_some(limit), refused }
    }

    pub(crate) fn has_room(&self, asked: u64) -> bool {
        let held = self.held();
        let has_room = held.used.saturating_add(asked) <= held.limit;
        drop(held);
        has_room && self.above.as_ref().is_none_or(|above| above.has_room(asked))
    }

    /// Counts what a container asks for, for all above it as well. Upwards only, so that nobody waits for one who waits for him.
    pub(crate) fn take(&self, asked: u64) -> Result<(), OutOfMemory> {
        self.take_for(asked, Reservation::default(), Reservation::default())
    }

    /// The same for one below, for whom so much was kept before and so much is still to be kept then.
    fn take_for(&self, asked: u64, before: Reservation, after: Reservation) -> Result<(), OutOfMemory> {
        let mut held = self.held();
        let Held { limit, used, .. } = *held;
        let total = used.saturating_add(asked);
        let others = match self.level {
            Level::Node => held.kept.without(before),
            Level::Pod | Level::Container => Reservation::default(),
        };
        // What is kept softly is for whoever has a claim on what he asks for.
        let has_claim = before.hard + before.soft >= asked;
        let kept = others.hard + if has_claim { 0 } else { others.soft };
        if total.saturating_add(kept) > limit {
            held.refused += 1;
            return Err(OutOfMemory { whose: self.level, limit, used, kept, asked });
        }
        match &self.above {
            Some(above) => {
                above.take_for(asked, held.left_of_kept(), Held { used: total, ..*held }.left_of_kept())?;
            }
            None => held.kept = others.and(after),
        }
        held.used = total;
        held.peak = held.peak.max(total);
        Ok(())
    }

    pub(crate) fn give_back(&self, bytes: u64) {
        let mut held = self.held();
        let before = held.left_of_kept();
        held.used -= bytes;
        self.tell_node(before, held.left_of_kept());
        if let Some(above) = &self.above {
            above.give_back(bytes);
        }
    }

    /// How long the container waits that has grown by so much.
    pub(crate) fn delay_of(&self, grown: u64) -> Duration {
        let held = self.held();
        held.throttle.map_or(Duration::ZERO, |throttle| throttle.delay(held.used, grown))
    }

    /// What is kept for a pod is another amount than before.
    fn tell_node(&self, before: Reservation, after: Reservation) {
        if let (Level::Pod, Some(node)) = (self.level, &self.above) {
            let mut node = node.held();
            node.kept = node.kept.without(before).and(after);
        }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: Reservation = Reservation { hard: 0, soft: 0 };

    // spec: RES-10
    #[test]
    fn what_is_kept_for_a_pod_is_there_when_it_wants_it() {
        let node = Arc::new(Account::of_node(Some(100)));
        let pod = |kept: Reservation| {
            let pod = Arc::new(Account::of_pod(node.clone(), None));
            pod.keep(kept);
            (Account::of_container(pod.clone(), None), pod)
        };
        let (guaranteed, _) = pod(Reservation { hard: 40, soft: 0 });
        let (burstable, own) = pod(Reservation { hard: 0, soft: 20 });
        let (best_effort, _) = pod(NOTHING);
        assert!(best_effort.take(40).is_ok());
        let refused = best_effort.take(1).expect_err("60 are kept for others").to_string();
        let words =
            "memory limit of the node, 100 bytes, crossed: 40 bytes in use, 1 more asked for, 60 kept for other pods";
        assert_eq!(refused, words);
        assert!(burstable.take(20).is_ok(), "it is its own");
        assert!(burstable.take(1).is_err(), "more is not");
        assert!(guaranteed.take(40).is_ok());
        assert_eq!(node.usage().used, 100);
        // What is given back is kept again, for as long as the pod is there.
        burstable.give_back(20);
        assert!(best_effort.take(1).is_err());
        drop((burstable, own));
        assert!(best_effort.take(20).is_ok());
    }

    // spec: RES-10
    #[test]
    fn what_is_kept_softly_yields_to_who_has_a_claim_and_what_is_kept_hard_to_nobody() {
        let node = Arc::new(Account::of_node(Some(100)));
        let pod = |kept: Reservation| {
            let pod = Arc::new(Account::of_pod(node.clone(), None));
            pod.keep(kept);
            Account::of_container(pod, None)
        };
        let first = pod(Reservation { hard: 0, soft: 60 });
        // More than there is was promised, as when a node has less memory than it had.
        let second = pod(Reservation { hard: 70, soft: 0 });
        assert!(first.take(31).is_err(), "hard");
        assert!(first.take(30).is_ok());
        assert!(second.take(70).is_ok(), "soft");
        assert_eq!(node.usage().used, 100);
    }
}
