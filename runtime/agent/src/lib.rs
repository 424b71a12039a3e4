//! The node agent as a library: drives the lifecycle engine with real containers, volumes, addresses, probes and hooks.
//!
//! [`LocalNode`] takes pods, carries out what `husk_core::Node` orders and tells what happens as [`Notice`]s.

mod addresses;
mod backend;
mod clock;
mod config;
mod debugging;
mod device;
mod driver;
mod histories;
mod hooks;
mod images;
mod instance;
mod local;
mod logs;
mod machine;
mod measures;
mod metrics;
mod node_files;
mod notice;
mod open_files;
mod paths;
mod pod;
mod preflight;
mod probes;
mod process;
mod references;
mod sandbox;
mod security;
mod shares;
mod start;
mod static_pods;
mod target_view;
mod upkeep;
mod users;
mod view;
mod volumes;

pub use backend::Containers;
pub use config::{
    AgentConfiguration, ConfigurationError, CrashLoopBackOff, HuskConfiguration, MemoryReservationPolicy, Metering,
    Span, UserNamespaces,
};
pub use device::{Device, DeviceConfig, DeviceError, Reconfiguration};
pub use images::{
    Collected, Digest, ImageSource, ImageStore, ImageTable, ImagesConfig, Imported, InvalidName, NoDigest, Reference,
    StoreError, StoredImage,
};
pub use local::{AgentConfig, AgentError, Continuation, Keeper, LocalNode, NodeLimits, PodHandle, PodState, Restored};
pub use metrics::Metrics;
pub use notice::Notice;
pub use open_files::check_open_files;
pub use paths::{default_data_dir, default_socket};
pub use preflight::Trouble;
pub use references::{MemoryReferences, References};
pub use shares::MemoryQos;
pub use static_pods::{ManifestProblem, PodName, StaticPods, StaticPodsConfig};
pub use view::ContainerView;
