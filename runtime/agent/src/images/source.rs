//! Where images are pulled from when they aren't in the store, or may be newer there.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::digest::Digest;
use super::error::{StoreError, at};
use super::import::{Origin, is, named_after};
use super::layout::{Layout, is_layout, is_tar};
use super::oci::Descriptor;
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
    /// It doesn't have that image, as far as it can be looked into; what can't.
    Unknown(Vec<String>),
}

/// An image that was found.
enum Found {
    Layout(Layout, Descriptor),
    Module(PathBuf),
    Folder(PathBuf),
}

impl ImageSource {
    /// Brings the image into the store, if the source has it.
    pub(crate) fn pull(&self, reference: &Reference, store: &ImageStore) -> Result<Answer, StoreError> {
        let mut troubles = Vec::new();
        let found = match self {
            Self::Folder(folder) => find_in_folder(folder, reference, &mut troubles),
        };
        match found {
            Some(found) => bring(&found, reference, store).map(Answer::Pulled),
            None => Ok(Answer::Unknown(troubles)),
        }
    }
}

/// A source that is away, or a file in it that is broken, is no reason not to take the image from elsewhere.
fn find_in_folder(folder: &Path, reference: &Reference, troubles: &mut Vec<String>) -> Option<Found> {
    let mut look = |path: &Path| match find_at(path, reference) {
        Ok(found) => found,
        Err(error) => {
            troubles.push(error.to_string());
            None
        }
    };
    if is_layout(folder) {
        return look(folder);
    }
    match fs::read_dir(folder).and_then(|entries| entries.collect::<io::Result<Vec<_>>>()) {
        Ok(entries) => {
            let mut paths: Vec<PathBuf> = entries.iter().map(fs::DirEntry::path).collect();
            paths.sort();
            paths.iter().find_map(|path| look(path))
        }
        Err(error) => {
            troubles.push(format!("{}: {error}", folder.display()));
            None
        }
    }
}

fn find_at(path: &Path, reference: &Reference) -> Result<Option<Found>, StoreError> {
    let Ok(metadata) = fs::metadata(path) else { return Ok(None) };
    let ends = |ending: &str| path.extension().is_some_and(|found| found == ending);
    let layout = match metadata.is_dir() {
        true => is_layout(path),
        false => metadata.is_file() && ends("tar") && is_tar(path).map_err(at(path))?,
    };
    if layout {
        let (layout, wanted) = (Layout::open(path)?, Some(reference.clone()));
        let image = layout.images().into_iter().find(|(name, image)| is(&wanted, name.as_ref(), image));
        return Ok(image.map(|(_, descriptor)| Found::Layout(layout, descriptor)));
    }
    let named = named_after(path).is_some_and(|name| name.tagged() == reference.tagged());
    let named = named && reference.digest().is_none();
    Ok(match (named, metadata.is_dir(), ends("wasm") || ends("wat")) {
        (true, true, _) => Some(Found::Folder(path.to_owned())),
        (true, false, true) => Some(Found::Module(path.to_owned())),
        _ => None,
    })
}

fn bring(found: &Found, reference: &Reference, store: &ImageStore) -> Result<Digest, StoreError> {
    let names = [reference.tagged()];
    let names = if reference.has_tag() { &names[..] } else { &[] };
    let origin = match found {
        Found::Layout(layout, descriptor) => Origin::Layout(layout, descriptor.clone()),
        Found::Module(path) => Origin::Module(path),
        Found::Folder(path) => Origin::Folder(path),
    };
    // Most pulls of a newest image find the one that is there. One that is damaged there is fetched again.
    if let Some(digest) = origin.digest()?
        && store.hold(&reference.of_content(digest)).is_ok_and(|held| held.is_some())
    {
        store.name(digest, names)?;
        return Ok(digest);
    }
    store.take(&origin, names)
}
