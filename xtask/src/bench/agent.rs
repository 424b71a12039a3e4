//! `husk agent`, measured from outside as its owner meets it.

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::{Value, json};

use super::device::{Device, PODS, pod};
use super::sample::Sample;

/// So many clients watch while others ask.
const WATCHES: usize = 200;
/// So many times each request is sent meanwhile.
const REQUESTS: usize = 500;
/// What is written is counted for so long.
const WRITING: Duration = Duration::from_secs(120);
/// Pods whose memory is looked at; each number more than the one before.
const PODS_OF_MEMORY: [usize; 4] = [0, 1, 100, 1000];
/// Time for what a start leaves behind to be given back.
const SETTLE: Duration = Duration::from_secs(3);

/// Measures and prints.
pub(super) fn measure(husk: &Path, runs: usize) -> Result<()> {
    println!("\nhusk agent ({:.1} MB on the disk, compiler included)", fs::metadata(husk)?.len() as f64 / 1e6);
    starts(husk, runs)?;
    many_pods(husk)?;
    under_watches(husk)?;
    writes(husk)
}

/// From the start of the process to its first pod.
fn starts(husk: &Path, runs: usize) -> Result<()> {
    let (mut answers, mut runs_first) = (Vec::new(), Vec::new());
    for _ in 0..runs {
        let mut device = Device::new(husk)?;
        device.static_pod("first", &pod("first", &["pause"]))?;
        let begun = Instant::now();
        answers.push(device.start()?);
        device.until(Duration::from_millis(1), |device| Ok(device.is_running("first-bench").then_some(())))?;
        runs_first.push(begun.elapsed());
    }
    println!("  start to the API's first answer          {}", Sample::from(answers));
    println!("  start to a static pod Running in the API {}", Sample::from(runs_first));
    Ok(())
}

/// Memory, and what a power cut costs.
fn many_pods(husk: &Path) -> Result<()> {
    let mut device = Device::new(husk)?;
    device.start()?;
    println!("  memory with pods that idle, KiB     resident  proportional");
    let mut have = 0;
    for count in PODS_OF_MEMORY {
        for n in have..count {
            device.ask("POST", PODS, Some(&pod(&format!("idle-{n}"), &["pause"])))?;
        }
        have = count;
        if count > 0 {
            device.until_running(count)?;
        }
        thread::sleep(SETTLE);
        let figure = |name| device.kernel_figure("smaps_rollup", name);
        println!("  {count:>6} pods                         {:>8}  {:>12}", figure("Rss")?, figure("Pss")?);
    }
    let mut answers = Vec::new();
    let mut all = Vec::new();
    for _ in 0..3 {
        device.kill()?;
        let begun = Instant::now();
        answers.push(device.start()?);
        device.until_running(have)?;
        all.push(begun.elapsed());
    }
    println!("  after kill -9 with {have} pods: the API answers {}", Sample::from(answers));
    println!("                                all run again  {}", Sample::from(all));
    Ok(())
}

/// Answers while others watch and pods come and go.
fn under_watches(husk: &Path) -> Result<()> {
    let mut device = Device::new(husk)?;
    device.start()?;
    for n in 0..100 {
        device.ask("POST", PODS, Some(&pod(&format!("idle-{n}"), &["pause"])))?;
    }
    device.until_running(100)?;
    for n in 0..10 {
        device.ask("POST", PODS, Some(&pod(&format!("crash-{n}"), &["crasher", "exit", "1"])))?;
    }
    let mut readers = Vec::new();
    for _ in 0..WATCHES {
        let mut stream = device.watch(PODS)?;
        readers.push(thread::Builder::new().stack_size(64 << 10).spawn(move || {
            let (mut bytes, mut buffer) = (0_usize, [0; 8192]);
            while let Ok(count @ 1..) = stream.read(&mut buffer) {
                bytes += count;
            }
            bytes
        })?);
    }
    let mut reads = Vec::with_capacity(REQUESTS);
    let mut changes = Vec::with_capacity(REQUESTS);
    for n in 0..REQUESTS {
        reads.push(timed(|| device.ask("GET", &format!("{PODS}/idle-{}", n % 100), None))?);
        let config =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("c{n}")}, "data": {"n": "1"}});
        changes.push(timed(|| device.ask("POST", "/api/v1/namespaces/default/configmaps", Some(&config)))?);
        let changed = json!({"metadata": {"name": format!("idle-{}", n % 100), "labels": {"turn": n.to_string()}}});
        let path = format!("{PODS}/idle-{}", n % 100);
        device.ask_as("PATCH", &path, Some(&changed), "application/merge-patch+json")?;
    }
    device.kill()?;
    let heard: usize = readers.into_iter().map(|reader| reader.join().unwrap_or_default()).sum();
    anyhow::ensure!(heard > WATCHES * REQUESTS, "the watches heard only {heard} bytes");
    println!("  with {WATCHES} watches, which heard {} MB:", heard / 1_000_000);
    println!("    get a pod                    {}", with_p99(reads));
    println!("    create a ConfigMap (durable) {}", with_p99(changes));
    Ok(())
}

/// What goes to the disk while nothing is asked.
fn writes(husk: &Path) -> Result<()> {
    for (what, words) in [("an idle pod", &["pause"][..]), ("a crash-looping pod", &["crasher", "exit", "1"])] {
        let mut device = Device::new(husk)?;
        device.start()?;
        device.ask("POST", PODS, Some(&pod("one", words)))?;
        device.until(Duration::from_millis(100), |device| {
            let pod: Value = serde_json::from_str(&device.ask("GET", &format!("{PODS}/one"), None)?)?;
            let status = &pod["status"]["containerStatuses"][0];
            Ok((status["restartCount"].as_u64() > Some(1) || status["ready"] == true).then_some(()))
        })?;
        thread::sleep(SETTLE);
        let before = device.kernel_figure("io", "write_bytes")?;
        thread::sleep(WRITING);
        let written = device.kernel_figure("io", "write_bytes")? - before;
        let restarts = device.ask("GET", &format!("{PODS}/one"), None)?;
        let restarts: Value = serde_json::from_str(&restarts)?;
        println!(
            "  written in {} s with {what}: {} KiB ({} restarts so far)",
            WRITING.as_secs(),
            written / 1024,
            restarts["status"]["containerStatuses"][0]["restartCount"]
        );
    }
    Ok(())
}

fn timed<T>(work: impl FnOnce() -> Result<T>) -> Result<Duration> {
    let begun = Instant::now();
    work()?;
    Ok(begun.elapsed())
}

fn with_p99(mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    let p99 = times.get(times.len() * 99 / 100).copied().unwrap_or_default();
    format!("{}, 99 of 100 within {:.1} ms", Sample::from(times), p99.as_secs_f64() * 1000.0)
}
