//! `cargo xtask test`: all that CI checks.

use std::io::{BufRead, BufReader, IsTerminal};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use pico_args::Arguments;

use crate::conformance::conformance;
use crate::run::{build, cargo, line, output, root, run, target_dir};
use crate::sim::sim;
use crate::tests_run::Recorder;
use crate::toolchain::{BARE_METAL, Toolchain};
use crate::vectors::vectors;
use crate::{Verb, fuzz, guests, setup};

pub(crate) const VERB: Verb = Verb {
    name: "test",
    summary: "Check everything, as CI does",
    help: "\
Usage: cargo xtask test [STEP...]

Steps, in this order (all of them if none is named):
  setup       what is needed is installed
  format      rustfmt would change nothing
  no-std      husk-core compiles for a microcontroller without an operating system
  guests      the example guests compile to WebAssembly
  clippy      no warnings
  docs        the documentation has no warnings
  husk        the program itself, which some tests start
  tests       cargo test, the whole workspace
  vectors     the table of upstream's answers (the tests checked them as well)
  fuzz        some hundred drawn inputs for each fuzz target, the same ones each time
  sim         ten million steps of random pods in virtual time
  guest-tests the guests' own tests, compiled for this machine
  conformance every row that claims a test has one that ran, and docs/conformance.md says so

A failed step does not keep later ones from running, unless they can't do without it.
The last line says how many tests passed and failed.",
    run: test,
};

struct Step {
    name: &'static str,
    /// Later steps can't do without it.
    needed: bool,
    run: fn(&mut Count) -> Result<()>,
}

/// What fails fast comes first. Clippy and docs share the metadata of dependencies that `cargo check` makes, and all
/// steps but fuzz, which needs other flags, use one profile, so that each dependency is compiled to machine code once.
const STEPS: &[Step] = &[
    Step { name: "setup", needed: true, run: |_| setup::everything() },
    Step { name: "format", needed: false, run: |_| format() },
    Step { name: "no-std", needed: false, run: |_| no_std() },
    Step { name: "guests", needed: true, run: |_| guests::build_all() },
    Step { name: "clippy", needed: false, run: |_| clippy() },
    Step { name: "docs", needed: false, run: |_| docs() },
    Step { name: "husk", needed: false, run: |_| build("husk").map(drop) },
    Step { name: "tests", needed: false, run: |count| count_tests("workspace", || workspace("test"), count) },
    Step { name: "vectors", needed: false, run: |_| vectors(&[]) },
    Step { name: "fuzz", needed: false, run: |_| fuzz::short() },
    Step { name: "sim", needed: false, run: |_| sim(&[]) },
    Step { name: "guest-tests", needed: false, run: guest_tests },
    Step { name: "conformance", needed: false, run: |_| conformance(true) },
];

/// One failure must not hide the others.
const FINISH: &str = "--no-fail-fast";

/// Sum over all test runs.
#[derive(Default)]
struct Count {
    passed: u64,
    failed: u64,
}

fn test(arguments: Arguments) -> Result<()> {
    let chosen = choose(arguments)?;
    let mut count = Count::default();
    let mut outcomes: Vec<(&str, Duration, Result<()>)> = Vec::new();
    for (index, step) in chosen.iter().enumerate() {
        eprintln!("\n==== {} ({} of {})", step.name, index + 1, chosen.len());
        let begun = Instant::now();
        let outcome = (step.run)(&mut count);
        let (took, failed) = (begun.elapsed(), outcome.is_err());
        match &outcome {
            Ok(()) => eprintln!("==== {}: ok, {:.1} s", step.name, took.as_secs_f32()),
            Err(error) => eprintln!("==== {}: FAILED, {:.1} s: {error:#}", step.name, took.as_secs_f32()),
        }
        outcomes.push((step.name, took, outcome));
        if failed && step.needed {
            eprintln!("==== the steps after {} can't do without it and are left out", step.name);
            break;
        }
    }
    report(&outcomes, &count)
}

fn choose(arguments: Arguments) -> Result<Vec<&'static Step>> {
    let names = arguments.finish();
    if names.is_empty() {
        return Ok(STEPS.iter().collect());
    }
    let find = |name: &std::ffi::OsString| {
        let known = || STEPS.iter().map(|step| step.name).collect::<Vec<_>>().join(", ");
        let step = STEPS.iter().find(|step| name.to_str() == Some(step.name));
        step.with_context(|| format!("there is no step {name:?}; the steps are {}", known()))
    };
    names.iter().map(find).collect()
}

/// The end of the output: what took how long, what failed, and the sum as the last line.
fn report(outcomes: &[(&str, Duration, Result<()>)], count: &Count) -> Result<()> {
    eprintln!();
    for (name, took, outcome) in outcomes {
        eprintln!("{name:<12} {:>7.1} s  {}", took.as_secs_f32(), if outcome.is_ok() { "ok" } else { "FAILED" });
    }
    let failed: Vec<&str> =
        outcomes.iter().filter(|(_, _, outcome)| outcome.is_err()).map(|(name, ..)| *name).collect();
    if !failed.is_empty() {
        eprintln!("failed: {}", failed.join(", "));
    }
    println!("{} passed, {} failed", count.passed, count.failed);
    // Not an error for main to report: the sum has to stay the last line.
    if !failed.is_empty() {
        std::process::exit(1);
    }
    Ok(())
}

