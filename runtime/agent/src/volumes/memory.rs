//! Volumes in memory (`emptyDir` with `medium: Memory`): folders of a file system that is in memory already, so that they need no root
//! and wear no flash. What is in them goes on with the agent, however that ended, and is gone after a reboot, as upstream.
//!
//! They lie where nobody else can write, or on the disk: who can put a link where a folder of ours is expected chooses what is removed.
//! What is made, swept and removed is so by folders that are open and were looked at.

use std::collections::HashSet;
use std::env;
use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use husk_core::io::PodUid;
use husk_engine::remove_tree_in;
use rustix::fs::{CWD, Dir, Mode, OFlags};
use rustix::io::Errno;
use uuid::Uuid;

/// What `statfs` says of a file system in memory.
const TMPFS: u32 = 0x0102_1994;
/// The folder of the system's own that has the folders of agents.
const AGENTS: &str = "husk-memory";
/// A file of the data folder: the name of this agent's.
const ID: &str = "memory-id";

/// A folder, and no link in its place.
const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Where the volumes in memory of an agent are, or why there is no such place.
#[derive(Clone, Debug)]
pub(crate) struct Memory(Result<Arc<Own>, Arc<str>>);

/// The agent's folder, with one for each pod.
#[derive(Debug)]
struct Own {
    path: PathBuf,
    /// Locked as long as the agent lives: one with a copy of its data folder keeps off.
    folder: File,
}

/// Where a user has files in memory.
struct Place {
    path: PathBuf,
    /// What nobody else may do there.
    closed: Mode,
}

impl Memory {
    /// Of an agent that nobody comes back to: what it left there when it is killed would stay.
    pub(crate) fn none() -> Self {
        Self(Err("only an agent with a data folder of its own has volumes in memory".into()))
    }

    /// That of the agent with this data folder.
    pub(crate) fn of(data_dir: &Path) -> Self {
        Self::at(Place::of_this_user(), data_dir)
    }

    fn at(place: Option<Place>, data_dir: &Path) -> Self {
        let place = place.ok_or_else(|| io::Error::other("this user has no XDG_RUNTIME_DIR"));
        let own = place.and_then(|place| Own::open(&place, data_dir));
        Self(own.map(Arc::new).map_err(|error| error.to_string().into()))
    }

    /// The folder of a pod's volumes, made.
    pub(super) fn make(&self, pod: &str) -> io::Result<PathBuf> {
        let own = self.0.as_ref().map_err(|why| io::Error::other(&**why))?;
        private(&own.folder, pod)?;
        Ok(own.path.join(pod))
    }

    /// Removes what is there of a pod.
    pub(crate) fn remove(&self, pod: &PodUid) {
        if let Ok(own) = &self.0 {
            own.remove(OsStr::new(&*pod.0));
        }
    }

    /// Folders of pods but these.
    pub(crate) fn leftovers(&self, used: &HashSet<&OsStr>) -> Vec<PathBuf> {
        let Ok(own) = &self.0 else { return Vec::new() };
        let mut left = Vec::new();
        for entry in Dir::read_from(&own.folder).into_iter().flatten().flatten() {
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if ![".", ".."].map(OsStr::new).contains(&name) && !used.contains(name) {
                left.push(own.path.join(name));
            }
        }
        left
    }
}

