//! Signals: their names, numbers and default dispositions, and the queue that a guest takes them from.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Mutex;
use std::sync::PoisonError;

use tokio::sync::Notify;

/// KILL: can't be handled.
pub(crate) const KILL: i32 = 9;

/// Names and numbers as on Linux (`signal(7)`, the numbers of x86 and Arm).
const SIGNALS: &[(&str, i32)] = &[
    ("HUP", 1),
    ("INT", 2),
    ("QUIT", 3),
    ("ILL", 4),
    ("TRAP", 5),
    ("ABRT", 6),
    ("BUS", 7),
    ("FPE", 8),
    ("KILL", KILL),
    ("USR1", 10),
    ("SEGV", 11),
    ("USR2", 12),
    ("PIPE", 13),
    ("ALRM", 14),
    ("TERM", 15),
    ("STKFLT", 16),
    ("CHLD", 17),
    ("CONT", 18),
    ("STOP", 19),
    ("TSTP", 20),
    ("TTIN", 21),
    ("TTOU", 22),
    ("URG", 23),
    ("XCPU", 24),
    ("XFSZ", 25),
    ("VTALRM", 26),
    ("PROF", 27),
    ("WINCH", 28),
    ("IO", 29),
    ("PWR", 30),
    ("SYS", 31),
    ("RTMIN", 34),
    ("RTMAX", 64),
];

/// Signals that don't end a process which has no handler for them. Stopping a guest isn't supported, so those that stop are here.
const IGNORED: &[i32] = &[17, 18, 19, 20, 21, 22, 23, 28];

/// Signals that wait to be taken. One that waits already isn't queued twice, as on Unix.
const MAX_PENDING: usize = 64;

/// No such signal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no signal is called `{0}`; take a name as in `SIGTERM` or `SIGRTMIN+3`")]
pub struct UnknownSignal(pub String);

/// What came of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// The guest handles signals and has it in its queue.
    Queued,
    /// The guest doesn't handle signals and ends by this one.
    Ends,
    /// The guest doesn't handle signals, and this one is ignored by default.
    Ignored,
    /// The container has ended already.
    Gone,
}

/// Number of a signal by its name: `SIGTERM`, `TERM`, `SIGRTMIN+3` or `15`.
pub(crate) fn number(name: &str) -> Result<i32, UnknownSignal> {
    let upper = name.trim().to_ascii_uppercase();
    let short = upper.strip_prefix("SIG").unwrap_or(&upper);
    let named = |wanted: &str| SIGNALS.iter().find(|(n, _)| *n == wanted).map(|(_, number)| *number);
    let offset = |rest: &str| rest.parse::<i32>().ok();
    named(short)
        .or_else(|| offset(short.strip_prefix("RTMIN+")?).map(|n| 34 + n))
        .or_else(|| offset(short.strip_prefix("RTMAX-")?).map(|n| 64 - n))
        .or_else(|| short.parse().ok())
        .filter(|n| (1..=64).contains(n))
        .ok_or_else(|| UnknownSignal(name.to_string()))
}

/// Whether a guest without a handler ends by this signal.
pub(crate) fn ends_by_default(signal: i32) -> bool {
    !IGNORED.contains(&signal)
}

/// The signals of one instance that were not taken yet.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    queue: Mutex<VecDeque<i32>>,
    arrived: Notify,
}

impl Pending {
    /// Queues a signal.
    pub(crate) fn push(&self, signal: i32) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        if queue.len() < MAX_PENDING && !queue.contains(&signal) {
            queue.push_back(signal);
        }
        drop(queue);
        self.arrived.notify_waiters();
    }

    /// Takes the oldest.
    pub(crate) fn take(&self) -> Option<i32> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    /// Takes the oldest; waits for one.
    pub(crate) async fn wait(&self) -> i32 {
        loop {
            self.ready().await;
            if let Some(signal) = self.take() {
                return signal;
            }
        }
    }

    /// Waits until there is one to be taken.
    pub(crate) async fn ready(&self) {
        loop {
            // Registered before the look, so that a signal between the look and the wait isn't missed.
            let mut arrived = pin!(self.arrived.notified());
            arrived.as_mut().enable();
            if !self.queue.lock().unwrap_or_else(PoisonError::into_inner).is_empty() {
                return;
            }
            arrived.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_the_numbers_of_linux() {
        for (name, expected) in
            [("SIGTERM", 15), ("term", 15), ("SIGKILL", 9), ("12", 12), ("SIGRTMIN+3", 37), ("RTMAX-1", 63)]
        {
            assert_eq!(number(name), Ok(expected), "{name}");
        }
        for name in ["SIGNOPE", "", "0", "65", "SIGRTMIN+40"] {
            assert!(number(name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_waiting_signal_is_not_queued_twice() {
        let pending = Pending::default();
        for signal in [15, 1, 15] {
            pending.push(signal);
        }
        assert_eq!([pending.take(), pending.take(), pending.take()], [Some(15), Some(1), None]);
    }
}
