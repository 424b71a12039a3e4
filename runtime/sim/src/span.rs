//! Spans of time as people write them: `30s`, `1m30s`, `250ms`, `2h`, or a plain number of seconds.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::{Serialize, Serializer};

/// A span of time, read from `1m30s` or a plain number of seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub Duration);

impl Span {
    /// So many seconds.
    pub const fn secs(secs: u64) -> Self {
        Self(Duration::from_secs(secs))
    }

    /// So many milliseconds.
    pub const fn millis(millis: u64) -> Self {
        Self(Duration::from_millis(millis))
    }
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let bad = || format!("`{text}` is not a span of time: write it like 30s, 1m30s, 250ms or 2h");
        if let Ok(secs) = text.parse::<u32>() {
            return Ok(Self::secs(secs.into()));
        }
        let (mut total, mut rest) = (Duration::ZERO, text);
        while !rest.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(bad)?;
            let (number, tail) = rest.split_at(digits);
            let letters = tail.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(tail.len());
            let (unit, tail) = tail.split_at(letters);
            let number: f64 = number.parse().map_err(|_| bad())?;
            let unit = match unit {
                "ms" => 0.001,
                "s" => 1.0,
                "m" => 60.0,
                "h" => 3600.0,
                "d" => 86400.0,
                _ => return Err(bad()),
            };
            let part = Duration::try_from_secs_f64(number * unit).map_err(|_| bad())?;
            total = total.checked_add(part).ok_or_else(bad)?;
            rest = tail;
        }
        if text.is_empty() { Err(bad()) } else { Ok(Self(total)) }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.0.as_millis();
        let (secs, ms) = (millis / 1000, millis % 1000);
        let (h, m, s) = (secs / 3600, secs / 60 % 60, secs % 60);
        match (h, m, s, ms) {
            (0, 0, 0, 0) => f.write_str("0s"),
            (0, 0, 0, ms) => write!(f, "{ms}ms"),
            (h, m, s, ms) => {
                if h > 0 {
                    write!(f, "{h}h")?;
                }
                if m > 0 {
                    write!(f, "{m}m")?;
                }
                if ms > 0 {
                    let fraction = format!("{ms:03}");
                    write!(f, "{s}.{}s", fraction.trim_end_matches('0'))?;
                } else if s > 0 {
                    write!(f, "{s}s")?;
                }
                Ok(())
            }
        }
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct SpanVisitor;

        impl Visitor<'_> for SpanVisitor {
            type Value = Span;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a span of time like 30s or 1m30s, or a number of seconds")
            }

            fn visit_u64<E: de::Error>(self, secs: u64) -> Result<Span, E> {
                Ok(Span::secs(secs))
            }

            fn visit_i64<E: de::Error>(self, secs: i64) -> Result<Span, E> {
                u64::try_from(secs).map(Span::secs).map_err(|_| E::custom("a span of time can't be negative"))
            }

            fn visit_f64<E: de::Error>(self, secs: f64) -> Result<Span, E> {
                Duration::try_from_secs_f64(secs).map(Span).map_err(E::custom)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Span, E> {
                text.parse().map_err(E::custom)
            }
        }

        deserializer.deserialize_any(SpanVisitor)
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_write() {
        for (text, millis) in
            [("30s", 30_000), ("1m30s", 90_000), ("250ms", 250), ("2h", 7_200_000), ("45", 45_000), ("1.5s", 1_500)]
        {
            assert_eq!(text.parse::<Span>(), Ok(Span::millis(millis)), "{text}");
        }
        for text in ["", "s", "10x", "-5s", "5 s", "1m5"] {
            assert!(text.parse::<Span>().is_err(), "{text}");
        }
    }

    #[test]
    fn writes_what_it_reads() {
        for text in ["0s", "250ms", "1.5s", "30s", "1m30s", "2h", "1h0.25s"] {
            assert_eq!(text.parse::<Span>().map(|span| span.to_string()), Ok(text.to_owned()));
        }
    }
}
