//! An agent with a device of its own, and what talks to it.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::husk::command;

/// Two minutes of tries: nothing takes so long, and a test that waits longer is stuck.
const TRIES: u32 = 6000;
const PAUSE: Duration = Duration::from_millis(20);

/// An agent that runs until this is dropped.
pub(crate) struct Device {
    agent: Child,
    folder: TempDir,
}

/// What a command said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Said {
    pub(crate) fn of(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Self { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
    }

    /// What it wrote; it must have succeeded.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.code, 0, "{self:?}");
        self.out
    }

    /// What it complained about; it must have failed.
    #[track_caller]
    pub(crate) fn failed(self) -> String {
        assert_eq!(self.code, 1, "{self:?}");
        self.err
    }
}

impl Device {
    /// Starts an agent with nothing on it.
    pub(crate) fn start() -> Self {
        Self::with(&[])
    }

    /// The same with more flags.
    pub(crate) fn with(more: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let device = Self { agent: agent_in(folder.path(), more), folder };
        device.answers();
        device
    }

    /// As after a power cut.
    pub(crate) fn kill_and_start_again(&mut self) {
        self.agent.kill().expect("it is killed");
        self.agent.wait().expect("it ends");
        self.agent = agent_in(self.folder.path(), &[]);
        self.answers();
    }

    fn answers(&self) {
        until("the agent answers", || (self.husk(&["get", "nodes"]).code == 0).then_some(()));
    }

    /// A command that talks to it.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = command();
        command.args(arguments).env("HUSK_SOCKET", socket_in(self.folder.path())).stdin(Stdio::null());
        command
    }

    /// Runs a command to its end.
    pub(crate) fn husk(&self, arguments: &[&str]) -> Said {
        Said::of(self.command(arguments).output().expect("husk starts"))
    }

    /// The same with something to read.
    pub(crate) fn with_input(&self, arguments: &[&str], input: &str) -> Said {
        let mut command = self.command(arguments);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("husk starts");
        // Who doesn't read to the end has its reasons.
        let _ = child.stdin.take().expect("piped").write_all(input.as_bytes());
        Said::of(child.wait_with_output().expect("it ends"))
    }

    /// An object as JSON.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let out = self.husk(&[arguments, &["-o", "json"]].concat()).ok();
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("no JSON: {error}: {out}"))
    }

    /// Applies a manifest.
    #[track_caller]
    pub(crate) fn apply(&self, manifest: &str) {
        self.with_input(&["apply", "-f", "-"], manifest).ok();
    }

    /// Waits until a pod is ready.
    #[track_caller]
    pub(crate) fn ready(&self, pod: &str) {
        let arguments = ["wait", "--for=condition=Ready", &format!("pod/{pod}"), "--timeout=60s"];
        assert_eq!(self.husk(&arguments).ok(), format!("pod/{pod} condition met\n"));
    }

    /// Where it listens.
    pub(crate) fn socket(&self) -> PathBuf {
        socket_in(self.folder.path())
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        let id = self.agent.id().to_string();
        let _ = Command::new("kill").arg(&id).status();
        for _ in 0..TRIES {
            if self.agent.try_wait().is_ok_and(|status| status.is_some()) {
                return;
            }
            thread::sleep(PAUSE);
        }
        let _ = self.agent.kill();
        let _ = self.agent.wait();
    }
}

fn agent_in(folder: &Path, more: &[&str]) -> Child {
    let mut agent = command();
    agent.args(["agent", "--node-name", "device", "--data-dir"]).arg(folder.join("data"));
    agent.arg("--socket").arg(socket_in(folder)).args(more).env("HUSK_LOG", "warn").stdin(Stdio::null());
    agent.spawn().expect("husk starts")
}

fn socket_in(folder: &Path) -> PathBuf {
    folder.join("husk.sock")
}

/// Asks until there is an answer.
#[track_caller]
pub(crate) fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    for _ in 0..TRIES {
        if let Some(answer) = ask() {
            return answer;
        }
        thread::sleep(PAUSE);
    }
    panic!("it never came: {what}");
}

/// Reads lines until one has that in it, for as long as [`until`] waits.
#[track_caller]
pub(crate) fn line_with(child: &mut Child, wanted: &[&str]) -> Vec<String> {
    let output = BufReader::new(child.stdout.take().expect("piped"));
    let (sender, lines) = channel();
    // Nothing else can wait for a pipe and a clock.
    thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    let deadline = Instant::now() + PAUSE * TRIES;
    let mut seen = Vec::new();
    for wanted in wanted {
        loop {
            let line = lines.recv_timeout(deadline.saturating_duration_since(Instant::now()));
            let line = line.unwrap_or_else(|error| panic!("{error}: no line with {wanted:?}: {seen:#?}"));
            let is_it = line.contains(wanted);
            seen.push(line);
            if is_it {
                break;
            }
        }
    }
    seen
}
