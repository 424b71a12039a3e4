//! Memory of a container, counted over all its instances, and with others' for its pod and for the node.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wasmtime::ResourceLimiter;

/// Bytes that one element of a table takes.
const TABLE_ELEMENT: u64 = size_of::<usize>() as u64;

/// Bytes that one memory may have, whatever its container may have. One that outgrows what is reserved for it is copied, which nobody
/// can be asked in.
const MAX_MEMORY: u64 = 4 << 30;

/// Linear memories that one guest may create. Each reserves 4 GiB of address space, and toolchains make one per module.
const MAX_MEMORIES: usize = 16;

/// Elements that one table may have, of which toolchains make one per function at most. A table grows by one instruction, which nobody can
/// be asked in.
const MAX_ELEMENTS: usize = 1 << 20;

/// Instances, and tables, that one guest may create: more than toolchains make, few enough to bound the node.
const MAX_PARTS: usize = 256;

/// The guest asked for more memory than its container, its pod or all pods of the node together may have.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("memory limit of {whose}, {limit} bytes, crossed: {used} bytes in use, {asked} more asked for")]
pub(crate) struct OutOfMemory {
    whose: Level,
    limit: u64,
    used: u64,
    asked: u64,
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

    fn of(level: Level, above: Option<Arc<Self>>, limit: Option<u64>) -> Self {
        let held = Held { limit: limit.unwrap_or(u64::MAX), used: 0, peak: 0, refused: 0 };
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

    /// What is in use, and was.
    pub(crate) fn usage(&self) -> MemoryUse {
        let Held { limit, used, peak, refused } = *self.held();
        MemoryUse { used, peak, limit: (limit < u64::MAX).then_some(limit), refused }
    }

    fn has_room(&self, asked: u64) -> bool {
        let held = self.held();
        let has_room = held.used.saturating_add(asked) <= held.limit;
        drop(held);
        has_room && self.above.as_ref().is_none_or(|above| above.has_room(asked))
    }

    fn take(&self, asked: u64) -> Result<(), OutOfMemory> {
        let mut held = self.held();
        let Held { limit, used, .. } = *held;
        let Some(total) = used.checked_add(asked).filter(|total| *total <= limit) else {
            held.refused += 1;
            return Err(OutOfMemory { whose: self.level, limit, used, asked });
        };
        if let Some(above) = &self.above {
            // Upwards only, so that nobody waits for one who waits for him.
            above.take(asked)?;
        }
        held.used = total;
        held.peak = held.peak.max(total);
        Ok(())
    }

    fn give_back(&self, bytes: u64) {
        self.held().used -= bytes;
        if let Some(above) = &self.above {
            above.give_back(bytes);
        }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One instance's part of its container's account; gives everything back when the instance is gone.
#[derive(Debug)]
pub(crate) struct Meter {
    account: Arc<Account>,
    held: u64,
}

impl Meter {
    pub(crate) fn new(account: Arc<Account>) -> Self {
        Self { account, held: 0 }
    }

    /// Counts what is asked for. It stays counted if the growth fails after that: wasmtime reports failures that weren't asked
    /// here as well, so to give back on a report is to give back what the guest still has.
    fn grow(&mut self, bytes: u64) -> wasmtime::Result<bool> {
        // An error ends the guest here and now, where `Ok(false)` would make `memory.grow` answer -1: on Linux, too, the limit
        // doesn't make malloc fail, it gets the process killed.
        self.account.take(bytes).map_err(wasmtime::Error::from)?;
        self.held += bytes;
        Ok(true)
    }
}

impl ResourceLimiter for Meter {
    fn memory_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        if maximum.is_some_and(|maximum| desired > maximum) {
            return Ok(false);
        }
        let asked = desired.saturating_sub(current) as u64;
        if desired as u64 > MAX_MEMORY && self.account.has_room(asked) {
            return Ok(false);
        }
        self.grow(asked)
    }

    fn table_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        if desired > maximum.unwrap_or(MAX_ELEMENTS).min(MAX_ELEMENTS) {
            return Ok(false);
        }
        self.grow((desired.saturating_sub(current) as u64).saturating_mul(TABLE_ELEMENT))
    }

    fn instances(&self) -> usize {
        MAX_PARTS
    }

    fn tables(&self) -> usize {
        MAX_PARTS
    }

    fn memories(&self) -> usize {
        MAX_MEMORIES
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.account.give_back(self.held);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limited(limit: Option<u64>) -> Account {
        Account::of(Level::Container, None, limit)
    }

    #[test]
    fn instances_share_an_account_and_give_back_what_they_held() {
        let account = Arc::new(limited(Some(100)));
        let mut first = Meter::new(account.clone());
        let mut second = Meter::new(account.clone());
        assert!(first.memory_growing(0, 60, None).is_ok());
        assert!(second.memory_growing(0, 41, None).is_err());
        assert!(second.memory_growing(0, 40, None).is_ok());
        drop(first);
        assert_eq!(account.usage(), MemoryUse { used: 40, peak: 100, limit: Some(100), refused: 1 });
        assert!(second.memory_growing(40, 100, None).is_ok());
    }

    // spec: RES-12
    #[test]
    fn what_a_container_has_counts_for_its_pod_and_for_the_node() {
        let node = Arc::new(Account::of_node(Some(200)));
        let pod = Arc::new(Account::of_pod(node.clone(), Some(100)));
        let [first, second] = [Some(80), None].map(|limit| Arc::new(Account::of_container(pod.clone(), limit)));
        let other = Arc::new(Account::of_container(Arc::new(Account::of_pod(node.clone(), None)), None));
        let (mut a, mut b, mut c) = (Meter::new(first.clone()), Meter::new(second.clone()), Meter::new(other.clone()));
        assert!(a.memory_growing(0, 70, None).is_ok());
        let refused = b.memory_growing(0, 31, None).expect_err("the pod has 30 left").to_string();
        assert_eq!(refused, "memory limit of the pod, 100 bytes, crossed: 70 bytes in use, 31 more asked for");
        assert_eq!((second.usage().used, pod.usage().used, pod.usage().refused), (0, 70, 1));
        let refused = c.memory_growing(0, 131, None).expect_err("the node has 130 left").to_string();
        assert!(refused.contains("of the node, 200 bytes"), "{refused}");
        assert_eq!(other.usage().used, 0);
        assert!(c.memory_growing(0, 130, None).is_ok());
        assert!(b.memory_growing(0, 1, None).is_err(), "nothing is left");
        drop(a);
        assert!(b.memory_growing(0, 30, None).is_ok());
        pod.set_limit(Some(10));
        assert!(b.memory_growing(30, 31, None).is_err(), "what it has stays, and is all");
        drop((b, c));
        assert_eq!((pod.usage().used, node.usage().used, node.usage().peak), (0, 0, 200));
    }

    // spec: RES-11
    #[test]
    fn a_limit_changes_in_place_but_takes_nothing_away() {
        let account = Arc::new(limited(Some(100)));
        let mut meter = Meter::new(account.clone());
        assert!(meter.memory_growing(0, 80, None).is_ok());
        assert_eq!(account.change_limit(Some(79)), Err(InUse { limit: 79, used: 80 }));
        assert!(meter.memory_growing(80, 100, None).is_ok(), "it is what it was");
        account.change_limit(Some(120)).expect("more");
        assert!(meter.memory_growing(100, 121, None).is_err());
        assert!(meter.memory_growing(100, 120, None).is_ok());
        account.change_limit(None).expect("no limit");
        assert!(meter.memory_growing(120, 1000, None).is_ok());
        account.change_limit(Some(1000)).expect("as much as there is");
    }

    #[test]
    fn a_failure_that_was_not_asked_for_gives_nothing_back() {
        let account = Arc::new(limited(Some(100)));
        let mut meter = Meter::new(account.clone());
        assert!(meter.memory_growing(0, 60, None).expect("within the limit"));
        meter.table_grow_failed(wasmtime::Error::msg("overflow")).expect("goes on");
        meter.memory_grow_failed(wasmtime::Error::msg("overflow")).expect("goes on");
        assert_eq!(account.usage().used, 60);
        assert!(meter.memory_growing(60, 120, None).is_err());
    }

    #[test]
    fn what_no_memory_may_have_is_refused_without_a_limit_and_crosses_any_limit() {
        let account = Arc::new(limited(None));
        for bytes in [usize::MAX, MAX_MEMORY as usize + 1] {
            assert!(!Meter::new(account.clone()).memory_growing(0, bytes, None).expect("refused, not an error"));
        }
        assert!(Meter::new(account.clone()).memory_growing(0, MAX_MEMORY as usize, None).expect("no error"));
        assert_eq!(account.usage().used, 0);
        let mut meter = Meter::new(Arc::new(limited(Some(100))));
        assert!(meter.memory_growing(0, usize::MAX, None).is_err());
    }

    #[test]
    fn a_table_has_so_many_elements_and_no_more() {
        let account = Arc::new(limited(None));
        let mut meter = Meter::new(account.clone());
        assert!(meter.table_growing(0, MAX_ELEMENTS, None).expect("no error"));
        assert!(!meter.table_growing(MAX_ELEMENTS, MAX_ELEMENTS + 1, None).expect("refused, not an error"));
        assert!(!meter.table_growing(0, MAX_ELEMENTS + 1, Some(usize::MAX)).expect("refused, not an error"));
        assert_eq!(account.usage().used, MAX_ELEMENTS as u64 * TABLE_ELEMENT);
    }

    #[test]
    fn growth_beyond_the_memorys_own_maximum_is_no_crossing_of_the_limit() {
        let account = Arc::new(limited(Some(100)));
        let mut meter = Meter::new(account.clone());
        assert!(!meter.memory_growing(0, 200, Some(150)).expect("refused, not an error"));
        assert_eq!(account.usage().used, 0);
    }
}
