//! Beside the real `kubectl`: the same question to the same agent has the same answer, to the letter.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;

use tempfile::TempDir;

use crate::device::{Device, Said};
use crate::verbs::{SETTINGS, WEB};

/// So often both are asked again, because ages go on.
const ATTEMPTS: usize = 5;

#[test]
fn the_words_are_those_of_kubectl() {
    let device = Device::start();
    let Some(kubectl) = Kubectl::on(&device) else { return };
    device.apply(WEB);
    device.apply(SETTINGS);
    device.ready("web");
    for line in [
        "get pods",
        "get pods -o wide --show-labels",
        "get pods -A -L app,tier",
        "get all -A",
        "get po,cm",
        "get po web missing",
        "get pod/web cm/settings",
        "get pods -o name",
        "get po,cm -o json",
        "get pods -l app=other",
        "get pods -n elsewhere",
        "get gadgets",
        "get node device -o wide",
        "get pods --field-selector status.phase=Running --no-headers",
        "get pods -o custom-columns=A:.metadata.name,B:.status.podIP,C:.missing",
        "get pods -o jsonpath={range.items[*]}{.metadata.name}{\"\\n\"}{.spec.containers[?(@.name==\"app\")].image}{end}",
        "get events -n elsewhere",
        "describe pod web --show-events=false",
        "describe pod nobody",
        "logs web",
        "logs web -c helper --tail=1",
        "logs web --all-containers --prefix",
        "logs web -c nobody",
        "logs nobody",
        "logs web -p -c app",
        "events -n elsewhere",
        "wait --for=condition=Ready pod/web",
        "wait --for=condition=Ready pod/nobody",
        "wait --for=delete pod/nobody",
        "wait --for=condition=Ready=False pod/web --timeout=1ms",
        "delete pods",
        "delete pod nobody",
        "delete pods --all -n elsewhere",
        "delete pod web --dry-run=server",
    ] {
        let arguments: Vec<&str> = line.split(' ').collect();
        let what = |said: Said| (said.code, said.out, said.err);
        let mut last = None;
        let agree = (0..ATTEMPTS).any(|_| {
            let (ours, theirs) = (what(device.husk(&arguments)), what(kubectl.run(&arguments)));
            let is_same = ours == theirs;
            last = Some((ours, theirs));
            is_same
        });
        assert!(agree, "{line}\n{last:#?}");
    }
}

#[test]
fn a_port_of_the_agent_is_all_that_it_needs() {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port");
    let device = Device::with(&["--listen", &free.to_string()]);
    let Some(kubectl) = Kubectl::at(free) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("web.yaml");
    std::fs::write(&file, WEB).expect("written");
    let file = file.display().to_string();
    assert_eq!(kubectl.run(&["apply", "-f", &file]).ok(), "pod/web created\n");
    assert_eq!(
        kubectl.run(&["wait", "--for=condition=Ready", "pod/web", "--timeout=60s"]).ok(),
        "pod/web condition met\n"
    );
    assert_eq!(kubectl.run(&["logs", "web", "-c", "app"]).ok(), "first\nsecond\n");
    let said = kubectl.run(&["exec", "web", "-c", "app", "--", "sh", "-c", "echo $NAME; exit 5"]);
    assert_eq!((said.code, said.out.as_str()), (5, "web\n"), "{said:?}");
    assert_eq!(device.husk(&["get", "pods", "-o", "name"]).ok(), "pod/web\n", "it is the same API");
    assert_eq!(kubectl.run(&["delete", "-f", &file]).code, 0);
    assert_eq!(device.husk(&["get", "pods", "-o", "name"]).ok(), "");
}

/// A real `kubectl` with a cache of its own.
pub(crate) struct Kubectl {
    program: PathBuf,
    address: SocketAddr,
    home: TempDir,
}

impl Kubectl {
    /// On the same socket; none if there is none on this machine.
    pub(crate) fn on(device: &Device) -> Option<Self> {
        Self::at(door_to(device.socket()))
    }

    /// On a TCP port; none if there is none on this machine.
    fn at(address: SocketAddr) -> Option<Self> {
        Some(Self { program: newest_kubectl()?, address, home: tempfile::tempdir().expect("a folder") })
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Said {
        Said::of(self.command(arguments).output().expect("kubectl starts"))
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .env("HOME", self.home.path())
            .env("KUBECONFIG", self.home.path().join("none"))
            .args(["--server", &format!("http://{}", self.address), "--cache-dir"])
            .arg(self.home.path().join("cache"))
            .args(arguments)
            .stdin(Stdio::null());
        command
    }
}

/// The newest version that is installed here: beside the one on the path there may be others.
fn newest_kubectl() -> Option<PathBuf> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&folders).map(|folder| folder.join("kubectl")).find(|path| path.is_file());
    let Some(found) = found.and_then(|path| path.canonicalize().ok()) else {
        eprintln!("SKIPPED: kubectl is not installed, so that nothing is known about how it says it");
        return None;
    };
    let beside = found.parent().and_then(|folder| folder.read_dir().ok()).into_iter().flatten().flatten();
    let is_version =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("kubectl.1."));
    Some(beside.map(|entry| entry.path()).filter(is_version).max().unwrap_or(found))
}

/// A TCP port that leads to a Unix socket: `kubectl` knows no other way. It is there as long as the test process.
fn door_to(socket: PathBuf) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    thread::spawn(move || {
        for outside in listener.incoming().map_while(Result::ok) {
            let Ok(inside) = UnixStream::connect(&socket) else { return };
            let (from_inside, to_outside) = (inside.try_clone().expect("a copy"), outside.try_clone().expect("a copy"));
            thread::spawn(move || carry(outside, inside, |inside: &UnixStream| inside.shutdown(Shutdown::Write)));
            thread::spawn(move || {
                carry(from_inside, to_outside, |outside: &TcpStream| outside.shutdown(Shutdown::Write))
            });
        }
    });
    address
}

fn carry<R: Read, W: Write>(mut from: R, mut to: W, end: impl FnOnce(&W) -> std::io::Result<()>) {
    // An end of either side is the end of it.
    let _ = std::io::copy(&mut from, &mut to);
    let _ = end(&to);
}
