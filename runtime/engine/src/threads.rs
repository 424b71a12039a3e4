//! The threads of guests.

use std::io;

use tokio::runtime::{Builder, Handle, Runtime};

/// Nice value of guest threads: below the control plane, above what the system calls idle.
pub(crate) const NICE: i32 = 5;

/// Turns of a guest thread between looks at timers and sockets. A turn is up to a millisecond, so this is what bounds how late they are
/// seen while guests compute.
const EVENT_INTERVAL: u32 = 1;

/// A runtime of guests' own, so that the node's control plane never waits behind a guest.
#[derive(Debug)]
pub(crate) struct Threads(Option<Runtime>);

impl Threads {
    /// With so many threads that compute, and as many that wait for disks as are needed. Each calls `begin` first.
    pub(crate) fn start(workers: usize, begin: impl Fn() + Send + Sync + 'static) -> io::Result<Self> {
        Builder::new_multi_thread()
            .worker_threads(workers)
            .thread_name("guest")
            .event_interval(EVENT_INTERVAL)
            .enable_all()
            .on_thread_start(move || {
                // For the calling thread alone, as Linux has it. Without the right to, guests run at the node's own priority.
                if let Err(error) = rustix::process::setpriority_process(None, NICE) {
                    tracing::debug!("guest thread keeps its priority: {error}");
                }
                begin();
            })
            .build()
            .map(|runtime| Self(Some(runtime)))
    }

    pub(crate) fn handle(&self) -> &Handle {
        // Taken in `drop` only.
        self.0.as_ref().map(Runtime::handle).expect("threads live as long as the engine")
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        // Doesn't wait: a guest may have left a thread in a read of a file that never answers.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
