//! Static pods: the manifests of a folder run as long as they are there (META-12).
//!
//! What counts is what the folder holds: it is listed anew at every hint of a change, and from time to time without one. A file is
//! read once it has come to rest, and is gone once it stayed away, so however an editor writes and renames, it makes no pod and
//! ends none. A manifest that can't be taken is reported, and the pods of its last good version go on.
//!
//! A pod's uid is made from its node, namespace, name and content. So it doesn't matter what its file is called, how the manifest
//! is laid out, or how often the agent starts; and a change is another pod, which begins once the old one has ended in its own
//! grace period.

mod folder;
mod manifest;
mod problem;

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use husk_api::Gates;
use husk_api::k8s::Pod;
use husk_core::io::PodUid;
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};

use self::folder::Folder;
use self::manifest::{Identity, StaticPod};
use crate::driver::remove;
use crate::local::LocalNode;
use crate::notice::Notice;

pub(crate) use self::manifest::FILE;
pub use self::problem::{ManifestProblem, PodName};

/// So many problems are logged at once. All of them are in [`StaticPods::problems`].
const MOST_LOGGED: usize = 20;
/// However long a folder doesn't come to rest, it is looked at after so many times the time to rest.
const MOST_UNREST: u32 = 10;

/// Where static pods come from.
#[derive(Clone, Debug)]
pub struct StaticPodsConfig {
    /// `staticPodPath`: manifests are its files that end in `.yaml`, `.yml` or `.json` and don't begin with a dot.
    pub folder: PathBuf,
    /// `fileCheckFrequency`: it is looked at so often without a hint, as where there are no hints.
    pub check: Duration,
    /// A file is taken when it has not changed for so long, and gone when it stayed away for so long.
    pub settle: Duration,
    /// Features that are on.
    pub gates: Gates,
}

impl StaticPodsConfig {
    /// A folder, with upstream's frequency.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder, check: Duration::from_secs(20), settle: Duration::from_millis(500), gates: Gates::default() }
    }
}

/// Keeps the static pods of a node. They go on as they are when this is dropped.
#[derive(Debug)]
pub struct StaticPods {
    task: JoinHandle<()>,
    look: Arc<Notify>,
    problems: watch::Receiver<Vec<ManifestProblem>>,
}

impl StaticPods {
    /// Runs what is in the folder on a node.
    pub fn start(config: StaticPodsConfig, node: Arc<LocalNode>) -> Self {
        Self::go_on(config, node, Vec::new(), Vec::new())
    }

    /// The same, where the node has pods of the folder already, from before the agent started: who isn't there any more ends.
    /// `leftovers` are folders of pods that may be pods of the folder, and go if they aren't.
    pub fn go_on(config: StaticPodsConfig, node: Arc<LocalNode>, pods: Vec<Pod>, leftovers: Vec<PathBuf>) -> Self {
        let look = Arc::new(Notify::new());
        let (report, problems) = watch::channel(Vec::new());
        let running: BTreeMap<Identity, StaticPod> =
            pods.into_iter().filter_map(StaticPod::of_mirror).map(|pod| (pod.identity.clone(), pod)).collect();
        let folder = Folder::new(config.clone(), node.node_name().to_owned(), running.values());
        let keeper = Keeper {
            hints: Hints::new(config.folder.clone(), look.clone()),
            config,
            node,
            look: look.clone(),
            report,
            folder: Some(folder),
            running,
            listed: false,
            leaving: HashSet::new(),
            leftovers,
        };
        Self { task: tokio::spawn(keeper.keep()), look, problems }
    }

    /// Looks at the folder now, as after a hint.
    pub fn look(&self) {
        self.look.notify_one();
    }

    /// What is wrong with the files at present, whenever that changes.
    pub fn problems(&self) -> watch::Receiver<Vec<ManifestProblem>> {
        self.problems.clone()
    }

    /// Lets go of the node. Its pods go on.
    pub async fn stop(mut self) {
        self.task.abort();
        // It ended by this, or before.
        let _ = (&mut self.task).await;
    }
}

impl Drop for StaticPods {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Keeper {
    config: StaticPodsConfig,
    node: Arc<LocalNode>,
    hints: Hints,
    look: Arc<Notify>,
    report: watch::Sender<Vec<ManifestProblem>>,
    /// Away while it is listed.
    folder: Option<Folder>,
    running: BTreeMap<Identity, StaticPod>,
    /// The folder was looked at.
    listed: bool,
    /// What was asked to end and is still there: its uid can't be used again before it is gone.
    leaving: HashSet<PodUid>,
    /// Folders of pods of before that nobody has named yet.
    leftovers: Vec<PathBuf>,
}

impl Keeper {
    async fn keep(mut self) {
        let mut notices = self.node.watch();
        // At once: a device that comes back waits for no hint. Files that are still being written are waited for all the same.
        let mut next_look = self.look_at_folder().await;
        loop {
            tokio::select! {
                () = self.look.notified() => {
                    self.rest().await;
                    next_look = self.look_at_folder().await;
                }
                () = sleep_until(next_look) => next_look = self.look_at_folder().await,
                notice = notices.recv() => match notice {
                    Ok(Notice::Forgotten { pod, .. }) => self.forgotten(&pod),
                    Ok(_) => {}
                    // Who is gone isn't known any more. To apply a pod that is there changes nothing.
                    Err(RecvError::Lagged(_)) => {
                        self.leaving.clear();
                        self.running.clear();
                        self.reconcile();
                    }
                    Err(RecvError::Closed) => return,
                },
            }
        }
    }

