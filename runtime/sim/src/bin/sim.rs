//! The simulator as a program: `cargo xtask sim` starts it.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use husk_sim::counts::Counts;
use husk_sim::report::Report;
use husk_sim::run::{Outcome, run};
use pico_args::Arguments;

/// Steps of a run that doesn't say, and of a long one.
const STEPS: u64 = 10_000_000;
const LONG: u64 = 1_000_000_000;
/// Time between two lines about the progress.
const PROGRESS: Duration = Duration::from_secs(30);

fn main() -> Result<ExitCode> {
    let mut arguments = Arguments::from_env();
    let steps = if arguments.contains("--long") { LONG } else { STEPS };
    let steps = arguments.opt_value_from_str("--steps")?.unwrap_or(steps);
    let seed = arguments.opt_value_from_str("--seed")?.unwrap_or(1);
    let threads = arguments.opt_value_from_str("--threads")?;
    let out: Option<PathBuf> = arguments.opt_value_from_str("--out")?;
    let left = arguments.finish();
    if !left.is_empty() {
        bail!("can't use {left:?}: `cargo xtask sim --help` says what there is");
    }
    let threads = threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    // A panic of the core is reported with its seed.
    std::panic::set_hook(Box::new(|_| {}));

    let begun = Instant::now();
    let told = Mutex::new(begun);
    let outcome = run(seed, steps, threads, |counts| {
        let Ok(mut told) = told.lock() else { return };
        if told.elapsed() >= PROGRESS {
            *told = Instant::now();
            eprintln!("{}", rate(counts, begun.elapsed()));
        }
    });
    let Outcome { counts, failed } = outcome;
    println!("{counts}");
    println!("{}", rate(&counts, begun.elapsed()));
    let Some((seed, broken)) = failed else {
        println!("no rule was broken, from seed {seed} on");
        return Ok(ExitCode::SUCCESS);
    };
    eprintln!("seed {seed}: {broken}");
    let report = Report::of(seed, broken);
    let folder = out.unwrap_or_else(|| PathBuf::from("sim")).join(seed.to_string());
    let (pods, scenario) = report.write(&folder).with_context(|| format!("can't write {}", folder.display()))?;
    eprintln!("as small as it gets: {}", report.broken);
    eprintln!("again:      cargo xtask sim --seed {seed}");
    eprintln!("in detail:  husk simulate {} --scenario {}", pods.display(), scenario.display());
    Ok(ExitCode::FAILURE)
}

fn rate(counts: &Counts, took: Duration) -> String {
    let Counts { steps, cases, facts, orders, .. } = counts;
    let rate = *steps as f64 / took.as_secs_f64().max(0.001);
    let took = took.as_secs();
    format!("{steps} steps ({facts} facts, {orders} orders) in {cases} lives, {took} s, {rate:.0} steps/s")
}
