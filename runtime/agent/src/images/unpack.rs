//! Layers become the files of an image.
//!
//! A layer is somebody else's tar: nothing of it leaves the image's root. Each folder on the way to a file is opened by
//! itself and no link is followed; what a link points to is the guest's business, whose view ends at that root.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path};

use flate2::read::MultiGzDecoder;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;
use tar::EntryType;

use super::oci::LayerKind;

/// Bytes of an image's files, at most: a few bytes of gzip can be many.
const MAX_BYTES: u64 = 4 << 30;
/// Files of an image, at most.
const MAX_FILES: u64 = 200_000;

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// Begins the name of a file that says that one of a lower layer is gone.
const WHITEOUT: &[u8] = b".wh.";
/// Says that all that lower layers have in its folder is gone.
const OPAQUE: &[u8] = b".wh..wh..opq";

/// The root of an image while it is made.
pub(crate) struct Unpacker {
    root: OwnedFd,
    bytes: u64,
    files: u64,
}

impl Unpacker {
    /// In an empty folder.
    pub(crate) fn new(root: &Path) -> io::Result<Self> {
        let root = rustix::fs::open(root, FOLDER, Mode::empty())?;
        Ok(Self { root, bytes: 0, files: 0 })
    }

    /// Adds a layer. `name` is the name of the file if it is a module.
    pub(crate) fn add(&mut self, layer: impl Read, kind: LayerKind, name: &str) -> io::Result<()> {
        match kind {
            LayerKind::Module => {
                let root = self.root.try_clone()?;
                self.file(&root, OsStr::new(name), layer, false)
            }
            LayerKind::Tar => self.tar(layer),
            LayerKind::TarGzip => self.tar(MultiGzDecoder::new(layer)),
        }
    }

    /// Makes a folder that has to be there: a working directory.
    pub(crate) fn folder(&self, path: &str) -> io::Result<()> {
        self.walk(Path::new(path).components().filter_map(|part| match part {
            Component::Normal(name) => Some(name),
            _ => None,
        }))
        .map(drop)
    }

    fn tar(&mut self, layer: impl Read) -> io::Result<()> {
        let mut archive = tar::Archive::new(layer);
        for entry in archive.entries()? {
            let entry = entry?;
            let path = entry.path()?.into_owned();
            self.entry(entry, &path)
                .map_err(|error| io::Error::new(error.kind(), format!("`{}`: {error}", path.display())))?;
        }
        // What follows the end of the tar belongs to the layer's digest.
        io::copy(&mut archive.into_inner(), &mut io::sink())?;
        Ok(())
    }

