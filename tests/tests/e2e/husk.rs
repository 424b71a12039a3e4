//! Starts the binary and reads what it says.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Nothing takes so long; a test that waits longer is stuck.
const STUCK: Duration = Duration::from_secs(180);

/// Exit codes of `husk`.
pub(crate) const SUCCEEDED: i32 = 0;
pub(crate) const FAILED: i32 = 1;
pub(crate) const BAD_INPUT: i32 = 2;
pub(crate) const TIMED_OUT: i32 = 124;

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ is in the repository").to_owned()
}

/// A manifest of examples/pods.
pub(crate) fn example(name: &str) -> PathBuf {
    root().join("examples/pods").join(name)
}

/// A manifest of the seed documents.
pub(crate) fn seed(name: &str) -> PathBuf {
    root().join("tests/manifests").join(name)
}

/// The folder of the build that this test belongs to.
fn build_folder() -> PathBuf {
    let exe = std::env::current_exe().expect("tests have a path");
    exe.parent().and_then(Path::parent).expect("tests are in BUILD/deps").to_owned()
}

/// A command of the binary that was built with the tests.
pub(crate) fn command() -> Command {
    let folder = build_folder();
    let husk = folder.join("husk");
    assert!(husk.exists(), "{} is missing: run `cargo build -p husk` first, or `cargo xtask test`", husk.display());
    let mut command = Command::new(husk);
    // One cache for all tests: the guests are compiled once.
    command.env("HUSK_CACHE", folder.join("e2e-cache")).env("NO_COLOR", "1");
    command
}

/// Runs a command to its end.
pub(crate) fn output(args: &[&str]) -> Output {
    command().args(args).stdin(Stdio::null()).output().expect("husk starts")
}

/// A run that is under way.
pub(crate) struct Run {
    child: Child,
    objects: Receiver<Value>,
    seen: Vec<Value>,
    begun: Instant,
    what: String,
}

/// A run that is over.
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) seen: Vec<Value>,
    pub(crate) stderr: String,
}

/// Runs a manifest to its end.
pub(crate) fn run(manifest: &Path, more: &[&str]) -> Ended {
    start(manifest, more).finish()
}

/// Runs a manifest that is written here.
pub(crate) fn run_text(manifest: &str, more: &[&str]) -> Ended {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("pod.yaml");
    std::fs::write(&path, manifest).expect("written");
    run(&path, more)
}

/// Starts a manifest.
pub(crate) fn start(manifest: &Path, more: &[&str]) -> Run {
    let mut command = command();
    command.arg("run").arg(manifest).args(["-o", "json"]).args(more);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("husk starts");
    let stdout = child.stdout.take().expect("piped");
    let (sender, objects) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            let object = serde_json::from_str(&line).unwrap_or_else(|error| panic!("no JSON: {error}: {line}"));
            if sender.send(object).is_err() {
                return;
            }
        }
    });
    Run { child, objects, seen: Vec::new(), begun: Instant::now(), what: manifest.display().to_string() }
}

impl Run {
    /// Waits for an object.
    pub(crate) fn wait_for(&mut self, wanted: impl Fn(&Value) -> bool) -> &Value {
        loop {
            match self.next() {
                Some(object) => {
                    let is_wanted = wanted(&object);
                    self.seen.push(object);
                    if is_wanted {
                        return self.seen.last().expect("pushed");
                    }
                }
                None => panic!("{}: ended without it: {:#?}", self.what, self.seen),
            }
        }
    }

    /// Waits until all that was seen so far is as wanted.
    pub(crate) fn wait_until(&mut self, wanted: impl Fn(&[Value]) -> bool) {
        while !wanted(&self.seen) {
            match self.next() {
                Some(object) => self.seen.push(object),
                None => panic!("{}: ended without it: {:#?}", self.what, self.seen),
            }
        }
    }

    /// Waits for a line in a container's log.
    pub(crate) fn wait_for_log(&mut self, container: &str, text: &str) {
        self.wait_for(|o| o["type"] == "log" && o["container"] == container && o["text"] == text);
    }

