//! The folder of a run's volumes.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use tempfile::TempDir;

/// What the names of folders begin with that go with their run.
const PREFIX: &str = "husk-run-";
/// A folder that is younger may not be locked yet.
const YOUNG: Duration = Duration::from_secs(60);

/// The folder of emptyDirs.
pub(crate) enum Data {
    /// The user's.
    Kept(PathBuf),
    /// Removed at the end. As long as it is locked its run is alive.
    Passing { folder: TempDir, _lock: File },
}

impl Data {
    /// The one that the user named, or one that goes with this run.
    pub(crate) fn new(said: Option<PathBuf>) -> Result<Self> {
        if let Some(path) = said {
            return Ok(Self::Kept(path));
        }
        remove_abandoned(&std::env::temp_dir());
        let made = || {
            let folder = tempfile::Builder::new().prefix(&format!("{PREFIX}{}-", std::process::id())).tempdir()?;
            let lock = File::open(folder.path())?;
            lock.lock()?;
            Ok::<_, std::io::Error>(Self::Passing { folder, _lock: lock })
        };
        made().context("can't make a folder for volumes: name one with --data-dir")
    }

    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::Kept(path) => path,
            Self::Passing { folder, .. } => folder.path(),
        }
    }
}

/// Removes what runs left behind that were killed.
fn remove_abandoned(folder: &Path) {
    let Ok(me) = fs::metadata("/proc/self") else { return };
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        // Of the entry itself: a link that somebody laid there is not followed.
        let Ok(metadata) = entry.metadata() else { continue };
        let is_old = metadata.modified().is_ok_and(|time| time.elapsed().is_ok_and(|age| age > YOUNG));
        if !(is_ours && is_old && metadata.is_dir() && metadata.uid() == me.uid()) {
            continue;
        }
        let path = entry.path();
        if File::open(&path).is_ok_and(|lock| lock.try_lock().is_ok()) {
            let _ = husk_engine::remove_tree(&path);
        }
    }
}
