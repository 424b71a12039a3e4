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
    /// For people.
    text: String,
}

impl Limits {
    /// Of a pod that may have so much memory. As upstream, that bounds its volumes in memory as well.
    pub(crate) fn of(spec: Option<&PodSpec>, memory: Option<&Quantity>) -> Self {
        let limit = |volume: &Volume| {
            let source = volume.empty_dir.as_ref()?;
            let own = source.size_limit.as_ref().and_then(|limit| Quantity::parse(&limit.0).ok());
            let memory = memory.filter(|_| source.medium.as_deref() == Some("Memory")).cloned();
            // As everywhere in Kubernetes, 0 is no limit.
            let limit = own.into_iter().chain(memory).filter(|limit| *limit > Quantity::ZERO).min()?;
            let bytes = u64::try_from(limit.value()).unwrap_or(u64::MAX);
            Some(Limit { volume: volume.name.clone(), bytes, text: limit.to_string() })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volume_in_memory_is_bounded_by_the_memory_of_its_pod() {
        let text =
            "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers: [{name: a, image: x}]\n  volumes:
  - {name: disk, emptyDir: {}}
  - {name: small-disk, emptyDir: {sizeLimit: 1Mi}}
  - {name: none, emptyDir: {sizeLimit: 0}}
  - {name: mem, emptyDir: {medium: Memory}}
  - {name: small, emptyDir: {medium: Memory, sizeLimit: 1000k}}
  - {name: big, emptyDir: {medium: Memory, sizeLimit: 1Gi}}
";
        let decoded = husk_api::check(text, "pod.yaml");
        let pod = husk_api::pod_of(&decoded.documents[0].object).expect("a pod");
        let limits = |memory: Option<&str>| {
            let memory = memory.map(|text| Quantity::parse(text).expect("a quantity"));
            let Limits(limits) = Limits::of(pod.spec.as_ref(), memory.as_ref());
            limits
                .into_iter()
                .map(|limit| format!("{} {} {}", limit.volume, limit.bytes, limit.text))
                .collect::<Vec<_>>()
        };
        let small_disk = "small-disk 1048576 1Mi";
        let bounded = [small_disk, "mem 67108864 64Mi", "small 1000000 1M", "big 67108864 64Mi"];
        assert_eq!(limits(Some("64Mi")), bounded);
        assert_eq!(limits(None), [small_disk, "small 1000000 1M", "big 1073741824 1Gi"]);
    }
}
