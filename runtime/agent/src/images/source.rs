//! Where images are pulled from when they aren't in the store, or may be newer there.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::digest::Digest;
use super::error::{StoreError, at};
use super::import::{Origin, is, named_after};
use super::layout::{Layout, is_layout, is_tar};
use super::reference::Reference;
use super::store::ImageStore;

/// Somewhere images come from. Registries will be another kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImageSource {
    /// A folder with OCI layouts (directories and tars), Wasm files and image folders, or an OCI layout itself: an update stick,
    /// a share, a folder that something else keeps up to date.
    Folder(PathBuf),
}

/// What asking a source came to.
pub(crate) enum Answer {
    /// The image is in the store now.
    Pulled(Digest),
    /// It doesn't have that image.
    Unknown,
    /// It isn't there: the stick is not plugged in.
    Away(String),
}

impl ImageSource {
    /// Brings the image into the store, if the source has it.
    pub(crate) fn pull(&self, reference: &Reference, store: &ImageStore) -> Result<Answer, StoreError> {
        match self {
            Self::Folder(folder) => pull_from_folder(folder, reference, store),
        }
    }
}

fn pull_from_folder(folder: &Path, reference: &Reference, store: &ImageStore) -> Result<Answer, StoreError> {
    if is_layout(folder) {
        return Ok(pull_from_layout(folder, reference, store)?.map_or(Answer::Unknown, Answer::Pulled));
    }
    let entries = match fs::read_dir(folder).and_then(|entries| entries.collect::<io::Result<Vec<_>>>()) {
        Ok(entries) => entries,
        Err(error) => return Ok(Answer::Away(format!("{}: {error}", folder.display()))),
    };
    let mut paths: Vec<PathBuf> = entries.iter().map(fs::DirEntry::path).collect();
    paths.sort();
    let mut trouble = None;
    for path in paths {
        match pull_from_entry(&path, reference, store) {
            Ok(Some(digest)) => return Ok(Answer::Pulled(digest)),
            Ok(None) => {}
            // Another one may have it. If none does, this is why.
            Err(error) => trouble = trouble.or(Some(error)),
        }
    }
    trouble.map_or(Ok(Answer::Unknown), Err)
}

fn pull_from_entry(path: &Path, reference: &Reference, store: &ImageStore) -> Result<Option<Digest>, StoreError> {
    let Ok(metadata) = fs::metadata(path) else { return Ok(None) };
    let layout = match metadata.is_dir() {
        true => is_layout(path),
        false => {
            metadata.is_file()
                && path.extension().is_some_and(|ending| ending == "tar")
                && is_tar(path).map_err(at(path))?
        }
    };
    if layout {
        return pull_from_layout(path, reference, store);
    }
    let module = path.extension().is_some_and(|ending| ending == "wasm" || ending == "wat");
    let meant =
        named_after(path).is_some_and(|name| reference.digest().is_none() && name.tagged() == reference.tagged());
    let names = [reference.tagged()];
    match (meant, metadata.is_dir(), module) {
        (true, true, _) => store.take(&Origin::Folder(path), &names).map(Some),
        (true, false, true) => store.take(&Origin::Module(path), &names).map(Some),
        _ => Ok(None),
    }
}

fn pull_from_layout(path: &Path, reference: &Reference, store: &ImageStore) -> Result<Option<Digest>, StoreError> {
    let layout = Layout::open(path)?;
    let wanted = Some(reference.clone());
    let image = layout.images().into_iter().find(|(name, image)| is(&wanted, name.as_ref(), image));
    let Some((_, descriptor)) = image else { return Ok(None) };
    let names = [reference.tagged()];
    let names = if reference.has_tag() { &names[..] } else { &[] };
    let origin = Origin::Layout(&layout, descriptor);
    // Most pulls of a newest image find the one that is there. One that is damaged there is fetched again.
    if let Some(digest) = origin.digest()?
        && store.hold(&reference.of_content(digest)).is_ok_and(|held| held.is_some())
    {
        store.name(digest, names)?;
        return Ok(Some(digest));
    }
    store.take(&origin, names).map(Some)
}
