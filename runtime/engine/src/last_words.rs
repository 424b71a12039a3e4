//! The file that a container may write its last words to: Kubernetes' termination message.
//!
//! Elsewhere that file is mounted over whatever is in its place. WASI knows directories only, so here it is in
//!
//! * the container's own root directory, where its path leads there; or else
//! * a directory of its own in the place of the one that the file is in, if that is empty or not there; or else
//! * the volume that its path leads into.
//!
//! A read-only directory with other files in it, or a volume that can't be written, stays as it is, and then there is no such file.

use std::fs::{self, File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::container::ContainerConfig;
use crate::mount::Mount;
use crate::remove::Scratch;
use crate::root::{RootError, inside, make, place, walk};

/// So many bytes are read, the last of the file.
const MOST_BYTES: u64 = husk_core::termination_message::MOST_OF_FILE as u64;

/// A file that was not there.
const NEW: OFlags =
    OFlags::WRONLY.union(OFlags::CREATE).union(OFlags::EXCL).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Where the file is.
#[derive(Debug)]
pub(crate) struct LastWords {
    host: PathBuf,
    /// Below `host`.
    folder: PathBuf,
    name: PathBuf,
    /// User and group that the guest acts as, if not as the node's.
    owner: Option<(u32, u32)>,
    /// What a volume had there when the container started: that is somebody's, and no word of this container's.
    before: Option<Stamp>,
}

/// Tells versions of a file apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    number: (u64, u64),
    length: u64,
    modified: (i64, i64),
}

impl Stamp {
    fn of(about: &Metadata) -> Self {
        let modified = (about.mtime(), about.mtime_nsec());
        Self { number: (about.dev(), about.ino()), length: about.len(), modified }
    }
}

impl LastWords {
    /// Makes the file, empty; in a volume only if there is none, and not for guests that act as others than the node, who make it
    /// themselves where they may. What is made for it becomes the container's own.
    pub(crate) fn prepare(
        config: &mut ContainerConfig,
        scratch: &Path,
        own: &mut Vec<Scratch>,
    ) -> Result<Option<Self>, RootError> {
        let Some(path) = config.last_words.clone() else { return Ok(None) };
        let failed = |source| RootError::LastWords { path: path.clone(), source };
        let Some((rest, mount)) = place(&path, &config.mounts) else { return Ok(None) };
        let (Some(folder), Some(name)) = (rest.parent(), rest.file_name()) else { return Ok(None) };
        let (folder, name) = (folder.to_path_buf(), PathBuf::from(name));
        let is_own = own.iter().any(|own| own.path() == mount.host);
        let owner = config.owner.as_ref().map(|owner| (owner.user, owner.group));
        let (mut file, is_volume) = if is_own && !mount.read_only {
            make(&mount.host, &folder).map_err(failed)?;
            (Self { host: mount.host.clone(), folder, name, owner, before: None }, false)
        } else if !folder.as_os_str().is_empty() && is_free(&mount.host, &folder) {
            let made = Scratch::new("last-words-", scratch).map_err(failed)?;
            if is_own {
                // So that a listing of the root shows it.
                make(&mount.host, &folder).map_err(failed)?;
            }
            let host = made.path().to_path_buf();
            let guest = Path::new("/").join(inside(&path)).parent().map(|folder| folder.display().to_string());
            config.mounts.push(Mount::new(&host, guest.unwrap_or_default(), false));
            own.push(made);
            (Self { host, folder: PathBuf::new(), name, owner, before: None }, false)
        } else if !mount.read_only {
            (Self { host: mount.host.clone(), folder, name, owner, before: None }, true)
        } else {
            return Ok(None);
        };
        if is_volume {
            // Of a volume that can't be written, for whatever reason, the pod still may have its use.
            return Ok(file.keep().is_ok().then_some(file));
        }
        match file.clear() {
            Ok(()) => Ok(Some(file)),
            // A directory in its place, or a link on the way: there is no such file.
            Err(Errno::ISDIR | Errno::NOTDIR | Errno::LOOP | Errno::PERM) => Ok(None),
            Err(error) => Err(failed(error.into())),
        }
    }

    /// Makes an empty file if there is none, unless that would be somebody's who may not make it there.
    fn keep(&mut self) -> io::Result<()> {
        if self.owner.is_none() {
            make(&self.host, &self.folder)?;
            let folder = walk(&self.host, &self.folder)?;
            match rustix::fs::openat(&folder, &self.name, NEW, Mode::from_raw_mode(0o666)) {
                Ok(_) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.before = self.open().map(|(_, about)| Stamp::of(&about));
        Ok(())
    }

    /// Puts an empty file in the place of what an instance before may have left.
    fn clear(&self) -> Result<(), Errno> {
        let errno = |error: io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
        let folder = walk(&self.host, &self.folder).map_err(errno)?;
        match rustix::fs::unlinkat(&folder, &self.name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error),
        }
        let file = rustix::fs::openat(&folder, &self.name, NEW, Mode::from_raw_mode(0o666))?;
        match self.owner {
            Some((user, group)) => fchown(&file, Some(user), Some(group)).map_err(errno),
            None => Ok(()),
        }
    }

    /// The end of what is in the file. Whatever a guest put in its place, nothing else is read.
    pub(crate) fn read(&self) -> Option<Vec<u8>> {
        let (mut file, about) = self.open()?;
        if self.before == Some(Stamp::of(&about)) {
            return None;
        }
        file.seek(SeekFrom::Start(about.len().saturating_sub(MOST_BYTES))).ok()?;
        let mut bytes = Vec::new();
        file.take(MOST_BYTES).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    /// The file, if it is one.
    fn open(&self) -> Option<(File, Metadata)> {
        let folder = walk(&self.host, &self.folder).ok()?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::openat(&folder, &self.name, flags, Mode::empty()).ok()?);
        let about = file.metadata().ok().filter(Metadata::is_file)?;
        // What is somebody else's is nothing that this guest wrote: it may have put it there to have it read.
        if self.owner.is_some_and(|(user, _)| user != about.uid()) {
            return None;
        }
        Some((file, about))
    }
}

/// Nothing would be hidden by a mount there.
fn is_free(base: &Path, folder: &Path) -> bool {
    match fs::read_dir(base.join(folder)) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}
