//! What one instance may grow to.

use std::sync::Arc;

use async_trait::async_trait;
use wasmtime::ResourceLimiterAsync;

use crate::account::Account;

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
    async fn grow(&mut self, bytes: u64) -> wasmtime::Result<bool> {
        // An error ends the guest here and now, where `Ok(false)` would make `memory.grow` answer -1: on Linux, too, the limit
        // doesn't make malloc fail, it gets the process killed.
        self.account.take(bytes).map_err(wasmtime::Error::from)?;
        self.held += bytes;
        let delay = self.account.delay_of(bytes);
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        Ok(true)
    }
}

#[async_trait]
impl ResourceLimiterAsync for Meter {
    async fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        if maximum.is_some_and(|maximum| desired > maximum) {
            return Ok(false);
        }
        let asked = desired.saturating_sub(current) as u64;
        if desired as u64 > MAX_MEMORY && self.account.has_room(asked) {
            return Ok(false);
        }
        self.grow(asked).await
    }

    async fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        if desired > maximum.unwrap_or(MAX_ELEMENTS).min(MAX_ELEMENTS) {
            return Ok(false);
        }
        self.grow((desired.saturating_sub(current) as u64).saturating_mul(TABLE_ELEMENT)).await
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
    use std::time::Duration;

    use husk_core::memory::Throttle;

    use super::*;
    use crate::account::{InUse, Level, MemoryUse};

    fn limited(limit: Option<u64>) -> Account {
        Account::of(Level::Container, None, limit)
    }

    #[tokio::test]
    async fn instances_share_an_account_and_give_back_what_they_held() {
        let account = Arc::new(limited(Some(100)));
        let mut first = Meter::new(account.clone());
        let mut second = Meter::new(account.clone());
        assert!(first.memory_growing(0, 60, None).await.is_ok());
        assert!(second.memory_growing(0, 41, None).await.is_err());
        assert!(second.memory_growing(0, 40, None).await.is_ok());
        drop(first);
        assert_eq!(account.usage(), MemoryUse { used: 40, peak: 100, limit: Some(100), refused: 1 });
        assert!(second.memory_growing(40, 100, None).await.is_ok());
    }

    // spec: RES-12
    #[tokio::test]
    async fn what_a_container_has_counts_for_its_pod_and_for_the_node() {
        let node = Arc::new(Account::of_node(Some(200)));
        let pod = Arc::new(Account::of_pod(node.clone(), Some(100)));
        let [first, second] = [Some(80), None].map(|limit| Arc::new(Account::of_container(pod.clone(), limit)));
        let other = Arc::new(Account::of_container(Arc::new(Account::of_pod(node.clone(), None)), None));
        let (mut a, mut b, mut c) = (Meter::new(first.clone()), Meter::new(second.clone()), Meter::new(other.clone()));
        assert!(a.memory_growing(0, 70, None).await.is_ok());
        let refused = b.memory_growing(0, 31, None).await.expect_err("the pod has 30 left").to_string();
        assert_eq!(refused, "memory limit of the pod, 100 bytes, crossed: 70 bytes in use, 31 more asked for");
        assert_eq!((second.usage().used, pod.usage().used, pod.usage().refused), (0, 70, 1));
        let refused = c.memory_growing(0, 131, None).await.expect_err("the node has 130 left").to_string();
        assert!(refused.contains("of the node, 200 bytes"), "{refused}");
        assert_eq!(other.usage().used, 0);
        assert!(c.memory_growing(0, 130, None).await.is_ok());
        assert!(b.memory_growing(0, 1, None).await.is_err(), "nothing is left");
        drop(a);
        assert!(b.memory_growing(0, 30, None).await.is_ok());
        pod.set_limit(Some(10));
        assert!(b.memory_growing(30, 31, None).await.is_err(), "what it has stays, and is all");
        drop((b, c));
        assert_eq!((pod.usage().used, node.usage().used, node.usage().peak), (0, 0, 200));
    }

    // spec: RES-11
    #[tokio::test]
    async fn a_limit_changes_in_place_but_takes_nothing_away() {
        let account = Arc::new(limited(Some(100)));
        let mut meter = Meter::new(account.clone());
        assert!(meter.memory_growing(0, 80, None).await.is_ok());
        assert_eq!(account.change_limit(Some(79)), Err(InUse { limit: 79, used: 80 }));
        assert!(meter.memory_growing(80, 100, None).await.is_ok(), "it is what it was");
        account.change_limit(Some(120)).expect("more");
        assert!(meter.memory_growing(100, 121, None).await.is_err());
        assert!(meter.memory_growing(100, 120, None).await.is_ok());
        account.change_limit(None).expect("no limit");
        assert!(meter.memory_growing(120, 1000, None).await.is_ok());
        account.change_limit(Some(1000)).expect("as much as there is");
    }

    // spec: RES-10
    #[tokio::test(start_paused = true)]
    async fn growth_is_slowed_and_not_refused() {
        let account = Arc::new(limited(Some(100 << 20)));
        account.set_throttle(Some(Throttle { above: 60 << 20, limit: 100 << 20 }));
        let mut meter = Meter::new(account);
        let begun = tokio::time::Instant::now();
        assert!(meter.memory_growing(0, 60 << 20, None).await.is_ok());
        assert_eq!(begun.elapsed(), Duration::ZERO);
        assert!(meter.memory_growing(60 << 20, 80 << 20, None).await.is_ok());
        assert_eq!(begun.elapsed(), Duration::from_millis(500));
        assert!(meter.memory_growing(80 << 20, 100 << 20, None).await.is_ok());
        assert_eq!(begun.elapsed(), Duration::from_millis(2500));
        assert!(meter.memory_growing(100 << 20, 101 << 20, None).await.is_err());
    }

    #[tokio::test]
    async fn a_failure_that_was_not_asked_for_gives_nothing_back() {
        let account = Arc::new(limited(Some(100)));
        let mut meter = Meter::new(account.clone());
        assert!(meter.memory_growing(0, 60, None).await.expect("within the limit"));
        meter.table_grow_failed(wasmtime::Error::msg("overflow")).expect("goes on");
        meter.memory_grow_failed(wasmtime::Error::msg("overflow")).expect("goes on");
        assert_eq!(account.usage().used, 60);
        assert!(meter.memory_growing(60, 120, None).await.is_err());
    }

    #[tokio::test]
    async fn what_no_memory_may_have_is_refused_without_a_limit_and_crosses_any_limit() {
        let account = Arc::new(limited(None));
        for bytes in [usize::MAX, MAX_MEMORY as usize + 1] {
            assert!(!Meter::new(account.clone()).memory_growing(0, bytes, None).await.expect("refused, not an error"));
        }
        assert!(Meter::new(account.clone()).memory_growing(0, MAX_MEMORY as usize, None).await.expect("no error"));
        assert_eq!(account.usage().used, 0);
        let mut meter = Meter::new(Arc::new(limited(Some(100))));
        assert!(meter.memory_growing(0, usize::MAX, None).await.is_err());
    }

    #[tokio::test]
    async fn a_table_has_so_many_elements_and_no_more() {
        let account = Arc::new(limited(None));
        let mut meter = Meter::new(account.clone());
        assert!(meter.table_growing(0, MAX_ELEMENTS, None).await.expect("no error"));
        assert!(!meter.table_growing(MAX_ELEMENTS, MAX_ELEMENTS + 1, None).await.expect("refused, not an error"));
        assert!(!meter.table_growing(0, MAX_ELEMENTS + 1, Some(usize::MAX)).await.expect("refused, not an error"));
        assert_eq!(account.usage().used, MAX_ELEMENTS as u64 * TABLE_ELEMENT);
    }

    #[tokio::test]
    async fn growth_beyond_the_memorys_own_maximum_is_no_crossing_of_the_limit() {
        let account = Arc::new(limited(Some(100)));
        let mut meter = Meter::new(account.clone());
        assert!(!meter.memory_growing(0, 200, Some(150)).await.expect("refused, not an error"));
        assert_eq!(account.usage().used, 0);
    }
}
