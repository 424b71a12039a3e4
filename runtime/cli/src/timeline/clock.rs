//! Times by the clock of who looks.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// As in `2026-11-30 09:12:03`.
pub(crate) fn local(time: Timestamp) -> String {
    time.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string()
}
