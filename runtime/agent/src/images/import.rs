//! Images come into the store: from an OCI layout, a Wasm file, or a folder with modules and files.
//!
//! What comes from outside is checked before it is in the store: each blob against its digest and size, and the image by opening
//! it, so that what is no image for this node is refused here and not when a pod starts.

use std::fs;
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};

use husk_engine::Image;
use serde_json::json;

use super::digest::Digest;
use super::error::{StoreError, at};
use super::files;
use super::layout::{Layout, MAX_DOCUMENT, is_layout, is_tar, wrong_digest};
use super::oci::{CONFIG, Descriptor, Index, MANIFEST, Manifest, TAR_LAYER, TITLE, WASM_CONFIG, WASM_LAYER};
use super::reference::Reference;
use super::staging::Staging;
use super::store::{ImageStore, layer_limit};

/// Indexes in indexes.
const MAX_NESTING: usize = 4;

/// What was imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// Of its manifest.
    pub digest: Digest,
    /// The names that mean it now.
    pub names: Vec<String>,
}

/// Something that can be imported as one image.
pub(crate) enum Origin<'a> {
    Layout(&'a Layout, Descriptor),
    Module(&'a Path),
    Folder(&'a Path),
}

impl ImageStore {
    /// Imports what is at a path: all images of an OCI layout (a directory or a tar of one), or those that `name` means; a Wasm
    /// file; a folder with modules and files. A file or folder without a name is called as it is on disk.
    pub fn import(&self, path: &Path, name: Option<&str>) -> Result<Vec<Imported>, StoreError> {
        let wanted: Option<Reference> = name.map(str::parse).transpose()?;
        let folder = fs::metadata(path).map_err(at(path))?.is_dir();
        let layout = if folder { is_layout(path) } else { is_tar(path).map_err(at(path))? };
        if layout {
            return self.import_layout(&Layout::open(path)?, wanted);
        }
        let reference = match wanted {
            Some(reference) => reference,
            None => named_after(path)
                .ok_or_else(|| StoreError::refused(path, "its file name can't be the name of an image; say a name"))?,
        };
        let origin = if folder { Origin::Folder(path) } else { Origin::Module(path) };
        let names = vec![reference.tagged()];
        Ok(vec![Imported { digest: self.take(&origin, &names)?, names }])
    }

    fn import_layout(&self, layout: &Layout, wanted: Option<Reference>) -> Result<Vec<Imported>, StoreError> {
        let images = layout.images();
        let named: Vec<_> = images.iter().filter(|(name, image)| is(&wanted, name.as_ref(), image)).collect();
        let chosen: Vec<(Option<Reference>, Descriptor)> = match (&wanted, named.is_empty(), images.as_slice()) {
            (_, false, _) => named.into_iter().cloned().collect(),
            // The only one there is gets the name that was said.
            (Some(reference), true, [(_, only)]) => vec![(Some(reference.clone()), only.clone())],
            (_, true, []) => return Err(StoreError::refused(layout.path(), "it has no image in it")),
            (_, true, several) => {
                let known: Vec<_> = several.iter().flat_map(|(name, _)| name).map(Reference::to_string).collect();
                let detail = format!("it has no image of that name; it has {}", known.join(", "));
                return Err(StoreError::refused(layout.path(), detail));
            }
        };
        let import = |(name, descriptor): (Option<Reference>, Descriptor)| {
            let names: Vec<String> = name.iter().map(Reference::tagged).collect();
            Ok(Imported { digest: self.take(&Origin::Layout(layout, descriptor), &names)?, names })
        };
        chosen.into_iter().map(import).collect()
    }

    /// Imports one image under these names.
    pub(crate) fn take(&self, origin: &Origin<'_>, names: &[String]) -> Result<Digest, StoreError> {
        let staging = Staging::begin(self)?;
        let digest = match origin {
            Origin::Layout(layout, descriptor) => self.stage_layout(&staging, layout, descriptor)?,
            Origin::Module(path) => stage_module(&staging, path)?,
            Origin::Folder(path) => stage_folder(&staging, path)?,
        };
        let find = |blob: Digest| {
            let staged = staging.blob(blob);
            if staged.exists() { staged } else { self.blob(blob) }
        };
        let document = |blob: Digest| {
            let path = find(blob);
            files::read(&path, MAX_DOCUMENT).map_err(at(&path))
        };
        let from = origin.path();
        let manifest = document(digest)?;
        let manifest = Manifest::parse(&manifest).map_err(|detail| StoreError::refused(from, detail))?;
        let config = document(manifest.config.digest)?;
        let config = manifest.image_config(&config).map_err(|detail| StoreError::refused(from, detail))?;
        let opened = match manifest.only_module() {
            Some(module) => Image::open_with(find(module.digest), config).map(|_| None),
            None => {
                let working_dir = config.working_dir.clone();
                let files = staging.unpack(&manifest, working_dir.as_deref(), |layer| Ok(find(layer.digest)));
                let files = files.map_err(|error| named(error, from))?;
                Image::open_with(staging.root(), config).map(|_| Some(files))
            }
        };
        let files = opened.map_err(|error| refused_image(from, &staging, &error))?;
        self.commit(staging, digest, files, names)?;
        Ok(digest)
    }

    /// Copies all that an image needs and that isn't in the store yet.
    fn stage_layout(&self, staging: &Staging, layout: &Layout, top: &Descriptor) -> Result<Digest, StoreError> {
        let (digest, text) = manifest_of(layout, top)?;
        staging.put(MANIFEST, &text)?;
        let manifest = Manifest::parse(&text).map_err(|detail| StoreError::refused(layout.path(), detail))?;
        let refused = |detail: String| StoreError::refused(layout.path(), detail);
        for (n, blob) in manifest.blobs().enumerate() {
            let limit = if n == 0 { MAX_DOCUMENT } else { layer_limit(blob).map_err(refused)? };
            if blob.size > limit {
                let detail = format!("blob {} is bigger than the {limit} bytes that this node takes", blob.digest);
                return Err(refused(detail));
            }
            if staging.blob(blob.digest).exists() || self.checked_blob(blob.digest).is_ok() {
                continue;
            }
            // One byte more shows that it is longer than it says.
            let (found, bytes) =
                staging.copy(layout.blob(blob.digest)?.take(blob.size + 1), u64::MAX, layout.path())?;
            if found != blob.digest {
                let detail =
                    format!("blob {} is cut off: {bytes} bytes of {}; copy the image again", blob.digest, blob.size);
                return Err(match bytes < blob.size {
                    true => refused(detail),
                    false => wrong_digest(layout.path(), blob.digest, found),
                });
            }
        }
        Ok(digest)
    }
}

impl Origin<'_> {
    fn path(&self) -> &Path {
        match self {
            Self::Layout(layout, _) => layout.path(),
            Self::Module(path) | Self::Folder(path) => path,
        }
    }

    /// The image that this would become, if that can be told without reading all of it.
    pub(crate) fn digest(&self) -> Result<Option<Digest>, StoreError> {
        match self {
            Self::Layout(layout, descriptor) => Ok(Some(manifest_of(layout, descriptor)?.0)),
            Self::Module(_) | Self::Folder(_) => Ok(None),
        }
    }
}

/// Whether an image of a layout is the one that is wanted; any is if none is.
pub(crate) fn is(wanted: &Option<Reference>, name: Option<&Reference>, image: &Descriptor) -> bool {
    let Some(wanted) = wanted else { return true };
    match wanted.digest() {
        Some(digest) => image.digest == digest,
        None => name.is_some_and(|name| name.tagged() == wanted.tagged()),
    }
}

/// `web.wasm` and `web` are `docker.io/library/web:latest`.
pub(crate) fn named_after(path: &Path) -> Option<Reference> {
    let name = path.file_name()?.to_str()?;
    let name = [".wasm", ".wat"].iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name);
    name.to_lowercase().parse().ok()
}

