//! The host stands in for a node, so that a guest's own tests run natively: each thread has its own signals, and sends
//! them to itself.

use std::cell::{Cell, RefCell};
use std::thread;
use std::time::{Duration, Instant};

use crate::signals::Signal;

thread_local! {
    static QUEUE: RefCell<Vec<(Instant, Signal)>> = const { RefCell::new(Vec::new()) };
    static READY: Cell<Option<bool>> = const { Cell::new(None) };
}

/// Sends `signal` to this thread, `after` from now.
pub fn raise(signal: Signal, after: Duration) {
    QUEUE.with_borrow_mut(|queue| {
        queue.push((Instant::now() + after, signal));
        queue.sort_by_key(|(due, _)| *due);
    });
}

/// What this thread last said with [`crate::health::ready`].
pub fn said_ready() -> Option<bool> {
    READY.get()
}

pub(crate) fn next() -> Option<Signal> {
    QUEUE.with_borrow_mut(|queue| {
        let (due, signal) = *queue.first()?;
        (due <= Instant::now()).then(|| {
            queue.remove(0);
            signal
        })
    })
}

pub(crate) fn wait(timeout: Option<Duration>) -> Option<Signal> {
    let over = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    loop {
        if let Some(signal) = next() {
            return Some(signal);
        }
        let due = QUEUE.with_borrow(|queue| queue.first().map(|(due, _)| *due));
        let now = Instant::now();
        match (due, over) {
            (_, Some(over)) if over <= now => return None,
            (Some(due), Some(over)) => thread::sleep(due.min(over).saturating_duration_since(now)),
            (Some(wake), None) | (None, Some(wake)) => thread::sleep(wake.saturating_duration_since(now)),
            (None, None) => thread::park(),
        }
    }
}

pub(crate) fn ready(is_ready: bool) {
    READY.set(Some(is_ready));
}

pub(crate) fn exit(code: u8) -> ! {
    std::process::exit(i32::from(code))
}
