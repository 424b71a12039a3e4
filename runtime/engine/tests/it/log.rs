//! Output and its bounds.

use husk_engine::{ContainerConfig, Log, LogConfig, Stream};

use crate::support::{image, start, text};

/// Writes "out" and "err" to their streams and "no end" without a line feed.
const WRITES: &str = r#"(module
    (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
    (memory (export "memory") 1)
    (data (i32.const 0) "out\nerr\nno end")
    (func $write (param $fd i32) (param $at i32) (param $length i32)
        (i32.store (i32.const 512) (local.get $at))
        (i32.store (i32.const 516) (local.get $length))
        (drop (call $fd_write (local.get $fd) (i32.const 512) (i32.const 1) (i32.const 520))))
    (func (export "_start")
        (call $write (i32.const 1) (i32.const 0) (i32.const 4))
        (call $write (i32.const 2) (i32.const 4) (i32.const 4))
        (call $write (i32.const 1) (i32.const 8) (i32.const 6))))"#;

#[tokio::test]
async fn output_is_kept_with_stream_and_time() {
    let before = std::time::SystemTime::now();
    let (container, log) = start(ContainerConfig::new(image(WRITES).await)).await;
    container.wait().await;
    let lines = log.lines();
    let seen: Vec<_> = lines.iter().map(|line| (&*line.text, line.stream, line.partial)).collect();
    assert_eq!(
        seen,
        [("out", Stream::Stdout, false), ("err", Stream::Stderr, false), ("no end", Stream::Stdout, true)]
    );
    assert!(lines.iter().all(|line| line.time >= before));
}

#[tokio::test]
async fn the_oldest_lines_go_first() {
    let log = Log::new(LogConfig { max_bytes: 100, max_lines: 3, max_line: 40 });
    for line in 0..10 {
        log.write(Stream::Stdout, format!("line {line}\n").as_bytes());
    }
    assert_eq!(text(&log), ["line 7", "line 8", "line 9"]);
    assert_eq!(log.dropped(), 7);
    log.write(Stream::Stdout, &[b"x".repeat(35), b"\n".to_vec()].concat().repeat(3));
    assert_eq!(log.lines().len(), 2, "three times 35 bytes are more than 100");
}

#[tokio::test]
async fn a_long_line_is_cut_between_characters() {
    let log = Log::new(LogConfig { max_line: 5, ..LogConfig::default() });
    log.write(Stream::Stdout, "aaaaéb\n".as_bytes());
    let lines = log.lines();
    let seen: Vec<_> = lines.iter().map(|line| (&*line.text, line.partial)).collect();
    assert_eq!(seen, [("aaaa", true), ("éb", false)]);
}

#[tokio::test]
async fn a_follower_sees_each_line_once_and_ends_with_the_log() {
    let log = Log::new(LogConfig { max_lines: 2, ..LogConfig::default() });
    log.write(Stream::Stdout, b"1\n2\n3\n");
    let mut follower = log.follow();
    let writer = log.clone();
    let writing = tokio::spawn(async move {
        writer.write(Stream::Stderr, b"4\n");
        writer.write(Stream::Stdout, b"5");
        writer.close();
    });
    let mut seen = Vec::new();
    while let Some(line) = follower.next().await {
        seen.push(line.text.to_string());
    }
    writing.await.expect("written");
    assert_eq!(follower.missed() as usize + seen.len(), 5, "{seen:?}");
    assert_eq!(seen.last().map(String::as_str), Some("5"));
}
