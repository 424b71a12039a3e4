//! What is wrong with a manifest, and where.

use core::fmt;

/// One thing to say about a manifest: an error or a warning.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Problem {
    /// The file as it was named.
    pub file: String,
    /// Which document of the file, counted from 1.
    pub document: usize,
    /// The line in the file, counted from 1, where it is known.
    pub line: Option<usize>,
    /// The field, as in `spec.containers[0].image`; empty if it is about the document as a whole.
    pub path: String,
    /// What is wrong, and what to do about it.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, document {}", self.file, self.document)?;
        if let Some(line) = self.line {
            write!(f, ", line {line}")?;
        }
        if !self.path.is_empty() {
            write!(f, ": {}", self.path)?;
        }
        write!(f, ": {}", self.message)
    }
}

impl core::error::Error for Problem {}
