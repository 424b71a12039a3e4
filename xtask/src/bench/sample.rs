//! Figures of several runs.

use std::fmt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::run::line;

/// Times of one command.
pub(super) struct Sample {
    /// Sorted, not empty.
    times: Vec<Duration>,
}

impl Sample {
    /// Runs a command that often, from its start to its end.
    ///
    /// # Errors
    /// If it can't be started or ends with another exit code than 0.
    pub(super) fn of(runs: usize, command: impl Fn() -> Result<Command>) -> Result<Self> {
        let mut times = Vec::with_capacity(runs);
        for _ in 0..runs.max(1) {
            let mut command = command()?;
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let begun = Instant::now();
            let status = command.status().with_context(|| line(&command))?;
            times.push(begun.elapsed());
            if !status.success() {
                bail!("{}: {status}", line(&command));
            }
        }
        Ok(Self::from(times))
    }

    /// The middle one.
    pub(super) fn median(&self) -> Duration {
        self.times[self.times.len() / 2]
    }
}

impl From<Vec<Duration>> for Sample {
    fn from(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        Self { times }
    }
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = |time: &Duration| time.as_secs_f64() * 1000.0;
        let (least, most) = (&self.times[0], &self.times[self.times.len() - 1]);
        write!(f, "{:8.1} ms  ({:.1} to {:.1})", millis(&self.median()), millis(least), millis(most))
    }
}
