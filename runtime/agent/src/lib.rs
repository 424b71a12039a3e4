//! The node agent as a library: drives the lifecycle engine with real containers, volumes, addresses, probes and hooks.

mod addresses;
mod images;
mod process;

pub use addresses::{Address, Addresses};
pub use images::{ImageTable, NoImage};
pub use process::{Place, Process};
