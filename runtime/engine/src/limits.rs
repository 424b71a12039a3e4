//! Memory of a container, counted over all its instances.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use wasmtime::ResourceLimiter;

/// Bytes that one element of a table takes.
const TABLE_ELEMENT: u64 = size_of::<usize>() as u64;

/// Instances, memories and tables that one guest may create: far more than toolchains make, few enough to bound the node.
const MAX_PARTS: usize = 1000;

/// The guest asked for more memory than its container may have.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("memory limit of {limit} bytes crossed: {used} bytes in use, {asked} more asked for")]
pub(crate) struct OutOfMemory {
    limit: u64,
    used: u64,
    asked: u64,
}

/// What the instances of one container hold together.
#[derive(Debug)]
pub(crate) struct Account {
    limit: u64,
    used: AtomicU64,
}

impl Account {
    pub(crate) fn new(limit: Option<u64>) -> Self {
        Self { limit: limit.unwrap_or(u64::MAX), used: AtomicU64::new(0) }
    }

    /// Bytes in use.
    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    fn take(&self, asked: u64) -> Result<(), OutOfMemory> {
        self.used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
                used.checked_add(asked).filter(|total| *total <= self.limit)
            })
            .map(drop)
            .map_err(|used| OutOfMemory { limit: self.limit, used, asked })
    }

    fn give_back(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// One instance's part of its container's account; gives everything back when the instance is gone.
#[derive(Debug)]
pub(crate) struct Meter {
    account: Arc<Account>,
    held: u64,
    last: u64,
}

impl Meter {
    pub(crate) fn new(account: Arc<Account>) -> Self {
        Self { account, held: 0, last: 0 }
    }

    fn grow(&mut self, bytes: u64) -> wasmtime::Result<bool> {
        // An error ends the guest here and now, where `Ok(false)` would make `memory.grow` answer -1: on Linux, too, the limit
        // doesn't make malloc fail, it gets the process killed.
        self.account.take(bytes).map_err(wasmtime::Error::from)?;
        self.held += bytes;
        self.last = bytes;
        Ok(true)
    }

    fn undo(&mut self) {
        self.account.give_back(self.last);
        self.held -= self.last;
        self.last = 0;
    }
}

impl ResourceLimiter for Meter {
    fn memory_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        if maximum.is_some_and(|maximum| desired > maximum) {
            return Ok(false);
        }
        self.grow(desired.saturating_sub(current) as u64)
    }

    fn memory_grow_failed(&mut self, error: wasmtime::Error) -> wasmtime::Result<()> {
        tracing::debug!("memory could not grow: {error:#}");
        self.undo();
        Ok(())
    }

    fn table_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        if maximum.is_some_and(|maximum| desired > maximum) {
            return Ok(false);
        }
        self.grow((desired.saturating_sub(current) as u64).saturating_mul(TABLE_ELEMENT))
    }

    fn table_grow_failed(&mut self, error: wasmtime::Error) -> wasmtime::Result<()> {
        tracing::debug!("table could not grow: {error:#}");
        self.undo();
        Ok(())
    }

    fn instances(&self) -> usize {
        MAX_PARTS
    }

    fn tables(&self) -> usize {
        MAX_PARTS
    }

    fn memories(&self) -> usize {
        MAX_PARTS
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

    #[test]
    fn instances_share_an_account_and_give_back_what_they_held() {
        let account = Arc::new(Account::new(Some(100)));
        let mut first = Meter::new(account.clone());
        let mut second = Meter::new(account.clone());
        assert!(first.memory_growing(0, 60, None).is_ok());
        assert!(second.memory_growing(0, 41, None).is_err());
        assert!(second.memory_growing(0, 40, None).is_ok());
        drop(first);
        assert_eq!(account.used(), 40);
        assert!(second.memory_growing(40, 100, None).is_ok());
    }

    #[test]
    fn growth_beyond_the_memorys_own_maximum_is_no_crossing_of_the_limit() {
        let account = Arc::new(Account::new(Some(100)));
        let mut meter = Meter::new(account.clone());
        assert!(!meter.memory_growing(0, 200, Some(150)).expect("refused, not an error"));
        assert_eq!(account.used(), 0);
    }
}
