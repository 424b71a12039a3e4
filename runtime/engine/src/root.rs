//! A container's root directory.
//!
//! A Linux container sees its image at `/` and may write there, until it ends. Here a container whose image is one file has an
//! empty, writable `/`, and one whose image is a directory has that at `/`, read-only since all its containers share it, and a
//! writable `/tmp`. What it writes is gone when it has ended. Its working directory is made if it isn't there, as runc does.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::lchown;
use std::path::{Component, Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::container::ContainerConfig;
use crate::files::{self, FileError};
use crate::mount::Mount;
use crate::owner::Owner;
use crate::remove::{Scratch, remove_tree};

/// Begins the name of an engine's directory; the process id follows.
const PREFIX: &str = "husk-";

const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Why a container has no root directory, or no working directory in it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RootError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{}: root directory of the container: {source}", folder.display())]
    Root { folder: PathBuf, source: io::Error },
    #[error("{}: can't be given to user {}: {source}", path.display(), owner.user)]
    Owner { path: PathBuf, owner: Owner, source: io::Error },
    #[error("termination message file {path}: can't be made: {source}")]
    LastWords { path: String, source: io::Error },
    #[error("workingDir {path}: can't be made: {source}")]
    WorkingDir { path: String, source: io::Error },
    #[error(
        "workingDir {path}: not there, and {place} is read-only; mount a volume at it, or make the folder in what is mounted at {place}"
    )]
    ReadOnly { path: String, place: String },
}

/// So many directories of engines that are gone may wait to be removed.
const MOST_LEFT: usize = 4;

/// A directory for the containers of this engine alone, in `place` or where the system has temporary files. What engines left there
/// whose process is gone without a chance to clean up is removed beside everything else, after a while: a device that comes back after a
/// power cut has more urgent work for its disk, and some file systems make new files slowly just after many were removed. It doesn't wait
/// if that happens again and again.
pub(crate) fn scratch(place: Option<&Path>, removed_after: Duration) -> io::Result<Scratch> {
    let temporary = std::env::temp_dir();
    let place = place.unwrap_or(&temporary);
    fs::create_dir_all(place)?;
    let entries = fs::read_dir(place)?.flatten().filter(|entry| entry.file_name().to_str().is_some_and(is_abandoned));
    let abandoned: Vec<PathBuf> =
        entries.map(|entry| entry.path()).filter(|path| path.is_dir() && !path.is_symlink()).collect();
    if !abandoned.is_empty() {
        let wait = if abandoned.len() > MOST_LEFT { Duration::ZERO } else { removed_after };
        thread::Builder::new().name("husk-leftovers".into()).spawn(move || {
            thread::sleep(wait);
            for path in abandoned {
                let _ = remove_tree(&path);
            }
        })?;
    }
    Scratch::new(&format!("{PREFIX}{}-", std::process::id()), place)
}

/// Whether it is the directory of an engine in a process that doesn't run any more.
fn is_abandoned(name: &str) -> bool {
    let process = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next()?.parse::<u32>().ok());
    process.is_some_and(|process| !Path::new("/proc").join(process.to_string()).exists())
}

/// Adds the root directory to a container's mounts, unless one of them is the root, and makes the working directory. The answer
/// is what is the container's own; it is removed when that is dropped.
pub(crate) fn add(config: &mut ContainerConfig, folder: &Path) -> Result<Vec<Scratch>, RootError> {
    let files = files::take(config)?;
    let root = add_root(config, folder).map_err(|source| RootError::Root { folder: folder.to_path_buf(), source })?;
    let mut own: Vec<_> = root.into_iter().collect();
    files::put(files, config, folder, &mut own)?;
    if let Some(path) = &config.working_dir {
        add_working_dir(path, &config.mounts, &own)?;
    }
    Ok(own)
}

