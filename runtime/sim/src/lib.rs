//! Pods in virtual time: what happens to them is written in a [`scenario`], [`play()`] plays the core with it.
//!
//! At every step a referee checks what must always hold. A [`run`](run::run) plays [`random`] lives; one that breaks a rule is made as
//! small as it gets ([`shrink`]) and [`report`]ed as a manifest and a scenario.

pub mod broken;
pub mod counts;
pub mod manifest;
pub mod play;
pub mod random;
mod referee;
pub mod report;
pub mod run;
pub mod scenario;
pub mod shrink;
pub mod span;
mod world;

pub use broken::Broken;
pub use play::{Watch, play};
pub use scenario::{Scenario, Subject};
pub use span::Span;
