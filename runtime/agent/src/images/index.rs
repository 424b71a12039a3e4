//! What the store knows: which image a name means, and what is known of each image.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::digest::Digest;
use super::error::{StoreError, at};
use super::files;

/// Version of the file; a newer one is not touched.
const VERSION: u32 = 1;

/// Bytes of the file.
const MAX_INDEX: u64 = 64 << 20;

/// The index of the store.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Index {
    version: u32,
    /// Names with a tag, completed, and the manifest that they mean.
    pub(crate) references: BTreeMap<String, Digest>,
    /// By manifest.
    pub(crate) images: BTreeMap<Digest, Record>,
}

/// An image.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Record {
    /// When it came, in seconds since 1970.
    pub(crate) imported: u64,
    /// Bytes of its blobs and its files.
    pub(crate) bytes: u64,
    /// All blobs that it needs.
    pub(crate) blobs: Vec<Digest>,
    /// Of its files, unless it is one module.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) files: Option<Digest>,
}

impl Index {
    /// The index in a folder; empty if there is none. A damaged one is replaced by the one before it.
    pub(crate) fn load(folder: &Path) -> Result<Self, StoreError> {
        let damaged = match read(&current(folder)) {
            Ok(index) => return Ok(index),
            Err(Trouble::Missing) if !previous(folder).exists() => return Ok(Self::default()),
            Err(Trouble::Newer(version)) => return Err(newer(&current(folder), version)),
            Err(Trouble::Unreadable(error)) => return Err(at(&current(folder))(error)),
            Err(Trouble::Missing) => "it is missing".to_owned(),
            Err(Trouble::Damaged(detail)) => detail,
        };
        let path = current(folder);
        match read(&previous(folder)) {
            Ok(index) => {
                tracing::warn!("{}: {damaged}; the one before it is used", path.display());
                Ok(index)
            }
            Err(Trouble::Newer(version)) => Err(newer(&previous(folder), version)),
            Err(_) => {
                tracing::warn!("{}: {damaged}; images have to be imported again", path.display());
                Ok(Self::default())
            }
        }
    }

    /// Replaces the index of a folder; it is on the disk when this returns.
    pub(crate) fn save(&mut self, folder: &Path) -> Result<(), StoreError> {
        self.version = VERSION;
        let (path, new) = (current(folder), folder.join("index.json.new"));
        let text = serde_json::to_vec_pretty(self).map_err(|error| at(&path)(error.into()))?;
        files::remove(&new).and_then(|()| files::write(&new, &text)).map_err(at(&new))?;
        keep_previous(folder).map_err(at(&previous(folder)))?;
        fs::rename(&new, &path).and_then(|()| files::sync_folder(folder)).map_err(at(&path))
    }

    /// The names of an image.
    pub(crate) fn names(&self, digest: Digest) -> Vec<String> {
        let names = self.references.iter().filter(|(_, known)| **known == digest);
        names.map(|(name, _)| name.clone()).collect()
    }

    /// Forgets images that are not there, and their names.
    pub(crate) fn forget(&mut self, digest: Digest) {
        self.images.remove(&digest);
        self.references.retain(|_, known| *known != digest);
    }
}

enum Trouble {
    Missing,
    Newer(u32),
    Damaged(String),
    Unreadable(io::Error),
}

fn read(path: &Path) -> Result<Index, Trouble> {
    let bytes = files::read(path, MAX_INDEX).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Trouble::Missing,
        _ => Trouble::Unreadable(error),
    })?;
    #[derive(Deserialize)]
    struct Versioned {
        version: u32,
    }
    let damaged = |error: serde_json::Error| Trouble::Damaged(error.to_string());
    let Versioned { version } = serde_json::from_slice(&bytes).map_err(damaged)?;
    if version > VERSION {
        return Err(Trouble::Newer(version));
    }
    serde_json::from_slice(&bytes).map_err(damaged)
}

fn newer(path: &Path, version: u32) -> StoreError {
    let detail = format!("written by a newer husk (version {version}); use that one, or remove the folder");
    StoreError::refused(path, detail)
}

fn keep_previous(folder: &Path) -> io::Result<()> {
    let (path, new) = (current(folder), folder.join("index.json.old.new"));
    // One that is damaged is worth less than the one before it.
    if read(&path).is_err() {
        return Ok(());
    }
    files::remove(&new)?;
    // Where a file system has no hard links.
    fs::hard_link(&path, &new).or_else(|_| fs::copy(&path, &new).map(drop))?;
    fs::rename(&new, previous(folder))
}

fn current(folder: &Path) -> PathBuf {
    folder.join("index.json")
}

fn previous(folder: &Path) -> PathBuf {
    folder.join("index.json.old")
}
