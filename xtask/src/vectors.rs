//! `cargo xtask vectors`: what Kubernetes' own functions answer, asked of ours.

use std::ffi::OsString;
use std::process::Command;

use anyhow::Result;

use crate::Verb;
use crate::run::{build, root, run};

pub(crate) const VERB: Verb = Verb {
    name: "vectors",
    summary: "Compare our decisions with the answers of upstream's functions",
    help: "\
Usage: cargo xtask vectors [--show N] [FAMILY...]

Prints a table: per family (phase, backoff, ...), how many cases agree, and the first N
differences. All families if none is named. `cargo xtask vectors help` lists more.",
    run: |arguments| vectors(&arguments.finish()),
};

pub(crate) fn vectors(arguments: &[OsString]) -> Result<()> {
    let help = arguments.iter().any(|argument| argument == "help");
    let mut table = Command::new(build("vectors")?);
    table.current_dir(root());
    run(if help { table.arg("--help") } else { table.args(arguments) })
}
