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
/// Pods that are there already when others come and go, how many of those, and how often.
const CROWD: usize = 1000;
const MORE: usize = 100;
const ROUNDS: usize = 5;
/// Pods of a day, and how many of them at once.
const DAY: usize = 2880;
const BATCH: usize = 40;
/// Time for threads that have nothing to do to end.
const SETTLE: Duration = Duration::from_secs(12);
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
    load(husk)
}

/// Measures and prints how an agent bears load.
pub(super) fn load(husk: &Path) -> Result<()> {
    println!("\nload");
    one_processor(husk)?;
    crowd(husk)?;
    churn(husk)
}

/// How fast pods come and go where a thousand are.
fn crowd(husk: &Path) -> Result<()> {
    let mut device = Device::new(husk)?;
    device.start()?;
    let names = |prefix: &str, count: usize| (0..count).map(|n| format!("{prefix}-{n}")).collect::<Vec<_>>();
    apply(&device, &names("idle", CROWD))?;
    device.until_running(CROWD)?;
    let (mut starts, mut ends) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        apply(&device, &names("more", MORE))?;
        device.until_running(CROWD + MORE)?;
        starts.push(begun.elapsed());
        let begun = Instant::now();
        delete(&device, &names("more", MORE))?;
        ends.push(begun.elapsed());
    }
    let rate = |times: Vec<Duration>| MORE as f64 / Sample::from(times).median().as_secs_f64();
    println!(
        "  with {CROWD} pods that idle, {MORE} more at once, medians of {ROUNDS}: {:.0} started and {:.0} stopped and gone in a second",
        rate(starts),
        rate(ends)
    );
    Ok(())
}

/// What is left of pods that come and go, as many as a device has in a day of one each half minute.
fn churn(husk: &Path) -> Result<()> {
    let mut device = Device::new(husk)?;
    device.start()?;
    let names: Vec<String> = (0..BATCH).map(|n| format!("p-{n}")).collect();
    println!("  pods that came and went   resident KiB  threads  open files");
    for round in 0..=DAY / BATCH {
        if round % (DAY / BATCH / 4) == 0 && round > 0 {
            std::thread::sleep(SETTLE);
            let (resident, threads) =
                (device.kernel_figure("status", "VmRSS")?, device.kernel_figure("status", "Threads")?);
            println!("  {:>23}   {resident:>12}  {threads:>7}  {:>10}", round * BATCH, device.open_files()?);
        }
        apply(&device, &names)?;
        device.until_running(BATCH)?;
        delete(&device, &names)?;
    }
    Ok(())
}

fn apply(device: &Device, names: &[String]) -> Result<()> {
    for name in names {
        device.ask("POST", PODS, Some(&pod(name, &["pause"])))?;
    }
    Ok(())
}

/// Until they are gone.
fn delete(device: &Device, names: &[String]) -> Result<()> {
    for name in names {
        device.ask("DELETE", &format!("{PODS}/{name}?gracePeriodSeconds=1"), None)?;
    }
    for name in names {
        device.until(LOOK, |device| Ok(device.ask("GET", &format!("{PODS}/{name}"), None).is_err().then_some(())))?;
    }
    Ok(())
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
