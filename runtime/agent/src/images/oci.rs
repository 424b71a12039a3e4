//! The documents of an OCI image, as far as they matter to a node that runs Wasm.
//!
//! Ordinary images (layers are tars of files) and the Wasm artifacts of the CNCF (a layer is a module) are both taken.

use std::collections::BTreeMap;
use std::path::Path;

use husk_engine::ImageConfig;
use serde::{Deserialize, Serialize};

use super::digest::Digest;
use super::error::StoreError;

pub(crate) const INDEX: &str = "application/vnd.oci.image.index.v1+json";
pub(crate) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
pub(crate) const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
pub(crate) const WASM_CONFIG: &str = "application/vnd.wasm.config.v0+json";
pub(crate) const WASM_LAYER: &str = "application/wasm";
pub(crate) const TAR_LAYER: &str = "application/vnd.oci.image.layer.v1.tar";
const DOCKER_LIST: &str = "application/vnd.docker.distribution.manifest.list.v2+json";
const DOCKER_MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";

/// Annotation with the name of an entry of a layout's index.
pub(crate) const REF_NAME: &str = "org.opencontainers.image.ref.name";
/// The same, whole, as containerd writes it.
pub(crate) const CONTAINERD_NAME: &str = "io.containerd.image.name";
/// Annotation with the file name of a layer.
pub(crate) const TITLE: &str = "org.opencontainers.image.title";

/// Points to a blob.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Descriptor {
    #[serde(default)]
    pub(crate) media_type: String,
    pub(crate) digest: Digest,
    pub(crate) size: u64,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) annotations: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) platform: Option<Platform>,
}

/// What an image is built for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Platform {
    #[serde(default)]
    pub(crate) architecture: String,
    #[serde(default)]
    pub(crate) os: String,
}

/// `index.json`, or an image for several platforms.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Index {
    #[serde(default)]
    pub(crate) manifests: Vec<Descriptor>,
}

/// An image.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Manifest {
    pub(crate) schema_version: u32,
    #[serde(default)]
    pub(crate) media_type: String,
    pub(crate) config: Descriptor,
    #[serde(default)]
    pub(crate) layers: Vec<Descriptor>,
}

/// The configuration of an ordinary image, or of a Wasm artifact, which has nothing of this.
#[derive(Clone, Debug, Default, Deserialize)]
struct Config {
    #[serde(default)]
    config: Option<Execution>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Execution {
    #[serde(default)]
    entrypoint: Option<Vec<String>>,
    #[serde(default)]
    cmd: Option<Vec<String>>,
    #[serde(default)]
    env: Option<Vec<String>>,
    #[serde(default)]
    working_dir: Option<String>,
    #[serde(default)]
    user: Option<String>,
}

/// What is in a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LayerKind {
    Module,
    Tar,
    TarGzip,
}

impl LayerKind {
    pub(crate) fn of(media_type: &str) -> Result<Self, String> {
        const KINDS: &[(&str, LayerKind)] = &[
            (WASM_LAYER, LayerKind::Module),
            ("application/vnd.wasm.content.layer.v1+wasm", LayerKind::Module),
            ("application/vnd.module.wasm.content.layer.v1+wasm", LayerKind::Module),
            (TAR_LAYER, LayerKind::Tar),
            ("application/vnd.docker.image.rootfs.diff.tar", LayerKind::Tar),
            ("application/vnd.oci.image.layer.v1.tar+gzip", LayerKind::TarGzip),
            ("application/vnd.docker.image.rootfs.diff.tar.gzip", LayerKind::TarGzip),
        ];
        let known = KINDS.iter().find(|(name, _)| *name == media_type).map(|(_, kind)| *kind);
        known.ok_or_else(|| {
            format!(
                "a layer has the media type `{media_type}`; this node takes {WASM_LAYER}, and tar with gzip or without"
            )
        })
    }
}

impl Descriptor {
    pub(crate) fn new(media_type: &str, digest: Digest, size: u64) -> Self {
        Self { media_type: media_type.into(), digest, size, annotations: BTreeMap::new(), platform: None }
    }

    pub(crate) fn is_index(&self) -> bool {
        matches!(&*self.media_type, INDEX | DOCKER_LIST)
    }

