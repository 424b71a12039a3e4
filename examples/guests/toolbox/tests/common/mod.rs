//! Runs the toolbox natively: scripts in, output and exit code out.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// What a run of the toolbox left.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) code: Option<i32>,
}

/// Runs the toolbox with these arguments in a directory.
pub(crate) fn toolbox(dir: &Path, args: &[&str], input: &str) -> Run {
    let mut child = Command::new(env!("CARGO_BIN_EXE_toolbox"))
        .args(args)
        .current_dir(dir)
        .env_clear()
        .env("HOSTNAME", "pod-1")
        .env("HOME", "/home/me")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the toolbox is built with the test");
    // A script that reads nothing closes its input early.
    let _ = child.stdin.take().expect("was asked for").write_all(input.as_bytes());
    let output = child.wait_with_output().expect("was started");
    Run {
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        code: output.status.code(),
    }
}

/// Checks a table of scripts: each with its output and its exit code. All that differ are shown at once.
pub(crate) fn check(cases: &[(&str, &str, i32)]) {
    let mut wrong = String::new();
    for (script, stdout, code) in cases {
        let dir = tempfile::tempdir().expect("temporary directories can be made");
        let run = toolbox(dir.path(), &["sh", "-c", script], "");
        if run.stdout != *stdout || run.code != Some(*code) {
            wrong.push_str(&format!("\n--- {script}\nexpected {stdout:?} and {code}, got {run:?}\n"));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
