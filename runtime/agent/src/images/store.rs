//! The images of a node, on disk.
//!
//! ```text
//! index.json       which image a name means; replaced as a whole, the one before it is kept
//! blobs/sha256/    manifests, configurations and layers, by their digest; images share them
//! roots/           files of images whose layers were unpacked, made again from the blobs when they are damaged
//! leases/          a file for each image that was used: locked while it is in use, its time is the last use
//! staging/         what is being imported
//! lock             shared by those who look, exclusive for those who change
//! ```
//!
//! A blob is in its place, on the disk, before the index names it: a power cut leaves the store as it was before an import, or as
//! it is behind it. What nothing names is removed with the next change. Locks are the kernel's, so an agent that was killed
//! holds none, and `husk image` may work on the store of an agent that runs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use husk_engine::Image;

use super::digest::Digest;
use super::error::{StoreError, at};
use super::index::{Index, Record};
use super::layout::MAX_DOCUMENT;
use super::lease::{self, Lease};
use super::oci::{Descriptor, LayerKind, Manifest};
use super::reference::Reference;
use super::staging::Staging;
use super::{files, tree};

/// The images of a node. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ImageStore(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    folder: PathBuf,
    /// Images that were found undamaged since this process runs.
    opened: Mutex<BTreeMap<Digest, Image>>,
    /// Images that this process uses: one open file for each, however many pods do.
    leases: Mutex<BTreeMap<Digest, Weak<Lease>>>,
}

/// An image of the store, for people.
#[derive(Clone, Debug)]
pub struct StoredImage {
    /// Of its manifest.
    pub digest: Digest,
    /// Its names; none if a newer image has them all.
    pub names: Vec<String>,
    /// Bytes on disk.
    pub bytes: u64,
    /// When it came.
    pub imported: SystemTime,
    /// When a pod last used it.
    pub last_used: Option<SystemTime>,
    /// A pod uses it.
    pub in_use: bool,
}

/// An image that stays in the store as long as this lives.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) image: Image,
    pub(crate) digest: Digest,
    /// Bytes on disk.
    pub(crate) bytes: u64,
    pub(crate) lease: Option<Arc<Lease>>,
}

