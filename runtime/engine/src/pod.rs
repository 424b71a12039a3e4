//! What the containers of a pod may use together (RES-12).

use std::sync::Arc;

use husk_core::cpu::{CpuShare, Usage};
use husk_core::memory::Reservation;

use crate::account::{Account, InUse, MemoryUse};
use crate::engine::Engine;
use crate::turns::{PodShare, Seat};

/// A pod, as its containers share it. Clones are the same; it is gone when the last of them and the last of its containers is.
#[derive(Clone, Debug)]
pub struct Pod {
    share: PodShare,
    memory: Arc<Account>,
}

impl Pod {
    pub(crate) fn new(engine: &Engine, cpu: CpuShare, memory_limit: Option<u64>) -> Self {
        let memory = Arc::new(Account::of_pod(engine.memory().clone(), memory_limit));
        Self { share: engine.turns().pod(cpu), memory }
    }

    /// Of a container that is alone: what changes for it changes for its pod.
    pub(crate) fn of_one(engine: &Engine, cpu: CpuShare, memory_limit: Option<u64>) -> (Seat, Account) {
        let pod = Arc::new(Account::of_pod(engine.memory().clone(), None));
        (engine.turns().seat(cpu), Account::of_container(pod, memory_limit))
    }

    /// A container of it.
    pub(crate) fn container(&self, cpu: CpuShare, memory_limit: Option<u64>) -> (Seat, Account) {
        (self.share.seat(cpu), Account::of_container(self.memory.clone(), memory_limit))
    }

    /// Changes what they may use of the processors together, from now on (RES-11).
    pub fn change_cpu(&self, cpu: CpuShare) {
        self.share.change(cpu);
    }

    /// Changes how much memory they may hold together, from now on (RES-11).
    ///
    /// # Errors
    /// They hold more than that. Nothing is changed.
    pub fn change_memory_limit(&self, limit: Option<u64>) -> Result<(), InUse> {
        self.memory.change_limit(limit)
    }

    /// Keeps memory for them that other pods can't have, whether they hold it already or not (RES-10).
    pub fn keep_memory(&self, kept: Reservation) {
        self.memory.keep(kept);
    }

    /// What its containers have used of the processors, those that are gone included.
    pub fn cpu(&self) -> Usage {
        self.share.usage()
    }

    /// What its containers hold of memory.
    pub fn memory(&self) -> MemoryUse {
        self.memory.usage()
    }
}
