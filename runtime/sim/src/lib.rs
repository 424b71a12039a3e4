//! Pods in virtual time: what happens to them is written in a [`scenario`], [`play()`] plays the core with it.

pub mod play;
pub mod scenario;
pub mod span;
mod world;

pub use play::{Watch, play};
pub use scenario::{Scenario, Subject};
pub use span::Span;
