//! Writes OCI image layouts, right ones and wrong ones.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use husk_agent::Digest;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// A layer of an image.
pub(crate) enum Layer<'a> {
    Module(&'a str, &'a [u8]),
    Tar(&'a [(&'a str, &'a [u8])]),
    TarGzip(&'a [(&'a str, &'a [u8])]),
    /// Bytes of any media type.
    Raw(&'a str, &'a [u8]),
}

/// A layout directory.
pub(crate) struct Layout(PathBuf);

impl Layout {
    pub(crate) fn new(path: &Path) -> Self {
        fs::create_dir_all(path.join("blobs/sha256")).expect("made");
        fs::write(path.join("oci-layout"), r#"{"imageLayoutVersion": "1.0.0"}"#).expect("written");
        let layout = Self(path.to_owned());
        if !path.join("index.json").exists() {
            layout.index(&[]);
        }
        layout
    }

    /// Adds an image; the answer is the digest of its manifest.
    pub(crate) fn add(&self, name: &str, layers: &[Layer<'_>], config: &str) -> Digest {
        let manifest = self.manifest(layers, config);
        let digest = manifest["digest"].as_str().expect("a digest").parse().expect("a digest");
        self.point(name, manifest);
        digest
    }

    /// A manifest that no name points to.
    pub(crate) fn manifest(&self, layers: &[Layer<'_>], config: &str) -> Value {
        let layers: Vec<Value> = layers.iter().map(|layer| self.layer(layer)).collect();
        let media = match layers[0]["mediaType"] == "application/wasm" {
            true => "application/vnd.wasm.config.v0+json",
            false => "application/vnd.oci.image.config.v1+json",
        };
        let config = self.blob(media, config.as_bytes());
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": config,
            "layers": layers,
        });
        self.blob("application/vnd.oci.image.manifest.v1+json", manifest.to_string().as_bytes())
    }

    /// Gives a manifest or an index a name, and takes it from what had it.
    pub(crate) fn point(&self, name: &str, mut to: Value) {
        to["annotations"] = json!({ "org.opencontainers.image.ref.name": name });
        let index: Value = serde_json::from_slice(&fs::read(self.0.join("index.json")).expect("read")).expect("JSON");
        let known = index["manifests"].as_array().expect("a list").iter();
        let others = known.filter(|known| known["annotations"] != to["annotations"]).cloned();
        self.index(&others.chain([to.clone()]).collect::<Vec<_>>());
    }

    pub(crate) fn index(&self, manifests: &[Value]) {
        let index = json!({ "schemaVersion": 2, "manifests": manifests });
        fs::write(self.0.join("index.json"), index.to_string()).expect("written");
    }

    pub(crate) fn blob(&self, media_type: &str, bytes: &[u8]) -> Value {
        let hex: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        fs::write(self.0.join("blobs/sha256").join(&hex), bytes).expect("written");
        json!({ "mediaType": media_type, "digest": format!("sha256:{hex}"), "size": bytes.len() })
    }

    pub(crate) fn blob_path(&self, descriptor: &Value) -> PathBuf {
        let digest = descriptor["digest"].as_str().expect("a digest");
        self.0.join("blobs/sha256").join(&digest["sha256:".len()..])
    }

    fn layer(&self, layer: &Layer<'_>) -> Value {
        const TAR: &str = "application/vnd.oci.image.layer.v1.tar";
        match layer {
            Layer::Module(title, bytes) => {
                let mut descriptor = self.blob("application/wasm", bytes);
                descriptor["annotations"] = json!({ "org.opencontainers.image.title": title });
                descriptor
            }
            Layer::Tar(entries) => self.blob(TAR, &tar_of(entries)),
            Layer::TarGzip(entries) => {
                let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
                gzip.write_all(&tar_of(entries)).expect("compressed");
                self.blob(&format!("{TAR}+gzip"), &gzip.finish().expect("compressed"))
            }
            Layer::Raw(media_type, bytes) => self.blob(media_type, bytes),
        }
    }

    /// The same as a tar.
    pub(crate) fn as_tar(&self, path: &Path) {
        let mut tar = tar::Builder::new(fs::File::create(path).expect("made"));
        tar.append_dir_all(".", &self.0).and_then(|()| tar.finish()).expect("written");
    }
}

/// A tar of files. Names are taken as they are, also those that lead elsewhere.
pub(crate) fn tar_of(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    for (name, content) in entries {
        let mut header = tar::Header::new_ustar();
        header.as_ustar_mut().expect("ustar").name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        tar.append(&header, *content).expect("appended");
    }
    tar.into_inner().expect("finished")
}

/// A tar with one link before its files.
pub(crate) fn tar_with_link(kind: tar::EntryType, name: &str, target: &str, entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_ustar();
    header.set_entry_type(kind);
    header.set_size(0);
    header.as_ustar_mut().expect("ustar").name[..name.len()].copy_from_slice(name.as_bytes());
    header.as_ustar_mut().expect("ustar").linkname[..target.len()].copy_from_slice(target.as_bytes());
    header.set_cksum();
    tar.append(&header, std::io::empty()).expect("appended");
    let mut bytes = tar.into_inner().expect("finished");
    // Without the two empty blocks of its end.
    bytes.truncate(bytes.len() - 1024);
    bytes.extend(tar_of(entries));
    bytes
}
