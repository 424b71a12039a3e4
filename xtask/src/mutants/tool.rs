//! cargo-mutants, which changes the code, builds it and runs the tests.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::sample::Mutant;
use crate::run::{cargo, output, root, run, target_dir, which};

/// The version that is installed if there is none.
const VERSION: &str = "27.1.0";
/// Seconds that the tests of a mutant have at least: a mutant that never ends takes no longer, and a busy machine is no mutant.
const LEAST_TIMEOUT: &str = "90";
/// Exit codes of a run that came to its end: nothing lives, something lives, something took too long.
const ENDED: [i32; 3] = [0, 2, 3];

/// Which tests are run.
pub(super) struct Tests {
    packages: &'static str,
    targets: &'static [&'static str],
    skipped: &'static [&'static str],
}

/// All but those that take seconds.
pub(super) const FAST: Tests = Tests {
    packages: "husk-core",
    targets: &["--lib", "--test=node", "--test=record", "--test=status", "--test=tables"],
    skipped: &["it_never_gives_up", "an_idle_pod_is_not_persisted", "damaged_records"],
};

/// Every test that is about husk-core and nothing else, and upstream's answers.
pub(super) const ALL: Tests = Tests {
    packages: "husk-core,husk-tests",
    targets: &[
        "--lib",
        "--test=capacity",
        "--test=node",
        "--test=property",
        "--test=record",
        "--test=status",
        "--test=tables",
        "--test=vectors",
    ],
    skipped: &[],
};

/// Names of mutants, by what became of them.
#[derive(Default)]
pub(super) struct Outcomes {
    pub(super) missed: BTreeSet<String>,
    pub(super) timeout: BTreeSet<String>,
    pub(super) unviable: BTreeSet<String>,
}

impl Outcomes {
    /// Takes the outcomes of a later run that tried again what lived.
    pub(super) fn replace(&mut self, later: Self) {
        self.missed = later.missed;
        self.timeout.extend(later.timeout);
        self.unviable.extend(later.unviable);
    }
}

/// Where everything is that this verb makes.
pub(super) fn folder() -> PathBuf {
    target_dir().join("mutants")
}

pub(super) struct Tool {
    program: PathBuf,
}

impl Tool {
    /// The one on the PATH, or else our own, which is installed if it has to be.
    pub(super) fn at_hand() -> Result<Self> {
        if let Some(program) = which("cargo-mutants") {
            return Ok(Self { program });
        }
        let tools = folder().join("tool");
        let program = tools.join("bin").join("cargo-mutants");
        if !program.is_file() {
            eprintln!("mutants: installing cargo-mutants {VERSION} (some minutes, once)");
            run(cargo().args(["install", "cargo-mutants", "--locked", "--version", VERSION, "--root"]).arg(&tools))?;
        }
        Ok(Self { program })
    }

    /// Every mutant of these files.
    pub(super) fn list(&self, files: &[String]) -> Result<Vec<Mutant>> {
        let mut list = self.command();
        list.args(["--list", "--package", "husk-core"]);
        list.args(files.iter().flat_map(|file| ["--file", file]));
        let mutants = Mutant::parse_all(&output(&mut list)?);
        if mutants.is_empty() {
            bail!("nothing to change in {}; a GLOB is a file's name or its path from the root", files.join(", "));
        }
        Ok(mutants)
    }

    /// Tries these mutants with these tests.
    pub(super) fn run(&self, stage: &str, tests: Tests, mutants: &[Mutant]) -> Result<Outcomes> {
        let out = folder().join(stage);
        fs::create_dir_all(&out)?;
        let mut command = self.command();
        command
            .args(["--package", "husk-core", "--test-package", tests.packages])
            .args(["--minimum-test-timeout", LEAST_TIMEOUT, "--caught", "--output"])
            .arg(&out)
            // What is compiled for mutants stays among itself, without anything that costs time and helps only in a debugger.
            .env("CARGO_TARGET_DIR", folder().join("target"))
            .env("CARGO_PROFILE_DEV_DEBUG", "false")
            .env("CARGO_INCREMENTAL", "1");
        command.args(mutants.iter().map(|mutant| format!("--re=^{}$", escaped(&mutant.name))));
        command.args(tests.targets.iter().map(|target| format!("--cargo-arg={target}")));
        command.args(["--", "--"]).args(tests.skipped.iter().flat_map(|test| ["--skip", test]));
        let status = command.status().with_context(|| format!("could not start {}", self.program.display()))?;
        if !status.code().is_some_and(|code| ENDED.contains(&code)) {
            bail!("`{} mutants` failed ({status})", self.program.display());
        }
        let names = |file: &str| -> Result<BTreeSet<String>> {
            let file = out.join("mutants.out").join(file);
            let text = fs::read_to_string(&file).with_context(|| format!("could not read {}", file.display()))?;
            Ok(text.lines().map(str::to_owned).collect())
        };
        Ok(Outcomes { missed: names("missed.txt")?, timeout: names("timeout.txt")?, unviable: names("unviable.txt")? })
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("mutants").current_dir(root());
        command
    }
}

/// The text as a regular expression that matches it alone.
fn escaped(text: &str) -> String {
    const SPECIAL: &str = r"\.+*?()|[]{}^$";
    let mut all = String::new();
    for character in text.chars() {
        if SPECIAL.contains(character) {
            all.push('\\');
        }
        all.push(character);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn names_are_taken_literally() {
        assert_eq!(escaped("replace f -> Option<(A, B)> with None"), r"replace f -> Option<\(A, B\)> with None");
        assert_eq!(escaped(r"a.rs: replace |= with ^="), r"a\.rs: replace \|= with \^=");
    }
}
