//! Ctrl-C, and the signals that mean the same to a command in the foreground.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that end a run.
pub(crate) struct Interrupts {
    int: Option<Signal>,
    term: Option<Signal>,
    hup: Option<Signal>,
}

impl Interrupts {
    /// From now on they don't end the process at once.
    pub(crate) fn catch() -> Self {
        let of = |kind| signal(kind).ok();
        Self {
            int: of(SignalKind::interrupt()),
            term: of(SignalKind::terminate()),
            // Whoever says nohup wants it to go on when the terminal is closed.
            hup: if hang_up_is_ignored() { None } else { of(SignalKind::hangup()) },
        }
    }

    /// None that would come.
    pub(crate) fn none() -> Self {
        Self { int: None, term: None, hup: None }
    }

    /// Waits for the next one; its number.
    pub(crate) async fn next(&mut self) -> u8 {
        async fn of(signal: &mut Option<Signal>) {
            match signal {
                Some(signal) => {
                    signal.recv().await;
                }
                None => std::future::pending().await,
            }
        }
        tokio::select! {
            () = of(&mut self.int) => 2,
            () = of(&mut self.term) => 15,
            () = of(&mut self.hup) => 1,
        }
    }
}

fn hang_up_is_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}
