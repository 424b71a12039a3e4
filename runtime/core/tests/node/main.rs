//! Whole pods in virtual time, through the node's public surface: the rows of the core.

mod phase;
mod restart;
mod state;
#[path = "../world/mod.rs"]
mod world;
