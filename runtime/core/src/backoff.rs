//! Crash-loop back-off of one container (RESTART-02, RESTART-03, RESTART-05, RESTART-06).
//!
//! The first restart is at once. Each restart that follows waits twice as long as the one before, from the moment the
//! container ended; the delay moves on when the container is let go, not when it ends. Times are monotonic, so no change of
//! the wall clock touches a delay (RESTART-12).

use alloc::string::String;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::time::{Duration, Instant};

/// A container that ended more than this after it was let go begins anew (RESTART-03).
const RESET_AFTER: Duration = Duration::from_secs(600);

/// The delays of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackoffConfig {
    /// The first delay.
    pub base: Duration,
    /// No delay is longer.
    pub max: Duration,
}

impl BackoffConfig {
    /// 10 s, 20 s, … 300 s, or less if the node's `maxContainerRestartPeriod` says so (RESTART-05).
    pub fn standard(node_max: Option<Duration>) -> Self {
        Self::capped(Duration::from_secs(10), node_max.unwrap_or(Duration::from_secs(300)))
    }

    /// 1 s, 2 s, … 60 s with gate `ReduceDefaultCrashLoopBackOffDecay`; the node's maximum wins over it (RESTART-06).
    pub fn reduced(node_max: Option<Duration>) -> Self {
        Self::capped(Duration::from_secs(1), node_max.unwrap_or(Duration::from_secs(60)))
    }

    fn capped(base: Duration, max: Duration) -> Self {
        Self { base: base.min(max), max }
    }
}

impl Default for BackoffConfig {
    fn default() -> Self {
        Self::standard(None)
    }
}

/// What is on record about the restarts of one container.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backoff {
    /// None until the container was let go for the first time.
    last: Option<LetGo>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct LetGo {
    /// The delay before the next restart.
    delay: Duration,
    /// When the container was let go.
    at: Instant,
}

impl Backoff {
    /// The delay before the next restart, if the container was ever let go.
    pub fn delay(&self) -> Option<Duration> {
        self.last.map(|last| last.delay)
    }

    /// When a container that ended at `finished_at` may start again; none if it may at once.
    pub fn release_at(&self, finished_at: Instant) -> Option<Instant> {
        self.unexpired(finished_at).map(|last| finished_at + last.delay)
    }

    /// The container that ended at `finished_at` is let go now: moves the delay on.
    pub fn next(&mut self, finished_at: Instant, now: Instant, config: &BackoffConfig) {
        let delay =
            self.unexpired(finished_at).map_or(config.base, |last| last.delay.saturating_mul(2).min(config.max));
        self.last = Some(LetGo { delay, at: now });
    }

    /// Forgets everything: the container has another definition now.
    pub fn reset(&mut self) {
        self.last = None;
    }

    fn unexpired(&self, finished_at: Instant) -> Option<LetGo> {
        self.last.filter(|last| finished_at.saturating_since(last.at) <= RESET_AFTER)
    }
}

/// Message of `CrashLoopBackOff` (RESTART-04), as in `back-off 1m20s restarting failed container=app pod=web_default(uid)`.
pub fn message(delay: Duration, container: &str, pod: &str, namespace: &str, uid: &str) -> String {
    alloc::format!("back-off {} restarting failed container={container} pod={pod}_{namespace}({uid})", Spoken(delay))
}

/// A duration as upstream prints it: `40s`, `1m20s`, `5m0s`, `1.5s`, `250ms`.
#[derive(Clone, Copy, Debug)]
pub struct Spoken(pub Duration);

impl fmt::Display for Spoken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, millis) = (self.0.as_secs(), self.0.subsec_millis());
        if seconds == 0 && millis > 0 {
            return write!(f, "{millis}ms");
        }
        let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        if hours > 0 {
            write!(f, "{hours}h")?;
        }
        if hours > 0 || minutes > 0 {
            write!(f, "{minutes}m")?;
        }
        if millis == 0 {
            return write!(f, "{seconds}s");
        }
        let fraction = alloc::format!("{millis:03}");
        write!(f, "{seconds}.{}s", fraction.trim_end_matches('0'))
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec::Vec;

    use super::*;

    /// Delays between end and restart of a container that runs so many seconds each time.
    fn delays(config: BackoffConfig, runs: &[u64]) -> Vec<u64> {
        let (mut backoff, mut now) = (Backoff::default(), Instant::ZERO);
        let delay_after = |run: &u64| {
            let finished = now + Duration::from_secs(*run);
            now = backoff.release_at(finished).unwrap_or(finished);
            backoff.next(finished, now, &config);
            now.saturating_since(finished).as_secs()
        };
        runs.iter().map(delay_after).collect()
    }

    #[test]
    fn the_first_restart_is_at_once_and_delays_double_to_the_maximum() {
        assert_eq!(delays(BackoffConfig::default(), &[1; 8]), [0, 10, 20, 40, 80, 160, 300, 300]);
    }

    #[test]
    fn more_than_ten_minutes_of_running_begin_anew() {
        assert_eq!(delays(BackoffConfig::default(), &[1, 1, 1, 600, 601, 1]), [0, 10, 20, 40, 0, 10]);
    }

    #[test]
    fn the_nodes_maximum_caps_the_first_delay_too() {
        assert_eq!(delays(BackoffConfig::standard(Some(Duration::from_secs(5))), &[1; 3]), [0, 5, 5]);
    }

    #[test]
    fn the_reduced_mode_goes_from_a_second_to_a_minute_unless_the_node_says_otherwise() {
        assert_eq!(delays(BackoffConfig::reduced(None), &[1; 9]), [0, 1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(delays(BackoffConfig::reduced(Some(Duration::from_secs(3))), &[1; 4]), [0, 1, 2, 3]);
    }

    #[test]
    fn durations_are_printed_as_upstream_does() {
        let spoken = |millis| Spoken(Duration::from_millis(millis)).to_string();
        assert_eq!(
            [10_000, 80_000, 300_000, 3_600_000, 7_384_050, 1_500, 250, 0].map(spoken),
            ["10s", "1m20s", "5m0s", "1h0m0s", "2h3m4.05s", "1.5s", "250ms", "0s"]
        );
    }
}
