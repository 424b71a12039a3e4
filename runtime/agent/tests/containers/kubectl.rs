//! The real `kubectl`.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use tempfile::TempDir;
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};

use crate::world::{World, within};

/// One version of `kubectl` against one server, with a cache of its own.
pub(crate) struct Kubectl {
    program: PathBuf,
    server: String,
    home: TempDir,
}

/// What it said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Said {
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.code, 0, "{self:?}");
        self.out
    }

    #[track_caller]
    pub(crate) fn failed(self) -> String {
        assert_eq!(self.code, 1, "{self:?}");
        self.err
    }
}

impl Kubectl {
    /// The oldest and the newest version here that speak WebSocket.
    pub(crate) fn versions() -> Vec<PathBuf> {
        let folders = std::env::var_os("PATH").unwrap_or_default();
        let found = std::env::split_paths(&folders).map(|folder| folder.join("kubectl")).find(|path| path.is_file());
        let Some(found) = found.and_then(|path| path.canonicalize().ok()) else {
            eprintln!("SKIPPED: kubectl is not installed, so that nothing is known about real clients");
            return Vec::new();
        };
        let beside = found.parent().and_then(|folder| folder.read_dir().ok()).into_iter().flatten().flatten();
        let minor = |path: &Path| path.file_name()?.to_str()?.strip_prefix("kubectl.1.")?.parse::<u32>().ok();
        let mut versions: Vec<(u32, PathBuf)> = beside
            .filter_map(|entry| Some((minor(&entry.path())?, entry.path())))
            .filter(|(minor, _)| *minor >= 30)
            .collect();
        versions.sort();
        match (versions.first(), versions.last()) {
            (Some((oldest, first)), Some((newest, last))) if oldest < newest => vec![first.clone(), last.clone()],
            (Some((_, only)), _) => vec![only.clone()],
            _ => vec![found],
        }
    }

    pub(crate) fn new(program: &Path, world: &World) -> Self {
        let server = format!("http://{}", world.address);
        Self { program: program.into(), server, home: tempfile::tempdir().expect("a folder") }
    }

    pub(crate) fn start(&self, arguments: &[&str]) -> Child {
        self.spawn(Command::new(&self.program).args(self.server()).args(arguments))
    }

    /// At a terminal, which `script` makes; what it shows is the output.
    pub(crate) fn start_at_terminal(&self, arguments: &str) -> Child {
        let line = format!("{} {} {arguments}", self.program.display(), self.server().join(" "));
        self.spawn(Command::new("script").args(["-qec", &line, "/dev/null"]))
    }

    fn server(&self) -> [String; 2] {
        [format!("--server={}", self.server), format!("--cache-dir={}", self.home.path().join("cache").display())]
    }

    fn spawn(&self, command: &mut Command) -> Child {
        command
            .env("HOME", self.home.path())
            .env("KUBECONFIG", self.home.path().join("none"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("kubectl starts")
    }

    pub(crate) async fn run(&self, arguments: &[&str]) -> Said {
        self.with_input(arguments, "").await
    }

    pub(crate) async fn with_input(&self, arguments: &[&str], input: &str) -> Said {
        let mut child = self.start(arguments);
        let mut stdin = child.stdin.take().expect("a pipe");
        // It may end before it has read that.
        let _ = stdin.write_all(input.as_bytes()).await;
        drop(stdin);
        said(within("kubectl ends", child.wait_with_output()).await.expect("kubectl runs"))
    }
}

pub(crate) fn said(output: Output) -> Said {
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Said { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
}
