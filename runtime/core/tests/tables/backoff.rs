//! Delays between a container's end and its next start.

use husk_core::backoff::{Backoff, BackoffConfig};
use husk_core::time::{Duration, Instant};

use super::rows;

/// "Container restart policy" (10 s, 20 s, 40 s … 300 s; reset after ten minutes without a problem), "Configurable container
/// restart delay" (the node's maximum caps the first delay too), "Reduced container restart delay" (1 s … 60 s, the node's
/// maximum wins). "Constants": a run of more than 600 s resets.
///
/// `runs`: how long each instance ran. `delays`: between its end and the next start.
const TABLE: &str = "
mode     | node max | runs                    | delays
standard | -        | 1 1 1 1 1 1 1 1 1       | 0 10 20 40 80 160 300 300 300
standard | -        | 0 0 0                   | 0 10 20
standard | -        | 599 599 599 599         | 0 10 20 40
standard | -        | 600 600 600             | 0 10 20
standard | -        | 601 601 601             | 0 0 0
standard | -        | 1 1 1 601 1 1           | 0 10 20 0 10 20
standard | -        | 1 1 1 1 1 1 1 601 1     | 0 10 20 40 80 160 300 0 10
standard | 100      | 1 1 1 1 1 1 1           | 0 10 20 40 80 100 100
standard | 2        | 1 1 1 1                 | 0 2 2 2
standard | 1        | 1 1 1                   | 0 1 1
standard | 300      | 1 1 1 1 1 1 1 1         | 0 10 20 40 80 160 300 300
reduced  | -        | 1 1 1 1 1 1 1 1 1       | 0 1 2 4 8 16 32 60 60
reduced  | 300      | 1 1 1 1 1 1 1 1 1 1 1 1 | 0 1 2 4 8 16 32 64 128 256 300 300
reduced  | 3        | 1 1 1 1 1               | 0 1 2 3 3
reduced  | -        | 1 1 601 1               | 0 1 0 1
";

fn delays(config: BackoffConfig, runs: &[u64], mut now: Instant) -> Vec<u64> {
    let mut backoff = Backoff::default();
    let delay_after = |run: &u64| {
        let ended = now + Duration::from_secs(*run);
        now = backoff.release_at(ended).unwrap_or(ended);
        backoff.next(ended, now, &config);
        now.saturating_since(ended).as_secs()
    };
    runs.iter().map(delay_after).collect()
}

// spec: RESTART-02, RESTART-03, RESTART-05
#[test]
fn delays_are_as_the_table_says_whenever_the_first_end_is() {
    for (cells, line) in rows(TABLE) {
        let numbers = |cell: usize| cells[cell].split_whitespace().map(|n| n.parse().unwrap()).collect::<Vec<u64>>();
        let max = cells[1].parse().ok().map(Duration::from_secs);
        let config = if cells[0] == "reduced" { BackoffConfig::reduced(max) } else { BackoffConfig::standard(max) };
        for begin in [0, 1, 1_000_000, 3_000_000_000] {
            assert_eq!(delays(config, &numbers(2), Instant::from_secs(begin)), numbers(3), "{line}, from {begin} s on");
        }
    }
}

// spec: RESTART-05, RESTART-06
#[test]
fn no_delay_is_above_the_maximum_for_every_maximum_a_node_may_have() {
    for max in 1..=300 {
        let most = Some(Duration::from_secs(max));
        let expected = [0, 10, 20, 40, 80, 160, 320, 640].map(|delay: u64| delay.min(max));
        assert_eq!(delays(BackoffConfig::standard(most), &[1; 8], Instant::ZERO), expected, "{max} s");
        // "The node's maximum wins": also over the 60 s of the reduced mode.
        let expected = [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512].map(|delay: u64| delay.min(max));
        assert_eq!(delays(BackoffConfig::reduced(most), &[1; 11], Instant::ZERO), expected, "{max} s, reduced");
    }
}
