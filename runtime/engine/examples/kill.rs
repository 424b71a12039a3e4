//! Measures KILL (TERM-04): how long guests of all sorts live on after it.
//!
//! A guest is asked whenever it has used up a slice of fuel, and at each call of the host. What an instruction moves at once, and
//! what the host does for one call, it isn't asked in: guests that do nothing else live on the longest.
//!
//! `cargo run --release -p husk-engine --example kill [COUNT]`

use std::time::{Duration, Instant};

use husk_engine::{ContainerConfig, Engine, EngineConfig, Image, Log};

/// What a guest does once it has said that it is up.
const GUESTS: [(&str, &str); 12] = [
    ("endless loop", "(loop $l (br $l))"),
    ("sleep of a year", "(call $sleep)"),
    ("read of an open stdin", "(drop (call $fd_read (i32.const 0) (i32.const 528) (i32.const 1) (i32.const 520)))"),
    ("recursion", "(call $twice (i32.const 90))"),
    (
        "flood of 64 MB of memory",
        "(drop (memory.grow (i32.const 1000)))
         (loop $l (memory.fill (i32.const 4096) (i32.const 7) (i32.const 65000000)) (br $l))",
    ),
    (
        "copies of 64 MB of memory",
        "(drop (memory.grow (i32.const 1000)))
         (loop $l (memory.copy (i32.const 4096) (i32.const 4097) (i32.const 65000000)) (br $l))",
    ),
    (
        "a flood of 1 GB, once",
        "(drop (memory.grow (i32.const 16000))) (memory.fill (i32.const 4096) (i32.const 7) (i32.const 1048000000)) (call $sleep)",
    ),
    (
        "a table of a million",
        "(drop (table.grow (ref.null func) (i32.const 999999)))
         (loop $l (table.fill (i32.const 0) (ref.func $say) (i32.const 1000000)) (br $l))",
    ),
    ("endless output", "(loop $l (call $say) (br $l))"),
    (
        "endless looks at the clock",
        "(loop $l (drop (call $clock (i32.const 1) (i64.const 0) (i32.const 520))) (br $l))",
    ),
    (
        "growth of four tables, a million each",
        "(drop (table.grow $a (ref.null func) (i32.const 999999))) (drop (table.grow $b (ref.null func) (i32.const 999999)))
         (drop (table.grow $c (ref.null func) (i32.const 999999))) (drop (table.grow $d (ref.null func) (i32.const 999999)))
         (call $sleep)",
    ),
    ("endless random numbers", "(loop $l (drop (call $random (i32.const 4096) (i32.const 60000))) (br $l))"),
];

fn module(body: &str) -> String {
    format!(
        r#"(module
            (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
            (import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
            (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
            (import "wasi_snapshot_preview1" "clock_time_get" (func $clock (param i32 i64 i32) (result i32)))
            (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
            (memory (export "memory") 1)
            (table $a 1 funcref) (table $b 1 funcref) (table $c 1 funcref) (table $d 1 funcref)
            (elem declare func $say)
            (data (i32.const 0) "up\n")
            (func $say
                (i32.store (i32.const 512) (i32.const 0))
                (i32.store (i32.const 516) (i32.const 3))
                (drop (call $fd_write (i32.const 1) (i32.const 512) (i32.const 1) (i32.const 520))))
            (func $sleep
                (i32.store (i32.const 1040) (i32.const 1))
                (i64.store (i32.const 1048) (i64.const 31536000000000000))
                (drop (call $poll (i32.const 1024) (i32.const 2048) (i32.const 1) (i32.const 4096))))
            (func $twice (param i32)
                (if (local.get 0) (then
                    (call $twice (i32.sub (local.get 0) (i32.const 1)))
                    (call $twice (i32.sub (local.get 0) (i32.const 1))))))
            (func (export "_start")
                (i32.store (i32.const 528) (i32.const 600))
                (i32.store (i32.const 532) (i32.const 16))
                (call $say) {body}))"#
    )
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let count: usize = std::env::args().nth(1).map_or(Ok(200), |text| text.parse())?;
    let engine = Engine::new(EngineConfig::default())?;
    let folder = tempfile::tempdir()?;
    for (what, body) in GUESTS {
        let path = folder.path().join("guest.wat");
        std::fs::write(&path, module(body))?;
        let image = Image::open(&path)?;
        engine.prepare(&image).await?;
        let mut times = Vec::with_capacity(count);
        for _ in 0..count {
            let log = Log::default();
            let mut config = ContainerConfig::new(image.clone());
            config.stdin = true;
            let container = engine.start(config, log.clone()).await?;
            log.follow().next().await;
            // In the middle of what it does.
            tokio::time::sleep(Duration::from_millis(5)).await;
            let killed = Instant::now();
            container.kill();
            container.wait().await;
            times.push(killed.elapsed());
        }
        times.sort_unstable();
        let at = |percent: usize| times[(times.len() * percent / 100).min(times.len() - 1)];
        println!("{what}: p50 {:?}, p99 {:?}, most {:?}", at(50), at(99), at(100));
    }
    Ok(())
}
