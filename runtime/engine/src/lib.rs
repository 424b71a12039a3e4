//! How a container runs: one [`Engine`] per node, an [`Image`] per program, a [`Container`] per running instance.
//!
//! Guests are WASI components (p2) or core modules (p1). They run on the engine's own low-priority threads and give the thread
//! back after a millisecond if others wait, so neither another guest nor the control plane waits for one that computes, and
//! [`Container::kill`] ends any guest whatever it does. A container's memory is counted over all its instances; its output
//! goes to a bounded [`Log`]; its sockets live on the pod's own loopback address ([`net`]).
//!
//! ```no_run
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! use husk_engine::{ContainerConfig, Engine, EngineConfig, Image, Log};
//!
//! let engine = Engine::new(EngineConfig::default())?;
//! let image = Image::open("hello.wasm")?;
//! engine.prepare(&image).await?;
//! let log = Log::default();
//! let container = engine.start(ContainerConfig::new(image), log.clone()).await?;
//! println!("ended: {:?}", container.wait().await);
//! for line in log.lines() {
//!     println!("{}", line.text);
//! }
//! # Ok(()) }
//! ```

mod account;
mod asked;
mod attach;
mod cache;
mod compiler;
mod container;
mod engine;
mod exec;
mod files;
mod guest;
mod handles;
mod image;
mod last_words;
mod lifecycle;
mod limits;
mod log;
mod mount;
pub mod net;
mod outcome;
mod owner;
mod pod;
mod program;
mod remove;
mod root;
mod signal;
mod sockets;
mod split;
mod stdio;
mod terminal;
mod threads;
mod ticker;
mod turns;
mod wasi;

pub use account::{InUse, MemoryUse};
pub use attach::{Attached, Detached};
pub use compiler::{Compiler, compile_as_told};
pub use container::{Container, ContainerConfig, StartError};
pub use engine::{Engine, EngineConfig, EngineError, Metering};
pub use exec::{Exec, ExecOutput, Process, Streams};
pub use image::{Image, ImageConfig, ImageError};
pub use log::{Follower, Line, Log, LogConfig, Stream};
pub use mount::Mount;
pub use owner::Owner;
pub use pod::Pod;
pub use remove::{remove_tree, remove_tree_in};
pub use signal::{Delivery, UnknownSignal};
