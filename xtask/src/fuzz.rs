//! `cargo xtask fuzz`: bytes that nobody thought of.
//!
//! `tests/fuzz` is an ordinary cargo-fuzz project. Here its targets are compiled with the flags that cargo-fuzz would give, which any
//! stable compiler takes, and libFuzzer is called directly: nothing has to be installed for it but a C++ compiler.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use pico_args::Arguments;

use crate::run::{cargo, output, root, run, target_dir};
use crate::{Verb, no_more, setup};

pub(crate) const VERB: Verb = Verb {
    name: "fuzz",
    summary: "Look for inputs that break something: manifests, records, lives of a node",
    help: "\
Usage: cargo xtask fuzz [TARGET...] [--seconds N | --runs N] [--address] [-- LIBFUZZER OPTIONS]
       cargo xtask fuzz --short

Targets are the files of tests/fuzz/fuzz_targets; all of them, one after the other, if
none is named. Each runs for 60 seconds if nothing else is asked for. What leads somewhere new is kept
in target/fuzz/corpus/TARGET and is where the next run begins. An input that breaks something is written to
target/fuzz/artifacts/TARGET; give it to the target again with

  cargo xtask fuzz TARGET -- target/fuzz/artifacts/TARGET/FILE

  --seconds N   stop after so many seconds (each target)
  --runs N      stop after so many inputs (each target)
  --short       lints, then some hundred inputs for each target, the same ones each time
  --address     with AddressSanitizer: slower, finds what is wrong with unsafe code of dependencies
  --            what follows is for libFuzzer: -help=1 lists its options, a file is run once

A C++ compiler is needed (libFuzzer is written in it). The folder is a cargo-fuzz project
as well: with cargo-fuzz installed, `RUSTC_BOOTSTRAP=1 cargo fuzz run --fuzz-dir tests/fuzz -s none TARGET`.",
    run: fuzz,
};

/// Seeds that others have: what a target reads beside its own corpus.
const SEEDS: &[(&str, &[&str])] = &[("manifest", &["examples/pods", "tests/manifests", "runtime/api/tests/seeds"])];

/// The flags that cargo-fuzz compiles with.
const COVERAGE: &[&str] = &[
    "--cfg",
    "fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
];

/// Bounds for every input: these are much, and an input that needs more is a finding.
const BOUNDS: &[&str] = &["-timeout=30", "-rss_limit_mb=2048", "-malloc_limit_mb=512", "-max_len=65536"];

/// How the targets are compiled.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Build {
    /// In half the time, and half as fast.
    Quick,
    Optimised,
    /// Optimised, with AddressSanitizer.
    Address,
}

fn fuzz(mut arguments: Arguments) -> Result<()> {
    if arguments.contains("--short") {
        no_more(arguments)?;
        return short();
    }
    let address = arguments.contains("--address");
    let runs: Option<u64> = arguments.opt_value_from_str("--runs")?;
    let seconds: Option<u64> = arguments.opt_value_from_str("--seconds")?;
    let mut names = arguments.finish();
    let options = match names.iter().position(|name| name == "--") {
        Some(at) => names.split_off(at).split_off(1),
        None => Vec::new(),
    };
    if let Some(option) = names.iter().find(|name| name.to_string_lossy().starts_with('-')) {
        bail!("unexpected argument {option:?}; options of libFuzzer come behind `--`");
    }
    let chosen = choose(&names)?;
    let bound = match (runs, seconds) {
        (Some(_), Some(_)) => bail!("--runs and --seconds: which of them? Remove one"),
        (Some(runs), None) => format!("-runs={runs}"),
        (None, seconds) => format!("-max_total_time={}", seconds.unwrap_or(60)),
    };
    let bin = build(if address { Build::Address } else { Build::Optimised })?;
    for target in &chosen {
        let mut options = options.clone();
        options.insert(0, bound.clone().into());
        play(&bin, target, &scratch("corpus", target)?, &options)?;
    }
    Ok(())
}

/// What `cargo xtask test` does: few inputs, always the same ones.
pub(crate) fn short() -> Result<()> {
    clippy()?;
    let bin = build(Build::Quick)?;
    for target in &targets()? {
        // What an earlier run found would make this one another.
        let corpus = scratch("short", target)?;
        fs::remove_dir_all(&corpus)?;
        fs::create_dir(&corpus)?;
        play(
            &bin,
            target,
            &corpus,
            &["-runs=500".into(), "-seed=1".into(), "-verbosity=0".into(), "-print_final_stats=1".into()],
        )?;
    }
    Ok(())
}

