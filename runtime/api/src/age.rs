//! How long ago something was, short enough for a column.

use jiff::Timestamp;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// The time from `then` to `now` as `kubectl` writes it: `42s`, `5m3s`, `7h12m`, `3d4h`, `2y10d`; the longer, the coarser.
pub fn age(then: Timestamp, now: Timestamp) -> String {
    let seconds = now.as_second() - then.as_second();
    match seconds {
        // Clocks of two machines may differ a little.
        ..-1 => "<invalid>".into(),
        -1..0 => "0s".into(),
        _ if seconds < 2 * MINUTE => format!("{seconds}s"),
        _ if seconds < 10 * MINUTE => two(seconds, (MINUTE, "m"), (1, "s")),
        _ if seconds < 3 * HOUR => one(seconds, MINUTE, "m"),
        _ if seconds < 8 * HOUR => two(seconds, (HOUR, "h"), (MINUTE, "m")),
        _ if seconds < 2 * DAY => one(seconds, HOUR, "h"),
        _ if seconds < 8 * DAY => two(seconds, (DAY, "d"), (HOUR, "h")),
        _ if seconds < 2 * YEAR => one(seconds, DAY, "d"),
        _ if seconds < 8 * YEAR => two(seconds, (YEAR, "y"), (DAY, "d")),
        _ => one(seconds, YEAR, "y"),
    }
}

fn one(seconds: i64, unit: i64, sign: &str) -> String {
    format!("{}{sign}", seconds / unit)
}

fn two(seconds: i64, (unit, sign): (i64, &str), (smaller, smaller_sign): (i64, &str)) -> String {
    match seconds % unit / smaller {
        0 => one(seconds, unit, sign),
        rest => format!("{}{sign}{rest}{smaller_sign}", seconds / unit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longer_ago_the_coarser() {
        for (seconds, text) in [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (303, "5m3s"),
            (10 * MINUTE + 5, "10m"),
            (179 * MINUTE, "179m"),
            (3 * HOUR, "3h"),
            (7 * HOUR + 12 * MINUTE, "7h12m"),
            (47 * HOUR, "47h"),
            (2 * DAY, "2d"),
            (3 * DAY + 4 * HOUR, "3d4h"),
            (8 * DAY + HOUR, "8d"),
            (2 * YEAR + 10 * DAY, "2y10d"),
            (9 * YEAR + DAY, "9y"),
        ] {
            let now = Timestamp::from_second(1_000_000_000).expect("a time");
            let then = Timestamp::from_second(1_000_000_000 - seconds).expect("a time");
            assert_eq!(age(then, now), text, "{seconds} s");
        }
    }
}
