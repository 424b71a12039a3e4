//! `husk check`: everything that is wrong with manifests, without running anything.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use husk_api::Problem;

use crate::manifest::{self, Manifests};
use crate::out::{err, out};
use crate::{BAD_INPUT, style};

/// What `husk check` is asked.
#[derive(Args)]
pub(crate) struct Check {
    /// Manifests: YAML or JSON, any number of objects each; `-` reads standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Say nothing about what is right
    #[arg(short, long)]
    quiet: bool,
}

impl Check {
    /// Prints all problems; the exit code says whether there are errors.
    pub(crate) fn run(&self) -> ExitCode {
        let manifests = manifest::read(&self.files);
        report(&manifests);
        if !manifests.errors.is_empty() {
            let count = manifests.errors.len();
            err(format_args!("{count} {} to put right", if count == 1 { "error" } else { "errors" }));
            return ExitCode::from(BAD_INPUT);
        }
        if !self.quiet {
            for found in &manifests.pods {
                out(format_args!("{} is valid", found.name()));
            }
        }
        ExitCode::SUCCESS
    }
}

/// Prints warnings and errors, each on a line that says where.
pub(crate) fn report(manifests: &Manifests) {
    problems(&manifests.warnings, &manifests.errors);
}

/// The same for what isn't run from here.
pub(crate) fn problems(warnings: &[Problem], errors: &[Problem]) {
    for warning in warnings {
        err(line(&style::yellow("warning"), warning));
    }
    for error in errors {
        err(line(&style::red("error"), error));
    }
}

/// `file:line: error: path: message`, as compilers do, so that editors can jump there.
fn line(kind: &str, problem: &Problem) -> String {
    let place = match problem.line {
        Some(line) => format!("{}:{line}", problem.file),
        None => problem.file.clone(),
    };
    let path = if problem.path.is_empty() { String::new() } else { format!("{}: ", problem.path) };
    format!("{place}: {kind}: {path}{}", problem.message)
}
