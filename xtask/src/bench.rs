//! `cargo xtask bench`: measures a release build, side by side with what else runs the same module.

mod agent;
mod device;
mod limits;
mod memory;
mod sample;
mod whole;

use std::fs;
use std::path::PathBuf;

use anyhow::{Result, bail};
use pico_args::Arguments;

use crate::run::{cargo, run, run_quietly, target_dir};
use crate::toolchain::{WASIP1, WASIP2};
use crate::{Verb, guests, setup};

pub(crate) const VERB: Verb = Verb {
    name: "bench",
    summary: "Measure the core's events, starts, memory per pod and the cost of fuel, with a release build",
    help: "\
Usage: cargo xtask bench [--runs N] [--husk FILE] [SECTION...]

Measures the named sections, or all of them in one run:

  core     what an event costs in the lifecycle engine and what a pod takes of memory, with 10,
           1,000 and 10,000 pods that idle; needs no other build than its own, which is short
  start    a container's whole life (image, start, exit), one after the other in one pod, and
           the whole of `husk run` with and without compiled code at hand, beside
           `wasmtime run` of the same module (installed into the build folder by the first
           run) and crun's and runc's of an echo, where these are installed and work
  memory   of `husk run` with 1, 100 and 1,000 pods that idle
  engine   start, memory, KILL and fuel, without agent and pods
  probes   how late the probes of 500 pods are that are each probed every second
  limits   shares and limits of processors beside a native process in a control group, what fuel costs,
           KILL, probes beside busy guests, and all of load
  load     how long an agent with one processor lets people wait, how fast pods come and go beside a
           thousand, and what is left of a day of them
  agent    `husk agent` with its API: start, memory with 0 to 1,000 pods, recovery after kill -9,
           answers while 200 clients watch, and what it writes to the disk in an hour

For all but core husk is built as it is released; this takes long. With --husk the sections start, memory,
limits, load and agent measure that program instead, and nothing is built for them.

Figures are medians with their spread, those of the core the least of several. Compare those of
one run with each other, not with those of another machine or day.",
    run: bench,
};

/// How often each whole command is run.
const RUNS: usize = 11;

/// A part of the measurements; they are made in this order.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    Core,
    Start,
    Memory,
    Engine,
    Probes,
    Limits,
    Load,
    Agent,
}

const SECTIONS: [(&str, Section); 8] = [
    ("core", Section::Core),
    ("start", Section::Start),
    ("memory", Section::Memory),
    ("engine", Section::Engine),
    ("probes", Section::Probes),
    ("limits", Section::Limits),
    ("load", Section::Load),
    ("agent", Section::Agent),
];

fn bench(mut arguments: Arguments) -> Result<()> {
    let runs = arguments.opt_value_from_str("--runs")?.unwrap_or(RUNS);
    let given: Option<PathBuf> = arguments.opt_value_from_str("--husk")?;
    let mut wanted = Vec::new();
    while let Some(name) = arguments.subcommand()? {
        let Some((_, section)) = SECTIONS.iter().find(|(known, _)| *known == name) else {
            bail!("there is no section {name:?}; `cargo xtask bench --help` lists them");
        };
        wanted.push(*section);
    }
    super::no_more(arguments)?;
    let is_wanted = |section| wanted.is_empty() || wanted.contains(&section);
    if is_wanted(Section::Core) {
        run(cargo().args(["bench", "--quiet", "--package", "husk-core", "--bench", "scale"]))?;
    }
    if wanted == [Section::Core] {
        return Ok(());
    }
    setup::targets(&[WASIP2, WASIP1])?;
    guests::build_all_rust()?;
    let release = target_dir().join("release");
    if given.is_none() || [Section::Engine, Section::Probes, Section::Limits].into_iter().any(is_wanted) {
        // As one: another set of packages would be another set of features, for which wasmtime is compiled anew.
        let examples = ["density", "probes", "shares", "fuel", "kill"].map(|example| ["--example", example]);
        run_quietly(cargo().args(["build", "--release", "--workspace", "--bin", "husk"]).args(examples.concat()))?;
    }
    let husk = given.unwrap_or_else(|| release.join("husk"));
    fs::create_dir_all(target_dir().join("bench"))?;
    if is_wanted(Section::Start) {
        whole::measure(&husk, runs)?;
    }
    if is_wanted(Section::Memory) {
        memory::measure(&husk)?;
    }
    if is_wanted(Section::Engine) {
        println!("\nengine alone");
        run(std::process::Command::new(release.join("examples").join("density")).arg("1000"))?;
    }
    if is_wanted(Section::Probes) {
        println!("\nprobes");
        run(&mut std::process::Command::new(release.join("examples").join("probes")))?;
    }
    if is_wanted(Section::Limits) {
        limits::measure(&husk, &release.join("examples"))?;
    } else if is_wanted(Section::Load) {
        limits::load(&husk)?;
    }
    if is_wanted(Section::Agent) {
        agent::measure(&husk, runs)?;
    }
    Ok(())
}
