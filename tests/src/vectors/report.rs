//! What came of a family.

use std::fmt;

use serde_json::Value;

use super::Case;

/// Figures of one family, and what differs.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Cases answered as upstream does.
    pub passed: usize,
    /// Cases answered otherwise for a stated reason.
    pub excluded: usize,
    /// Cases answered otherwise.
    pub failed: Vec<Difference>,
}

/// One case that is answered otherwise than upstream does.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The case.
    pub case: Case,
    /// What upstream says, without defaults.
    pub expected: Value,
    /// What Husk says, without defaults.
    pub got: Value,
    /// It is excluded although it passes.
    pub needlessly_excluded: bool,
}

impl Report {
    pub(super) fn count(&mut self, case: Case, expected: Value, got: Value, excluded: bool) {
        match (expected == got, excluded) {
            (true, false) => self.passed += 1,
            (false, true) => self.excluded += 1,
            // An excuse that isn't needed any more hides the next mistake.
            (equal, _) => self.failed.push(Difference { case, expected, got, needlessly_excluded: equal }),
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.needlessly_excluded {
            return write!(f, "{}: passes, remove it from exclusions.txt", self.case.id);
        }
        writeln!(f, "{}", self.case.id)?;
        writeln!(f, "  in        {}", self.case.input)?;
        writeln!(f, "  upstream  {}", self.expected)?;
        write!(f, "  husk      {}", self.got)
    }
}
