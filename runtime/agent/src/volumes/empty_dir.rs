//! `emptyDir`: a folder that lives and dies with its pod.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use husk_core::quantity::Quantity;
use k8s_openapi::api::core::v1::{EmptyDirVolumeSource, PodSpec, Volume};

use super::usage::usage;
use super::{Volumes, World, volumes};
use crate::users::VolumeOwner;

/// The place of a volume that is to be in memory. Where there is none it is on the disk, as one is that was there already.
pub(super) fn in_memory(on_disk: &Path, source: &EmptyDirVolumeSource, world: World<'_>) -> Option<PathBuf> {
    let medium = source.medium.as_deref().filter(|medium| !medium.is_empty())?;
    if on_disk.exists() {
        return None;
    }
    let meta = &world.pod.metadata;
    let folder = match medium {
        "Memory" => world.memory.make(meta.uid.as_deref().unwrap_or_default()),
        _ => Err(io::Error::other("this machine has no such medium")),
    };
    let refused = |error: &io::Error| {
        let (pod, volume) = (meta.name.as_deref().unwrap_or_default(), on_disk.display());
        tracing::warn!(pod, %volume, %error, "an emptyDir of medium {medium} is on the disk");
    };
    Some(folder.inspect_err(refused).ok()?.join(on_disk.file_name()?))
}

/// Makes the folder. What is there from before the node came back stays.
pub(super) fn make(folder: &Path, source: &EmptyDirVolumeSource, owner: VolumeOwner) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let mode = source.mode.and_then(|mode| u32::try_from(mode).ok()).unwrap_or(0o777) & 0o7777;
    owner.give(folder, None)?;
    // What is made in it belongs to the group as well.
    let mode = if owner.has_group() { mode | 0o2070 } else { mode };
    fs::set_permissions(folder, Permissions::from_mode(mode))
}

/// How much may be in the volumes of a pod (RES-06).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Limits(Vec<Limit>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Limit {
    volume: String,
    bytes: u64,
    /// As written.
    text: String,
}

impl Limits {
    /// Of a pod.
    pub(crate) fn of(spec: Option<&PodSpec>) -> Self {
        let limit = |volume: &Volume| {
            let text = volume.empty_dir.as_ref()?.size_limit.as_ref()?.0.clone();
            // As everywhere in Kubernetes, 0 is no limit.
            let bytes = u64::try_from(Quantity::parse(&text).ok()?.value()).ok().filter(|bytes| *bytes > 0)?;
            Some(Limit { volume: volume.name.clone(), bytes, text })
        };
        Self(volumes(spec).filter_map(limit).collect())
    }

    /// There is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Measures the volumes, which takes as long as there are files in them. The answer is upstream's message if one holds too much.
    pub(crate) fn exceeded(&self, volumes: &Volumes) -> Option<String> {
        let over = self.0.iter().find(|limit| {
            let folder = volumes.made.get(&limit.volume);
            folder.and_then(|made| usage(&made.path).ok()).is_some_and(|bytes| bytes > limit.bytes)
        })?;
        Some(format!("Usage of EmptyDir volume {:?} exceeds the limit {:?}. ", over.volume, over.text))
    }
}
