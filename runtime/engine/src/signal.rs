//! Signals: what comes of one, and the queue that a guest takes them from.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};

use husk_core::signal;
pub(crate) use husk_core::signal::{KILL, ends_by_default};
use tokio::sync::{Notify, watch};

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
    signal::number(name).ok_or_else(|| UnknownSignal(name.to_owned()))
}

/// How signals reach an instance. Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct Control {
    /// It takes signals from its queue.
    pub(crate) handles_signals: bool,
    pub(crate) pending: Arc<Pending>,
    /// Ends it by that signal.
    pub(crate) stop: watch::Sender<Option<i32>>,
}

impl Control {
    pub(crate) fn new(handles_signals: bool) -> Self {
        Self { handles_signals, pending: Arc::default(), stop: watch::Sender::new(None) }
    }

    /// Delivers a signal: to its queue, or by the default disposition. KILL ends every guest.
    pub(crate) fn deliver(&self, signal: i32) -> Delivery {
        if signal != KILL {
            if self.handles_signals {
                self.pending.push(signal);
                return Delivery::Queued;
            }
            if !ends_by_default(signal) {
                return Delivery::Ignored;
            }
        }
        // The first signal wins: a guest that ends by TERM doesn't end by the KILL that follows.
        self.stop.send_if_modified(|stop| {
            let first = stop.is_none();
            stop.get_or_insert(signal);
            first
        });
        Delivery::Ends
    }
}

/// Waits until something is said, and doesn't hold on to it: who is dropped because of it may look at the same channel, and waits for ever if
/// somebody wants to say more meanwhile. None if nobody can say anything any more.
pub(crate) async fn said<T: Clone>(channel: &mut watch::Receiver<Option<T>>) -> Option<T> {
    channel.wait_for(Option::is_some).await.ok().and_then(|said| said.clone())
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
    fn a_waiting_signal_is_not_queued_twice() {
        let pending = Pending::default();
        for signal in [15, 1, 15] {
            pending.push(signal);
        }
        assert_eq!([pending.take(), pending.take(), pending.take()], [Some(15), Some(1), None]);
    }
}
