//! An image for a container: where its name leads, and what is fetched for it.
//!
//! A name is first what the user said of it, then a path if it looks like one, then an image of the store, then a well-known
//! name, then a file beside the manifest. Only the store's images are pulled: what is a file here is the newest there is.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{self, Arc, PoisonError};
use std::time::Duration;

use husk_core::io::PodUid;
use husk_core::reasons;
use husk_core::spec::PullPolicy;
use husk_engine::{Image, ImageError};
use tokio::sync::Mutex;
use tokio::time::{Instant, Interval, MissedTickBehavior};

use super::config::ImagesConfig;
use super::error::StoreError;
use super::gc::Collected;
use super::lease::Lease;
use super::names::{ImageTable, Place};
use super::reference::Reference;
use super::source::Answer;
use super::store::{Held, ImageStore};

/// The images of an agent.
#[derive(Clone, Debug)]
pub(crate) struct Images(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    settings: sync::RwLock<Arc<Settings>>,
    store: ImageStore,
    /// One pull at a time, as upstream has it: two at once would be slower together, and fetch the same twice.
    pulling: Mutex<()>,
    /// Images of pods that are on this node, whether they have started yet or not.
    reserved: sync::Mutex<BTreeMap<PodUid, Vec<Arc<Lease>>>>,
}

/// What may be another one while the agent runs.
#[derive(Debug)]
struct Settings {
    table: ImageTable,
    config: ImagesConfig,
}

/// An image that a container can be started with.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) image: Image,
    /// `imageID`.
    pub(crate) id: String,
    /// Its bytes if it had to be fetched; none if it was on the node.
    pub(crate) pulled: Option<u64>,
    /// Keeps it in the store.
    pub(crate) _lease: Option<Arc<Lease>>,
}

/// There is no image for a container.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct NoImage {
    /// As in a waiting state.
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

impl Images {
    pub(crate) fn new(table: ImageTable, config: ImagesConfig, data_dir: &Path) -> Self {
        let settings = sync::RwLock::new(Arc::new(Settings { table, config }));
        let store = ImageStore::of(data_dir);
        Self(Arc::new(Inner { settings, store, pulling: Mutex::new(()), reserved: Default::default() }))
    }

    /// Names and sources from now on. What has begun goes on with those of before.
    pub(crate) fn set(&self, table: ImageTable, config: ImagesConfig) {
        *self.0.settings.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(Settings { table, config });
    }