    fn entry(&mut self, entry: tar::Entry<'_, impl Read>, path: &Path) -> io::Result<()> {
        let parts = parts(path)?;
        let Some((name, folders)) = parts.split_last() else { return Ok(()) };
        self.count(0)?;
        let folder = self.walk(folders.iter().copied())?;
        if name.as_bytes() == OPAQUE {
            return clear(&folder);
        }
        if let Some(gone) = name.as_bytes().strip_prefix(WHITEOUT) {
            if matches!(gone, b"" | b"." | b"..") {
                return Err(Errno::INVAL.into());
            }
            return remove(&folder, OsStr::from_bytes(gone));
        }
        let link = || {
            let target = entry.link_name()?.map(|target| target.into_owned());
            target.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "a link to nothing"))
        };
        match entry.header().entry_type() {
            EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
                let runs = entry.header().mode().is_ok_and(|mode| mode & 0o111 != 0);
                self.file(&folder, name, entry, runs)
            }
            EntryType::Directory => match make_folder(&folder, name) {
                Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                    remove(&folder, name)?;
                    make_folder(&folder, name).map(drop)
                }
                made => made.map(drop),
            },
            EntryType::Symlink => {
                let target = link()?;
                remove(&folder, name)?;
                Ok(rustix::fs::symlinkat(&target, &folder, *name)?)
            }
            EntryType::Link => {
                let target = link()?;
                let parts = self::parts(&target)?;
                let Some((known, folders)) = parts.split_last() else { return Err(Errno::INVAL.into()) };
                let from = self.walk(folders.iter().copied())?;
                remove(&folder, name)?;
                Ok(rustix::fs::linkat(&from, *known, &folder, *name, AtFlags::empty())?)
            }
            // Devices and pipes: no guest could open them.
            _ => Ok(()),
        }
    }

    fn file(&mut self, folder: &OwnedFd, name: &OsStr, mut content: impl Read, runs: bool) -> io::Result<()> {
        remove(folder, name)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(if runs { 0o755 } else { 0o644 });
        let mut file = std::fs::File::from(rustix::fs::openat(folder, name, flags, mode)?);
        // Whatever the umask is.
        rustix::fs::fchmod(&file, mode)?;
        let written = io::copy(&mut content.by_ref().take(MAX_BYTES.saturating_sub(self.bytes) + 1), &mut file)?;
        self.count(written)
    }

    fn count(&mut self, bytes: u64) -> io::Result<()> {
        self.files += 1;
        self.bytes += bytes;
        let refused = |what| Err(io::Error::new(io::ErrorKind::FileTooLarge, what));
        match (self.files > MAX_FILES, self.bytes > MAX_BYTES) {
            (true, _) => refused(format!("the image has more than {MAX_FILES} files")),
            (_, true) => refused(format!("the image is bigger than {MAX_BYTES} bytes when it is unpacked")),
            _ => Ok(()),
        }
    }

    /// The folder of that path, made if it isn't there.
    fn walk<'a>(&self, parts: impl Iterator<Item = &'a OsStr>) -> io::Result<OwnedFd> {
        let mut folder = self.root.try_clone()?;
        for part in parts {
            folder = make_folder(&folder, part)?;
        }
        Ok(folder)
    }
}

fn parts(path: &Path) -> io::Result<Vec<&OsStr>> {
    let mut parts = Vec::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => parts.push(name),
            Component::RootDir | Component::CurDir => {}
            Component::ParentDir | Component::Prefix(_) => {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "the path leads out of the image"));
            }
        }
    }
    Ok(parts)
}

fn make_folder(folder: &OwnedFd, name: &OsStr) -> io::Result<OwnedFd> {
    match rustix::fs::mkdirat(folder, name, Mode::from_raw_mode(0o755)) {
        Ok(()) => rustix::fs::chmodat(folder, name, Mode::from_raw_mode(0o755), AtFlags::empty())?,
        Err(Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    match rustix::fs::openat(folder, name, FOLDER, Mode::empty()) {
        Ok(folder) => Ok(folder),
        Err(Errno::LOOP | Errno::NOTDIR) => Err(io::Error::new(
            io::ErrorKind::NotADirectory,
            format!("{} is no folder but a file or a link", name.display()),
        )),
        Err(error) => Err(error.into()),
    }
}

/// Removes what has that name, if anything.
fn remove(folder: &OwnedFd, name: &OsStr) -> io::Result<()> {
    match rustix::fs::unlinkat(folder, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        Err(Errno::ISDIR | Errno::PERM) => {}
        Err(error) => return Err(error.into()),
    }
    clear(&rustix::fs::openat(folder, name, FOLDER, Mode::empty())?)?;
    Ok(rustix::fs::unlinkat(folder, name, AtFlags::REMOVEDIR)?)
}

/// Removes all that is in a folder.
fn clear(folder: &OwnedFd) -> io::Result<()> {
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if matches!(name.as_bytes(), b"." | b"..") {
            continue;
        }
        match entry.file_type() {
            FileType::Directory | FileType::Unknown => remove(folder, name)?,
            _ => rustix::fs::unlinkat(folder, name, AtFlags::empty())?,
        }
    }
    Ok(())
}
