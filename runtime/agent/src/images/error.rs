//! What goes wrong with images on the node.

use std::io;
use std::path::{Path, PathBuf};

use husk_engine::ImageError;

use super::digest::Digest;
use super::reference::InvalidName;

/// Why the store of images, or something that was to be put into it, can't be used. Each message names the file and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A file can't be read or written.
    #[error("{path}: {source}")]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// What was to be imported is no image, or not one for this node.
    #[error("{path}: {detail}")]
    Refused {
        /// The layout, tar, file or folder.
        path: PathBuf,
        /// What is wrong with it.
        detail: String,
    },
    /// Something in the store is not what it was when it was put there.
    #[error(
        "{what} of the image in the store is damaged: {detail}; import the image again, or remove it with `husk image rm`"
    )]
    Damaged {
        /// Which part, as in `blob sha256:…`.
        what: String,
        /// How it is known.
        detail: String,
    },
    /// Its modules are no programs for this node.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// No image can have that name.
    #[error(transparent)]
    Name(#[from] InvalidName),
    /// There is no such image.
    #[error("no image `{0}` in the store; `husk image ls` shows what there is")]
    Unknown(String),
    /// A pod needs it.
    #[error("image `{0}` is in use by a pod; delete the pod first")]
    InUse(String),
}

impl StoreError {
    pub(crate) fn refused(path: &Path, detail: impl Into<String>) -> Self {
        Self::Refused { path: path.to_path_buf(), detail: detail.into() }
    }

    pub(crate) fn damaged(blob: Digest, detail: impl Into<String>) -> Self {
        Self::Damaged { what: format!("blob {blob}"), detail: detail.into() }
    }
}

/// Names the file of an error.
pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    move |source| StoreError::Io { path: path.to_path_buf(), source }
}
