//! What Kubernetes fills in where a manifest says nothing.

mod container;
mod image;
mod objects;
mod pod;
mod volumes;

pub(crate) use image::has_latest_tag;
pub use objects::{default_json, default_object};
pub(crate) use pod::of_containers;
pub use pod::{default_pod, default_template};
