//! OCI image layouts: a directory, or a tar of one.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use super::digest::Digest;
use super::error::{StoreError, at};
use super::files;
use super::oci::{CONTAINERD_NAME, Descriptor, Index, REF_NAME};
use super::reference::Reference;

/// Bytes of an index, a manifest or a configuration.
pub(crate) const MAX_DOCUMENT: u64 = 4 << 20;

/// Members of a tar that are looked at.
const MAX_MEMBERS: usize = 100_000;

/// The file that makes a directory a layout.
const MARK: &str = "oci-layout";
const INDEX: &str = "index.json";

/// A layout that was opened.
pub(crate) struct Layout {
    path: PathBuf,
    place: Place,
    index: Index,
}

enum Place {
    Folder,
    /// Where each member begins, and its size.
    Tar(BTreeMap<String, (u64, u64)>),
}

/// Whether a directory is a layout rather than an image of files.
pub(crate) fn is_layout(folder: &Path) -> bool {
    folder.join(MARK).is_file()
}

/// Whether a file is a tar.
pub(crate) fn is_tar(path: &Path) -> io::Result<bool> {
    let mut head = Vec::new();
    files::open(path)?.take(512).read_to_end(&mut head)?;
    Ok(head.get(257..262) == Some(b"ustar"))
}

impl Layout {
    pub(crate) fn open(path: &Path) -> Result<Self, StoreError> {
        let place = match path.is_dir() {
            true => Place::Folder,
            false => Place::Tar(members(path)?),
        };
        let mut layout = Self { path: path.to_path_buf(), place, index: Index { manifests: Vec::new() } };
        let text = layout.document(INDEX)?;
        layout.index = Index::parse(&path.join(INDEX), &text)?;
        Ok(layout)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Its images, with the names that they have there.
    pub(crate) fn images(&self) -> Vec<(Option<Reference>, Descriptor)> {
        let images = self.index.manifests.iter().filter(|manifest| manifest.is_image());
        let images: Vec<&Descriptor> = images.collect();
        let alone = images.len() == 1;
        images.into_iter().map(|manifest| (self.name(manifest, alone), manifest.clone())).collect()
    }

    /// The name of an image: whole, or a tag, then the rest is the layout's own name. Without either it has that alone.
    fn name(&self, manifest: &Descriptor, alone: bool) -> Option<Reference> {
        let own = self.path.file_stem()?.to_str()?.to_lowercase();
        let said = [CONTAINERD_NAME, REF_NAME].into_iter().find_map(|key| manifest.annotations.get(key));
        match said {
            Some(name) if name.contains(['/', ':', '@']) => name.parse().ok(),
            Some(tag) => format!("{own}:{tag}").parse().ok(),
            None if alone => own.parse().ok(),
            None => None,
        }
    }

    /// The content of a blob, to be checked by who reads it.
    pub(crate) fn blob(&self, digest: Digest) -> Result<Box<dyn Read>, StoreError> {
        let name = format!("blobs/sha256/{}", digest.hex());
        self.member(&name).map_err(|error| match error {
            StoreError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                StoreError::refused(&self.path, format!("blob {digest} is missing; copy the image again"))
            }
            error => error,
        })
    }

    /// A blob that is a document, with the digest that it has to have.
    pub(crate) fn checked(&self, digest: Digest) -> Result<Vec<u8>, StoreError> {
        let mut bytes = Vec::new();
        self.blob(digest)?.take(MAX_DOCUMENT + 1).read_to_end(&mut bytes).map_err(at(&self.path))?;
        if bytes.len() as u64 > MAX_DOCUMENT {
            return Err(StoreError::refused(&self.path, format!("{digest} is bigger than {MAX_DOCUMENT} bytes")));
        }
        match Digest::of(&bytes) {
            found if found == digest => Ok(bytes),
            found => Err(wrong_digest(&self.path, digest, found)),
        }
    }

    fn document(&self, name: &str) -> Result<Vec<u8>, StoreError> {
        let mut bytes = Vec::new();
        let member = self.member(name).map_err(|error| match error {
            StoreError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                StoreError::refused(&self.path, format!("no OCI image layout: it has no {name}"))
            }
            error => error,
        })?;
        member.take(MAX_DOCUMENT).read_to_end(&mut bytes).map_err(at(&self.path))?;
        Ok(bytes)
    }

    fn member(&self, name: &str) -> Result<Box<dyn Read>, StoreError> {
        match &self.place {
            Place::Folder => {
                let path = self.path.join(name);
                let file = files::open(&path).map_err(at(&path))?;
                Ok(Box::new(file))
            }
            Place::Tar(members) => {
                let missing = || at(&self.path)(io::ErrorKind::NotFound.into());
                let (start, size) = members.get(name).copied().ok_or_else(missing)?;
                let mut file = files::open(&self.path).map_err(at(&self.path))?;
                file.seek(SeekFrom::Start(start)).map_err(at(&self.path))?;
                Ok(Box::new(file.take(size)))
            }
        }
    }
}

/// A blob is not what its name says.
pub(crate) fn wrong_digest(path: &Path, wanted: Digest, found: Digest) -> StoreError {
    StoreError::refused(
        path,
        format!("blob {wanted} has the digest {found}: it was damaged or changed; copy the image again"),
    )
}

fn members(path: &Path) -> Result<BTreeMap<String, (u64, u64)>, StoreError> {
    let broken = |error: io::Error| StoreError::refused(path, format!("no tar, or one that is cut off: {error}"));
    let mut archive = tar::Archive::new(files::open(path).map_err(at(path))?);
    let length = File::open(path).and_then(|file| file.metadata()).map_err(at(path))?.len();
    let mut members = BTreeMap::new();
    for entry in archive.entries_with_seek().map_err(broken)? {
        let entry = entry.map_err(broken)?;
        if members.len() >= MAX_MEMBERS {
            return Err(StoreError::refused(path, format!("more than {MAX_MEMBERS} files are in the tar")));
        }
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let name = entry.path().map_err(broken)?.to_string_lossy().trim_start_matches("./").to_owned();
        let (start, size) = (entry.raw_file_position(), entry.size());
        if start.checked_add(size).is_none_or(|end| end > length) {
            return Err(StoreError::refused(path, format!("the tar is cut off within {name}; copy it again")));
        }
        members.insert(name, (start, size));
    }
    Ok(members)
}
