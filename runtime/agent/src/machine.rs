//! What the machine has, and what of it is for pods.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use husk_core::quantity::{Notation, Quantity};
use husk_core::spec::ResourceList;

/// The machine. Clones share what is known of it.
#[derive(Clone, Debug)]
pub(crate) struct ThisMachine(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// On the disk that counts.
    data_dir: PathBuf,
    known: RwLock<Known>,
}

#[derive(Debug)]
struct Known {
    reserved: ResourceList,
    allocatable: Arc<ResourceList>,
}

impl ThisMachine {
    /// The machine, of which this much is not for pods.
    pub(crate) fn new(data_dir: &Path, reserved: ResourceList) -> Self {
        let known = RwLock::new(Known { reserved, allocatable: Arc::default() });
        let machine = Self(Arc::new(Inner { data_dir: data_dir.to_owned(), known }));
        machine.look();
        machine
    }

    /// From now on this much is not for pods.
    pub(crate) fn reserve(&self, reserved: ResourceList) {
        self.0.known.write().unwrap_or_else(PoisonError::into_inner).reserved = reserved;
        self.look();
    }

    /// Looks what the machine has now: disks grow, and memory is plugged in.
    pub(crate) fn look(&self) -> ResourceList {
        let capacity = capacity(&self.0.data_dir);
        let mut known = self.0.known.write().unwrap_or_else(PoisonError::into_inner);
        known.allocatable = Arc::new(without(&capacity, &known.reserved));
        capacity
    }

    /// What is for pods.
    pub(crate) fn allocatable(&self) -> Arc<ResourceList> {
        self.0.known.read().unwrap_or_else(PoisonError::into_inner).allocatable.clone()
    }

    /// Bytes of memory of that.
    pub(crate) fn memory_for_pods(&self) -> Option<u64> {
        u64::try_from(self.allocatable().get("memory")?.value()).ok()
    }
}

fn capacity(data_dir: &Path) -> ResourceList {
    let mut capacity = ResourceList::new();
    let cpus = std::thread::available_parallelism().map_or(1, |cpus| i64::try_from(cpus.get()).unwrap_or(1));
    capacity.insert("cpu".into(), Quantity::new(cpus, Notation::Decimal));
    if let Some(bytes) = memory_available().and_then(|(_, all)| i64::try_from(all).ok()) {
        capacity.insert("memory".into(), Quantity::new(bytes, Notation::Binary));
    }
    if let Some(bytes) = disk(data_dir) {
        capacity.insert("ephemeral-storage".into(), Quantity::new(bytes, Notation::Binary));
    }
    capacity
}

/// What is left, never less than nothing.
fn without(capacity: &ResourceList, reserved: &ResourceList) -> ResourceList {
    let left = capacity.iter().map(|(name, amount)| {
        let reserved = reserved.get(name).cloned().unwrap_or_default();
        let left = amount.checked_sub(&reserved).filter(|left| *left > Quantity::ZERO);
        (name.clone(), left.unwrap_or(Quantity::ZERO))
    });
    left.collect()
}

/// Bytes of memory of this machine that somebody could have, and all of them.
pub(crate) fn memory_available() -> Option<(u64, u64)> {
    available(&std::fs::read_to_string("/proc/meminfo").ok()?)
}

/// The same, from `/proc/meminfo`.
fn available(meminfo: &str) -> Option<(u64, u64)> {
    let of = |name: &str| {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
    };
    Some((of("MemAvailable:")?, of("MemTotal:")?))
}

/// Bytes of the disk that a folder is on.
fn disk(folder: &Path) -> Option<i64> {
    let about = rustix::fs::statvfs(folder).ok()?;
    i64::try_from(about.f_blocks.checked_mul(about.f_frsize)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_reserved_is_not_for_pods() {
        let amounts = |list: &[(&str, &str)]| -> ResourceList {
            list.iter().map(|(name, text)| ((*name).into(), Quantity::parse(text).expect("a quantity"))).collect()
        };
        let capacity = amounts(&[("cpu", "2"), ("memory", "1Gi")]);
        let left = without(&capacity, &amounts(&[("cpu", "500m"), ("memory", "2Gi"), ("nothing", "1")]));
        assert_eq!(left, amounts(&[("cpu", "1500m"), ("memory", "0")]));
    }

    #[test]
    fn what_the_kernel_says_of_memory_is_read() {
        assert_eq!(available("MemTotal: 9 kB\nMemFree: 1 kB\nMemAvailable:   4 kB\n"), Some((4096, 9216)));
        assert_eq!(available("MemTotal: 9 kB\n"), None);
    }

    #[test]
    fn clones_see_what_is_reserved_later() {
        let machine = ThisMachine::new(Path::new("/"), ResourceList::new());
        let other = machine.clone();
        let all = other.allocatable()["memory"].clone();
        machine.reserve([("memory".into(), Quantity::parse("64Mi").expect("a quantity"))].into());
        let less = other.allocatable()["memory"].clone();
        assert_eq!(all.checked_sub(&less).map(|bytes| bytes.value()), Some(64 << 20));
    }
}
