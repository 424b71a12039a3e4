//! Measures the engine by itself: start of a container, memory of an idle one, KILL, what fuel costs.
//!
//! `cargo run --release -p husk-engine --example density [COUNT] [RESERVATION_IN_MIB]`

use std::time::{Duration, Instant};

use husk_engine::{Container, ContainerConfig, Engine, EngineConfig, Image, Log};

/// Says "up" and sleeps for a year.
const IDLE: &str = r#"(module
    (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
    (memory (export "memory") 17)
    (data (i32.const 0) "up\n")
    (func (export "_start")
        (i32.store (i32.const 512) (i32.const 0))
        (i32.store (i32.const 516) (i32.const 3))
        (drop (call $write (i32.const 1) (i32.const 512) (i32.const 1) (i32.const 520)))
        (i32.store (i32.const 1040) (i32.const 1))
        (i64.store (i32.const 1048) (i64.const 31536000000000000))
        (drop (call $poll (i32.const 1024) (i32.const 2048) (i32.const 1) (i32.const 4096)))))"#;

/// Computes for ever.
const BUSY: &str = r#"(module (func (export "_start") (loop $l (br $l))))"#;

/// Recursion, and a loop over memory; the result is stored so that nothing is optimised away.
const COMPUTES: &str = r#"(module
    (memory 1)
    (func $fib (param $n i32) (result i32)
        (if (result i32) (i32.lt_s (local.get $n) (i32.const 2))
            (then (local.get $n))
            (else (i32.add (call $fib (i32.sub (local.get $n) (i32.const 1)))
                           (call $fib (i32.sub (local.get $n) (i32.const 2)))))))
    (func $sum (param $rounds i32) (local $at i32)
        (loop $round
            (local.set $at (i32.const 0))
            (loop $next
                (i32.store offset=4 (local.get $at)
                    (i32.add (i32.load (local.get $at)) (i32.mul (i32.load offset=4 (local.get $at)) (i32.const 31))))
                (br_if $next (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 4))) (i32.const 60000))))
            (br_if $round (local.tee $rounds (i32.sub (local.get $rounds) (i32.const 1))))))
    (func (export "_start")
        (i32.store (i32.const 0) (call $fib (i32.const 34)))
        (call $sum (i32.const 6000))))"#;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let count: usize = arguments.next().map_or(Ok(1000), |text| text.parse())?;
    let memory_reservation = arguments.next().map(|text| text.parse::<u64>()).transpose()?.map(|mib| mib << 20);
    let engine = Engine::new(EngineConfig { memory_reservation, ..EngineConfig::default() })?;
    let directory = tempfile::tempdir()?;
    let open = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text)?;
        Ok::<_, Box<dyn std::error::Error>>(Image::open(path)?)
    };
    let (idle, busy) = (open("idle.wat", IDLE)?, open("busy.wat", BUSY)?);

    let before = Instant::now();
    engine.prepare(&idle).await?;
    println!("cold: compiled in {:?}", before.elapsed());
    engine.prepare(&busy).await?;

    let one = start(&engine, &idle).await?;
    let resident_before = resident()?;
    let mut starts = Vec::with_capacity(count);
    let mut containers = vec![one];
    for _ in 0..count {
        let before = Instant::now();
        containers.push(start(&engine, &idle).await?);
        starts.push(before.elapsed());
    }
    let resident_after = resident()?;
    report("warm start to first line", &mut starts);
    println!("memory of an idle container: {} KiB of {count}", (resident_after - resident_before) / count as u64);

    let mut kills = Vec::new();
    for _ in 0..200 {
        let container = engine.start(ContainerConfig::new(busy.clone()), Log::default()).await?;
        tokio::time::sleep(Duration::from_millis(1)).await;
        let before = Instant::now();
        container.kill();
        container.wait().await;
        kills.push(before.elapsed());
    }
    report("KILL of an endless loop", &mut kills);

    let mut kills = Vec::new();
    for container in containers {
        let before = Instant::now();
        container.kill();
        container.wait().await;
        kills.push(before.elapsed());
    }
    report("KILL of a sleeping guest", &mut kills);
    println!("resident after all have ended: {} KiB more than with one", resident()?.saturating_sub(resident_before));

    let computes = open("computes.wat", COMPUTES)?;
    engine.prepare(&computes).await?;
    let mut metered = Vec::new();
    let mut plain = Vec::new();
    for _ in 0..5 {
        let before = Instant::now();
        engine.start(ContainerConfig::new(computes.clone()), Log::default()).await?.wait().await;
        metered.push(before.elapsed());
        plain.push(without_fuel(COMPUTES)?);
    }
    report("computing, with fuel and yields", &mut metered);
    report("computing, without", &mut plain);
    Ok(())
}

/// The same guest on wasmtime as it comes; instantiation included, compilation not.
fn without_fuel(text: &str) -> Result<Duration, Box<dyn std::error::Error>> {
    let engine = wasmtime::Engine::default();
    let module = wasmtime::Module::new(&engine, text)?;
    let before = Instant::now();
    let mut store = wasmtime::Store::new(&engine, ());
    let instance = wasmtime::Instance::new(&mut store, &module, &[])?;
    instance.get_typed_func::<(), ()>(&mut store, "_start")?.call(&mut store, ())?;
    Ok(before.elapsed())
}

async fn start(engine: &Engine, image: &Image) -> Result<Container, Box<dyn std::error::Error>> {
    let log = Log::default();
    let container = engine.start(ContainerConfig::new(image.clone()), log.clone()).await?;
    log.follow().next().await;
    Ok(container)
}

fn report(what: &str, times: &mut [Duration]) {
    times.sort();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    println!("{what}: median {:?}, p99 {:?}, max {:?}", at(0.5), at(0.99), at(1.0));
}

/// Resident memory of this process in KiB.
fn resident() -> Result<u64, Box<dyn std::error::Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS in /proc/self/status")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}
