//! Signals and KILL.

use std::time::Duration;

use husk_core::io::Outcome;
use husk_engine::{ContainerConfig, Delivery, Engine, EngineConfig, Log, LogConfig, Mount};

use crate::support::{image, module, next_line, start, text};

/// Says "up" and goes on with `body`.
fn announced(body: &str) -> String {
    module(&format!(
        "(i32.store (i32.const 0) (i32.const 0x0a7075)) (call $write (i32.const 1) (i32.const 0) (i32.const 3)) {body}"
    ))
}

const YEAR: &str = "(call $sleep (i64.const 31536000))";
const LOOP: &str = "(loop $l (br $l))";
const READ: &str = "(i32.store (i32.const 512) (i32.const 0)) (i32.store (i32.const 516) (i32.const 16))
    (drop (call $fd_read (i32.const 0) (i32.const 512) (i32.const 1) (i32.const 520)))";

/// No end of it in a thousand years, and never deeper than this.
const RECURSION: &str = "(call $twice (i32.const 90))";
/// Takes memory, and writes to all of it at once.
const FLOOD: &str = "(drop (memory.grow (i32.const 1000)))
    (loop $l (memory.fill (i32.const 4096) (i32.const 7) (i32.const 65000000)) (br $l))";
/// Writes without end.
const CHATTER: &str = "(loop $l (call $write (i32.const 1) (i32.const 0) (i32.const 3)) (br $l))";

// Within which time is what the example `kill` measures.
// spec: TERM-04
#[tokio::test]
async fn kill_ends_any_guest() {
    let guests = [
        ("endless loop", LOOP),
        ("sleep of a year", YEAR),
        ("read of an open stdin", READ),
        ("recursion", RECURSION),
        ("flood of memory", FLOOD),
        ("endless output", CHATTER),
    ];
    for (what, body) in guests {
        let mut config = ContainerConfig::new(image(&announced(body)).await);
        config.stdin = true;
        let (container, log) = start(config).await;
        assert_eq!(next_line(&log).await, "up", "{what}");
        assert_eq!(container.outcome(), None, "{what}");
        container.kill();
        assert_eq!(container.wait().await, Outcome::Signal(9), "{what}");
        assert_eq!(container.memory().used, 0, "{what}");
    }
}

/// Says a word now and then: after some slices of fuel.
const NOW_AND_THEN: &str = "(loop $l
    (i32.store (i32.const 8) (i32.add (i32.load (i32.const 8)) (i32.const 1)))
    (if (i32.eqz (i32.rem_u (i32.load (i32.const 8)) (i32.const 100000)))
        (then (call $write (i32.const 1) (i32.const 0) (i32.const 3))))
    (br $l))";

// spec: TERM-04
#[tokio::test]
async fn an_instruction_that_moves_much_lets_others_run_meanwhile() {
    let moves = [
        ("memory.fill", "(memory.fill (i32.const 65536) (i32.const 7) (i32.const 65470464))"),
        ("memory.copy", "(memory.copy (i32.const 65536) (i32.const 65537) (i32.const 65470463))"),
        ("memory.copy", "(memory.copy (i32.const 65537) (i32.const 65536) (i32.const 65470463))"),
        ("table.fill", &"(table.fill (i32.const 0) (ref.null func) (i32.const 1000000))".repeat(10)),
        ("table.copy", &"(table.copy (i32.const 0) (i32.const 1) (i32.const 999999))".repeat(10)),
    ];
    let scratch_dir = Some(env!("CARGO_TARGET_TMPDIR").into());
    let engine = Engine::new(EngineConfig { workers: 1, scratch_dir, ..EngineConfig::default() }).expect("engine");
    // Others have their share of the processor, which is many lines.
    let log = Log::new(LogConfig { max_bytes: 64 << 20, max_lines: 4 << 20, ..LogConfig::default() });
    let others = engine.start(ContainerConfig::new(image(&announced(NOW_AND_THEN)).await), log.clone()).await;
    let others = others.expect("started");
    next_line(&log).await;
    for (what, instruction) in moves {
        let said = |word: &str| {
            format!(
                "(i32.store (i32.const 0) (i32.const 0x0a{word})) (call $write (i32.const 1) (i32.const 0) (i32.const 3))"
            )
        };
        let (begun, done) = (said("6262"), said("6464"));
        let body = format!(
            "(drop (memory.grow (i32.const 1000))) (drop (table.grow (ref.null func) (i32.const 1000000))) {begun} {instruction} {done}"
        );
        let container = engine.start(ContainerConfig::new(image(&module(&body)).await), log.clone()).await;
        assert_eq!(container.expect("started").wait().await, Outcome::Code(0), "{what}");
        let lines = text(&log);
        let at =
            |word: &str| lines.iter().rposition(|line| line == word).unwrap_or_else(|| panic!("{what}: no {word}"));
        let meanwhile = lines[at("bb")..at("dd")].iter().filter(|line| *line == "up").count();
        assert!(meanwhile >= 3, "{what}: {meanwhile}");
    }
    others.kill();
}

