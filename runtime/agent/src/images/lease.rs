//! Who uses an image says so by a lock on a file, which ends with its process: no image is removed that somebody uses.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use super::digest::Digest;

/// An image is in use. Taken only while the store is locked.
#[derive(Debug)]
pub(crate) struct Lease(File);

impl Lease {
    /// None where nothing can be written: there nothing is removed either.
    pub(crate) fn take(folder: &Path, digest: Digest) -> io::Result<Option<Arc<Self>>> {
        let path = folder.join(digest.hex());
        let opened = fs::OpenOptions::new().create(true).append(true).open(path);
        let file = match opened {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => return Ok(None),
            Err(error) => return Err(error),
        };
        file.lock_shared()?;
        let lease = Self(file);
        lease.touch();
        Ok(Some(Arc::new(lease)))
    }

    /// It is used now.
    pub(crate) fn touch(&self) {
        if let Err(error) = self.0.set_modified(SystemTime::now()) {
            tracing::debug!("when an image was used can't be noted: {error}");
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.touch();
    }
}

/// Whether anybody uses the image, in whatever process. Who asks locks it for a moment, so one asks after the other.
pub(crate) fn is_held(folder: &Path, digest: Digest) -> bool {
    let turn = File::open(folder).and_then(|folder| folder.lock().map(|()| folder));
    let _turn = turn.inspect_err(|error| tracing::debug!("{}: {error}", folder.display()));
    let file = File::open(folder.join(digest.hex()));
    file.is_ok_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
}

/// When it was last taken or given back.
pub(crate) fn last_used(folder: &Path, digest: Digest) -> Option<SystemTime> {
    fs::metadata(folder.join(digest.hex())).and_then(|metadata| metadata.modified()).ok()
}
