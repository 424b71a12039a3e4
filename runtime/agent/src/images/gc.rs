//! Which images go when the disk fills: those that nobody uses, the longest unused first.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::config::ImagesConfig;
use super::digest::Digest;
use super::error::{StoreError, at};
use super::reference::Reference;
use super::store::{ImageStore, StoredImage};

/// What a collection came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// Images that are gone.
    pub removed: Vec<Digest>,
    /// Bytes that are free now.
    pub freed: u64,
    /// Bytes that should be free as well, but what is left is in use or too young.
    pub missing: u64,
}

/// The disk that the store is on, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Disk {
    pub(crate) capacity: u64,
    pub(crate) available: u64,
}

impl ImageStore {
    /// Removes images by the thresholds of the disk and by age; never one that is in use, or that one of these names means.
    pub fn collect(&self, config: &ImagesConfig, wanted: &BTreeSet<String>) -> Result<Collected, StoreError> {
        if !self.folder().exists() {
            return Ok(Collected::default());
        }
        let disk = Disk::of(self.folder()).map_err(at(self.folder()))?;
        self.collect_on(disk, config, wanted)
    }

    /// Removes all images that nobody uses.
    pub fn prune(&self) -> Result<Collected, StoreError> {
        let unused: Vec<Digest> = self.list()?.iter().filter(|image| !image.in_use).map(|image| image.digest).collect();
        let (removed, freed) = self.remove_unused(&unused)?;
        Ok(Collected { removed, freed, missing: 0 })
    }

    /// Removes all images that nobody uses but those that are too young, whatever the disk has room for.
    pub(crate) fn collect_all(
        &self,
        config: &ImagesConfig,
        wanted: &BTreeSet<String>,
    ) -> Result<Collected, StoreError> {
        let mut collected = Collected::default();
        if self.folder().exists() {
            let mut unused = self.unused(wanted)?;
            unused.retain(|image| is_old_enough(image, config));
            self.remove_all(unused, u64::MAX, &mut collected)?;
        }
        Ok(collected)
    }

    /// What nobody uses and none of these names means, the longest unused first.
    fn unused(&self, wanted: &BTreeSet<String>) -> Result<Vec<StoredImage>, StoreError> {
        let mut unused = self.list()?;
        unused.retain(|image| !image.in_use && !is_wanted(image, wanted));
        unused.sort_by_key(|image| (image.last_used.unwrap_or(image.imported), image.imported));
        Ok(unused)
    }

    pub(crate) fn collect_on(
        &self,
        disk: Disk,
        config: &ImagesConfig,
        wanted: &BTreeSet<String>,
    ) -> Result<Collected, StoreError> {
        let now = SystemTime::now();
        let mut unused = self.unused(wanted)?;
        let mut collected = Collected::default();
        if !config.maximum_age.is_zero() {
            let (old, rest) = unused.into_iter().partition(|image| idle(image, now) > config.maximum_age);
            unused = rest;
            self.remove_all(old, u64::MAX, &mut collected)?;
        }
        let excess = disk.excess(config).saturating_sub(collected.freed);
        if excess > 0 {
            unused.retain(|image| is_old_enough(image, config));
            let freed = self.remove_all(unused, excess, &mut collected)?;
            collected.missing = excess.saturating_sub(freed);
        }
        Ok(collected)
    }

    /// Removes images one after the other until so many bytes are free.
    fn remove_all(&self, images: Vec<StoredImage>, wanted: u64, collected: &mut Collected) -> Result<u64, StoreError> {
        let mut total = 0;
        for image in images {
            if total >= wanted {
                break;
            }
            let (removed, freed) = self.remove_unused(&[image.digest])?;
            total += freed;
            collected.freed += freed;
            collected.removed.extend(removed);
        }
        Ok(total)
    }
}

impl Disk {
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let stat = rustix::fs::statvfs(path)?;
        Ok(Self {
            capacity: stat.f_blocks.saturating_mul(stat.f_frsize),
            available: stat.f_bavail.saturating_mul(stat.f_frsize),
        })
    }

    /// Bytes to make free, as upstream's kubelet reckons them: none below the high threshold, then down to the low one.
    fn excess(self, config: &ImagesConfig) -> u64 {
        let Self { capacity, available } = self;
        if capacity == 0 {
            return 0;
        }
        let share = |percent: u8| u128::from(capacity) * u128::from(percent.min(100)) / 100;
        let used_percent = 100 - u128::from(available.min(capacity)) * 100 / u128::from(capacity);
        if used_percent < u128::from(config.high_threshold_percent) {
            return 0;
        }
        let free = share(100 - config.low_threshold_percent.min(100));
        u64::try_from(free.saturating_sub(u128::from(available))).unwrap_or(u64::MAX)
    }
}

fn is_old_enough(image: &StoredImage, config: &ImagesConfig) -> bool {
    SystemTime::now().duration_since(image.imported).unwrap_or_default() >= config.minimum_age
}

/// Time since it was used, or imported if it never was. A clock that was set back makes nothing old.
fn idle(image: &StoredImage, now: SystemTime) -> Duration {
    now.duration_since(image.last_used.unwrap_or(image.imported)).unwrap_or_default()
}

fn is_wanted(image: &StoredImage, wanted: &BTreeSet<String>) -> bool {
    wanted.iter().filter_map(|name| name.parse::<Reference>().ok()).any(|reference| match reference.digest() {
        Some(digest) => digest == image.digest,
        None => image.names.contains(&reference.tagged()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_disk_is_brought_below_the_low_threshold_once_it_is_above_the_high_one() {
        let config = ImagesConfig::default();
        for (available, excess) in [(1000, 0), (200, 0), (160, 0), (159, 41), (150, 50), (100, 100), (0, 200)] {
            assert_eq!(Disk { capacity: 1000, available }.excess(&config), excess, "{available}");
        }
        assert_eq!(Disk { capacity: 0, available: 0 }.excess(&config), 0);
        let whole = Disk { capacity: u64::MAX, available: 0 };
        assert!(whole.excess(&config) > u64::MAX / 10);
    }
}