fn add_root(config: &mut ContainerConfig, folder: &Path) -> io::Result<Option<Scratch>> {
    let has = |config: &ContainerConfig, guest: &str| config.mounts.iter().any(|mount| mount.guest == guest);
    if has(config, "/") {
        return Ok(None);
    }
    if let Some(root) = config.image.root() {
        config.mounts.push(Mount::new(root, "/", true));
        if config.read_only_root || has(config, "/tmp") {
            return Ok(None);
        }
        return writable(config, folder, "/tmp").map(Some);
    }
    let own = writable(config, folder, "/")?;
    // So that a listing of the root shows what is mounted in it.
    for guest in config.mounts.iter().map(|mount| mount.guest.as_str()).chain(["/tmp"]) {
        fs::create_dir_all(own.path().join(inside(guest)))?;
    }
    Ok(Some(own))
}

fn add_working_dir(path: &str, mounts: &[Mount], own: &[Scratch]) -> Result<(), RootError> {
    let Some((rest, mount)) = place(path, mounts) else { return Ok(()) };
    // The container's own directory is made here and now, also where the guest is not to write.
    if !mount.read_only || own.iter().any(|own| own.path() == mount.host) {
        return make(&mount.host, &rest).map_err(|source| RootError::WorkingDir { path: path.into(), source });
    }
    match mount.host.join(rest).is_dir() {
        true => Ok(()),
        false => Err(RootError::ReadOnly { path: path.into(), place: mount.guest.clone() }),
    }
}

/// The mount that a path is in, and what is left of the path there.
pub(crate) fn place<'a>(path: &str, mounts: &'a [Mount]) -> Option<(PathBuf, &'a Mount)> {
    let wanted = inside(path);
    let below = |mount: &Mount| wanted.strip_prefix(inside(&mount.guest)).map(Path::to_path_buf).ok();
    let nearest = mounts.iter().filter_map(|mount| below(mount).map(|rest| (rest, mount)));
    nearest.min_by_key(|(rest, _)| rest.components().count())
}

/// Makes a directory and those above it. Links are the guests' and may lead anywhere: none is followed, and what is behind one
/// is left as it is.
pub(crate) fn make(base: &Path, rest: &Path) -> io::Result<()> {
    let mut folder = rustix::fs::open(base, FOLDER, Mode::empty())?;
    for part in rest {
        match rustix::fs::mkdirat(&folder, part, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        folder = match rustix::fs::openat(&folder, part, FOLDER | OFlags::NOFOLLOW, Mode::empty()) {
            Ok(next) => next,
            Err(Errno::NOTDIR | Errno::LOOP) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
    }
    Ok(())
}

/// A directory below another one, by no link.
pub(crate) fn walk(base: &Path, rest: &Path) -> io::Result<OwnedFd> {
    let mut folder = rustix::fs::open(base, FOLDER, Mode::empty())?;
    for part in rest {
        folder = rustix::fs::openat(&folder, part, FOLDER | OFlags::NOFOLLOW, Mode::empty())?;
    }
    Ok(folder)
}

/// Gives the folders that are the container's own to whom the guest's files belong. The files in them are mounted from elsewhere.
pub(crate) fn hand_over(own: &[Scratch], owner: &Owner) -> Result<(), RootError> {
    own.iter().try_for_each(|own| hand_over_one(own.path(), owner))
}

fn hand_over_one(path: &Path, owner: &Owner) -> Result<(), RootError> {
    let failed = |source| RootError::Owner { path: path.to_path_buf(), owner: owner.clone(), source };
    for entry in fs::read_dir(path).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if entry.file_type().map_err(failed)?.is_dir() {
            hand_over_one(&entry.path(), owner)?;
        }
    }
    lchown(path, Some(owner.user), Some(owner.group)).map_err(failed)
}

fn writable(config: &mut ContainerConfig, folder: &Path, guest: &str) -> io::Result<Scratch> {
    let own = Scratch::new("container-", folder)?;
    config.mounts.push(Mount::new(own.path(), guest, config.read_only_root));
    Ok(own)
}

/// A path below a root, whatever `..` is in it.
pub(crate) fn inside(path: &str) -> PathBuf {
    Path::new(path).components().filter(|part| matches!(part, Component::Normal(_))).collect()
}
