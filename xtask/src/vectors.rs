//! `cargo xtask vectors`: what Kubernetes' own functions answer, asked of ours.

use anyhow::Result;
use pico_args::Arguments;

use crate::Verb;
use crate::run::{cargo, run};

pub(crate) const VERB: Verb = Verb {
    name: "vectors",
    summary: "Compare our decisions with the answers of upstream's functions",
    help: "\
Usage: cargo xtask vectors [FAMILY]

Runs the test binary `vectors` of the package husk-tests and shows its table: per family,
how many cases agree. With a FAMILY (phase, backoff, ...) only the tests with that name.
The cases and what they mean: tests/vectors/README.md.",
    run: vectors,
};

fn vectors(arguments: Arguments) -> Result<()> {
    run(cargo()
        .args(["test", "--quiet", "--package", "husk-tests", "--test", "vectors", "--"])
        .arg("--nocapture")
        .args(arguments.finish()))
}
