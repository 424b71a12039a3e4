//! Log lines. The node adds time and container to each line, so a line holds only what the program has to say.

use std::fmt;
use std::io::Write;

/// How much a line matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The program does as it should.
    Info,
    /// Something is odd, the program goes on.
    Warn,
    /// Something failed.
    Error,
}

impl Level {
    fn name(self) -> &'static str {
        match self {
            Level::Info => "INFO",
            Level::Warn => "WARN",
            Level::Error => "ERROR",
        }
    }
}

/// Writes one line to stderr, in one write, so that lines of several writers never mix.
pub fn line(level: Level, message: fmt::Arguments<'_>) {
    let line = format!("{:<5} {message}\n", level.name());
    // A program must not fail because nobody takes its log any more.
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// Logs a line at level info; takes what `format!` takes.
#[macro_export]
macro_rules! info {
    ($($message:tt)*) => { $crate::log::line($crate::log::Level::Info, format_args!($($message)*)) };
}

/// Logs a line at level warn; takes what `format!` takes.
#[macro_export]
macro_rules! warn {
    ($($message:tt)*) => { $crate::log::line($crate::log::Level::Warn, format_args!($($message)*)) };
}

/// Logs a line at level error; takes what `format!` takes.
#[macro_export]
macro_rules! error {
    ($($message:tt)*) => { $crate::log::line($crate::log::Level::Error, format_args!($($message)*)) };
}
