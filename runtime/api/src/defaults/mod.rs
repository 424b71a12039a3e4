//! What Kubernetes fills in where a manifest says nothing.

mod container;
mod image;
mod pod;
mod volumes;

pub(crate) use image::has_latest_tag;
pub use pod::{default_pod, default_template};