    fn settings(&self) -> Arc<Settings> {
        self.0.settings.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The image of that name, fetched if the policy says so. `base` is the folder of the manifest.
    pub(crate) async fn ensure(&self, name: &str, base: &Path, policy: PullPolicy) -> Result<Found, NoImage> {
        let images = self.clone();
        let (name, base) = (name.to_owned(), base.to_owned());
        let known = {
            let (images, name, base) = (images.clone(), name.clone(), base.clone());
            blocking(move || images.present(&name, &base, policy)).await?
        };
        if let Present::Here(found) = known {
            return Ok(*found);
        }
        let _turn = self.0.pulling.lock().await;
        blocking(move || images.pull(&name, &base, policy)).await
    }

    /// What is there already, unless the policy is to look for a newer one.
    fn present(&self, name: &str, base: &Path, policy: PullPolicy) -> Result<Present, NoImage> {
        let here = |found| Ok(Present::Here(Box::new(found)));
        let reference = match self.settings().table.place(name, base) {
            Place::File(path) => return here(open(path)?),
            Place::Nowhere(message) => return Err(missing(policy, message)),
            Place::Name(reference) => reference,
            Place::NoName { invalid, beside } => {
                let invalid = NoImage { reason: reasons::INVALID_IMAGE_NAME, message: invalid };
                return beside.ok_or(invalid).and_then(open).and_then(here);
            }
        };
        if policy == PullPolicy::Always && !self.settings().config.sources.is_empty() {
            return Ok(Present::Wanted);
        }
        match self.0.store.hold(&reference) {
            Ok(Some(held)) => here(present(&reference, held)),
            Ok(None) if policy != PullPolicy::Never && !self.settings().config.sources.is_empty() => {
                Ok(Present::Wanted)
            }
            Ok(None) => here(self.fallback(name, base, policy, Vec::new())?),
            // What is damaged here may be whole where it came from.
            Err(_) if policy != PullPolicy::Never && !self.settings().config.sources.is_empty() => Ok(Present::Wanted),
            Err(error) => Err(damaged(&error)),
        }
    }

    /// Asks the sources, then takes what is there: a device whose sources are away goes on with what it has.
    fn pull(&self, name: &str, base: &Path, policy: PullPolicy) -> Result<Found, NoImage> {
        let Place::Name(reference) = self.settings().table.place(name, base) else {
            return Err(missing(policy, format!("`{name}` changed while it was looked at")));
        };
        // Somebody else may have fetched it meanwhile.
        if policy == PullPolicy::IfNotPresent
            && let Ok(Some(held)) = self.0.store.hold(&reference)
        {
            return Ok(fetched(&reference, held));
        }
        let mut unseen = Vec::new();
        for source in &self.settings().config.sources {
            match source.pull(&reference, &self.0.store) {
                Ok(Answer::Pulled(digest)) => {
                    // By its content: the name may be given to another one meanwhile.
                    let held = self.0.store.hold(&reference.of_content(digest)).map_err(|error| damaged(&error))?;
                    let gone = || missing(policy, format!("{digest} was removed while it was pulled"));
                    return held.map(|held| fetched(&reference, held)).ok_or_else(gone);
                }
                Ok(Answer::Unknown(troubles)) => unseen.extend(troubles),
                Err(error) => return Err(NoImage { reason: reasons::ERR_IMAGE_PULL, message: error.to_string() }),
            }
        }
        unseen.iter().for_each(|why| tracing::warn!("image {reference}: looked for in vain: {why}"));
        match self.0.store.hold(&reference) {
            Ok(Some(held)) => Ok(present(&reference, held)),
            Ok(None) => self.fallback(name, base, policy, unseen),
            Err(error) => Err(damaged(&error)),
        }
    }

    /// A well-known name, or a file beside the manifest.
    fn fallback(&self, name: &str, base: &Path, policy: PullPolicy, unseen: Vec<String>) -> Result<Found, NoImage> {
        match self.settings().table.guest(name, base) {
            Ok(path) => open(path),
            Err(message) if unseen.is_empty() => Err(missing(policy, message)),
            Err(message) => Err(missing(policy, format!("{message}; looked for in vain: {}", unseen.join("; ")))),
        }
    }

    /// From now on nothing removes the images of a pod that are there: it may be about to start.
    pub(crate) fn reserve(&self, pod: &PodUid, names: Vec<String>) {
        if !self.0.store.folder().exists() {
            return;
        }
        self.reserved().entry(pod.clone()).or_default();
        let (images, pod) = (self.clone(), pod.clone());
        tokio::task::spawn_blocking(move || match images.0.store.reserve(&names) {
            Ok(leases) => {
                // It may be gone by now. What it needed before may still run.
                if let Some(reserved) = images.reserved().get_mut(&pod) {
                    for lease in leases {
                        if !reserved.iter().any(|known| Arc::ptr_eq(known, &lease)) {
                            reserved.push(lease);
                        }
                    }
                }
            }
            Err(error) => tracing::warn!("images of a pod can't be reserved: {error}"),
        });
    }

    /// The pod is gone.
    pub(crate) fn release(&self, pod: &PodUid) {
        self.reserved().remove(pod);
    }

    fn reserved(&self) -> sync::MutexGuard<'_, BTreeMap<PodUid, Vec<Arc<Lease>>>> {
        self.0.reserved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes what the disk has no room for.
    pub(crate) async fn collect(&self, wanted: BTreeSet<String>) -> Result<Collected, StoreError> {
        let images = self.clone();
        let collect = move || images.0.store.collect(&images.settings().config, &wanted);
        match tokio::task::spawn_blocking(collect).await {
            Ok(collected) => collected,
            Err(panic) => std::panic::resume_unwind(panic.into_panic()),
        }
    }

    /// Removes all that nobody uses: the node is short of disk. Bytes that are free now; waits for the disk.
    pub(crate) fn give_up_unused(&self, wanted: &BTreeSet<String>) -> u64 {
        match self.0.store.collect_all(&self.settings().config, wanted) {
            Ok(collected) => collected.freed,
            Err(error) => {
                tracing::warn!("images can't be collected: {error}");
                0
            }
        }
    }

    /// Does so, and tells whoever reads the node's log; gives what is wrong, if anything is: the reason of an event and its message.
    pub(crate) async fn collect_and_tell(&self, wanted: BTreeSet<String>) -> Option<(&'static str, String)> {
        match self.collect(wanted).await {
            Ok(Collected { removed, freed, missing }) => {
                if !removed.is_empty() {
                    tracing::info!(images = removed.len(), bytes = freed, "removed images that nobody uses");
                }
                if missing == 0 {
                    return None;
                }
                tracing::warn!(
                    "the disk is fuller than imageGCLowThresholdPercent by {missing} bytes, and no image is left that may go"
                );
                // In upstream's words.
                let message = format!(
                    "Failed to garbage collect required amount of images. Attempted to free {} bytes, but only found {freed} bytes eligible to free.",
                    freed.saturating_add(missing)
                );
                Some(("FreeDiskSpaceFailed", message))
            }
            Err(error) => {
                tracing::warn!("images can't be collected: {error}");
                Some(("ImageGCFailed", error.to_string()))
            }
        }
    }

    /// When to look at the disk. Not at once: an agent that was restarted doesn't know its pods yet.
    pub(crate) fn collections(&self) -> Interval {
        let period = self.settings().config.gc_period.max(Duration::from_millis(1));
        let mut collections = tokio::time::interval_at(Instant::now() + period, period);
        collections.set_missed_tick_behavior(MissedTickBehavior::Delay);
        collections
    }
}

impl From<ImageError> for NoImage {
    fn from(error: ImageError) -> Self {
        Self { reason: reasons::ERR_IMAGE_PULL, message: error.to_string() }
    }
}

enum Present {
    Here(Box<Found>),
    /// It has to be asked for.
    Wanted,
}

fn open(path: PathBuf) -> Result<Found, NoImage> {
    let image = Image::open(path)?;
    Ok(Found { id: image.id().to_owned(), image, pulled: None, _lease: None })
}

fn present(reference: &Reference, held: Held) -> Found {
    Found { id: reference.image_id(held.digest), image: held.image, pulled: None, _lease: held.lease }
}

fn fetched(reference: &Reference, held: Held) -> Found {
    Found { pulled: Some(held.bytes), ..present(reference, held) }
}

fn missing(policy: PullPolicy, message: String) -> NoImage {
    let reason = match policy {
        PullPolicy::Never => reasons::ERR_IMAGE_NEVER_PULL,
        PullPolicy::Always | PullPolicy::IfNotPresent => reasons::ERR_IMAGE_PULL,
    };
    NoImage { reason, message }
}

fn damaged(error: &StoreError) -> NoImage {
    NoImage { reason: reasons::IMAGE_INSPECT_ERROR, message: error.to_string() }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, NoImage> + Send + 'static) -> Result<T, NoImage> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(NoImage { reason: reasons::ERR_IMAGE_PULL, message: error.to_string() }),
    }
}
