//! How well limits hold, and what that costs.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::device::{Device, PODS, pod};
use super::sample::Sample;
use crate::run::run;

/// How often everything is asked for.
const REQUESTS: usize = 100;
/// Guests that compute all the time.
const BUSY: usize = 2;
/// Between looks at what takes a moment.
const LOOK: Duration = Duration::from_millis(1);

/// Measures and prints.
pub(super) fn measure(husk: &Path, examples: &Path) -> Result<()> {
    println!("\nlimits");
    let example = |name: &str| Command::new(examples.join(name));
    run(&mut example("shares"))?;
    run(&mut example("fuel"))?;
    println!("from KILL to the end of a guest");
    run(example("kill").arg("200"))?;
    println!("probes beside guests that compute all the time, two for each processor");
    let busy = std::thread::available_parallelism()?.get() * 2;
    run(example("probes").args(["100", "20"]).arg(busy.to_string()))?;
    one_processor(husk)
}

/// What people wait for on a board with one processor.
fn one_processor(husk: &Path) -> Result<()> {
    println!("an agent with one processor, with nobody and with {BUSY} guests that compute all the time");
    for busy in [0, BUSY] {
        let mut device = Device::new(husk)?;
        device.start_under(&["taskset", "-c", "0"])?;
        for n in 0..busy {
            device.ask("POST", PODS, Some(&pod(&format!("busy-{n}"), &["crasher", "loop"])))?;
        }
        if busy > 0 {
            device.until_running(busy)?;
        }
        let (mut reads, mut starts, mut ends) = (Vec::new(), Vec::new(), Vec::new());
        for n in 0..REQUESTS {
            let (name, path) = (format!("p{n}"), format!("{PODS}/p{n}"));
            let begun = Instant::now();
            device.ask("POST", PODS, Some(&pod(&name, &["pause"])))?;
            device.until(LOOK, |device| Ok(device.is_running(&name).then_some(())))?;
            starts.push(begun.elapsed());
            let begun = Instant::now();
            device.ask("GET", &path, None)?;
            reads.push(begun.elapsed());
            let begun = Instant::now();
            device.ask("DELETE", &format!("{path}?gracePeriodSeconds=1"), None)?;
            device.until(LOOK, |device| Ok(device.ask("GET", &path, None).is_err().then_some(())))?;
            ends.push(begun.elapsed());
        }
        device.kill()?;
        println!("  {busy} busy: get a pod           {}", Sample::from(reads));
        println!("          apply until running {}", Sample::from(starts));
        println!("          delete until gone   {}", Sample::from(ends));
    }
    Ok(())
}
