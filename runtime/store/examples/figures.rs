//! What the store costs: bytes on flash, latency, size, time to open. `cargo run --release -p husk-store --example figures [DIR]`

use std::path::Path;
use std::time::{Duration, Instant as Clock};
use std::{env, fs, io};

use husk_core::Instant;
use husk_store::{Batch, Boot, Expect, Limits, ObjectKey, Opened, Options, Store, Written};

use pods::Pods;

#[path = "../tests/store/support/pods.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod pods;

const PODS: usize = 1000;
const HOUR: Duration = Duration::from_secs(3600);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let scratch = tempfile::tempdir_in(env::args().nth(1).unwrap_or_else(|| ".".into()))?;
    let dir = scratch.path();

    println!("one pod, bytes on flash per hour once the back-off is at its longest:");
    println!("  idle                    {}", hour(dir, 1, None)?);
    println!("  runs 1 s, crashes       {}", hour(dir, 1, Some(1))?);
    println!("  runs 11 min, crashes    {}", hour(dir, 1, Some(660))?);
    println!("1,000 pods that run 1 s and crash: {}", hour(dir, PODS, Some(1))?);

    let path = dir.join("thousand.redb");
    let opened = open(&path, Limits::default())?;
    let (store, now) = (opened.store, opened.now);
    let empty = fs::metadata(&path)?.len();
    let mut pods = Pods::new(now, None);
    let before = store.written();
    for i in 0..PODS {
        pods.apply(&i.to_string());
        store.commit(now, Batch::new().put(key(i), "u", body(i, 0), Expect::Absent))?;
    }
    pods.run_until(now + Duration::from_secs(60), &store);
    println!(
        "an empty store has {empty} bytes, with {PODS} pods of a 2 KiB object and a record {}",
        fs::metadata(&path)?.len()
    );
    println!("  to begin: {}", diff(before, store.written()));

    let records: Vec<Vec<u8>> = (0..PODS).map(|i| record(&pods, i)).collect();
    println!("a record has {} bytes; one transaction with 1,000 pods there, mean of 200:", records[0].len());
    let change = |i: usize| Batch::new().record(&uid(i), records[i % PODS].clone());
    let object = |i: usize| Batch::new().put(key(i % PODS), "u", body(i, i + 1), Expect::Any);
    transactions(&store, now, "a record", change)?;
    transactions(&store, now, "an object of 2 KiB", object)?;
    transactions(&store, now, "an object and a record", |i| {
        let i = i % PODS;
        object(i).record(&uid(i), records[i].clone()).fact("x", vec![1])
    })?;
    transactions(&store, now, "10 records", |i| {
        (0..10).fold(Batch::new(), |b, j| b.record(&uid(i * 97 + j * 101), records[j].clone()))
    })?;
    transactions(&store, now, "100 records", |i| {
        (0..100).fold(Batch::new(), |b, j| b.record(&uid(i * 97 + j * 10), records[j].clone()))
    })?;
    println!("after that the file has {} bytes", fs::metadata(&path)?.len());

    // As after a power cut: a copy of the file while it is open.
    let cut = dir.join("cut.redb");
    fs::copy(&path, &cut)?;
    println!("to open after a cut:      {}", reopen(&cut)?);
    store.close(now)?;
    println!("to open after a clean end: {}", reopen(&path)?);
    Ok(())
}

fn open(path: &Path, limits: Limits) -> Result<Opened, Box<dyn std::error::Error>> {
    let boot = Boot { id: "boot".into(), uptime: Duration::from_secs(100) };
    Ok(Store::open(path, Options { limits, ..Options::new(boot) })?)
}

/// What so many pods cost in the second hour of their life.
fn hour(dir: &Path, pods: usize, life: Option<u64>) -> Result<String, Box<dyn std::error::Error>> {
    let path = dir.join(format!("hour-{pods}-{}.redb", life.unwrap_or(0)));
    let opened = open(&path, Limits::default())?;
    let mut running = Pods::new(opened.now, life.map(Duration::from_secs));
    (0..pods).for_each(|i| running.apply(&i.to_string()));
    running.run_until(opened.now + HOUR, &opened.store);
    let before = opened.store.written();
    running.run_until(opened.now + 2 * HOUR, &opened.store);
    Ok(diff(before, opened.store.written()))
}

fn transactions(
    store: &Store,
    now: Instant,
    what: &str,
    batch: impl Fn(usize) -> Batch,
) -> Result<(), Box<dyn std::error::Error>> {
    const COUNT: usize = 200;
    let before = store.written();
    let mut times = Vec::new();
    for i in 0..COUNT {
        let batch = batch(i * 37 % PODS);
        let start = Clock::now();
        store.commit(now, batch)?;
        times.push(start.elapsed());
    }
    times.sort();
    let after = store.written();
    let each = |figure: fn(&Written) -> u64| (figure(&after) - figure(&before)) / COUNT as u64;
    println!(
        "  {what:<24} {:>7} bytes on flash, {:>7} written; {:>6.2} ms, p99 {:>6.2} ms",
        each(|w| w.flash_bytes),
        each(|w| w.bytes),
        times[COUNT / 2].as_secs_f64() * 1e3,
        times[COUNT * 99 / 100].as_secs_f64() * 1e3,
    );
    Ok(())
}

fn reopen(path: &Path) -> Result<String, Box<dyn std::error::Error>> {
    let start = Clock::now();
    let opened = open(path, Limits::default())?;
    let time = start.elapsed();
    let there = opened.records.len();
    let none = io::Error::other("not all is there");
    let opened = if there == PODS && opened.set_aside.is_none() { opened } else { return Err(none.into()) };
    Ok(format!("{:.1} ms, {}", time.as_secs_f64() * 1e3, diff(Written::default(), opened.store.written())))
}

fn diff(before: Written, after: Written) -> String {
    format!(
        "{} bytes on flash ({} written) in {} transactions",
        after.flash_bytes - before.flash_bytes,
        after.bytes - before.bytes,
        after.transactions - before.transactions
    )
}

fn uid(i: usize) -> String {
    format!("6f1c0f5e-7b1d-4d0c-9d5b-{:0>12}", i % PODS)
}

fn record(pods: &Pods, i: usize) -> Vec<u8> {
    pods.node.record(&uid(i).as_str().into()).map(|record| record.to_bytes()).unwrap_or_default()
}

fn key(i: usize) -> ObjectKey {
    ObjectKey::new("pods", "default", &format!("web-{i}"))
}

fn body(i: usize, revision: usize) -> Vec<u8> {
    format!("{{\"kind\":\"Pod\",\"revision\":{revision},\"name\":\"web-{i}\",\"filler\":\"{}\"}}", "x".repeat(1960))
        .into_bytes()
}
