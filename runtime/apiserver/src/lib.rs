//! The Kubernetes API of a device: the REST paths that `kubectl` and other clients use, over a Unix socket and loopback TCP.
//!
//! * [`RESOURCES`] is the table of what is served. Handlers are the same for all resources; what differs stands in the table.
//! * [`Storage`] keeps objects, [`Memory`] is one for nodes that run for a while. [`Backend`] is the way into containers.
//! * [`Api`] answers requests, [`serve`] takes connections.
//!
//! What runs the pods watches [`Objects`] as a kubelet watches its API server: a pod that is created or changed, that gets a
//! `deletionTimestamp`, and that is gone. It writes statuses with [`Objects::update`], and ends a graceful deletion with
//! [`Objects::remove`].

mod api;
mod backend;
mod body;
mod budgets;
mod changes;
mod container;
mod create;
mod delete;
mod discovery;
mod event_correlator;
mod event_record;
mod eviction;
mod exec;
mod health;
mod incoming;
mod lease;
mod logs;
mod memory;
mod namespaces;
mod negotiate;
mod node_object;
mod objects;
mod openapi;
mod patch;
mod protobuf;
mod query;
mod read;
mod resource;
mod resources;
mod respond;
mod route;
mod selection;
mod serve;
mod status;
mod storage;
mod stream;
mod table;
mod timeline;
mod update;
mod websocket;

pub use api::{Api, Device};
pub use backend::{Attached, Backend, BoxFuture, Exit, LogLine, LogSource, Metrics, Streams, Target, TerminalSize};
pub use changes::{Change, Changes, Feed, Watch};
pub use event_record::{EventTimes, Involved};
pub use health::Check;
pub use memory::Memory;
pub use node_object::NodeFacts;
pub use objects::Objects;
pub use resource::{Column, Door, ListMerge, Reading, Removal, Resource, Strategy, Subresource};
pub use resources::{CONFIG_MAPS, NODE_METRICS, NODES, POD_METRICS, PODS, RESOURCES, SECRETS};
pub use respond::{Payload, Response};
pub use serve::{Listener, serve};
pub use status::{ApiError, Cause};
pub use storage::{Expected, Key, Page, Scope, Shared, Storage, StorageError, revision_of, set_revision};