/// Says "up", opens the file `pipe` in the first directory, and reads it again and again.
const READS_PIPE: &str = r#"(module
    (import "wasi_snapshot_preview1" "path_open"
        (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
    (memory (export "memory") 1)
    (data (i32.const 0) "pipeup\n")
    (func (export "_start")
        (i32.store (i32.const 512) (i32.const 4))
        (i32.store (i32.const 516) (i32.const 3))
        (drop (call $write (i32.const 1) (i32.const 512) (i32.const 1) (i32.const 520)))
        (if (call $open (i32.const 3) (i32.const 0) (i32.const 0) (i32.const 4) (i32.const 0)
            (i64.const 2) (i64.const 0) (i32.const 0) (i32.const 64)) (then unreachable))
        (loop $again
            (drop (call $read (i32.load (i32.const 64)) (i32.const 512) (i32.const 1) (i32.const 520)))
            (br $again))))"#;

#[tokio::test]
async fn kill_does_not_wait_for_a_read() {
    let directory = tempfile::tempdir().expect("directory");
    let pipe = directory.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    // Held open for writing, so that opening it for reading succeeds and reading it doesn't.
    let _writer = std::fs::File::options().read(true).write(true).open(&pipe).expect("pipe");
    let mut config = ContainerConfig::new(image(READS_PIPE).await);
    config.mounts = vec![Mount::new(directory.path(), "/data", false)];
    let (container, log) = start(config).await;
    assert_eq!(next_line(&log).await, "up");
    container.kill();
    assert_eq!(container.wait().await, Outcome::Signal(9));
}

#[tokio::test]
async fn more_endless_loops_than_threads_leave_room_for_others() {
    let image = image(&announced(LOOP)).await;
    let mut greedy = Vec::new();
    for _ in 0..8 {
        greedy.push(start(ContainerConfig::new(image.clone())).await);
    }
    for (_, log) in &greedy {
        assert_eq!(next_line(log).await, "up");
    }
    for (container, _) in &greedy {
        container.kill();
        assert_eq!(container.wait().await, Outcome::Signal(9));
    }
}

// spec: TERM-03
#[tokio::test]
async fn a_guest_that_handles_no_signals_ends_by_them() {
    for (name, number) in [("SIGTERM", 15), ("SIGINT", 2), ("SIGUSR1", 10), ("SIGRTMIN+3", 37)] {
        let (container, log) = start(ContainerConfig::new(image(&announced(YEAR)).await)).await;
        next_line(&log).await;
        assert_eq!(container.signal("SIGWINCH"), Ok(Delivery::Ignored));
        assert_eq!(container.signal(name), Ok(Delivery::Ends));
        assert_eq!(container.wait().await, Outcome::Signal(number));
        assert_eq!(container.signal(name), Ok(Delivery::Gone));
    }
}

/// A module that waits for signals and exits with the number of the first.
const WAITS: &str = r#"(module
    (import "husk:lifecycle" "signal_next" (func $next (result i32)))
    (import "husk:lifecycle" "signal_wait" (func $wait (param i64) (result i32)))
    (import "husk:lifecycle" "ready" (func $ready (param i32)))
    (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
    (memory (export "memory") 1)
    (func (export "_start")
        (if (call $next) (then unreachable))
        (if (call $wait (i64.const 1)) (then unreachable))
        (call $ready (i32.const 1))
        (call $exit (call $wait (i64.const -1)))))"#;

// spec: TERM-03
#[tokio::test]
async fn a_module_that_imports_the_signals_takes_them_itself() {
    for (name, number) in [("SIGTERM", 15), ("SIGHUP", 1), ("SIGWINCH", 28), ("SIGRTMIN", 34)] {
        let (container, _) = start(ContainerConfig::new(image(WAITS).await)).await;
        assert!(container.handles_signals());
        while container.ready() != Some(true) {
            tokio::task::yield_now().await;
        }
        assert_eq!(container.signal(name), Ok(Delivery::Queued));
        assert_eq!(container.wait().await, Outcome::Code(number));
    }
}

#[tokio::test]
async fn kill_is_not_delivered_but_ends() {
    let (container, _) = start(ContainerConfig::new(image(WAITS).await)).await;
    assert_eq!(container.signal("SIGKILL"), Ok(Delivery::Ends));
    assert_eq!(container.wait().await, Outcome::Signal(9));
}

/// A component that blocks on the pollable of `subscribe` and returns an error if the signal after that isn't TERM.
const SUBSCRIBES: &str = r#"(component
    (import "wasi:io/poll@0.2.12" (instance $poll
        (export "pollable" (type $pollable (sub resource)))
        (export "[method]pollable.block" (func (param "self" (borrow $pollable))))))
    (alias export $poll "pollable" (type $pollable))
    (import "husk:lifecycle/signals@0.1.0" (instance $signals
        (type $names (enum "hup" "int" "quit" "usr1" "usr2" "term" "winch"))
        (export "signal" (type $signal (eq $names)))
        (alias outer 1 $pollable (type $p))
        (export "pollable" (type $pollable (eq $p)))
        (export "wait" (func (result $signal)))
        (export "subscribe" (func (result (own $pollable))))))
    (core func $block (canon lower (func $poll "[method]pollable.block")))
    (core func $wait (canon lower (func $signals "wait")))
    (core func $subscribe (canon lower (func $signals "subscribe")))
    (core module $m
        (import "" "block" (func $block (param i32)))
        (import "" "wait" (func $wait (result i32)))
        (import "" "subscribe" (func $subscribe (result i32)))
        (func (export "run") (result i32)
            (call $block (call $subscribe))
            (i32.ne (call $wait) (i32.const 5))))
    (core instance $i (instantiate $m (with "" (instance
        (export "block" (func $block)) (export "wait" (func $wait)) (export "subscribe" (func $subscribe))))))
    (func $run (result (result)) (canon lift (core func $i "run")))
    (instance (export "wasi:cli/run@0.2.0") (export "run" (func $run))))"#;