    /// Waits until nothing happens for a while, but not for ever.
    async fn rest(&self) {
        let latest = Instant::now() + self.config.settle * MOST_UNREST;
        while Instant::now() < latest && timeout(self.config.settle, self.look.notified()).await.is_ok() {}
    }

    /// Returns when to look again.
    async fn look_at_folder(&mut self) -> Instant {
        self.hints.renew();
        let Some(mut folder) = self.folder.take() else { return Instant::now() + self.config.check };
        let running: HashSet<PodUid> = self.running.values().map(|pod| pod.uid.clone()).collect();
        let listed = tokio::task::spawn_blocking(move || {
            let settled = folder.list(std::time::Instant::now(), SystemTime::now());
            let problems = folder.choose(&running);
            (folder, settled, problems)
        });
        // A panic there, which only a bug can cause, ends this task as well.
        let Ok((folder, settled, problems)) = listed.await else { return Instant::now() + self.config.check };
        (self.folder, self.listed) = (Some(folder), true);
        self.tell(problems);
        self.reconcile();
        if settled {
            self.remove_leftovers().await;
        }
        Instant::now() + if settled { self.config.check } else { self.config.settle }
    }

    /// Removes what is left of pods that no manifest names, once all manifests are known: a pod keeps its volumes whatever became of
    /// the state. None of them comes meanwhile, since that is decided here.
    async fn remove_leftovers(&mut self) {
        let Some(folder) = self.folder.as_ref().filter(|folder| folder.is_known()) else { return };
        let mut leftovers = std::mem::take(&mut self.leftovers);
        if leftovers.is_empty() {
            return;
        }
        let named: HashSet<&OsStr> = folder.wanted().values().map(|pod| OsStr::new(&*pod.uid.0)).collect();
        leftovers.retain(|left| left.file_name().is_none_or(|name| !named.contains(name)));
        // Should it break off, the next start does the rest.
        let _ = tokio::task::spawn_blocking(move || leftovers.iter().for_each(|folder| remove(folder))).await;
    }

    fn tell(&self, problems: Vec<ManifestProblem>) {
        self.report.send_if_modified(|known| {
            let old: HashSet<&ManifestProblem> = known.iter().collect();
            let mut new = problems.iter().filter(|problem| !old.contains(problem));
            new.by_ref().take(MOST_LOGGED).for_each(|problem| tracing::warn!(%problem, "static pod"));
            let more = new.count();
            if more > 0 {
                let folder = self.config.folder.display();
                tracing::warn!(%folder, more, "more problems with static pods; move what is no manifest elsewhere");
            }
            let changed = *known != problems;
            *known = problems;
            changed
        });
    }

    /// Makes what runs what is wanted.
    fn reconcile(&mut self) {
        let Some(folder) = self.folder.as_ref().filter(|_| self.listed) else { return };
        let wanted = folder.wanted();
        let ended: Vec<_> = self
            .running
            .iter()
            .filter(|(identity, pod)| wanted.get(*identity).is_none_or(|wanted| wanted.uid != pod.uid))
            .map(|(identity, pod)| (identity.clone(), pod.uid.clone()))
            .collect();
        for (identity, uid) in ended {
            // In its own grace period; one of the same name that comes waits for that.
            self.node.delete(&uid, None);
            self.leaving.insert(uid);
            self.running.remove(&identity);
        }
        for (identity, pod) in wanted {
            let pod = match self.running.get(identity).filter(|running| running.content == pod.content) {
                Some(running) if running.file() == pod.file() => continue,
                // Only its file is called otherwise. The pod goes on, and is that file's from now on.
                Some(running) => running.clone().moved(pod),
                None => pod.clone(),
            };
            if !self.leaving.contains(&pod.uid) {
                self.node.apply(pod.pod.clone(), self.config.folder.clone());
                self.running.insert(identity.clone(), pod);
            }
        }
    }

    /// Nothing is left of a pod: it may come again, also if somebody else asked for its end.
    fn forgotten(&mut self, uid: &PodUid) {
        let left = self.leaving.remove(uid);
        let before = self.running.len();
        self.running.retain(|_, pod| pod.uid != *uid);
        if left || self.running.len() < before {
            self.reconcile();
        }
    }
}

/// Hints that something may have changed.
struct Hints {
    folder: PathBuf,
    look: Arc<Notify>,
    /// With the folder that is watched, by its number: another one may have taken its place.
    watcher: Option<(RecommendedWatcher, u64)>,
}

impl Hints {
    fn new(folder: PathBuf, look: Arc<Notify>) -> Self {
        let mut hints = Self { folder, look, watcher: None };
        hints.renew();
        hints
    }

    fn renew(&mut self) {
        use std::os::unix::fs::MetadataExt;
        let Ok(number) = std::fs::metadata(&self.folder).map(|folder| folder.ino()) else {
            self.watcher = None;
            return;
        };
        if self.watcher.as_ref().is_some_and(|(_, watched)| *watched == number) {
            return;
        }
        let look = self.look.clone();
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            // Our own reading is none.
            if !event.is_ok_and(|event| event.kind.is_access()) {
                look.notify_one();
            }
        });
        let watching = watcher.and_then(|mut watcher| {
            watcher.watch(&self.folder, RecursiveMode::NonRecursive)?;
            Ok(watcher)
        });
        match watching {
            Ok(watcher) => self.watcher = Some((watcher, number)),
            Err(error) => {
                tracing::warn!(folder = %self.folder.display(), %error, "not told of changes; looking from time to time");
                self.watcher = None;
            }
        }
    }
}