fn format() -> Result<()> {
    run(cargo().args(["fmt", "--all", "--check"]))?;
    run(cargo().args(["fmt", "--check", "--manifest-path"]).arg(fuzz::manifest()))?;
    match guests_manifest() {
        Some(manifest) => run(cargo().args(["fmt", "--all", "--check", "--manifest-path", &manifest])),
        None => Ok(()),
    }
}

fn no_std() -> Result<()> {
    let mut build = Toolchain::require(BARE_METAL)?.cargo(BARE_METAL);
    build.args(["build", "--package", "husk-core", "--lib", "--target", BARE_METAL]);
    // A folder of its own, since the compiler may be another one. Nothing of it will run: don't optimise serde's macros.
    build.args(["--config", "profile.dev.package.'*'.opt-level=0", "--target-dir"]);
    run(build.arg(target_dir().join("bare-metal")))
}

fn clippy() -> Result<()> {
    run(cargo().args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))?;
    match guests_manifest() {
        Some(manifest) => run(native_guests("clippy", &manifest).args(["--all-targets", "--", "-D", "warnings"])),
        None => Ok(()),
    }
}

fn docs() -> Result<()> {
    const STRICT: (&str, &str) = ("RUSTDOCFLAGS", "-D warnings");
    run(cargo().args(["doc", "--workspace", "--no-deps"]).env(STRICT.0, STRICT.1))?;
    match guests_manifest() {
        Some(manifest) => run(native_guests("doc", &manifest).arg("--no-deps").env(STRICT.0, STRICT.1)),
        None => Ok(()),
    }
}

fn guest_tests(count: &mut Count) -> Result<()> {
    match guests_manifest() {
        Some(manifest) => count_tests("guests", || native_guests("test", &manifest), count),
        None => Ok(()),
    }
}

/// The guests are a workspace of their own, since cargo compiles a workspace for one target.
fn guests_manifest() -> Option<String> {
    let manifest = guests::sources().join("Cargo.toml");
    manifest.is_file().then(|| manifest.display().to_string())
}

/// A cargo command for the guests that compiles them for this machine.
fn native_guests(verb: &str, manifest: &str) -> Command {
    let mut command = cargo();
    command.args([verb, "--workspace", "--manifest-path", manifest, "--target-dir"]).arg(guests::dir().join("build"));
    command
}

/// A cargo command for the whole workspace.
fn workspace(verb: &str) -> Command {
    let mut command = cargo();
    command.args([verb, "--workspace"]);
    command
}

/// Runs `cargo test`, shows what it writes, adds up its summaries and notes which tests passed.
fn count_tests(set: &str, command: impl Fn() -> Command, count: &mut Count) -> Result<()> {
    let mut recorder = Recorder::begin(set)?;
    // Built first, for cargo to say which source file each binary comes from.
    let mut build = command();
    build.args(["--no-run", "--message-format=json-render-diagnostics"]).stderr(Stdio::inherit());
    recorder.built(&output(&mut build)?, &root());
    // One pipe for both: cargo says on stderr which binary it runs, and what the tests say belongs below it.
    let (reader, writer) = std::io::pipe().context("could not make a pipe")?;
    let mut command = command();
    let colour = if std::io::stdout().is_terminal() { "always" } else { "never" };
    command.arg(FINISH).env("CARGO_TERM_COLOR", colour).stderr(writer.try_clone()?).stdout(writer);
    let started = command.spawn();
    let mut child = started.with_context(|| format!("could not start {}", line(&command)))?;
    let line = line(&command);
    // The command holds the pipe open for writing.
    drop(command);
    for text in BufReader::new(reader).split(b'\n') {
        let text = text?;
        let text = String::from_utf8_lossy(&text);
        println!("{text}");
        recorder.hear(&text);
        if let Some((passed, failed)) = summary(&text) {
            count.passed += passed;
            count.failed += failed;
        }
    }
    let status = child.wait()?;
    recorder.finish()?;
    if !status.success() {
        bail!("`{line}` failed ({status})");
    }
    Ok(())
}

/// `test result: ok. 3 passed; 0 failed; …`
fn summary(line: &str) -> Option<(u64, u64)> {
    let rest = line.strip_prefix("test result: ")?;
    let number = |word: &str| {
        let before = rest.split(';').find_map(|part| part.trim().strip_suffix(word))?;
        before.split_whitespace().next_back()?.parse().ok()
    };
    Some((number("passed")?, number("failed")?))
}

#[cfg(test)]
mod tests {
    use super::summary;

    #[test]
    fn summaries_of_the_test_runner_are_understood() {
        let line = "test result: FAILED. 12 passed; 3 failed; 0 ignored; 0 measured; 1 filtered out; finished in 0.01s";
        assert_eq!(summary(line), Some((12, 3)));
        assert_eq!(summary("test summaries ... ok"), None);
    }
}
