//! `cargo xtask bench`: measures a release build, side by side with what else runs the same module.

mod memory;
mod sample;
mod whole;

use anyhow::Result;
use pico_args::Arguments;

use crate::run::{cargo, run, run_quietly, target_dir};
use crate::toolchain::{WASIP1, WASIP2};
use crate::{Verb, guests, setup};

pub(crate) const VERB: Verb = Verb {
    name: "bench",
    summary: "Measure starts, memory per pod and the cost of fuel, with a release build",
    help: "\
Usage: cargo xtask bench [--runs N]

Builds husk as it is released (this takes long) and measures, all in one run:

  start    a container's whole life (image, start, exit), one after the other in one pod, and
           the whole of `husk run` with and without compiled code at hand, beside
           `wasmtime run` of the same module and crun's and runc's of an echo, where these
           are installed and work
  memory   of `husk run` with 1, 100 and 1,000 pods that idle
  engine   start, memory, KILL and fuel, without agent and pods

Figures are medians with their spread. Compare those of one run with each other, not with
those of another machine or day.",
    run: bench,
};

/// How often each whole command is run.
const RUNS: usize = 11;

fn bench(mut arguments: Arguments) -> Result<()> {
    let runs = arguments.opt_value_from_str("--runs")?.unwrap_or(RUNS);
    super::no_more(arguments)?;
    setup::targets(&[WASIP2, WASIP1])?;
    guests::build_all_rust()?;
    // As one: another set of packages would be another set of features, for which wasmtime is compiled anew.
    run_quietly(cargo().args(["build", "--release", "--workspace", "--bin", "husk", "--example", "density"]))?;
    let release = target_dir().join("release");
    whole::measure(&release.join("husk"), runs)?;
    memory::measure(&release.join("husk"))?;
    println!("\nengine alone");
    run(std::process::Command::new(release.join("examples").join("density")).arg("1000"))
}