/// The manifest for this node, through indexes of platforms.
fn manifest_of(layout: &Layout, top: &Descriptor) -> Result<(Digest, Vec<u8>), StoreError> {
    let mut descriptor = top.clone();
    for _ in 0..MAX_NESTING {
        let text = layout.checked(descriptor.digest)?;
        if !descriptor.is_index() {
            return Ok((descriptor.digest, text));
        }
        let index = Index::parse(layout.path(), &text)?;
        descriptor = index.choose().map_err(|detail| StoreError::refused(layout.path(), detail))?.clone();
    }
    Err(StoreError::refused(layout.path(), "indexes within indexes, without an end"))
}

fn stage_module(staging: &Staging, path: &Path) -> Result<Digest, StoreError> {
    let (digest, size) = staging.copy(files::open(path).map_err(at(path))?, Image::MAX_MODULE, path)?;
    let mut layer = Descriptor::new(WASM_LAYER, digest, size);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    layer.annotations.insert(TITLE.into(), name.into_owned());
    let config = json!({ "architecture": "wasm", "os": "wasip2", "layerDigests": [digest] });
    let config = staging.put(WASM_CONFIG, config.to_string().as_bytes())?;
    stage_manifest(staging, config, layer)
}

fn stage_folder(staging: &Staging, path: &Path) -> Result<Digest, StoreError> {
    let tar = staging.scratch();
    let file = files::create(&tar).map_err(at(&tar))?;
    write_tar(path, file).map_err(at(path))?;
    let (digest, size) = staging.copy(files::open(&tar).map_err(at(&tar))?, u64::MAX, path)?;
    files::remove(&tar).map_err(at(&tar))?;
    let rootfs = json!({ "type": "layers", "diff_ids": [digest] });
    let config = json!({ "architecture": "wasm", "os": "wasip2", "config": {}, "rootfs": rootfs });
    let config = staging.put(CONFIG, config.to_string().as_bytes())?;
    stage_manifest(staging, config, Descriptor::new(TAR_LAYER, digest, size))
}

