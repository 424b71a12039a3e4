//! What Kubernetes fills in where a manifest says nothing.

mod container;
mod image;
mod pod;
mod volumes;

pub(crate) use image::has_latest_tag;
pub(crate) use pod::{aggregate, is_pod_level};
pub use pod::{default_pod, default_template};
