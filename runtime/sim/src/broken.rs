//! A rule that was broken, and where.

use std::fmt;

use husk_core::Instant;

/// A rule that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Which rule, in a few words that stay the same.
    pub rule: &'static str,
    /// When.
    pub at: Instant,
    /// What was seen.
    pub seen: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {} a rule is broken: {}: {}", crate::Span(self.at.since_epoch()), self.rule, self.seen)
    }
}

impl std::error::Error for Broken {}

/// Returns with a broken rule if the condition doesn't hold.
macro_rules! rule {
    ($holds:expr, $at:expr, $rule:literal, $($seen:tt)+) => {
        if !$holds {
            return Err($crate::broken::Broken { rule: $rule, at: $at, seen: format!($($seen)+) });
        }
    };
}
pub(crate) use rule;