fn stage_manifest(staging: &Staging, config: Descriptor, layer: Descriptor) -> Result<Digest, StoreError> {
    let manifest = Manifest { schema_version: 2, media_type: MANIFEST.into(), config, layers: vec![layer] };
    let text = serde_json::to_vec(&manifest).map_err(|error| StoreError::refused(Path::new(""), error.to_string()))?;
    Ok(staging.put(MANIFEST, &text)?.digest)
}

/// The files of a folder, in one order and without times and owners: the same files are the same image wherever they are imported.
fn write_tar(folder: &Path, to: fs::File) -> io::Result<()> {
    let mut tar = tar::Builder::new(io::BufWriter::new(to));
    tar.follow_symlinks(false);
    tar.mode(tar::HeaderMode::Deterministic);
    add_folder(&mut tar, folder, Path::new(""))?;
    tar.into_inner()?.flush()
}

fn add_folder(tar: &mut tar::Builder<impl io::Write>, folder: &Path, inside: &Path) -> io::Result<()> {
    let mut entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (path, name, kind) = (entry.path(), inside.join(entry.file_name()), entry.file_type()?);
        if kind.is_dir() {
            tar.append_dir(&name, &path)?;
            add_folder(tar, &path, &name)?;
        } else if kind.is_file() {
            tar.append_file(&name, &mut files::open(&path)?)?;
        } else if kind.is_symlink() {
            tar.append_path_with_name(&path, &name)?;
        }
    }
    Ok(())
}

/// A layer in the store means nothing to people; where it came from does.
fn named(error: StoreError, from: &Path) -> StoreError {
    match error {
        StoreError::Refused { detail, .. } => StoreError::refused(from, detail),
        error => error,
    }
}

fn refused_image(from: &Path, staging: &Staging, error: &husk_engine::ImageError) -> StoreError {
    let text = error.to_string();
    // The error names a file of the staging folder, which nobody knows.
    let place: PathBuf = staging.path().to_path_buf();
    let inside = text.strip_prefix(&*place.to_string_lossy()).unwrap_or(&text);
    let inside = inside.strip_prefix("/root").unwrap_or(inside);
    StoreError::refused(from, inside.trim_start_matches([':', ' ']))
}