impl ImageStore {
    /// The store in a folder, which is made once something is put into it.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self(Arc::new(Inner { folder: folder.into(), opened: Mutex::default(), leases: Mutex::default() }))
    }

    /// The store in an agent's data folder.
    pub fn of(data_dir: &Path) -> Self {
        Self::at(data_dir.join("images"))
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.0.folder
    }

    /// All images, by name.
    pub fn list(&self) -> Result<Vec<StoredImage>, StoreError> {
        let _lock = self.lock_shared()?;
        let index = self.index()?;
        let mut images: Vec<_> =
            index.images.iter().map(|(digest, record)| self.described(&index, *digest, record)).collect();
        images.sort_by(|a, b| (a.names.is_empty(), &a.names).cmp(&(b.names.is_empty(), &b.names)));
        Ok(images)
    }

    /// The image that a name or a digest means.
    pub fn find(&self, name: &str) -> Result<StoredImage, StoreError> {
        let _lock = self.lock_shared()?;
        let index = self.index()?;
        let digest = resolve(&index, name)?;
        let record = index.images.get(&digest).ok_or_else(|| StoreError::Unknown(name.into()))?;
        Ok(self.described(&index, digest, record))
    }

    /// Manifest and configuration of an image, as they were written by who made it.
    pub fn documents(&self, digest: Digest) -> Result<(String, String), StoreError> {
        let _lock = self.lock_shared()?;
        let (text, manifest) = self.manifest(digest)?;
        let config = self.document(manifest.config.digest)?;
        let printable = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ok((printable(text), printable(config)))
    }

    /// Takes a name from the image that has it; the last name takes the image with it, unless it is in use. By a digest, the image
    /// with all its names.
    pub fn remove(&self, name: &str) -> Result<Vec<String>, StoreError> {
        let _lock = self.lock_exclusive()?;
        let mut index = self.index()?;
        let digest = resolve(&index, name)?;
        let names = index.names(digest);
        let tagged = name.parse::<Reference>().map(|reference| reference.tagged()).unwrap_or_default();
        let gone = match names.len() > 1 && index.references.get(&tagged) == Some(&digest) {
            true => {
                index.references.remove(&tagged);
                vec![tagged]
            }
            false => {
                if lease::is_held(&self.leases(), digest) {
                    return Err(StoreError::InUse(name.into()));
                }
                index.forget(digest);
                names.into_iter().chain([digest.to_string()]).collect()
            }
        };
        index.save(self.folder())?;
        self.sweep(&index);
        Ok(gone)
    }

    /// Removes these images unless they are in use; the answer is how many bytes that made free.
    pub(crate) fn remove_unused(&self, digests: &[Digest]) -> Result<(Vec<Digest>, u64), StoreError> {
        let _lock = self.lock_exclusive()?;
        let mut index = self.index()?;
        let before = self.bytes();
        let gone: Vec<Digest> = digests
            .iter()
            .copied()
            .filter(|digest| index.images.contains_key(digest) && !lease::is_held(&self.leases(), *digest))
            .collect();
        gone.iter().for_each(|digest| index.forget(*digest));
        if !gone.is_empty() {
            index.save(self.folder())?;
        }
        self.sweep(&index);
        Ok((gone, before.saturating_sub(self.bytes())))
    }

    /// The image that a name means, if there is one. It stays until the answer is dropped.
    pub(crate) fn hold(&self, reference: &Reference) -> Result<Option<Held>, StoreError> {
        let lock = self.lock_shared()?;
        let index = self.index()?;
        let digest = reference.digest().or_else(|| index.references.get(&reference.tagged()).copied());
        let Some((digest, record)) = digest.and_then(|digest| Some((digest, index.images.get(&digest)?))) else {
            return Ok(None);
        };
        let (lease, bytes) = (self.lease(digest)?, record.bytes);
        let known = self.opened().get(&digest).cloned();
        if let Some(image) = known {
            return Ok(Some(Held { image, digest, bytes, lease }));
        }
        let image = match self.open_image(digest, record)? {
            Some(image) => image,
            None => {
                // It is ours: nobody removes it while the lock is another one's.
                drop(lock);
                self.unpack_again(digest, record)?
            }
        };
        self.opened().insert(digest, image.clone());
        Ok(Some(Held { image, digest, bytes, lease }))
    }

    /// Keeps the images of these names, as far as they are there, as long as the answer lives.
    pub(crate) fn reserve(&self, names: &[String]) -> Result<Vec<Arc<Lease>>, StoreError> {
        let _lock = self.lock_shared()?;
        let index = self.index()?;
        let digests = names.iter().filter_map(|name| resolve(&index, name).ok());
        let leases: Vec<_> = digests.map(|digest| self.lease(digest)).collect::<Result<_, _>>()?;
        Ok(leases.into_iter().flatten().collect())
    }

    /// The image is in use. The store is locked.
    fn lease(&self, digest: Digest) -> Result<Option<Arc<Lease>>, StoreError> {
        let mut leases = self.0.leases.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lease) = leases.get(&digest).and_then(Weak::upgrade) {
            lease.touch();
            return Ok(Some(lease));
        }
        let lease = Lease::take(&self.leases(), digest).map_err(at(&self.leases()))?;
        leases.retain(|_, lease| lease.strong_count() > 0);
        leases.extend(lease.iter().map(|lease| (digest, Arc::downgrade(lease))));
        Ok(lease)
    }

    /// The image, checked against what it was when it came. None if its files have to be unpacked again.
    fn open_image(&self, digest: Digest, record: &Record) -> Result<Option<Image>, StoreError> {
        let (_, manifest) = self.manifest(digest)?;
        let config = self.document(manifest.config.digest)?;
        let config = manifest.image_config(&config).map_err(|detail| StoreError::damaged(digest, detail))?;
        if let Some(module) = manifest.only_module() {
            return Ok(Some(Image::open_with(self.checked_blob(module.digest)?, config)?));
        }
        let root = self.root(digest);
        match tree::digest(&root) {
            Ok(found) if Some(found) == record.files => Ok(Some(Image::open_with(root, config)?)),
            _ => Ok(None),
        }
    }

    fn unpack_again(&self, digest: Digest, record: &Record) -> Result<Image, StoreError> {
        tracing::warn!("files of image {digest} are missing or damaged; they are unpacked again");
        let staging = Staging::begin(self)?;
        let (_, manifest) = self.manifest(digest)?;
        let config = self.document(manifest.config.digest)?;
        let config = manifest.image_config(&config).map_err(|detail| StoreError::damaged(digest, detail))?;
        let layer = |layer: &Descriptor| self.checked_blob(layer.digest);
        let found = staging.unpack(&manifest, config.working_dir.as_deref(), layer)?;
        if record.files.is_some_and(|wanted| wanted != found) {
            tracing::warn!("files of image {digest} are not what they were, though its layers are");
        }
        let lock = self.lock_exclusive()?;
        let mut index = self.index()?;
        staging.place_root(&self.root(digest))?;
        if let Some(record) = index.images.get_mut(&digest).filter(|record| record.files != Some(found)) {
            record.files = Some(found);
            index.save(self.folder())?;
        }
        drop(lock);
        let record = Record { files: Some(found), ..record.clone() };
        let again =
            || StoreError::Damaged { what: "the root".into(), detail: "it changes while it is looked at".into() };
        self.open_image(digest, &record)?.ok_or_else(again)
    }

    /// The path of a blob that has its digest.
    pub(crate) fn checked_blob(&self, digest: Digest) -> Result<PathBuf, StoreError> {
        let path = self.blob(digest);
        match Digest::of_file(&path) {
            Ok(found) if found == digest => Ok(path),
            Ok(found) => Err(StoreError::damaged(digest, format!("its content has the digest {found}"))),
            Err(error) => Err(StoreError::damaged(digest, error.to_string())),
        }
    }

    fn document(&self, digest: Digest) -> Result<Vec<u8>, StoreError> {
        let bytes = files::read(&self.blob(digest), MAX_DOCUMENT);
        let bytes = bytes.map_err(|error| StoreError::damaged(digest, error.to_string()))?;
        match Digest::of(&bytes) {
            found if found == digest => Ok(bytes),
            found => Err(StoreError::damaged(digest, format!("its content has the digest {found}"))),
        }
    }

    fn manifest(&self, digest: Digest) -> Result<(Vec<u8>, Manifest), StoreError> {
        let text = self.document(digest)?;
        let manifest = Manifest::parse(&text).map_err(|detail| StoreError::damaged(digest, detail))?;
        Ok((text, manifest))
    }

    /// Puts what was staged into the store, under these names.
    pub(crate) fn commit(
        &self,
        staging: Staging,
        digest: Digest,
        files_digest: Option<Digest>,
        names: &[String],
    ) -> Result<(), StoreError> {
        let _lock = self.lock_exclusive()?;
        let mut index = self.index()?;
        let manifest = staging.place(self, digest, files_digest.is_some())?;
        let blobs: Vec<Digest> = std::iter::once(digest).chain(manifest.blobs().map(|blob| blob.digest)).collect();
        let size = |blob: &Digest| fs::metadata(self.blob(*blob)).map_or(0, |metadata| metadata.len());
        let bytes = blobs.iter().map(size).sum::<u64>() + files::bytes_below(&self.root(digest));
        let imported = index.images.get(&digest).map_or_else(now, |known| known.imported);
        index.images.insert(digest, Record { imported, bytes, blobs, files: files_digest });
        for name in names {
            index.references.insert(name.clone(), digest);
        }
        index.save(self.folder())?;
        self.opened().remove(&digest);
        self.sweep(&index);
        Ok(())
    }

    /// Gives an image that is there more names.
    pub(crate) fn name(&self, digest: Digest, names: &[String]) -> Result<(), StoreError> {
        let _lock = self.lock_exclusive()?;
        let mut index = self.index()?;
        if names.iter().all(|name| index.references.get(name) == Some(&digest)) {
            return Ok(());
        }
        index.references.extend(names.iter().map(|name| (name.clone(), digest)));
        index.save(self.folder())
    }

    /// Removes what nothing names: what was left by a power cut, or by an image that is gone. The lock is held.
    fn sweep(&self, index: &Index) {
        let blobs: BTreeSet<String> = index.images.values().flat_map(|record| &record.blobs).map(Digest::hex).collect();
        let images: BTreeSet<String> = index.images.keys().map(Digest::hex).collect();
        for (folder, wanted) in [(self.blobs(), &blobs), (self.roots(), &images), (self.leases(), &images)] {
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                let named = entry.file_name().to_str().is_some_and(|name| wanted.contains(name));
                if !named && let Err(error) = files::remove(&entry.path()) {
                    tracing::warn!("{}: can't be removed: {error}", entry.path().display());
                }
            }
        }
        Staging::sweep(&self.staging());
        self.opened().retain(|digest, _| index.images.contains_key(digest));
    }

    fn described(&self, index: &Index, digest: Digest, record: &Record) -> StoredImage {
        StoredImage {
            digest,
            names: index.names(digest),
            bytes: record.bytes,
            imported: UNIX_EPOCH + Duration::from_secs(record.imported),
            last_used: lease::last_used(&self.leases(), digest),
            in_use: lease::is_held(&self.leases(), digest),
        }
    }

    fn index(&self) -> Result<Index, StoreError> {
        Index::load(self.folder())
    }

    fn opened(&self) -> std::sync::MutexGuard<'_, BTreeMap<Digest, Image>> {
        self.0.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until nobody changes the store. Nothing is locked where nothing is.
    pub(crate) fn lock_shared(&self) -> Result<Option<File>, StoreError> {
        let path = self.folder().join("lock");
        match File::open(&path) {
            Ok(file) => file.lock_shared().map(|()| Some(file)).map_err(at(&path)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(at(&path)(error)),
        }
    }

    /// Waits until nobody else looks at the store.
    fn lock_exclusive(&self) -> Result<File, StoreError> {
        self.make()?;
        let path = self.folder().join("lock");
        let lock = File::open(&path).and_then(|file| file.lock().map(|()| file));
        lock.map_err(at(&path))
    }

    pub(crate) fn make(&self) -> Result<(), StoreError> {
        for folder in [self.blobs(), self.roots(), self.leases(), self.staging()] {
            files::make_folder(&folder).map_err(at(&folder))?;
        }
        let path = self.folder().join("lock");
        fs::OpenOptions::new().create(true).append(true).open(&path).map(drop).map_err(at(&path))
    }

    fn bytes(&self) -> u64 {
        files::bytes_below(&self.blobs()) + files::bytes_below(&self.roots())
    }

    pub(crate) fn blob(&self, digest: Digest) -> PathBuf {
        self.blobs().join(digest.hex())
    }

    pub(crate) fn blobs(&self) -> PathBuf {
        self.folder().join("blobs/sha256")
    }

    pub(crate) fn root(&self, digest: Digest) -> PathBuf {
        self.roots().join(digest.hex())
    }

    fn roots(&self) -> PathBuf {
        self.folder().join("roots")
    }

    fn leases(&self) -> PathBuf {
        self.folder().join("leases")
    }

    pub(crate) fn staging(&self) -> PathBuf {
        self.folder().join("staging")
    }
}

/// A name, or a digest with `sha256:` or without, whole or its beginning.
fn resolve(index: &Index, name: &str) -> Result<Digest, StoreError> {
    let unknown = || StoreError::Unknown(name.to_owned());
    let hex = name.strip_prefix("sha256:").unwrap_or(name);
    if hex.len() >= 7 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        let mut begin = index.images.keys().filter(|digest| digest.hex().starts_with(hex));
        if let (Some(found), None) = (begin.next(), begin.next()) {
            return Ok(*found);
        }
    }
    if name.starts_with("sha256:") {
        return Err(unknown());
    }
    let reference: Reference = name.parse()?;
    let digest = reference.digest().or_else(|| index.references.get(&reference.tagged()).copied());
    digest.filter(|digest| index.images.contains_key(digest)).ok_or_else(unknown)
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Bytes that a layer may have.
pub(crate) fn layer_limit(layer: &Descriptor) -> Result<u64, String> {
    match LayerKind::of(&layer.media_type)? {
        LayerKind::Module => Ok(Image::MAX_MODULE),
        LayerKind::Tar | LayerKind::TarGzip => Ok(u64::MAX),
    }
}