impl Own {
    fn open(place: &Place, data_dir: &Path) -> io::Result<Self> {
        let failed = |path: &Path| {
            let path = path.display().to_string();
            move |error: io::Error| io::Error::other(format!("{path}: {error}"))
        };
        let runtime = open(CWD, &place.path, place.closed).map_err(failed(&place.path))?;
        let mut path = place.path.join(AGENTS);
        // An administrator may have mounted one there that is smaller, or the only one.
        let is_there = rustix::fs::statat(&runtime, AGENTS, rustix::fs::AtFlags::SYMLINK_NOFOLLOW).is_ok();
        if !is_there && !is_in_memory(&runtime)? {
            return Err(failed(&place.path)(io::Error::other("not a file system in memory")));
        }
        let agents = private(&runtime, AGENTS).map_err(failed(&path))?;
        if !is_in_memory(&agents)? {
            return Err(failed(&path)(io::Error::other("not a file system in memory")));
        }
        let id = id(data_dir).map_err(failed(&data_dir.join(ID)))?;
        path.push(&id);
        let folder = File::from(private(&agents, &id).map_err(failed(&path))?);
        folder.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => failed(&path)(io::Error::other("another agent uses it")),
            TryLockError::Error(error) => failed(&path)(error),
        })?;
        Ok(Self { path, folder })
    }

    fn remove(&self, name: &OsStr) {
        match remove_tree_in(&self.folder, Path::new(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                let folder = self.path.join(name);
                tracing::warn!(folder = %folder.display(), %error, "can't remove a pod's volumes in memory");
            }
            _ => {}
        }
    }
}

impl Place {
    /// Both are made by the system when it starts. `/dev/shm` is everybody's.
    fn of_this_user() -> Option<Self> {
        if rustix::process::geteuid().is_root() {
            return Some(Self { path: "/run".into(), closed: Mode::WGRP | Mode::WOTH });
        }
        let path = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute())?;
        Some(Self { path, closed: Mode::RWXG | Mode::RWXO })
    }
}

/// The name of the agent's folder there. It is random: a data folder that is made anew doesn't come upon what another one had.
fn id(data_dir: &Path) -> io::Result<String> {
    let file = data_dir.join(ID);
    // What else may be in it names no folder.
    let known = fs::read_to_string(&file).ok().and_then(|text| Uuid::parse_str(text.trim()).ok());
    if let Some(known) = known {
        return Ok(known.to_string());
    }
    let new = Uuid::new_v4().to_string();
    fs::write(file, &new)?;
    Ok(new)
}

/// Opens a folder that is this user's and closed to others that far.
fn open(above: impl AsFd, name: impl rustix::path::Arg, closed: Mode) -> io::Result<OwnedFd> {
    let folder = rustix::fs::openat(above, name, FOLDER, Mode::empty())?;
    let about = rustix::fs::fstat(&folder)?;
    let is_own = about.st_uid == rustix::process::geteuid().as_raw();
    match is_own && !Mode::from_raw_mode(about.st_mode).intersects(closed) {
        true => Ok(folder),
        false => Err(io::Error::other("somebody else's, or open to others")),
    }
}

/// The same of one that nobody else may look into, made if it isn't there.
fn private(above: impl AsFd, name: &str) -> io::Result<OwnedFd> {
    match rustix::fs::mkdirat(&above, name, Mode::RWXU) {
        Err(error) if error != Errno::EXIST => return Err(error.into()),
        _ => {}
    }
    open(above, name, Mode::RWXG | Mode::RWXO)
}

