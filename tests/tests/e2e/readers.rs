//! Those who read what `husk run` writes: some stop in the middle, some are slow, and guests write what they like.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;

use crate::husk::{FAILED, command, output};

fn pod(script: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: talker}}\nspec:\n  restartPolicy: Never\n  containers:\n  \
         - name: app\n    image: busybox\n    command: [sh, -c, {script:?}]\n"
    )
}

fn written(folder: &tempfile::TempDir, script: &str) -> String {
    let path = folder.path().join("pod.yaml");
    std::fs::write(&path, pod(script)).expect("written");
    path.display().to_string()
}

#[test]
fn a_pod_ends_when_nobody_reads_any_more() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = written(&folder, "while true; do echo tick; sleep 1; done");
    for format in ["lines", "json"] {
        let mut run = command();
        run.args(["run", &path, "-o", format]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = run.spawn().expect("husk starts");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        assert!(lines.any(|line| line.is_ok_and(|line| line.contains("tick"))));
        drop(lines);
        let ended = child.wait_with_output().expect("a child");
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(FAILED), "{said}");
        assert!(said.contains("nobody reads"), "{said}");
    }
}

#[test]
fn other_verbs_take_a_closed_pipe() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = written(&folder, "exit 0");
    for args in [&["check", &path][..], &["simulate", &path], &["completions", "bash"]] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let ended = command().args(args).stdout(writer).stderr(Stdio::piped()).output().expect("husk starts");
        assert_eq!(ended.status.code(), Some(0), "{args:?}: {}", String::from_utf8_lossy(&ended.stderr));
    }
}

#[test]
fn a_reader_who_does_not_read_keeps_nobody_from_stopping() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = written(&folder, "while true; do echo a line that fills the pipe of somebody who does not read; done");
    let mut run = command();
    run.args(["run", &path, "-o", "json", "--timeout", "4s"]);
    let mut child = run.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("husk starts");
    // The test is stuck here if it is not so.
    let status = child.wait().expect("a child");
    assert_eq!(status.code(), Some(crate::husk::TIMED_OUT));
    let mut rest = String::new();
    child.stdout.take().expect("piped").read_to_string(&mut rest).expect("text");
    assert!(rest.contains("fills the pipe"));
}

#[test]
fn lines_that_are_lost_are_counted() {
    const LINES: usize = 40_000;
    let folder = tempfile::tempdir().expect("a folder");
    let path = written(&folder, &format!("seq {LINES}"));
    let mut run = command();
    run.args(["run", &path, "-o", "json"]);
    let mut child = run.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("husk starts");
    // The guest is ahead of its reader by more than is kept. Should it be slow, less is lost, and the sum is the same.
    std::thread::sleep(Duration::from_secs(4));
    let lines = BufReader::new(child.stdout.take().expect("piped")).lines().map_while(Result::ok);
    let seen: Vec<Value> = lines.map(|line| serde_json::from_str(&line).expect("JSON")).collect();
    assert!(child.wait().expect("a child").success());
    let shown = seen.iter().filter(|o| o["type"] == "log").count();
    let lost = seen.iter().filter(|o| o["type"] == "note" && o["container"] == "app");
    let lost: usize = lost.filter_map(|o| o["text"].as_str()?.split(' ').next()?.parse::<usize>().ok()).sum();
    assert_eq!(shown + lost, LINES);
    assert!(seen.iter().any(|o| o["type"] == "gone"));
}

#[test]
fn guests_write_nothing_that_moves_the_cursor() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = written(&folder, "printf '\\033[2Jwiped\\n'; exit 1");
    let ended = output(&["run", &path, "-o", "lines"]);
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(said.contains("| wiped") && !said.contains('\x1b'), "{said}");
}
