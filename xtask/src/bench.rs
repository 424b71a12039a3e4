//! `cargo xtask bench`: measures a release build.

use anyhow::Result;
use pico_args::Arguments;

use crate::run::{cargo, run, run_quietly};
use crate::toolchain::{WASIP1, WASIP2};
use crate::{Verb, guests, setup};

pub(crate) const VERB: Verb = Verb {
    name: "bench",
    summary: "Measure starts, memory per pod and the cost of fuel, with a release build",
    help: "\
Usage: cargo xtask bench [ARGUMENTS OF THE BENCHMARK]

Builds husk as it is released (this takes long) and runs the benchmark of the package
husk-tests with it.",
    run: bench,
};

fn bench(arguments: Arguments) -> Result<()> {
    setup::targets(&[WASIP2, WASIP1])?;
    guests::build_all_rust()?;
    run_quietly(cargo().args(["build", "--release", "--package", "husk"]))?;
    run(cargo().args(["bench", "--package", "husk-tests", "--"]).args(arguments.finish()))
}