/// Is what is open on a file system in memory?
pub(super) fn is_in_memory(file: impl AsFd) -> io::Result<bool> {
    Ok(u32::try_from(rustix::fs::fstatfs(file)?.f_type) == Ok(TMPFS))
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt as _, chown, symlink};

    use tempfile::TempDir;

    use super::*;

    fn private_in(folder: &Path) -> io::Result<TempDir> {
        tempfile::Builder::new().permissions(Permissions::from_mode(0o700)).tempdir_in(folder)
    }

    /// A place in memory, if there is one, and a data folder.
    fn places() -> Option<(TempDir, TempDir)> {
        let place = private_in(Path::new("/dev/shm")).ok()?;
        let is_in_memory = is_in_memory(File::open(place.path()).expect("open")).expect("looked at");
        is_in_memory.then(|| (place, tempfile::tempdir().expect("a folder")))
    }

    fn memory(place: &TempDir, data: &TempDir) -> Memory {
        let place = Place { path: place.path().to_owned(), closed: Mode::RWXG | Mode::RWXO };
        Memory::at(Some(place), data.path())
    }

    fn refused(memory: &Memory) -> String {
        memory.make("u-1").expect_err("refused").to_string()
    }

    #[test]
    fn a_data_folder_has_its_own_that_no_other_agent_uses_meanwhile() {
        let Some((place, data)) = places() else { return };
        let first = memory(&place, &data);
        let own = first.make("u-1").expect("made");
        assert!(own.starts_with(place.path().join(AGENTS)), "{own:?}");
        fs::write(own.join("kept"), "k").expect("written");
        assert!(refused(&memory(&place, &data)).contains("another agent uses it"));
        let other = tempfile::tempdir().expect("a folder");
        assert_ne!(memory(&place, &other).make("u-1").expect("made"), own);
        drop(first);
        let again = memory(&place, &data).make("u-1").expect("it is free again");
        assert_eq!(fs::read(again.join("kept")).expect("kept"), b"k");
        // What is in the file is no way out.
        fs::write(data.path().join(ID), "../../outside").expect("written");
        let new = memory(&place, &data).make("u-1").expect("made");
        assert!(new != own && new.starts_with(place.path().join(AGENTS)) && !new.join("kept").exists(), "{new:?}");
    }

    #[test]
    fn only_pods_that_are_no_more_go_and_no_link_is_followed() {
        let Some((place, data)) = places() else { return };
        let memory = memory(&place, &data);
        let [used, left, removed] = ["u-1", "u-2", "u-3"].map(|pod| memory.make(pod).expect("made"));
        let outside = tempfile::tempdir().expect("a folder");
        fs::write(outside.path().join("kept"), "k").expect("written");
        symlink(outside.path(), left.with_file_name("link")).expect("linked");
        symlink(outside.path(), left.join("link")).expect("linked");
        memory.remove(&PodUid::from("u-3"));
        assert!(used.exists() && left.exists() && !removed.exists());
        memory
            .leftovers(&HashSet::from([OsStr::new("u-1")]))
            .iter()
            .for_each(|folder| drop(husk_engine::remove_tree(folder)));
        assert!(used.exists() && !left.exists());
        assert!(fs::symlink_metadata(left.with_file_name("link")).is_ok(), "it is no folder of a pod");
        assert!(outside.path().join("kept").exists());
    }

    #[test]
    fn where_others_can_write_or_have_made_something_before_nothing_is_made_or_removed() {
        let Some((place, data)) = places() else { return };
        let set = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).expect("set");
        set(place.path(), 0o1777);
        assert!(refused(&memory(&place, &data)).contains("open to others"));
        set(place.path(), 0o700);
        // Another one of theirs has what the sweep would remove.
        let victim = tempfile::tempdir_in(place.path()).expect("a folder");
        let agents = place.path().join(AGENTS);
        symlink(victim.path(), &agents).expect("linked");
        refused(&memory(&place, &data));
        fs::remove_file(&agents).expect("removed");
        fs::create_dir(&agents).expect("made");
        set(&agents, 0o755);
        assert!(refused(&memory(&place, &data)).contains("open to others"));
        set(&agents, 0o700);
        if chown(&agents, Some(12345), None).is_ok() {
            assert!(refused(&memory(&place, &data)).contains("somebody else's"));
            chown(&agents, Some(0), None).expect("given back");
        }
        let id = id(data.path()).expect("written");
        symlink(victim.path(), agents.join(id)).expect("linked");
        fs::create_dir(victim.path().join("u-9")).expect("made");
        let memory = memory(&place, &data);
        refused(&memory);
        memory.leftovers(&HashSet::new()).iter().for_each(|folder| drop(husk_engine::remove_tree(folder)));
        assert!(victim.path().join("u-9").exists());
    }

    #[test]
    fn what_is_on_a_disk_is_no_memory() {
        let place = private_in(&env::temp_dir()).expect("a folder");
        let data = tempfile::tempdir().expect("a folder");
        if is_in_memory(File::open(place.path()).expect("open")).expect("looked at") {
            return;
        }
        assert!(refused(&memory(&place, &data)).contains("not a file system in memory"));
        assert!(!place.path().join(AGENTS).exists() && !data.path().join(ID).exists());
        assert!(refused(&Memory::at(None, data.path())).contains("XDG_RUNTIME_DIR"));
    }
}
