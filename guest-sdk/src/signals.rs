//! Stop signals, as the node sends them.
//!
//! Calling any function here makes the module import the lifecycle interface, and so declares that it handles signals.

use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use crate::sys;

#[cfg(not(target_os = "wasi"))]
pub use crate::sys::native;

/// A signal, with its Linux number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Signal {
    /// Hang up; by custom: read the configuration again.
    Hup = 1,
    /// Interrupt from the keyboard.
    Int = 2,
    /// Quit; nginx's graceful stop.
    Quit = 3,
    /// For the program's own use.
    Usr1 = 10,
    /// For the program's own use.
    Usr2 = 12,
    /// Stop: what a pod's deletion sends unless `stopSignal` names another.
    Term = 15,
    /// The window changed its size; httpd's graceful stop.
    Winch = 28,
}

impl Signal {
    /// All signals, by number.
    pub const ALL: [Signal; 7] =
        [Signal::Hup, Signal::Int, Signal::Quit, Signal::Usr1, Signal::Usr2, Signal::Term, Signal::Winch];

    /// The signal with this Linux number.
    pub fn from_number(number: i32) -> Option<Signal> {
        Signal::ALL.into_iter().find(|signal| signal.number() == number)
    }

    /// The signal with this name: `TERM` and `SIGTERM` are the same, in upper or lower case.
    pub fn from_name(name: &str) -> Option<Signal> {
        let name = name.to_ascii_uppercase();
        let short = name.strip_prefix("SIG").unwrap_or(&name);
        Signal::ALL.into_iter().find(|signal| signal.name() == short)
    }

    /// The Linux number.
    pub fn number(self) -> i32 {
        i32::from(self as u8)
    }

    /// The name without `SIG`.
    pub fn name(self) -> &'static str {
        match self {
            Signal::Hup => "HUP",
            Signal::Int => "INT",
            Signal::Quit => "QUIT",
            Signal::Usr1 => "USR1",
            Signal::Usr2 => "USR2",
            Signal::Term => "TERM",
            Signal::Winch => "WINCH",
        }
    }

    /// The exit code of a process that this signal ended.
    pub fn exit_code(self) -> i32 {
        128 + self.number()
    }

    /// Whether the signal asks the program to end: TERM, INT and QUIT.
    pub fn is_stop(self) -> bool {
        matches!(self, Signal::Term | Signal::Int | Signal::Quit)
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SIG{}", self.name())
    }
}

/// The oldest signal that was not taken yet. Never blocks.
pub fn next() -> Option<Signal> {
    sys::next()
}

/// Sleeps until a signal arrives, which it takes, or until `timeout` is over; without a timeout until a signal arrives.
pub fn wait(timeout: Option<Duration>) -> Option<Signal> {
    sys::wait(timeout)
}

/// Sleeps for `timeout`, or until a stop signal arrives, which it returns. Other signals are passed over.
pub fn wait_for_stop(timeout: Duration) -> Option<Signal> {
    let begun = Instant::now();
    loop {
        if let Some(signal) = stop_requested() {
            return Some(signal);
        }
        let left = timeout.saturating_sub(begun.elapsed());
        if left.is_zero() {
            return None;
        }
        if let Some(signal) = wait(Some(left)).filter(|signal| signal.is_stop()) {
            STOPPED_BY.store(signal as u8, Ordering::Relaxed);
        }
    }
}

/// The stop signal that has arrived, if one has; from then on the answer stays the same. Other signals are passed over.
pub fn stop_requested() -> Option<Signal> {
    if STOPPED_BY.load(Ordering::Relaxed) == 0 {
        while let Some(signal) = next() {
            if signal.is_stop() {
                STOPPED_BY.store(signal as u8, Ordering::Relaxed);
                break;
            }
        }
    }
    Signal::from_number(i32::from(STOPPED_BY.load(Ordering::Relaxed)))
}

/// Number of the stop signal that was seen; 0 before.
static STOPPED_BY: AtomicU8 = AtomicU8::new(0);