    /// Presses Ctrl-C.
    pub(crate) fn interrupt(&mut self) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-INT", &pid]).status().expect("there is a kill command");
        assert!(sent.success());
    }

    /// Waits for the end.
    pub(crate) fn finish(mut self) -> Ended {
        while let Some(object) = self.next() {
            self.seen.push(object);
        }
        let status = self.child.wait().expect("a child");
        let mut stderr = String::new();
        let pipe = self.child.stderr.as_mut().expect("piped");
        pipe.read_to_string(&mut stderr).expect("text");
        Ended { code: status.code(), seen: std::mem::take(&mut self.seen), stderr }
    }

    fn next(&mut self) -> Option<Value> {
        let left = STUCK.saturating_sub(self.begun.elapsed());
        match self.objects.recv_timeout(left) {
            Ok(object) => Some(object),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => {
                let _ = self.child.kill();
                panic!("{}: stuck after {:#?}", self.what, self.seen.iter().rev().take(20).collect::<Vec<_>>());
            }
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Ended {
    /// The lines of a container's log.
    pub(crate) fn log(&self, container: &str) -> Vec<&str> {
        let lines = self.seen.iter().filter(|o| o["type"] == "log" && o["container"] == container);
        lines.filter_map(|o| o["text"].as_str()).collect()
    }

    /// Where something is in the order of all that happened.
    pub(crate) fn place(&self, wanted: impl Fn(&Value) -> bool) -> usize {
        self.seen.iter().position(wanted).unwrap_or_else(|| panic!("it never happened: {:#?}", self.seen))
    }

    /// Where an event of a container is.
    pub(crate) fn event(&self, container: &str, reason: &str) -> usize {
        self.place(|o| o["type"] == "event" && o["container"] == container && o["reason"] == reason)
    }

    /// Where a container is first seen to have ended, in its state or in its last state.
    pub(crate) fn end(&self, container: &str) -> usize {
        self.place(|o| !ended(o, container).is_null())
    }

    /// Reasons of the events of a container, in order.
    pub(crate) fn reasons(&self, container: &str) -> Vec<&str> {
        let events = self.seen.iter().filter(|o| o["type"] == "event" && o["container"] == container);
        events.filter_map(|o| o["reason"].as_str()).collect()
    }

    /// The pod's statuses, in order.
    pub(crate) fn statuses(&self) -> impl Iterator<Item = &Value> {
        self.seen.iter().filter(|o| o["type"] == "status").map(|o| &o["status"])
    }

    /// The pod's phases, each once.
    pub(crate) fn phases(&self) -> Vec<&str> {
        let mut phases: Vec<&str> = self.statuses().filter_map(|status| status["phase"].as_str()).collect();
        phases.dedup();
        phases
    }

    /// The last status.
    pub(crate) fn status(&self) -> &Value {
        self.statuses().last().unwrap_or_else(|| panic!("no status: {}", self.stderr))
    }

    /// The last status of a container.
    pub(crate) fn container(&self, name: &str) -> &Value {
        container(self.status(), name)
    }

    /// How a container ended at last.
    pub(crate) fn terminated(&self, name: &str) -> &Value {
        &self.container(name)["state"]["terminated"]
    }
}

/// Status of a container in a pod's status.
pub(crate) fn container<'a>(status: &'a Value, name: &str) -> &'a Value {
    let lists = ["initContainerStatuses", "containerStatuses"];
    let mut all = lists.iter().filter_map(|list| status[list].as_array()).flatten();
    all.find(|container| container["name"] == name).unwrap_or(&Value::Null)
}

/// How a container ended, if it did at the time of this object.
pub(crate) fn ended<'a>(object: &'a Value, name: &str) -> &'a Value {
    let container = container(&object["status"], name);
    let now = &container["state"]["terminated"];
    if now.is_null() { &container["lastState"]["terminated"] } else { now }
}
