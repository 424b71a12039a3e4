//! `cargo xtask demo`: from nothing to a running pod.

use std::process::Command;

use anyhow::{Context, Result};
use pico_args::Arguments;

use crate::run::{build, line, root, run};
use crate::toolchain::{WASIP1, WASIP2};
use crate::{Verb, guests, setup};

pub(crate) const VERB: Verb = Verb {
    name: "demo",
    summary: "Run a pod (init container, sidecar, app) through its whole life",
    help: "\
Usage: cargo xtask demo [OPTIONS OF husk run]

Sets up what is missing, compiles the guests and husk, and runs
examples/pods/demo.yaml in the foreground. Ctrl-C stops the pod as `kubectl delete`
would, again shortens the grace period, a third time kills.",
    run: demo,
};

/// The pod that is shown.
const POD: &str = "examples/pods/demo.yaml";

fn demo(arguments: Arguments) -> Result<()> {
    setup::targets(&[WASIP2, WASIP1])?;
    guests::build_all_rust()?;
    eprintln!("demo: building husk (some minutes the first time: a compiler is part of it)");
    let mut husk = Command::new(build("husk")?);
    husk.current_dir(root()).arg("run").args(arguments.finish()).arg(POD);
    eprintln!("demo: {}", line(&husk));
    run(&mut husk).context("the demo's pod did not succeed")
}
