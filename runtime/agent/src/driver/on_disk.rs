//! What pods have on the disk, and those that have more than they may (RES-06).

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use husk_core::Input;
use husk_core::eviction::StorageLimits;
use husk_core::io::PodUid;
use tokio::time::{Interval, MissedTickBehavior};

use super::{Answer, Driver};
use crate::local::pod_folder;
use crate::volumes::DiskUse;

/// How often pods are measured that may not have all of it: the kubelet's period.
const PERIOD: Duration = Duration::from_secs(10);
/// One part in so many of the time goes into that: many files on flash take long to be counted.
const SHARE: u32 = 50;

/// What a pod has on the disk.
#[derive(Default)]
pub(super) struct OnDisk {
    /// All of it.
    pub(super) total: DiskUse,
    /// Of that the root directories of containers that run.
    pub(super) containers: Vec<(String, DiskUse)>,
}

/// Where a pod has it.
pub(super) struct Places {
    pub(super) folder: PathBuf,
    pub(super) containers: Vec<(String, Vec<PathBuf>)>,
}

/// Somebody measures, or has done so just now. It ends with who holds it, however that ends.
#[derive(Default)]
pub(super) struct Measuring(Weak<()>);

/// When to look.
pub(super) fn looks() -> Interval {
    let mut looks = tokio::time::interval(PERIOD);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    looks
}

impl Driver {
    /// Where these pods have what they have, whether they were set up or not: what they had before the agent started is there.
    pub(super) fn places<'a>(&self, pods: impl Iterator<Item = &'a PodUid>) -> HashMap<PodUid, Places> {
        let of = |pod: &PodUid| {
            let folder = pod_folder(&self.config.data_dir, pod);
            (pod.clone(), Places { folder, containers: Vec::new() })
        };
        let mut places: HashMap<PodUid, Places> = pods.map(of).collect();
        for (instance, container) in self.running() {
            if let Some(places) = places.get_mut(&instance.pod) {
                places.containers.push((instance.container.to_string(), container.folders().to_vec()));
            }
        }
        places
    }

    /// Measures pods that may not have all of the disk, beside everything else, and ends those that have more than they may.
    pub(super) fn hold_to_storage_limits(&mut self) {
        let limits = |pod: &PodUid| {
            let spec = self.node.spec(pod)?;
            // As upstream: who may not be evicted isn't for this either.
            let is_bound = !spec.has_critical_priority() && self.pods.get(pod)?.file().is_none();
            is_bound.then(|| StorageLimits::of(spec))?
        };
        let limited: HashMap<PodUid, StorageLimits> =
            self.pods.keys().filter_map(|pod| Some((pod.clone(), limits(pod)?))).collect();
        if limited.is_empty() || self.measuring.0.strong_count() > 0 {
            return;
        }
        let measuring = Arc::new(());
        self.measuring.0 = Arc::downgrade(&measuring);
        let (places, answer) = (self.places(limited.keys()), self.answer.clone());
        let measure = move || {
            let began = Instant::now();
            for (pod, places) in places {
                let used = places.measure();
                let containers = used.containers.iter().map(|(name, used)| (name.as_str(), used.bytes));
                let exceeded = limited.get(&pod).and_then(|limits| limits.exceeded(used.total.bytes, containers));
                if let Some(message) = exceeded {
                    // Should the driver be gone, its pods are as well.
                    let _ = answer.send(Answer::Fact(Input::LimitExceeded { pod, message }));
                }
            }
            began.elapsed()
        };
        tokio::spawn(async move {
            let took = tokio::task::spawn_blocking(measure).await.unwrap_or_default();
            tokio::time::sleep(took * SHARE).await;
            drop(measuring);
        });
    }
}

impl Places {
    /// Takes as long as there are files.
    pub(super) fn measure(self) -> OnDisk {
        let mut on_disk = OnDisk { total: DiskUse::of(&self.folder), containers: Vec::new() };
        for (name, folders) in self.containers {
            let mut root = DiskUse::default();
            folders.iter().for_each(|folder| root += DiskUse::of(folder));
            on_disk.total += root;
            on_disk.containers.push((name, root));
        }
        on_disk
    }
}
