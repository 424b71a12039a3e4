//! `emptyDir`: a folder that lives and dies with its pod.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use husk_core::quantity::Quantity;
use k8s_openapi::api::core::v1::{EmptyDirVolumeSource, PodSpec};

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

/// How much may be in volumes of a pod (RES-06).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Each by its name, with what is its own.
    volumes: Vec<(String, Option<Limit>)>,
    /// Of all of them together.
    together: Option<Limit>,
    is_of_memory: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Limit {
    bytes: u64,
    /// For people.
    text: String,
}

impl Limits {
    /// Of volumes on the disk.
    pub(crate) fn on_disk(spec: Option<&PodSpec>) -> Self {
        let volumes = own_limits(spec, false).filter(|(_, limit)| limit.is_some()).collect();
        Self { volumes, ..Self::default() }
    }

    /// Of volumes in memory, in a pod that may have so much of it.
    pub(crate) fn in_memory(spec: Option<&PodSpec>, memory: Option<&Quantity>) -> Self {
        let volumes = own_limits(spec, true).collect();
        Self { volumes, together: memory.and_then(Limit::of), is_of_memory: true }
    }

    /// There is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.volumes.is_empty() || self.together.is_none() && self.volumes.iter().all(|(_, limit)| limit.is_none())
    }

    /// What they bound is memory.
    pub(crate) fn are_of_memory(&self) -> bool {
        self.is_of_memory
    }

    /// Measures the volumes, which takes as long as there are files in them. The answer is a message if they hold too much: upstream's, if
    /// it is one of them.
    pub(crate) fn exceeded(&self, volumes: &Volumes) -> Option<String> {
        let (mut all, mut in_memory) = (0_u64, 0_u64);
        for (name, own) in &self.volumes {
            let Some(made) = volumes.made.get(name) else { continue };
            let left = self.together.iter().map(|limit| limit.bytes.saturating_sub(all));
            let most = own.iter().map(|limit| limit.bytes).chain(left).min().unwrap_or(u64::MAX);
            let Ok(bytes) = usage(&made.path, most) else { continue };
            if let Some(limit) = own.as_ref().filter(|limit| bytes > limit.bytes) {
                return Some(format!("Usage of EmptyDir volume {name:?} exceeds the limit {:?}. ", limit.text));
            }
            all = all.saturating_add(bytes);
            // What has no disk that can fail: one that could not be had in memory is on the node's.
            in_memory = in_memory.saturating_add(if made.disk.is_none() { bytes } else { 0 });
            if let Some(limit) = self.together.as_ref().filter(|limit| all > limit.bytes) {
                return Some(format!("Usage of EmptyDir volumes in memory exceeds the pod's limit {:?}. ", limit.text));
            }
        }
        if self.is_of_memory {
            volumes.memory.store(in_memory, Ordering::Relaxed);
        }
        None
    }
}

impl Limit {
    /// As everywhere in Kubernetes, 0 is no limit.
    fn of(quantity: &Quantity) -> Option<Self> {
        let bytes = u64::try_from(quantity.value()).unwrap_or(u64::MAX);
        (*quantity > Quantity::ZERO).then(|| Self { bytes, text: quantity.to_string() })
    }
}

fn own_limits(spec: Option<&PodSpec>, in_memory: bool) -> impl Iterator<Item = (String, Option<Limit>)> {
    volumes(spec).filter_map(move |volume| {
        let source = volume.empty_dir.as_ref()?;
        let own = source.size_limit.as_ref().and_then(|limit| Limit::of(&Quantity::parse(&limit.0).ok()?));
        ((source.medium.as_deref() == Some("Memory")) == in_memory).then(|| (volume.name.clone(), own))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::Pod;

    use super::super::Made;
    use super::*;

    fn pod() -> Pod {
        let text =
            "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers: [{name: a, image: x}]\n  volumes:
  - {name: disk, emptyDir: {}}
  - {name: small-disk, emptyDir: {sizeLimit: 1Mi}}
  - {name: none, emptyDir: {sizeLimit: 0}}
  - {name: mem, emptyDir: {medium: Memory}}
  - {name: small, emptyDir: {medium: Memory, sizeLimit: 1000k}}
";
        let decoded = husk_api::check(text, "pod.yaml");
        husk_api::pod_of(&decoded.documents[0].object).expect("a pod")
    }

    fn in_memory(pod: &Pod, memory: Option<&str>) -> Limits {
        let memory = memory.map(|text| Quantity::parse(text).expect("a quantity"));
        Limits::in_memory(pod.spec.as_ref(), memory.as_ref())
    }

    #[test]
    fn only_what_is_bounded_is_measured() {
        let pod = pod();
        let names = |limits: &Limits| limits.volumes.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        let on_disk = Limits::on_disk(pod.spec.as_ref());
        assert_eq!((names(&on_disk), on_disk.are_of_memory()), (vec!["small-disk".to_owned()], false));
        let limits = in_memory(&pod, None);
        assert_eq!((names(&limits), limits.is_empty()), (vec!["mem".to_owned(), "small".to_owned()], false));
        let spec = PodSpec { volumes: None, ..PodSpec::default() };
        assert!(Limits::on_disk(Some(&spec)).is_empty());
        assert!(Limits::in_memory(Some(&spec), Some(&Quantity::parse("1Mi").expect("a quantity"))).is_empty());
    }

    #[test]
    fn volumes_in_memory_count_together_against_the_memory_of_their_pod() {
        let (pod, place) = (pod(), tempfile::tempdir().expect("a folder"));
        let made = |name: &str, bytes: usize| {
            let path = place.path().join(name);
            fs::create_dir(&path).expect("made");
            fs::write(path.join("file"), vec![7; bytes]).expect("written");
            (name.to_owned(), Made { path, disk: None, read_only: false, follows: false })
        };
        let made = BTreeMap::from([made("disk", 9 << 20), made("mem", 800 << 10), made("small", 800 << 10)]);
        let volumes = Volumes { made, ..Volumes::default() };
        assert_eq!(in_memory(&pod, None).exceeded(&volumes), None);
        assert_eq!(volumes.memory() >> 10, 1600, "what the pod holds of memory beside its guests");
        assert_eq!(in_memory(&pod, Some("2Mi")).exceeded(&volumes), None);
        let message = "Usage of EmptyDir volumes in memory exceeds the pod's limit \"1Mi\". ";
        assert_eq!(in_memory(&pod, Some("1Mi")).exceeded(&volumes).as_deref(), Some(message));
        fs::write(place.path().join("small/more"), vec![7; 300 << 10]).expect("written");
        let message = "Usage of EmptyDir volume \"small\" exceeds the limit \"1M\". ";
        assert_eq!(in_memory(&pod, Some("2Mi")).exceeded(&volumes).as_deref(), Some(message));
    }
}
