//! Cases that Husk answers otherwise than upstream, each with its reason: `tests/vectors/exclusions.txt`.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, ensure};

use super::cases::packed_dir;

/// Family → case → reason.
#[derive(Clone, Debug, Default)]
pub struct Exclusions(BTreeMap<String, BTreeMap<String, String>>);

impl Exclusions {
    /// Reads the file: one `family id reason` a line; `#` begins a comment.
    ///
    /// # Errors
    /// If it is not readable, or a line lacks its reason.
    pub fn load() -> anyhow::Result<Self> {
        let path = packed_dir().join("exclusions.txt");
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let mut all = Self::default();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let mut words = line.splitn(3, ' ');
            let (family, id, reason) = (words.next(), words.next(), words.next());
            ensure!(reason.is_some(), "{}: an exclusion is `family id reason`, not `{line}`", path.display());
            let of_family = all.0.entry(family.unwrap_or_default().to_owned()).or_default();
            of_family.insert(id.unwrap_or_default().to_owned(), reason.unwrap_or_default().to_owned());
        }
        Ok(all)
    }

    /// Why a case is excluded, if it is.
    pub fn reason(&self, family: &str, id: &str) -> Option<&str> {
        self.0.get(family)?.get(id).map(String::as_str)
    }
}
