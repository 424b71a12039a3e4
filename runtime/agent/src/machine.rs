//! What the machine has, what of it is for pods, and what of it is left.

mod cgroup;

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use husk_core::eviction::{EvictionConfig, Left, Look, Signal};
use husk_core::quantity::{Notation, Quantity};
use husk_core::spec::ResourceList;

use self::cgroup::ControlGroups;

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
    /// What has to be left of it.
    evictions: EvictionConfig,
    allocatable: Arc<ResourceList>,
}

impl ThisMachine {
    /// The machine, of which this much is not for pods, nor what has to be left before they go.
    pub(crate) fn new(data_dir: &Path, reserved: ResourceList, evictions: EvictionConfig) -> Self {
        let known = RwLock::new(Known { reserved, evictions, allocatable: Arc::default() });
        let machine = Self(Arc::new(Inner { data_dir: data_dir.to_owned(), known }));
        machine.look();
        machine
    }

    /// From now on this much is not for pods.
    pub(crate) fn reserve(&self, reserved: ResourceList, evictions: EvictionConfig) {
        {
            let mut known = self.0.known.write().unwrap_or_else(PoisonError::into_inner);
            (known.reserved, known.evictions) = (reserved, evictions);
        }
        self.look();
    }

    /// Looks what the machine has now: disks grow, and memory is plugged in.
    pub(crate) fn look(&self) -> ResourceList {
        let capacity = capacity(&self.0.data_dir);
        let mut known = self.0.known.write().unwrap_or_else(PoisonError::into_inner);
        let left = without(&capacity, &to_be_left(&known.evictions, &capacity));
        known.allocatable = Arc::new(without(&left, &known.reserved));
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
    if let Some(bytes) = memory().and_then(|memory| i64::try_from(memory.capacity).ok()) {
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

/// What of a capacity has to be left in any case.
fn to_be_left(evictions: &EvictionConfig, capacity: &ResourceList) -> ResourceList {
    let of = |(name, signal): (&str, Signal)| {
        let all = u64::try_from(capacity.get(name)?.value()).ok()?;
        let left = i64::try_from(evictions.reserved(signal, all)).ok()?;
        Some((name.to_owned(), Quantity::new(left, Notation::Binary)))
    };
    [("memory", Signal::MemoryAvailable), ("ephemeral-storage", Signal::NodefsAvailable)]
        .into_iter()
        .filter_map(of)
        .collect()
}

/// Bytes of memory that somebody could have: of the machine, or of the control group that the agent is in, whichever has less.
pub(crate) fn memory() -> Option<Left> {
    static GROUPS: LazyLock<ControlGroups> = LazyLock::new(ControlGroups::of_this_process);
    let machine = available(&std::fs::read_to_string("/proc/meminfo").ok()?)?;
    Some(GROUPS.left().map_or(machine, |group| tighter(machine, group)))
}

/// Of two bounds on the same.
fn tighter(one: Left, other: Left) -> Left {
    Left { available: one.available.min(other.available), capacity: one.capacity.min(other.capacity) }
}

/// The same of the machine, from `/proc/meminfo`.
fn available(meminfo: &str) -> Option<Left> {
    let of = |name: &str| {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
    };
    Some(Left { available: of("MemAvailable:")?, capacity: of("MemTotal:")? })
}

/// What is left of memory.
pub(crate) fn look_at_memory() -> Look {
    [(Signal::MemoryAvailable, memory())].into()
}

/// What is left of the disk that a folder is on. Volumes, root directories and images are all there, so that it is two disks in one. Takes
/// as long as the disk.
pub(crate) fn look_at_disk(folder: &Path) -> Look {
    let about = rustix::fs::statvfs(folder).ok();
    let bytes = about.as_ref().map(|about| {
        let of = |blocks: u64| blocks.saturating_mul(about.f_frsize);
        Left { available: of(about.f_bavail), capacity: of(about.f_blocks) }
    });
    // Some file systems have as many files as they need, and say 0.
    let files = about.filter(|about| about.f_files > 0);
    let files = files.map(|about| Left { available: about.f_favail, capacity: about.f_files });
    [
        (Signal::NodefsAvailable, bytes),
        (Signal::ImagefsAvailable, bytes),
        (Signal::NodefsInodesFree, files),
        (Signal::ImagefsInodesFree, files),
    ]
    .into()
}

/// Bytes of the disk that a folder is on.
fn disk(folder: &Path) -> Option<i64> {
    let about = rustix::fs::statvfs(folder).ok()?;
    i64::try_from(about.f_blocks.checked_mul(about.f_frsize)?).ok()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

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
        let left = Left { available: 4096, capacity: 9216 };
        assert_eq!(available("MemTotal: 9 kB\nMemFree: 1 kB\nMemAvailable:   4 kB\n"), Some(left));
        assert_eq!(available("MemTotal: 9 kB\n"), None);
    }

    // spec: RES-09
    #[test]
    fn this_machine_says_what_is_left() {
        let looks = look_at_memory().into_iter().chain(look_at_disk(Path::new("/")));
        let looks: BTreeMap<_, _> = looks.filter_map(|(signal, left)| Some((signal, left?))).collect();
        assert!(looks[&Signal::MemoryAvailable].available > 0);
        assert!(looks.values().all(|left| left.available <= left.capacity), "{looks:?}");
        assert_eq!(looks[&Signal::NodefsAvailable], looks[&Signal::ImagefsAvailable]);
        assert!(look_at_disk(Path::new("/nowhere")).values().all(Option::is_none));
    }

    // spec: RES-09
    #[test]
    fn what_has_to_be_left_is_not_for_pods() {
        let machine = ThisMachine::new(Path::new("/"), ResourceList::new(), EvictionConfig::default());
        let capacity = machine.look();
        let left = |name: &str| capacity[name].checked_sub(&machine.allocatable()[name]).expect("less").value();
        let all = u64::try_from(capacity["memory"].value()).expect("positive");
        let expected = EvictionConfig::default().reserved(Signal::MemoryAvailable, all);
        assert_eq!(u64::try_from(left("memory")), Ok(expected));
        assert_eq!((left("cpu"), left("ephemeral-storage")), (0, 0));
    }

    #[test]
    fn clones_see_what_is_reserved_later() {
        let machine = ThisMachine::new(Path::new("/"), ResourceList::new(), EvictionConfig::default());
        let other = machine.clone();
        let all = other.allocatable()["memory"].clone();
        let reserved = [("memory".into(), Quantity::parse("64Mi").expect("a quantity"))];
        machine.reserve(reserved.into(), EvictionConfig::default());
        let less = other.allocatable()["memory"].clone();
        assert_eq!(all.checked_sub(&less).map(|bytes| bytes.value()), Some(64 << 20));
    }
}
