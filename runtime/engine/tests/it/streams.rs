//! Processes with streams, and readers of a container's own.

use bytes::Bytes;
use husk_core::io::Outcome;
use husk_engine::{Container, ContainerConfig, Detached, Log, Streams};
use tokio::sync::mpsc;

use crate::support::{guest, image, module, next_line, start, text};

/// A shell that waits.
async fn shell(script: &str) -> (Container, Log) {
    let mut config = ContainerConfig::new(guest("toolbox"));
    config.command = ["sh", "-c", script].map(String::from).to_vec();
    start(config).await
}

fn command(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}

async fn all(mut pieces: mpsc::Receiver<Bytes>) -> Vec<u8> {
    let mut bytes = Vec::new();
    while let Some(piece) = pieces.recv().await {
        bytes.extend_from_slice(&piece);
    }
    bytes
}

/// Reads until it says that.
async fn until(pieces: &mut mpsc::Receiver<Bytes>, wanted: &str) -> String {
    let mut seen = String::new();
    while !seen.contains(wanted) {
        let piece = pieces.recv().await.unwrap_or_else(|| panic!("{wanted:?} in {seen:?}"));
        seen.push_str(&String::from_utf8_lossy(&piece));
    }
    seen
}

#[tokio::test]
async fn outputs_are_apart_and_the_input_has_an_end() {
    let (container, log) = shell("sleep 86400").await;
    let (keys, stdin) = mpsc::channel(1);
    let (stdout, out) = mpsc::channel(1);
    let (stderr, err) = mpsc::channel(1);
    let streams = Streams { stdin: Some(stdin), stdout: Some(stdout), stderr: Some(stderr), tty: false };
    let script = "while read line; do echo \"got $line\"; done; echo done >&2; exit 7";
    let mut process = container.spawn(&command(&["sh", "-c", script]), streams).await.expect("spawned");
    let typing = tokio::spawn(async move {
        for piece in ["o", "ne\ntw", "o\n"] {
            keys.send(piece.into()).await.expect("it reads");
        }
    });
    let (out, err) = tokio::join!(all(out), all(err));
    assert_eq!((out, err), (b"got one\ngot two\n".to_vec(), b"done\n".to_vec()));
    assert_eq!(process.wait().await, (Outcome::Code(7), None));
    typing.await.expect("typed");
    assert!(log.lines().is_empty());
}

/// Writes a hundred times 60,000 bytes.
const FLOOD: &str = "(local $n i32)
    (loop
        (call $write (i32.const 1) (i32.const 0) (i32.const 60000))
        (local.set $n (i32.add (local.get $n) (i32.const 1)))
        (br_if 0 (i32.lt_u (local.get $n) (i32.const 100))))";

#[tokio::test]
async fn a_guest_waits_for_who_reads() {
    let (container, _) =
        start(ContainerConfig::new(image(&module(&format!("{FLOOD} (call $sleep (i64.const 86400))"))).await)).await;
    let flood = async || {
        let (stdout, pieces) = mpsc::channel(1);
        let full = stdout.downgrade();
        let streams = Streams { stdout: Some(stdout), ..Streams::default() };
        let process = container.spawn(&command(&["flood"]), streams).await.expect("spawned");
        while full.upgrade().expect("it runs").capacity() > 0 {
            tokio::task::yield_now().await;
        }
        (process, pieces)
    };
    let (mut process, mut pieces) = flood().await;
    let mut read = 0;
    while read < 6_000_000 {
        read += pieces.recv().await.expect("more").len();
    }
    process.kill();
    assert_eq!(process.wait().await.0, Outcome::Signal(9));
    assert_eq!(read + all(pieces).await.len(), 6_000_000, "nothing is lost or said twice");

    let (mut process, pieces) = flood().await;
    process.kill();
    process.wait().await;
    let left = all(pieces).await.len();
    assert!(left < 128 * 1024, "{left} bytes were kept for nobody");
}