    /// Whether it can be an image at all: others are signatures and attestations.
    pub(crate) fn is_image(&self) -> bool {
        let for_nothing = self.platform.as_ref().is_some_and(|platform| platform.os == "unknown");
        !for_nothing && matches!(&*self.media_type, MANIFEST | DOCKER_MANIFEST | INDEX | DOCKER_LIST | "")
    }

    /// The file name of a layer with a module.
    pub(crate) fn title(&self) -> Option<&str> {
        let title = self.annotations.get(TITLE)?;
        let name = Path::new(title).file_name()?.to_str()?;
        (!name.is_empty()).then_some(name)
    }
}

impl Index {
    pub(crate) fn parse(path: &Path, bytes: &[u8]) -> Result<Self, StoreError> {
        serde_json::from_slice(bytes).map_err(|error| StoreError::refused(path, format!("no OCI image index: {error}")))
    }

    /// The image for Wasm of those that are here: the one that says so, or the only one there is.
    pub(crate) fn choose(&self) -> Result<&Descriptor, String> {
        let images: Vec<&Descriptor> = self.manifests.iter().filter(|manifest| manifest.is_image()).collect();
        let wasm = |manifest: &&&Descriptor| {
            let platform = manifest.platform.as_ref();
            platform.is_some_and(|platform| platform.architecture == "wasm" || platform.os.starts_with("wasi"))
        };
        match (images.iter().find(wasm), images.as_slice()) {
            (Some(found), _) => Ok(found),
            (None, [only]) => Ok(only),
            (None, []) => Err("it has no image in it".into()),
            (None, several) => {
                let platforms = several.iter().filter_map(|manifest| manifest.platform.as_ref());
                let platforms: Vec<_> = platforms.map(|known| format!("{}/{}", known.os, known.architecture)).collect();
                Err(format!("it is built for {}, none of which is wasm", platforms.join(", ")))
            }
        }
    }
}

impl Manifest {
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, String> {
        let manifest: Self =
            serde_json::from_slice(bytes).map_err(|error| format!("no OCI image manifest: {error}"))?;
        if manifest.layers.is_empty() {
            return Err("the image has no layers".into());
        }
        manifest.layers.iter().try_for_each(|layer| LayerKind::of(&layer.media_type).map(drop))?;
        Ok(manifest)
    }

    /// Configuration and layers.
    pub(crate) fn blobs(&self) -> impl Iterator<Item = &Descriptor> {
        std::iter::once(&self.config).chain(&self.layers)
    }

    /// The layer of an image that is one module and nothing else.
    pub(crate) fn only_module(&self) -> Option<&Descriptor> {
        match self.layers.as_slice() {
            [layer] if LayerKind::of(&layer.media_type) == Ok(LayerKind::Module) => Some(layer),
            _ => None,
        }
    }

    /// File names of the layers with modules, in the image's root.
    pub(crate) fn module_name(&self, layer: usize) -> String {
        let title = self.layers.get(layer).and_then(Descriptor::title);
        title.map_or_else(|| format!("module-{layer}.wasm"), String::from)
    }

    /// What the engine is told of the image.
    pub(crate) fn image_config(&self, config: &[u8]) -> Result<ImageConfig, String> {
        let parsed: Config =
            serde_json::from_slice(config).map_err(|error| format!("no OCI image configuration: {error}"))?;
        let execution = parsed.config.unwrap_or_default();
        let mut entrypoint = execution.entrypoint.unwrap_or_default();
        let first = self.layers.iter().position(|layer| LayerKind::of(&layer.media_type) == Ok(LayerKind::Module));
        if let (true, Some(layer), None) = (entrypoint.is_empty(), first, self.only_module()) {
            entrypoint = vec![format!("/{}", self.module_name(layer))];
        }
        let env = execution.env.unwrap_or_default();
        let env = env.iter().filter_map(|variable| variable.split_once('=')).map(|(k, v)| (k.into(), v.into()));
        let name = self.only_module().and_then(Descriptor::title).unwrap_or("module");
        Ok(ImageConfig {
            name: name.strip_suffix(".wasm").unwrap_or(name).into(),
            entrypoint,
            cmd: execution.cmd.unwrap_or_default(),
            env: env.collect(),
            working_dir: execution.working_dir.filter(|folder| !folder.is_empty()),
            user: execution.user.filter(|user| !user.is_empty()),
        })
    }
}
