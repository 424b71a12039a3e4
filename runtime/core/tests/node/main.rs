//! Whole pods in virtual time, through the node's public surface: the rows of the core.

mod condition;
mod deadline;
mod edge_cases;
mod ephemeral;
mod event;
mod hook;
mod init;
mod phase;
mod probe;
mod restart;
mod restart_all;
mod sidecar;
mod stale;
mod state;
mod termination;
mod update;
mod wake;
#[path = "../world/mod.rs"]
mod world;
