//! An import before it is in the store: a folder that is nobody's until all of it is there.

use std::fs::{self, File, Permissions, TryLockError};
use std::io::{self, Read, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::digest::{Digest, Hashing};
use super::error::{StoreError, at};
use super::oci::{Descriptor, LayerKind, Manifest};
use super::store::ImageStore;
use super::unpack::Unpacker;
use super::{files, tree};

/// Locked as long as its import goes on.
const OWNER: &str = "owner";

/// What is being imported. Dropping it removes it.
pub(crate) struct Staging {
    folder: TempDir,
    _owner: File,
}

impl Staging {
    pub(crate) fn begin(store: &ImageStore) -> Result<Self, StoreError> {
        store.make()?;
        // Nobody sweeps meanwhile.
        let _lock = store.lock_shared()?;
        let place = store.staging();
        let begin = || {
            let folder = tempfile::Builder::new().tempdir_in(&place)?;
            let owner = files::create(&folder.path().join(OWNER))?;
            owner.lock()?;
            files::make_folder(&folder.path().join("blobs"))?;
            let root = folder.path().join("root");
            files::make_folder(&root)?;
            // Nobody but the node gets as far as this, and guests that act as others have to get into it.
            fs::set_permissions(&root, Permissions::from_mode(0o755))?;
            Ok(Self { folder, _owner: owner })
        };
        begin().map_err(at(&place))
    }

    /// Removes what imports left behind that are gone. The store is locked.
    pub(crate) fn sweep(place: &Path) {
        for entry in fs::read_dir(place).into_iter().flatten().flatten() {
            let owner = File::open(entry.path().join(OWNER));
            let alive = owner.is_ok_and(|owner| matches!(owner.try_lock(), Err(TryLockError::WouldBlock)));
            if !alive && let Err(error) = files::remove(&entry.path()) {
                tracing::warn!("{}: can't be removed: {error}", entry.path().display());
            }
        }
    }

    pub(crate) fn blob(&self, digest: Digest) -> PathBuf {
        self.folder.path().join("blobs").join(digest.hex())
    }

    /// Where the image's files are.
    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    /// Takes a blob that was made here.
    pub(crate) fn put(&self, media_type: &str, bytes: &[u8]) -> Result<Descriptor, StoreError> {
        let digest = Digest::of(bytes);
        let path = self.blob(digest);
        if !path.exists() {
            files::write(&path, bytes).map_err(at(&path))?;
        }
        Ok(Descriptor::new(media_type, digest, bytes.len() as u64))
    }

    /// Takes content of at most so many bytes, whatever its digest is. `from` is where it comes from.
    pub(crate) fn copy(&self, content: impl Read, limit: u64, from: &Path) -> Result<(Digest, u64), StoreError> {
        let new = self.folder.path().join("new");
        let mut file = files::create(&new).map_err(at(&new))?;
        let mut reader = Hashing::new(content.take(limit.saturating_add(1)));
        io::copy(&mut reader, &mut file).map_err(at(from))?;
        file.flush().and_then(|()| file.sync_all()).map_err(at(&new))?;
        let (digest, bytes) = reader.finish();
        if bytes > limit {
            return Err(StoreError::refused(from, format!("bigger than the {limit} bytes that this node takes")));
        }
        fs::rename(&new, self.blob(digest)).map_err(at(&new))?;
        Ok((digest, bytes))
    }

    /// Makes the image's files of its layers, and its working directory; the answer is their digest.
    pub(crate) fn unpack(
        &self,
        manifest: &Manifest,
        working_dir: Option<&str>,
        layer: impl Fn(&Descriptor) -> Result<PathBuf, StoreError>,
    ) -> Result<Digest, StoreError> {
        let root = self.root();
        let mut unpacker = Unpacker::new(&root).map_err(at(&root))?;
        for (n, descriptor) in manifest.layers.iter().enumerate() {
            let path = layer(descriptor)?;
            let refused = |detail: String| StoreError::refused(&path, format!("layer {}: {detail}", descriptor.digest));
            let kind = LayerKind::of(&descriptor.media_type).map_err(refused)?;
            let file = files::open(&path).map_err(at(&path))?;
            let added = unpacker.add(file, kind, &manifest.module_name(n));
            added.map_err(|error| refused(error.to_string()))?;
        }
        working_dir.map_or(Ok(()), |path| unpacker.folder(path)).map_err(at(&root))?;
        tree::digest(&root).map_err(at(&root))
    }

    /// Puts the files where the store has them. The store is locked.
    pub(crate) fn place_root(&self, to: &Path) -> Result<(), StoreError> {
        files::remove(to).and_then(|()| fs::rename(self.root(), to)).map_err(at(to))
    }

    /// Puts blobs, and files if there are any, where the store has them. The store is locked.
    pub(crate) fn place(self, store: &ImageStore, digest: Digest, files: bool) -> Result<Manifest, StoreError> {
        let blobs = self.folder.path().join("blobs");
        for entry in fs::read_dir(&blobs).map_err(at(&blobs))? {
            let entry = entry.map_err(at(&blobs))?;
            fs::rename(entry.path(), store.blobs().join(entry.file_name())).map_err(at(&store.blobs()))?;
        }
        files::sync_folder(&store.blobs()).map_err(at(&store.blobs()))?;
        let text = fs::read(store.blob(digest)).map_err(at(&store.blob(digest)))?;
        let manifest = Manifest::parse(&text).map_err(|detail| StoreError::damaged(digest, detail))?;
        for blob in manifest.blobs() {
            let path = store.blob(blob.digest);
            if !path.is_file() {
                return Err(StoreError::refused(&path, "removed while the image was imported; import it again"));
            }
        }
        if files {
            self.place_root(&store.root(digest))?;
        }
        Ok(manifest)
    }

    /// The folder, for messages.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// A file to write to.
    pub(crate) fn scratch(&self) -> PathBuf {
        self.folder.path().join("scratch")
    }
}
