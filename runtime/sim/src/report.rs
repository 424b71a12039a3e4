//! What is left of a failed run: the smallest case that shows it, as files that `husk simulate` plays.

use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::broken::Broken;
use crate::counts::Counts;
use crate::manifest::manifest;
use crate::random::{self, Case};
use crate::run::judge;
use crate::shrink::shrink;

/// A failure, as small as it gets.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Pods and what happens to them.
    pub case: Case,
    /// What goes wrong.
    pub broken: Broken,
}

impl Report {
    /// Of a seed that failed.
    pub fn of(seed: u64, broken: Broken) -> Self {
        let judge = |case: &Case| judge(case, &mut Counts::default());
        let (case, broken) = shrink(random::case(seed), broken, judge);
        Self { case, broken }
    }

    /// Writes the manifest and the scenario, and returns where they are.
    ///
    /// # Errors
    /// The folder can't be written.
    pub fn write(&self, folder: &Path) -> io::Result<(PathBuf, PathBuf)> {
        fs::create_dir_all(folder)?;
        let (pods, scenario) = (folder.join("pods.yaml"), folder.join("scenario.yaml"));
        let heading = format!("# {}\n", self.broken.to_string().replace('\n', "\n# "));
        fs::write(&pods, heading.clone() + &manifest(&self.case.subjects))?;
        fs::write(&scenario, heading + &self.case.scenario.to_yaml())?;
        Ok((pods, scenario))
    }
}
