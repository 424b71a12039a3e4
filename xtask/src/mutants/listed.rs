//! The mutants that no test can catch, and why.

use std::collections::BTreeMap;

use anyhow::{Result, bail};

use super::sample::Mutant;

pub(super) const LIST: &str = "runtime/core/mutants.txt";

/// Id of each → reason.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Listed(BTreeMap<String, String>);

impl Listed {
    /// One mutant a line, below it the reason, indented. Lines with a `#` are for people.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let mut all: Vec<(String, String)> = Vec::new();
        for (number, line) in text.lines().enumerate() {
            if line.starts_with('#') || line.trim().is_empty() {
                continue;
            }
            if !line.starts_with(' ') {
                all.push((line.to_owned(), String::new()));
            } else if let Some((_, reason)) = all.last_mut() {
                *reason = format!("{reason} {}", line.trim()).trim_start().to_owned();
            } else {
                bail!("{LIST}:{}: a reason, but no mutant above it", number + 1);
            }
        }
        if let Some((id, _)) = all.iter().find(|(_, reason)| reason.is_empty()) {
            bail!("{LIST}: {id:?} has no reason: write it on the next line, indented");
        }
        Ok(Self(all.into_iter().collect()))
    }

    pub(super) fn contains(&self, mutant: &Mutant) -> bool {
        self.0.contains_key(&mutant.id())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mutant_has_its_reason_below_it() {
        let listed = Listed::parse("# why\n\na.rs: replace < with <= in f\n  because\n  of this\n").unwrap_or_default();
        assert_eq!(
            listed.0.into_iter().collect::<Vec<_>>(),
            [("a.rs: replace < with <= in f".into(), "because of this".into())]
        );
    }

    #[test]
    fn one_without_a_reason_is_refused() {
        assert!(Listed::parse("a.rs: replace < with <= in f\n").is_err());
        assert!(Listed::parse("  a reason for nothing\n").is_err());
    }
}
