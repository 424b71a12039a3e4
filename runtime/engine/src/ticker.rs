//! A clock for guests that are stopped by time and not by fuel: it ticks while one of them computes, and costs nothing otherwise.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, Builder, Thread};

use husk_core::cpu::QUANTUM;

/// Ticks as long as it lives.
#[derive(Debug)]
pub(crate) struct Ticker {
    state: Arc<State>,
    thread: Thread,
}

#[derive(Debug, Default)]
struct State {
    computing: AtomicUsize,
    is_over: AtomicBool,
}

impl Ticker {
    /// Starts its thread, which is no guest's: those have no moment to spare.
    pub(crate) fn start(engine: wasmtime::Engine) -> io::Result<Self> {
        let state = Arc::<State>::default();
        let seen = state.clone();
        let ticking = Builder::new().name("ticker".into()).spawn(move || {
            while !seen.is_over.load(Ordering::Acquire) {
                if seen.computing.load(Ordering::Acquire) == 0 {
                    // A wish from before it parks wakes it at once.
                    thread::park();
                } else {
                    thread::sleep(QUANTUM);
                    engine.increment_epoch();
                }
            }
        })?;
        Ok(Self { state, thread: ticking.thread().clone() })
    }

    /// Somebody computes from now on.
    pub(crate) fn enter(&self) {
        if self.state.computing.fetch_add(1, Ordering::AcqRel) == 0 {
            self.thread.unpark();
        }
    }

    /// No more.
    pub(crate) fn leave(&self) {
        self.state.computing.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.state.is_over.store(true, Ordering::Release);
        self.thread.unpark();
    }
}