/// No warnings in the targets.
fn clippy() -> Result<()> {
    run(targets_cargo("clippy", Build::Quick)?.args(["--all-targets", "--", "-D", "warnings"]))
}

/// Where the project is.
pub(crate) fn manifest() -> PathBuf {
    project().join("Cargo.toml")
}

fn project() -> PathBuf {
    root().join("tests/fuzz")
}

fn targets() -> Result<Vec<String>> {
    let folder = project().join("fuzz_targets");
    let files = folder.read_dir().with_context(|| format!("can't read {}", folder.display()))?;
    let name = |file: fs::DirEntry| Some(file.path().file_stem()?.to_str()?.to_owned());
    let mut names: Vec<String> = files.flatten().filter_map(name).collect();
    names.sort();
    Ok(names)
}

fn choose(names: &[OsString]) -> Result<Vec<String>> {
    let all = targets()?;
    if names.is_empty() {
        return Ok(all);
    }
    let known = |name: &OsString| {
        let target = all.iter().find(|target| name == target.as_str()).cloned();
        target.with_context(|| format!("there is no target {name:?}; the targets are {}", all.join(", ")))
    };
    names.iter().map(known).collect()
}

/// A cargo command for the targets, with their flags.
///
/// The flags are for the targets alone: with a target that is named, even if it is this machine, cargo keeps them from build
/// scripts and macros.
fn targets_cargo(verb: &str, how: Build) -> Result<Command> {
    setup::cxx()?;
    let host = host()?;
    let mut flags: Vec<&str> = COVERAGE.to_vec();
    let mut command = cargo();
    command.arg(verb).arg("--manifest-path").arg(manifest()).args(["--target", &host]).arg("--target-dir").arg(dir());
    if how != Build::Quick {
        command.arg("--release");
    }
    if how == Build::Address {
        // Its runtime comes with every compiler, but the option is for nightly ones.
        flags.push("-Zsanitizer=address");
        command.env("RUSTC_BOOTSTRAP", "1");
    }
    command.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"));
    Ok(command)
}

/// Compiles all targets, and says in which folder they are.
fn build(how: Build) -> Result<PathBuf> {
    run(&mut targets_cargo("build", how)?)?;
    Ok(dir().join(host()?).join(if how == Build::Quick { "debug" } else { "release" }))
}

/// Runs a target until it has done what the options say, or found something. New inputs are kept in `corpus`.
fn play(bin: &Path, target: &str, corpus: &Path, options: &[OsString]) -> Result<()> {
    let artifacts = scratch("artifacts", target)?;
    let mut command = Command::new(bin.join(target));
    command.current_dir(root()).args(BOUNDS).args(options);
    command.arg(format!("-artifact_prefix={}/", artifacts.display()));
    let dictionary = project().join("dictionaries").join(target).with_extension("dict");
    if dictionary.is_file() {
        command.arg(format!("-dict={}", dictionary.display()));
    }
    let files = options.iter().any(|option| !option.to_string_lossy().starts_with('-'));
    if !files {
        // New inputs are written to the first folder and read from all.
        let seeds = SEEDS.iter().filter(|(name, _)| *name == target).flat_map(|(_, folders)| *folders);
        let own = project().join("corpus").join(target);
        command.arg(corpus).args(own.is_dir().then_some(own)).args(seeds.map(|folder| root().join(folder)));
    }
    eprintln!("fuzz: {target}");
    run(&mut command).with_context(|| {
        format!(
            "target {target} found something; what led to it is in {0} (see above).\n\
             `cargo xtask fuzz {target} -- FILE` shows it again, with -minimize_crash=1 -runs=10000 before FILE it is made smaller",
            artifacts.display()
        )
    })
}

/// A folder of that name for a target.
fn scratch(name: &str, target: &str) -> Result<PathBuf> {
    let folder = dir().join(name).join(target);
    fs::create_dir_all(&folder).with_context(|| format!("can't make {}", folder.display()))?;
    Ok(folder)
}

fn dir() -> PathBuf {
    target_dir().join("fuzz")
}

/// This machine, as the compiler names it.
fn host() -> Result<String> {
    let version = output(cargo().args(["--version", "--verbose"]))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("cargo does not say which machine it is made for")?.to_owned())
}
