//! Volumes in memory (`emptyDir` with `medium: Memory`): folders of a file system that is in memory already, so that they need no root
//! and wear no flash. What is in them goes on with the agent, however that ended, and is gone after a reboot, as upstream.
//!
//! A data folder has one folder there, named after it, with a link back: who finds one whose data folder is gone may remove it.

use std::env;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, symlink};
use std::path::{Path, PathBuf};

use husk_core::io::PodUid;
use husk_engine::remove_tree;
use rustix::fs::Access;
use sha2::{Digest as _, Sha256};

/// What `statfs` says of a file system in memory.
const TMPFS: u32 = 0x0102_1994;
/// Where every Linux has one.
const SHARED: &str = "/dev/shm";
/// Links back to the data folder.
const DATA: &str = "data";
/// Has the folders of pods.
const PODS: &str = "pods";

/// Where the volumes in memory of a data folder are, if there is such a place.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    data_dir: PathBuf,
    folder: Option<PathBuf>,
}

impl Memory {
    /// Nothing is made before a volume needs it.
    pub(crate) fn of(data_dir: &Path) -> Self {
        let data_dir = fs::canonicalize(data_dir).unwrap_or_else(|_| data_dir.to_owned());
        let own = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        let place = [Some(SHARED.into()), own].into_iter().flatten().find(|place| is_usable(place));
        let folder = place.map(|place| {
            remove_abandoned(&place);
            let digest: String = Sha256::digest(data_dir.as_os_str().as_encoded_bytes())[..8]
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            place.join(format!("{}{digest}", prefix()))
        });
        Self { data_dir, folder }
    }

    /// The folder of a pod's volumes, made.
    pub(super) fn make(&self, pod: &str) -> io::Result<PathBuf> {
        let folder =
            self.folder.as_ref().ok_or_else(|| io::Error::other("this machine has no file system in memory"))?;
        private(folder)?;
        match symlink(&self.data_dir, folder.join(DATA)) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let pods = folder.join(PODS);
        private(&pods)?;
        let own = pods.join(pod);
        private(&own)?;
        Ok(own)
    }

    /// The folder of the pods' folders, whether it is there or not.
    pub(crate) fn pods(&self) -> Option<PathBuf> {
        Some(self.folder.as_ref()?.join(PODS))
    }

    /// Removes what is there of a pod.
    pub(crate) fn remove(&self, pod: &PodUid) {
        let Some(folder) = self.pods().map(|pods| pods.join(&*pod.0)) else { return };
        match remove_tree(&folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(folder = %folder.display(), %error, "can't remove a pod's volumes in memory");
            }
            _ => {}
        }
    }

    /// Nobody comes back to the data folder: its own folder goes, if no pod is in it.
    pub(crate) fn leave(&self) {
        let Some(folder) = &self.folder else { return };
        if fs::remove_dir(folder.join(PODS)).is_ok() {
            let _ = fs::remove_file(folder.join(DATA)).and_then(|()| fs::remove_dir(folder));
        }
    }
}

/// Names of folders of this user begin with it.
fn prefix() -> String {
    format!("husk-{}-", rustix::process::geteuid().as_raw())
}

fn is_usable(place: &Path) -> bool {
    let is_in_memory = rustix::fs::statfs(place).is_ok_and(|about| u32::try_from(about.f_type) == Ok(TMPFS));
    is_in_memory && rustix::fs::access(place, Access::WRITE_OK | Access::EXEC_OK).is_ok()
}

/// A folder that is this user's alone. Everybody may have made one of that name before.
fn private(folder: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => return made,
    }
    let about = fs::symlink_metadata(folder)?;
    match about.is_dir() && about.uid() == rustix::process::geteuid().as_raw() && about.mode() & 0o077 == 0 {
        true => Ok(()),
        false => Err(io::Error::other(format!("{} is somebody else's", folder.display()))),
    }
}

/// What is left of data folders that are no more, as of a run that was killed.
fn remove_abandoned(place: &Path) {
    let prefix = prefix();
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(&prefix))
            && entry.metadata().is_ok_and(|about| about.uid() == rustix::process::geteuid().as_raw());
        let path = entry.path();
        let is_gone = |data: &Path| matches!(data.try_exists(), Ok(false));
        if is_ours && fs::read_link(path.join(DATA)).is_ok_and(|data| is_gone(&data)) {
            // Another agent that begins may do the same.
            let _ = remove_tree(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_folder_has_its_own_which_goes_when_it_is_gone() {
        let (one, other) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let memory = Memory::of(one.path());
        let Some(pods) = memory.pods() else { return };
        assert_ne!(Some(&pods), Memory::of(other.path()).pods().as_ref());
        assert!(!pods.exists(), "nothing is made before it is needed");
        let own = memory.make("u-1").expect("made");
        fs::write(own.join("kept"), "k").expect("written");
        assert_eq!(fs::read(Memory::of(one.path()).make("u-1").expect("there").join("kept")).expect("kept"), b"k");
        memory.leave();
        assert!(own.exists(), "a pod is in it");
        memory.remove(&PodUid::from("u-1"));
        assert!(!own.exists());
        memory.make("u-2").expect("made");
        drop(one);
        Memory::of(other.path());
        assert!(!pods.exists());
    }

    #[test]
    fn a_folder_that_others_can_look_into_is_not_taken() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path().join("husk");
        DirBuilder::new().mode(0o755).create(&folder).expect("made");
        assert!(private(&folder).expect_err("open to all").to_string().contains("somebody else's"));
        fs::remove_dir(&folder).expect("removed");
        symlink(place.path(), &folder).expect("linked");
        assert!(private(&folder).is_err());
    }
}
