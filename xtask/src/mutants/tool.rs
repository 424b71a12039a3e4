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

/// Takes more time to compile than it takes less to run, but for many tests it is well spent.
const OPTIMISED: &str = "profile.dev.package.husk-core.opt-level=1";

/// Which tests are run.
pub(super) struct Tests {
    packages: &'static [&'static str],
    targets: &'static [&'static str],
    skipped: &'static [&'static str],
}

/// Those that find most for the least: few to compile and to link, none that takes seconds.
pub(super) const FAST: Tests = Tests {
    packages: &["husk-core"],
    targets: &["--test=node", "--test=status", "--test=tables"],
    skipped: &["it_never_gives_up"],
};

/// Every test that is about husk-core and nothing else, and upstream's answers.
pub(super) const ALL: Tests = Tests {
    packages: &["husk-core", "husk-tests"],
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
    /// Globs of the files that are changed.
    files: Vec<String>,
}

impl Tool {
    /// The one on the PATH, or else our own, which is installed if it has to be.
    pub(super) fn at_hand(files: Vec<String>) -> Result<Self> {
        if let Some(program) = which("cargo-mutants") {
            return Ok(Self { program, files });
        }
        let tools = folder().join("tool");
        let program = tools.join("bin").join("cargo-mutants");
        if !program.is_file() {
            eprintln!("mutants: installing cargo-mutants {VERSION} (some minutes, once)");
            run(cargo().args(["install", "cargo-mutants", "--locked", "--version", VERSION, "--root"]).arg(&tools))?;
        }
        Ok(Self { program, files })
    }

    /// Every mutant of the files.
    pub(super) fn list(&self) -> Result<Vec<Mutant>> {
        let mutants = Mutant::parse_all(&output(self.command().arg("--list"))?);
        if mutants.is_empty() {
            bail!("nothing to change in {}; a GLOB is a file's name or its path from the root", self.files.join(", "));
        }
        Ok(mutants)
    }

    /// Tries some of all mutants with these tests.
    pub(super) fn run(&self, stage: &str, tests: &Tests, all: &[Mutant], some: &[Mutant]) -> Result<Outcomes> {
        let parent = folder().join(stage);
        let out = parent.join("mutants.out");
        // A choice by name is not for every kind of mutant. But what was caught before is left out, so say that of the others.
        let _ = fs::remove_dir_all(&out);
        fs::create_dir_all(&out)?;
        let others = all.iter().filter(|mutant| !some.contains(mutant)).map(|mutant| format!("{}\n", mutant.name));
        fs::write(out.join("caught.txt"), others.collect::<String>())?;
        let mut command = self.command();
        command
            // Tests are taken of packages only that could be changed; the files say which are.
            .args(tests.packages.iter().flat_map(|package| ["--package", package, "--test-package", package]))
            .args(["--iterate", "--caught"])
            .args(["--minimum-test-timeout", LEAST_TIMEOUT, "--output"])
            .arg(&parent)
            .arg(format!("--cargo-arg=--config={OPTIMISED}"))
            .args(tests.targets.iter().map(|target| format!("--cargo-arg={target}")))
            .args(["--", "--"])
            .args(tests.skipped.iter().flat_map(|test| ["--skip", test]))
            // Compiled apart from all else, and without what only a debugger needs.
            .env("CARGO_TARGET_DIR", folder().join("target"))
            .env("CARGO_PROFILE_DEV_DEBUG", "false")
            .env("CARGO_INCREMENTAL", "1");
        let status = command.status().with_context(|| format!("could not start {}", self.program.display()))?;
        if !status.code().is_some_and(|code| ENDED.contains(&code)) {
            bail!("`{} mutants` failed ({status})", self.program.display());
        }
        let names = |file: &str| -> Result<BTreeSet<String>> {
            let file = out.join(file);
            let text = fs::read_to_string(&file).with_context(|| format!("could not read {}", file.display()))?;
            Ok(text.lines().map(str::to_owned).collect())
        };
        Ok(Outcomes { missed: names("missed.txt")?, timeout: names("timeout.txt")?, unviable: names("unviable.txt")? })
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.current_dir(root()).args(["mutants", "--package", "husk-core"]);
        command.args(self.files.iter().flat_map(|file| ["--file", file]));
        command
    }
}
