//! Folders and files of the host that a guest sees.

use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;

/// A folder or a file of the host that a guest sees.
///
/// WASI knows folders only. A file is put into the container's own root directory, or into a folder of its own in the place of the
/// image's: as another name of the same file, so that both sides see what the other writes, or as a copy if it is read-only and its
/// folder isn't. It can't be put into a volume.
#[derive(Clone, Debug)]
pub struct Mount {
    /// What is mounted.
    pub host: PathBuf,
    /// Its absolute path in the container.
    pub guest: String,
    /// The guest can't change anything in it.
    pub read_only: bool,
    /// What `host` names, if it is held open: it lives as long as the container does.
    pub held: Option<Arc<OwnedFd>>,
}

impl Mount {
    /// A mount of what has a path.
    pub fn new(host: impl Into<PathBuf>, guest: impl Into<String>, read_only: bool) -> Self {
        Self { host: host.into(), guest: guest.into(), read_only, held: None }
    }

    /// A mount of what is held open: whatever becomes of its name, this is what the guest sees.
    pub fn of(open: OwnedFd, guest: impl Into<String>, read_only: bool) -> Self {
        let host = PathBuf::from(format!("/proc/self/fd/{}", open.as_raw_fd()));
        Self { host, guest: guest.into(), read_only, held: Some(Arc::new(open)) }
    }
}
