//! Whole pods in virtual time, through the node's public surface: the rows of the core.

mod deadline;
mod hook;
mod init;
mod phase;
mod probe;
mod restart;
mod sidecar;
mod state;
mod termination;
#[path = "../world/mod.rs"]
mod world;