// spec: TERM-03
#[tokio::test]
async fn a_component_that_imports_the_signals_takes_them_itself() {
    for (name, code) in [("SIGTERM", 0), ("SIGINT", 1), ("SIGPWR", 0)] {
        let (container, _) = start(ContainerConfig::new(image(SUBSCRIBES).await)).await;
        assert_eq!(container.signal(name), Ok(Delivery::Queued));
        assert_eq!(container.wait().await, Outcome::Code(code), "{name}");
    }
}

#[tokio::test]
async fn a_container_that_nobody_holds_is_killed() {
    let (container, log) = start(ContainerConfig::new(image(&announced(LOOP)).await)).await;
    next_line(&log).await;
    let waiting = {
        let container = container.clone();
        let mut exec = container.exec(&["guest".into()]).await.expect("exec");
        tokio::spawn(async move { exec.wait().await })
    };
    drop(container);
    assert_eq!(waiting.await.expect("task").outcome, Outcome::Signal(9));
}

#[tokio::test]
async fn standard_input_is_empty_unless_it_is_kept_open() {
    let body = format!("{READ} (call $exit (i32.load (i32.const 520)))");
    let (container, log) = start(ContainerConfig::new(image(&announced(&body)).await)).await;
    assert_eq!(container.wait().await, Outcome::Code(0));
    assert_eq!(text(&log), ["up"]);

    let mut config = ContainerConfig::new(image(&announced(&body)).await);
    config.stdin = true;
    let (container, _) = start(config).await;
    container.stdin().expect("stdin").send("hello".into()).await.expect("written");
    assert_eq!(container.wait().await, Outcome::Code(5));
}

/// Who is killed again while what it had is cleared away ends all the same; nobody waits for anybody then.
#[tokio::test(flavor = "multi_thread")]
async fn a_guest_may_be_killed_while_it_is_being_killed() {
    let image = image(&module("(loop $l (call $sleep (i64.const 0)) (br $l))")).await;
    for _ in 0..200 {
        let (container, _) = start(ContainerConfig::new(image.clone())).await;
        let impatient = container.clone();
        let impatient = std::thread::spawn(move || {
            while impatient.outcome().is_none() {
                impatient.kill();
            }
        });
        let ended = tokio::time::timeout(Duration::from_secs(60), container.wait()).await;
        assert_eq!(ended.expect("it ends"), Outcome::Signal(9));
        impatient.join().expect("it ends as well");
    }
}
