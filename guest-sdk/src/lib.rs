//! For programs that run as containers in Husk pods.
//!
//! | I want to | use |
//! |---|---|
//! | finish my work when the pod is stopped | [`run_until_stopped`], or [`signals::stop_requested`] in a loop of my own |
//! | handle each signal myself | [`signals::next`] (never blocks), [`signals::wait`] (sleeps until a signal or a timeout) |
//! | say when I can do my work | [`health::ready`] |
//! | end with an exit code of my own | [`exit`] |
//! | write log lines | [`info!`], [`warn!`], [`error!`] |
//!
//! A module *declares* that it handles stop signals by importing the lifecycle interface, and it imports the interface
//! when it calls something in [`signals`]: the linker drops what isn't called. A program that calls nothing there ends
//! at once when it is stopped (exit code 143), as a Unix process without a handler does.
//!
//! The crate builds for `wasm32-wasip2` (components, the interface in `wit/`), for `wasm32-wasip1` (core modules, plain
//! imports of the module `husk:lifecycle`, for C in `include/husk.h`), and for the host, so that a guest's own tests
//! run natively; see [`signals::native`].
//!
//! ```no_run
//! use std::process::ExitCode;
//! use std::time::Duration;
//!
//! fn main() -> ExitCode {
//!     husk_guest::health::ready(true);
//!     let signal = husk_guest::run_until_stopped(Duration::from_secs(1), || husk_guest::info!("measuring"));
//!     husk_guest::info!("stopped by {signal}, values saved");
//!     ExitCode::SUCCESS
//! }
//! ```

mod exit;
pub mod health;
pub mod log;
pub mod signals;
mod sys;

use std::time::{Duration, Instant};

pub use exit::exit;
pub use signals::Signal;

/// Calls `work` once per `period` until the pod is stopped, and returns the signal that stopped it.
///
/// A stop signal cuts the pause short, never the work: what `work` has begun it ends. When `work` takes longer than
/// `period` it is called again at once.
pub fn run_until_stopped(period: Duration, mut work: impl FnMut()) -> Signal {
    loop {
        let begun = Instant::now();
        work();
        let pause = period.saturating_sub(begun.elapsed());
        if let Some(signal) = signals::wait_for_stop(pause) {
            return signal;
        }
    }
}
