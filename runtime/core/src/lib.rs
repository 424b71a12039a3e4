//! The pod lifecycle engine of Husk.
//!
//! This crate decides everything about a pod's life and does nothing itself: no clock, no I/O, no thread, no async.
//! A shell (the Linux agent, a microcontroller's firmware, the simulator) hands in facts and time and carries out orders:
//!
//! * [`Node::handle`] takes an [`Input`]: something that happened.
//! * [`Node::poll_action`] gives the next [`Action`] to carry out, until there is none.
//! * [`Node::next_wake`] says when [`Node::advance`] has work to do, if nothing happens before.
//!
//! Decisions are pure functions of state and are public, so that they can be asked the same questions as upstream's own
//! (see the modules [`actions`], [`phase`], [`conditions`], [`restart`], [`backoff`], [`prober`]).

#![cfg_attr(not(test), no_std)]

extern crate alloc;
// For what tests inside and outside of the crate share.
#[cfg(test)]
extern crate self as husk_core;

pub mod actions;
pub mod admission;
pub mod api_status;
pub mod backoff;
pub mod conditions;
pub mod cpu;
pub mod deletion;
pub mod disruption;
pub mod event;
pub mod eviction;
pub mod expansion;
pub mod field_selector;
pub mod grace;
pub mod group;
pub mod io;
pub mod memory;
pub mod names;
pub mod node;
pub mod pdb;
pub mod phase;
pub mod placement;
mod pod;
pub mod prober;
pub mod qos;
pub mod quantity;
pub mod reasons;
pub mod record;
pub mod resources;
pub mod restart;
pub mod runtime;
pub mod scheduling;
pub mod selector;
pub mod signal;
pub mod spec;
pub mod status;
pub mod status_manager;
pub mod statuses;
pub mod termination_message;
pub mod termination_order;
#[cfg(test)]
#[path = "../tests/fleet/mod.rs"]
mod tests_fleet;
pub mod time;

pub use io::{Action, Input};
pub use node::{Node, NodeConfig};
pub use record::PodRecord;
pub use time::Instant;
