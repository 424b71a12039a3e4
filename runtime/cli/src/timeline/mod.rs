//! What happened to a pod, in virtual time or really: as a table and as a picture.

pub(crate) mod clock;
pub(crate) mod svg;
pub(crate) mod table;

use clap::ValueEnum;

/// How a timeline is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// For people
    Table,
    /// For programs
    Json,
    /// Not at all
    None,
}
