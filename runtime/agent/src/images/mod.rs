//! Images on the node: what an `image:` means, where it is kept, and how long.

mod config;
mod digest;
mod error;
mod files;
mod gc;
mod import;
mod index;
mod layout;
mod lease;
mod names;
mod oci;
mod pull;
mod reference;
mod source;
mod staging;
mod store;
mod tree;
mod unpack;

pub use config::ImagesConfig;
pub use digest::{Digest, NoDigest};
pub use error::StoreError;
pub use gc::Collected;
pub use import::Imported;
pub use names::ImageTable;
pub(crate) use pull::{Found, Images, NoImage};
pub use reference::{InvalidName, Reference};
pub use source::ImageSource;
pub use store::{ImageStore, StoredImage};
