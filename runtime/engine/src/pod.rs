//! What the containers of a pod may use together (RES-12).

use std::sync::Arc;

use husk_core::cpu::{CpuShare, Usage};

use crate::engine::Engine;
use crate::limits::{Account, MemoryUse};
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

    /// It may use something else from now on (RES-11). What its containers hold of memory stays theirs, though it be more than that.
    pub fn change(&self, cpu: CpuShare, memory_limit: Option<u64>) {
        self.share.change(cpu);
        self.memory.set_limit(memory_limit);
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
