//! The three ways to reach the node: a component's imports, a core module's imports, none on the host.

#[cfg(all(target_os = "wasi", target_env = "p2"))]
mod component;
#[cfg(all(target_os = "wasi", not(target_env = "p2")))]
mod core_module;
#[cfg(not(target_os = "wasi"))]
pub mod native;

#[cfg(all(target_os = "wasi", target_env = "p2"))]
pub(crate) use component::{exit, next, ready, wait};
#[cfg(all(target_os = "wasi", not(target_env = "p2")))]
pub(crate) use core_module::{exit, next, ready, wait};
#[cfg(not(target_os = "wasi"))]
pub(crate) use native::{exit, next, ready, wait};
