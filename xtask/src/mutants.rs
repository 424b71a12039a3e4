//! `cargo xtask mutants`: do the tests of husk-core notice when its code is changed?

mod listed;
mod sample;
mod tool;

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Result, bail};
use pico_args::Arguments;

use crate::run::root;
use crate::{Verb, no_more};
use listed::{LIST, Listed};
use sample::{Mutant, sample};
use tool::{Outcomes, Tool};

pub(crate) const VERB: Verb = Verb {
    name: "mutants",
    summary: "Change husk-core in many small ways, one at a time, and see whether tests notice",
    help: "\
Usage: cargo xtask mutants [--files GLOB]... [--sample N] [--seed S]

  --files GLOB   files to change, such as `phase.rs` or `runtime/core/src/pod/*.rs`
                 (default: restart, probes, termination and phase)
  --sample N     so many changes, drawn by the seed (default: 300)
  --seed S       another seed draws others (default: 1)

Each mutant costs some seconds: husk-core is compiled anew in a copy of the repository,
and its fast tests run. Those that live are tried again with every test that is about
husk-core, upstream's answers among them.

Mutants that no test can catch are listed with the reason in runtime/core/mutants.txt.
It is an error if more than 5 % of the others live, and if a listed one doesn't.
Takes cargo-mutants, and installs it under the target folder if it isn't there.",
    run: mutants,
};

/// More alive than that, in percent, is an error.
const MOST_ALIVE: usize = 5;

/// What decides about restarts, probes, termination and the phase.
const DECISIONS: &[&str] = &[
    "actions.rs",
    "actions/*.rs",
    "backoff.rs",
    "conditions.rs",
    "deletion.rs",
    "grace.rs",
    "phase.rs",
    "pod/ending.rs",
    "pod/observe.rs",
    "pod/probing.rs",
    "pod/slot.rs",
    "pod/starting.rs",
    "pod/stopping.rs",
    "pod/sync.rs",
    "prober.rs",
    "restart.rs",
    "signal.rs",
    "termination_order.rs",
];

fn mutants(mut arguments: Arguments) -> Result<()> {
    let mut files: Vec<String> = arguments.values_from_str("--files")?;
    let size = arguments.opt_value_from_str("--sample")?.unwrap_or(300);
    let seed = arguments.opt_value_from_str("--seed")?.unwrap_or(1);
    no_more(arguments)?;
    if files.is_empty() {
        files = DECISIONS.iter().map(|file| format!("runtime/core/src/{file}")).collect();
    }
    let listed = Listed::parse(&fs::read_to_string(root().join(LIST))?)?;
    let tool = Tool::at_hand(files)?;
    let all = tool.list()?;
    let drawn = sample(&all, seed, size);
    eprintln!("mutants: {} of {}, drawn by seed {seed}", drawn.len(), all.len());

    let mut outcomes = tool.run("fast", &tool::FAST, &all, &drawn)?;
    let alive: Vec<Mutant> = drawn.iter().filter(|mutant| outcomes.missed.contains(&mutant.name)).cloned().collect();
    if !alive.is_empty() {
        eprintln!("mutants: {} live; once more with every test", alive.len());
        outcomes.replace(tool.run("all", &tool::ALL, &all, &alive)?);
    }
    report(&drawn, &outcomes, &listed)
}

/// How many mutants of one file met which fate.
#[derive(Clone, Copy, Default)]
struct Row {
    caught: usize,
    timeout: usize,
    unviable: usize,
    listed: usize,
    alive: usize,
}

impl Row {
    fn of<'a>(mutants: impl IntoIterator<Item = &'a Mutant>, outcomes: &Outcomes, listed: &Listed) -> Self {
        let mut row = Self::default();
        for mutant in mutants {
            let count = if outcomes.timeout.contains(&mutant.name) {
                &mut row.timeout
            } else if outcomes.unviable.contains(&mutant.name) {
                &mut row.unviable
            } else if !outcomes.missed.contains(&mutant.name) {
                &mut row.caught
            } else if listed.contains(mutant) {
                &mut row.listed
            } else {
                &mut row.alive
            };
            *count += 1;
        }
        row
    }

    /// Those that a test could have caught.
    fn fair(self) -> usize {
        self.caught + self.timeout + self.alive
    }

    fn print(self, what: &str) {
        let Self { caught, timeout, unviable, listed, alive } = self;
        let drawn = self.fair() + unviable + listed;
        println!("{what:<24} {drawn:>7} {caught:>7} {timeout:>7} {unviable:>8} {listed:>7} {alive:>7}");
    }
}

fn report(drawn: &[Mutant], outcomes: &Outcomes, listed: &Listed) -> Result<()> {
    let mut files: BTreeMap<&str, Vec<&Mutant>> = BTreeMap::new();
    for mutant in drawn {
        files.entry(mutant.file.strip_prefix("runtime/core/src/").unwrap_or(&mutant.file)).or_default().push(mutant);
    }
    println!("\n{:<24} mutants  caught timeout unviable  listed   alive", "");
    for (file, mutants) in files {
        Row::of(mutants, outcomes, listed).print(file);
    }
    let sum = Row::of(drawn, outcomes, listed);
    sum.print("all");

    let lives = |mutant: &&Mutant| outcomes.missed.contains(&mutant.name);
    let (listed, others): (Vec<&Mutant>, Vec<&Mutant>) = drawn.iter().partition(|mutant| listed.contains(mutant));
    for mutant in others.into_iter().filter(lives) {
        println!("alive: {}", mutant.name);
    }
    println!("logs of each: {}", tool::folder().display());
    if let Some(mutant) = listed.into_iter().find(|mutant| !lives(mutant)) {
        bail!("a test catches a mutant that is listed in {LIST}; take it out: {}", mutant.id());
    }
    if sum.alive * 100 > sum.fair() * MOST_ALIVE {
        bail!(
            "{} of {} mutants live, more than {MOST_ALIVE} %: write tests for them, or list in {LIST} why none can catch them",
            sum.alive,
            sum.fair()
        );
    }
    Ok(())
}
