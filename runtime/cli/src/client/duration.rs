//! Times on command lines, as `30s`, `5m`, `1h30m`, `-1s`.

use std::str::FromStr;
use std::time::Duration;

use jiff::SignedDuration;

use super::failure::Failure;

/// A time that somebody typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span(pub(crate) SignedDuration);

impl Span {
    /// Seconds, rounded up: what begins counts.
    pub(crate) fn seconds(self) -> i64 {
        let whole = self.0.as_secs();
        if self.0.subsec_nanos() > 0 { whole + 1 } else { whole }
    }

    /// How long it is; none for zero and less, where that means no end.
    pub(crate) fn or_forever(self) -> Option<Duration> {
        self.0.is_positive().then(|| self.0.unsigned_abs())
    }
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "0" {
            return Ok(Self(SignedDuration::ZERO));
        }
        let parsed = text.parse::<SignedDuration>();
        parsed.map(Self).map_err(|_| format!("invalid time {text:?}: write it as in 30s, 5m or 1h30m"))
    }
}

/// Does it, unless the time is over before.
pub(crate) async fn within<T>(
    time: Option<Duration>,
    work: impl Future<Output = Result<T, Failure>>,
    late: impl FnOnce() -> Failure,
) -> Result<T, Failure> {
    match time {
        Some(time) => tokio::time::timeout(time, work).await.unwrap_or_else(|_| Err(late())),
        None => work.await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_in_go() {
        for (text, seconds) in
            [("30s", 30), ("5m", 300), ("1h30m", 5400), ("-1s", -1), ("0", 0), ("500ms", 1), ("0s", 0)]
        {
            assert_eq!(text.parse::<Span>().map(Span::seconds), Ok(seconds), "{text}");
        }
        assert!("soon".parse::<Span>().is_err() && "5".parse::<Span>().is_err());
    }
}
