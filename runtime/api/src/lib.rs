//! Kubernetes objects in and out: the manifest as it is written on one side, what the core decides on at the other.
//!
//! * [`check`] reads a manifest and says everything that is wrong with it; [`decode`] only reads, strictly.
//! * [`default_pod`] fills in what Kubernetes would, [`validate_pod`] has its rules.
//! * [`pod_of`] gives the pod of an object, [`core_spec`] and [`core_meta`] the core's view of it.
//! * [`status_object`] gives the status back as clients read it, [`PodRow`] as a table shows it.

mod age;
mod amount;
mod check;
mod core_spec;
mod decode;
mod defaults;
mod env;
mod field_table;
mod gates;
mod hostname;
mod json;
mod object;
mod placement;
mod printing;
mod problem;
mod quote;
mod raw;
mod scalar;
mod schema;
mod status_object;
mod strict;
mod suggest;
mod tree;
mod validate;
mod written;
mod yaml;

pub use age::age;
pub use check::{check, check_for_agent, check_with_others};
pub use core_spec::{as_container, core_meta, core_spec};
pub use decode::{Decoded, Document, decode, pod_from_json};
pub use defaults::{default_json, default_object, default_pod, default_template};
pub use env::{
    EnvError, EnvFileError, EnvSources, container_env, env_file_value, field_value, resource_value, service_variables,
};
pub use field_table::field_table_markdown;
pub use gates::{Gate, Gates, drop_disabled_fields, gate_table_markdown, gates_with_used};
pub use hostname::{Hostname, hostname};
pub use object::{DEFAULT_NAMESPACE, Object, pod_of};
pub use placement::{label_selector, node_demand, taint, toleration};
pub use printing::PodRow;
pub use problem::Problem;
pub use raw::{PodReading, RawObject, json_of_json, json_of_yaml, read_pod};
pub use status_object::{Wall, status_object};
pub use validate::{
    ErrorKind, FieldError, ObjectRules, Report, Subresource, validate_pod, validate_pod_update, validate_pod_with,
};
pub use written::{Written, written};
pub use yaml::{MAX_BYTES, MAX_DEPTH, MAX_UNFOLDED_BYTES, MAX_VALUES};

pub use k8s_openapi::api::core::v1 as k8s;
