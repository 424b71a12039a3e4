//! The disk under a volume, as it was when the volume was made (PHASE-10).

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use k8s_openapi::api::core::v1::{Pod, Volume};
use rustix::fs::StatVfsMountFlags;

use crate::debugging::ephemeral_containers;
use crate::pod::containers;

/// The number of a disk, by which the machine knows it for as long as it is mounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct DiskNumber(pub(crate) u64);

/// A disk that can fail.
#[derive(Clone, Copy, Debug)]
pub(super) struct Disk {
    pub(super) number: DiskNumber,
    /// It is another one than the node's own, and somebody is to write to it, and could.
    is_written: bool,
}

impl Disk {
    /// The one under a volume that was just made. `folder` is for the pod's own volumes, on the node's disk: that this can't be written
    /// is the node's trouble, as it is while it is mounted anew, and ends no pod.
    pub(super) fn under(path: &Path, volume: &Volume, pod: &Pod, folder: &Path) -> io::Result<Self> {
        let number = DiskNumber(fs::metadata(path)?.dev());
        let above = folder.ancestors().find_map(|folder| fs::metadata(folder).ok());
        let is_of_node = above.is_some_and(|above| above.dev() == number.0);
        let all = containers(pod.spec.as_ref()).cloned().chain(ephemeral_containers(pod.spec.as_ref()));
        let mut mounts = all.flat_map(|container| container.volume_mounts.unwrap_or_default());
        let is_wanted = mounts.any(|mount| mount.name == volume.name && mount.read_only != Some(true));
        Ok(Self { number, is_written: is_wanted && !is_of_node && !is_read_only(path)? })
    }

    /// Looks whether it is there and does what it did: a folder can be listed, a file is there. What the node may not see may be
    /// there all the same.
    pub(super) fn look_into(self, path: &Path) -> io::Result<()> {
        match self.look(path) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
            looked => looked,
        }
    }

    fn look(self, path: &Path) -> io::Result<()> {
        let about = fs::metadata(path)?;
        if about.is_dir() {
            // (Files of an overlay change their number when they are first written to.)
            if about.dev() != self.number.0 {
                return Err(io::Error::other("it is not mounted any more, or another one is in its place"));
            }
            fs::read_dir(path)?.next().transpose()?;
        }
        if self.is_written && is_read_only(path)? {
            return Err(io::Error::other("it can't be written any more"));
        }
        Ok(())
    }
}

/// Can nothing be written there, whoever asks?
pub(crate) fn is_read_only(path: &Path) -> io::Result<bool> {
    Ok(rustix::fs::statvfs(path)?.f_flag.contains(StatVfsMountFlags::RDONLY))
}
