//! `image`: the files of an image.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use husk_core::spec::PullPolicy;
use k8s_openapi::api::core::v1::{PodSpec, Volume};

use super::{Wrong, volumes};
use crate::images::{Found, Images};

/// The images that a pod mounts, by volume. As long as this lives they stay on the node.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mounted(BTreeMap<String, Result<Files, String>>);

#[derive(Clone, Debug)]
enum Files {
    /// Of an image of the node.
    Image(Found),
    /// Of a folder beside the manifest, which needs no module to be mounted.
    Folder(PathBuf),
}

impl Mounted {
    /// Finds them, and fetches those that aren't there. `base` is the folder of the manifest.
    pub(crate) async fn find(spec: &PodSpec, base: &Path, images: &Images) -> Self {
        let mut found = BTreeMap::new();
        for volume in volumes(Some(spec)) {
            let Some(source) = &volume.image else { continue };
            let name = source.reference.as_deref().unwrap_or_default();
            let policy = match source.pull_policy.as_deref() {
                Some("Always") => PullPolicy::Always,
                Some("Never") => PullPolicy::Never,
                _ => PullPolicy::IfNotPresent,
            };
            let files = if name.starts_with(['.', '/']) && base.join(name).is_dir() {
                Ok(Files::Folder(base.join(name)))
            } else {
                let ensured = images.ensure(name, base, policy).await;
                ensured.map(Files::Image).map_err(|error| format!("failed to pull image {name:?}: {error}"))
            };
            found.insert(volume.name.clone(), files);
        }
        Self(found)
    }

    /// The files of a volume's image.
    pub(super) fn folder(&self, volume: &Volume) -> Result<PathBuf, Wrong> {
        let wrong = |why: String| ("image.reference", why);
        match self.0.get(&volume.name) {
            Some(Ok(Files::Folder(folder))) => Ok(folder.clone()),
            Some(Ok(Files::Image(found))) => match found.image.root() {
                Some(root) => Ok(root.to_owned()),
                None => Err(wrong("the image is a module and has no files; name one that is a folder".into())),
            },
            Some(Err(why)) => Err(wrong(why.clone())),
            None => Err(wrong("the image was not looked for".into())),
        }
    }
}
