//! Validation: the rules of Kubernetes for pods, with its field paths and its words.
//!
//! Every violation is reported, not only the first. The rules are for pods that have been defaulted
//! ([`crate::default_pod`]); each concept has its file.

mod affinity;
mod annotations;
mod claims;
mod container;
mod disks;
mod env;
mod ephemeral;
mod errors;
mod host;
mod lifecycle;
mod metadata;
mod mounts;
mod names;
mod network;
mod objects;
mod os;
mod paths;
mod placement;
mod pod;
mod pod_resources;
mod probe;
mod projected;
mod resize;
mod resources;
mod restart_rules;
mod same;
mod security;
mod sources;
mod update;
mod volumes;

pub use errors::{ErrorKind, FieldError};
pub use objects::{ObjectRules, Report};
pub use pod::{validate_pod, validate_pod_with};
pub use update::{Subresource, validate_pod_update};