#[tokio::test]
async fn a_process_ends_when_nobody_holds_it() {
    let (container, log) = shell("echo up; sleep 86400").await;
    next_line(&log).await;
    let before = container.memory().used;
    let (stdout, mut pieces) = mpsc::channel(1);
    let streams = Streams { stdout: Some(stdout), ..Streams::default() };
    let process = container.spawn(&command(&["sh", "-c", "echo up; sleep 86400"]), streams).await.expect("spawned");
    assert_eq!(pieces.recv().await.expect("a word"), "up\n");
    assert!(container.memory().used > before);
    drop(process);
    assert_eq!(pieces.recv().await, None);
    while container.memory().used > before {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_terminal_shows_keys_and_makes_lines_of_them() {
    let (container, _) = shell("sleep 86400").await;
    let (keys, stdin) = mpsc::channel(1);
    let (stdout, mut screen) = mpsc::channel(64);
    let streams = Streams { stdin: Some(stdin), stdout: Some(stdout), stderr: None, tty: true };
    let script = "echo hello >&2; cat; echo bye";
    let mut process = container.spawn(&command(&["sh", "-c", script]), streams).await.expect("spawned");
    assert_eq!(until(&mut screen, "\n").await, "hello\r\n");
    keys.send("onx".into()).await.expect("it reads");
    assert_eq!(until(&mut screen, "x").await, "onx");
    keys.send("\x7fe\r".into()).await.expect("it reads");
    assert_eq!(until(&mut screen, "one\r\n").await, "\x08 \x08e\r\none\r\n");
    keys.send("\x04".into()).await.expect("it reads");
    let rest = String::from_utf8(all(screen).await).expect("text");
    assert_eq!(rest, "bye\r\n");
    assert_eq!(process.wait().await.0, Outcome::Code(0));
}

#[tokio::test]
async fn a_terminal_interrupts_what_runs_in_it() {
    let forever = module("(call $sleep (i64.const 86400))");
    let (container, _) = start(ContainerConfig::new(image(&forever).await)).await;
    let (keys, stdin) = mpsc::channel(1);
    let (stdout, screen) = mpsc::channel(64);
    let streams = Streams { stdin: Some(stdin), stdout: Some(stdout), stderr: None, tty: true };
    let mut process = container.spawn(&command(&["sleep"]), streams).await.expect("spawned");
    keys.send("\x03".into()).await.expect("it reads");
    assert_eq!(process.wait().await.0, Outcome::Signal(2));
    assert_eq!(all(screen).await, b"^C\r\n");
    assert_eq!(container.outcome(), None);
}

#[tokio::test]
async fn who_is_attached_has_what_comes_from_then_on() {
    let mut config = ContainerConfig::new(guest("toolbox"));
    let script =
        "echo before; read first; printf 'prompt> '; read second; echo \"$first, $second\" >&2; read third || echo end";
    config.command = command(&["sh", "-c", script]);
    config.stdin = true;
    let (container, log) = start(config).await;
    let attach = |stdin: Option<mpsc::Receiver<Bytes>>, ends_input| {
        let ((stdout, out), (stderr, err)) = (mpsc::channel(16), mpsc::channel(16));
        let streams = Streams { stdin, stdout: Some(stdout), stderr: Some(stderr), tty: false };
        (container.attach(streams, ends_input), out, err)
    };
    assert_eq!(next_line(&log).await, "before");
    let (keys, stdin) = mpsc::channel(1);
    let (attached, mut out, _) = attach(Some(stdin), false);
    keys.send("one\n".into()).await.expect("it reads");
    // Not a whole line, so the log doesn't have it yet.
    assert_eq!(until(&mut out, "> ").await, "prompt> ");
    drop((keys, attached));
    assert_eq!(container.outcome(), None, "it goes on, and its input is open");

    let (keys, stdin) = mpsc::channel(1);
    let (mut attached, out, err) = attach(Some(stdin), true);
    keys.send("two\n".into()).await.expect("it reads");
    drop(keys);
    let (out, err) = tokio::join!(all(out), all(err));
    assert_eq!((out, err), (b"end\n".to_vec(), b"one, two\n".to_vec()));
    assert_eq!(attached.wait().await, Detached::Ended);
    assert_eq!(text(&log), ["before", "one, two", "prompt> end"]);
    let (mut late, out, _) = attach(None, false);
    assert_eq!(late.wait().await, Detached::Ended);
    assert!(all(out).await.is_empty());
}

#[tokio::test]
async fn a_shell_at_a_terminal_answers_line_by_line() {
    let (container, log) = shell("echo up; sleep 86400").await;
    next_line(&log).await;
    let (keys, stdin) = mpsc::channel(1);
    let (stdout, mut screen) = mpsc::channel(64);
    let streams = Streams { stdin: Some(stdin), stdout: Some(stdout), stderr: None, tty: true };
    let mut process = container.spawn(&command(&["sh"]), streams).await.expect("spawned");
    until(&mut screen, "$ ").await;
    let table = [
        ("echo $((1 + 2))\r", "\r\n3\r\n$ "),
        ("if test -t 0; then\r", "> "),
        ("echo yes; fi\r", "\r\nyes\r\n$ "),
        ("fi; echo never\r", "syntax error"),
        ("nosuch\r", "not found\r\n$ "),
        ("sleep 86400\r\x03", "^C\r\n$ "),
    ];
    for (typed, shown) in table {
        keys.send(typed.into()).await.expect("it reads");
        until(&mut screen, shown).await;
    }
    keys.send("exit 4\r".into()).await.expect("it reads");
    assert_eq!(process.wait().await.0, Outcome::Code(4));
}
