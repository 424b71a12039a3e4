//! Instances that come and go, thousands of them.

use std::path::PathBuf;
use std::process::Command;

use husk_core::io::{Outcome, Trap};
use husk_engine::{ContainerConfig, Mount};

use crate::support::{image, module, start};

/// More rounds, for who has the time.
const ROUNDS: &str = "HUSK_CHURN";
/// Set in the process that this happens in.
const ALONE: &str = "HUSK_CHURN_ALONE";

/// Bytes that the process may grow by, whatever the number of rounds.
const GROWTH: u64 = 16 << 20;

/// What this process holds.
#[derive(Debug)]
struct Held {
    files: usize,
    threads: usize,
    memory: u64,
}

fn held() -> Held {
    let process = PathBuf::from("/proc/self");
    let count = |what: &str| std::fs::read_dir(process.join(what)).expect("it runs").count();
    let status = std::fs::read_to_string(process.join("status")).expect("it runs");
    let kib = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.parse().ok());
    Held { files: count("fd"), threads: count("task"), memory: kib.map_or(0, |kib: u64| kib << 10) }
}

// spec: RES-06
#[test]
fn a_thousand_instances_that_leak_all_they_have_leave_nothing() {
    // A process of its own: what other tests hold is not counted.
    let name = "churn::a_thousand_instances_that_leak_all_they_have_leave_nothing";
    if std::env::var_os(ALONE).is_none() {
        let mut command = Command::new(std::env::current_exe().expect("tests have a path"));
        let output = command.args([name, "--exact"]).env(ALONE, "yes").output().expect("it starts");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("1 passed"), "{said}");
        return;
    }
    let rounds = std::env::var(ROUNDS).ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(400);
    tokio::runtime::Runtime::new().expect("a runtime").block_on(churn(rounds));
}

async fn churn(rounds: u32) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut config = ContainerConfig::new(image(LEAKS).await);
    config.mounts = vec![Mount::new(folder.path(), "/data", false)];
    let end = |body: &str| module(&format!("(drop (memory.grow (i32.const 10))) {body}"));
    let ends = [
        (config, Outcome::Code(0)),
        (ContainerConfig::new(image(&end("unreachable")).await), Outcome::Trap(Trap::Unreachable)),
        (ContainerConfig::new(image(&end("(drop (call $recurse (i64.const 0)))")).await), Outcome::Trap(Trap::Fault)),
    ];
    let round = async || {
        for (config, expected) in &ends {
            let (container, _) = start(config.clone()).await;
            assert_eq!(container.wait().await, *expected);
        }
    };
    // What stays for good after the first ones, as threads and arenas do, is no leak.
    for _ in 0..rounds / 4 {
        round().await;
    }
    let before = held();
    for _ in 0..rounds {
        round().await;
    }
    let mut now = held();
    // Who ends is cleared away by others, which wait for more of that for ten seconds and end then.
    let is_over = |now: &Held| now.files <= before.files && now.threads <= before.threads + 8;
    for _ in 0..6000 {
        if is_over(&now) {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        now = held();
    }
    assert!(is_over(&now), "{before:?}, then {now:?}");
    assert!(now.memory <= before.memory + GROWTH, "{before:?}, then {now:?}");
}

/// Opens the same file a hundred times, and ends.
const LEAKS: &str = r#"(module
    (import "wasi_snapshot_preview1" "path_open"
        (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
    (memory (export "memory") 1)
    (data (i32.const 0) "file")
    (func (export "_start") (local $n i32)
        (loop $again
            (if (call $open (i32.const 3) (i32.const 0) (i32.const 0) (i32.const 4) (i32.const 1)
                (i64.const 66) (i64.const 0) (i32.const 0) (i32.const 64)) (then unreachable))
            (local.set $n (i32.add (local.get $n) (i32.const 1)))
            (br_if $again (i32.lt_u (local.get $n) (i32.const 100))))))"#;
