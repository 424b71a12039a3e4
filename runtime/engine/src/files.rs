//! Mounts of single files, which WASI doesn't know: they are put into a folder that the guest sees anyway.

use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, accessat, linkat};
use rustix::io::Errno;

use crate::container::ContainerConfig;
use crate::mount::Mount;
use crate::remove::Scratch;
use crate::root::{self, inside, place};

/// Bytes of a file that is copied.
const MAX_COPY: u64 = 64 << 20;

/// Why a file can't be mounted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FileError {
    #[error("mount {guest}: {}: neither a folder nor a file: nothing else can be mounted", host.display())]
    Special { host: PathBuf, guest: String },
    #[error(
        "mount {guest}: a file can't be mounted into {place}, which is a volume; mount it elsewhere, or put it into that volume"
    )]
    InVolume { guest: String, place: String },
    #[error("mount {guest}: {}: {source}", host.display())]
    Failed { host: PathBuf, guest: String, source: io::Error },
}

/// Takes the mounts of single files out of a container's mounts. What isn't there is left to who opens it.
pub(crate) fn take(config: &mut ContainerConfig) -> Result<Vec<Mount>, FileError> {
    let mut files = Vec::new();
    for mount in std::mem::take(&mut config.mounts) {
        match fs::metadata(&mount.host) {
            Ok(about) if about.is_file() => files.push(mount),
            Ok(about) if !about.is_dir() => {
                return Err(FileError::Special { host: mount.host, guest: mount.guest });
            }
            _ => config.mounts.push(mount),
        }
    }
    Ok(files)
}

/// Puts files where the guest wants to see them. What is made for that becomes the container's own.
pub(crate) fn put(
    files: Vec<Mount>,
    config: &mut ContainerConfig,
    scratch: &Path,
    own: &mut Vec<Scratch>,
) -> Result<(), FileError> {
    let mut into_image: BTreeMap<PathBuf, Vec<Mount>> = BTreeMap::new();
    for file in files {
        let Some((rest, mount)) = place(&file.guest, &config.mounts) else { continue };
        if own.iter().any(|own| own.path() == mount.host) && rest.file_name().is_some() {
            let folder = rest.parent().unwrap_or(Path::new(""));
            root::make(&mount.host, folder).map_err(|source| failed(&file, source))?;
            put_one(&file, &mount.host.join(&rest), !mount.read_only).map_err(|source| failed(&file, source))?;
        } else if config.image.root() == Some(&*mount.host) && rest.file_name().is_some() {
            let folder = inside(&file.guest).parent().map(Path::to_path_buf).unwrap_or_default();
            into_image.entry(folder).or_default().push(file);
        } else {
            return Err(FileError::InVolume { place: mount.guest.clone(), guest: file.guest });
        }
    }
    for (folder, files) in into_image {
        let first = files[0].clone();
        let made = cover(config, &folder, &files, scratch).map_err(|source| failed(&first, source))?;
        own.push(made);
    }
    Ok(())
}

fn failed(file: &Mount, source: io::Error) -> FileError {
    FileError::Failed { host: file.host.clone(), guest: file.guest.clone(), source }
}

/// Puts a folder with these files and all that the image has there in the place of a folder of the image.
fn cover(config: &mut ContainerConfig, folder: &Path, files: &[Mount], scratch: &Path) -> io::Result<Scratch> {
    let made = Scratch::new("files-", scratch)?;
    let guest = |rest: &Path| Path::new("/").join(folder).join(rest).display().to_string();
    let writable = !config.read_only_root && files.iter().any(|file| !file.read_only);
    let names: Vec<_> = files.iter().filter_map(|file| inside(&file.guest).file_name().map(PathBuf::from)).collect();
    for (name, target) in in_image(config, folder) {
        let place = made.path().join(&name);
        if names.contains(&name) {
            continue;
        }
        if target.is_dir() {
            fs::create_dir(&place)?;
            let at = guest(&name);
            if !config.mounts.iter().any(|mount| inside(&mount.guest) == inside(&at)) {
                config.mounts.push(Mount::new(target, at, true));
            }
        } else {
            put_one(&Mount::new(target, guest(&name), true), &place, writable)?;
        }
    }
    for (file, name) in files.iter().zip(&names) {
        put_one(file, &made.path().join(name), writable)?;
    }
    // So that a listing shows what is mounted below.
    for rest in
        config.mounts.iter().filter_map(|mount| inside(&mount.guest).strip_prefix(folder).ok().map(PathBuf::from))
    {
        fs::create_dir_all(made.path().join(rest))?;
    }
    config.mounts.retain(|mount| inside(&mount.guest) != folder);
    config.mounts.push(Mount::new(made.path(), guest(Path::new("")), !writable));
    Ok(made)
}

/// What the image has in a folder: name, and what it leads to inside the image.
fn in_image(config: &ContainerConfig, folder: &Path) -> Vec<(PathBuf, PathBuf)> {
    let Some(root) = config.image.root() else { return Vec::new() };
    let Ok(there) = root.join(folder).canonicalize() else { return Vec::new() };
    let entries = fs::read_dir(there).into_iter().flatten().flatten();
    let inside = |path: &PathBuf| path.starts_with(root) && (path.is_dir() || path.is_file());
    entries.filter_map(|e| Some((e.file_name().into(), e.path().canonicalize().ok().filter(inside)?))).collect()
}

/// Gives a file another name, or copies it if what the guest writes must not reach it.
fn put_one(file: &Mount, target: &Path, is_writable: bool) -> io::Result<()> {
    if file.read_only && is_writable {
        return copy(file, target);
    }
    match linkat(CWD, &file.host, CWD, target, AtFlags::SYMLINK_FOLLOW) {
        Ok(()) => Ok(()),
        // Of what this node can't write itself a copy is as good.
        Err(Errno::XDEV | Errno::PERM | Errno::ACCESS | Errno::MLINK)
            if file.read_only || accessat(CWD, &file.host, Access::WRITE_OK, AtFlags::empty()).is_err() =>
        {
            copy(file, target)
        }
        Err(Errno::XDEV) => Err(io::Error::other(
            "is on another disk than the node's data, so it can't be written from here; mount it with readOnly: true, or mount its folder",
        )),
        Err(error) => Err(error.into()),
    }
}

fn copy(file: &Mount, target: &Path) -> io::Result<()> {
    let mut from = File::open(&file.host)?;
    let about = from.metadata()?;
    if about.len() > MAX_COPY {
        return Err(io::Error::other(format!("bigger than the {MAX_COPY} bytes that are copied; mount its folder")));
    }
    let mut to = File::create_new(target)?;
    io::copy(&mut io::Read::take(&mut from, MAX_COPY), &mut to)?;
    // Who may read the file may read the copy, and nobody may write it. A node that isn't root can give nothing away.
    match fchown(&to, Some(about.uid()), Some(about.gid())) {
        Err(error) if error.kind() != io::ErrorKind::PermissionDenied => return Err(error),
        _ => {}
    }
    to.set_permissions(Permissions::from_mode(about.mode() & 0o555))
}
