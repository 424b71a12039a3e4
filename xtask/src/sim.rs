//! `cargo xtask sim`: random lives of pods in virtual time, and the rules that must hold in all of them.

use std::ffi::OsString;
use std::process::Command;

use anyhow::Result;

use crate::Verb;
use crate::run::{build, build_for_long, root, run, target_dir};

pub(crate) const VERB: Verb = Verb {
    name: "sim",
    summary: "Play random lives of pods and check the rules at every step",
    help: "\
Usage: cargo xtask sim [--steps N] [--seed S] [--long] [--threads N]

Plays one seed after the other, S (default: 1) and those after it, until there were N steps
(default: 10 million; --long: a billion, with the simulator optimised). Prints what happened how often, and the rate.

If a rule is broken, the pods and what happens to them are made as small as they get and
written to the folder sim/SEED of the build folder, as files that `husk simulate` plays.
The same seed always means the same life: `cargo xtask sim --seed SEED` plays it again.",
    run: |arguments| sim(&arguments.finish()),
};

pub(crate) fn sim(arguments: &[OsString]) -> Result<()> {
    let is_long = arguments.iter().any(|argument| argument == "--long");
    let mut simulator = Command::new(if is_long { build_for_long("husk-sim", "sim")? } else { build("sim")? });
    simulator.current_dir(root()).arg("--out").arg(target_dir().join("sim")).args(arguments);
    run(&mut simulator)
}
