//! The real `kubectl`: everything but what needs a running container.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};

use crate::server::{NODE, Server};
use crate::until::within;

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
        assert_ne!(self.code, 0, "{self:?}");
        self.err
    }
}

impl Kubectl {
    /// Every version that is installed here: beside the one that is found on the path there may be others.
    pub(crate) fn installed() -> Vec<PathBuf> {
        let folders = std::env::var_os("PATH").unwrap_or_default();
        let found = std::env::split_paths(&folders).map(|folder| folder.join("kubectl")).find(|path| path.is_file());
        let Some(found) = found.and_then(|path| path.canonicalize().ok()) else {
            eprintln!("SKIPPED: kubectl is not installed, so that nothing is known about real clients");
            return Vec::new();
        };
        let beside = found.parent().and_then(|folder| folder.read_dir().ok()).into_iter().flatten().flatten();
        let is_version = |path: &Path| {
            path.file_name().is_some_and(|name| name.to_string_lossy().strip_prefix("kubectl.1.").is_some())
        };
        let mut versions: Vec<PathBuf> = beside.map(|entry| entry.path()).filter(|path| is_version(path)).collect();
        versions.sort();
        if versions.is_empty() { vec![found] } else { versions }
    }

    /// The versions that speak WebSocket.
    pub(crate) fn with_websockets() -> Vec<PathBuf> {
        let is_old = |path: &PathBuf| {
            let name = path.to_string_lossy().into_owned();
            ["1.27", "1.28", "1.29"].iter().any(|version| name.ends_with(version))
        };
        let mut all = Self::installed();
        all.retain(|path| !is_old(path));
        all
    }

    pub(crate) fn new(program: &Path, server: &Server) -> Self {
        let server = format!("http://{}", server.address);
        Self { program: program.into(), server, home: tempfile::tempdir().expect("a folder") }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .env("HOME", self.home.path())
            .env("KUBECONFIG", self.home.path().join("none"))
            .args(["--server", &self.server, "--cache-dir"])
            .arg(self.home.path().join("cache"))
            .args(arguments)
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command
    }

    pub(crate) async fn run(&self, arguments: &[&str]) -> Said {
        said(within("kubectl ends", self.command(arguments).output()).await.expect("kubectl runs"))
    }

    pub(crate) async fn with_input(&self, arguments: &[&str], input: &str) -> Said {
        let mut child = self.start(arguments, Stdio::piped());
        let mut stdin = child.stdin.take().expect("a pipe");
        stdin.write_all(input.as_bytes()).await.expect("it reads");
        drop(stdin);
        said(within("kubectl ends", child.wait_with_output()).await.expect("kubectl runs"))
    }

    pub(crate) fn start(&self, arguments: &[&str], stdin: Stdio) -> Child {
        let mut command = self.command(arguments);
        command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("kubectl starts")
    }

    pub(crate) async fn json(&self, arguments: &[&str]) -> Value {
        let out = self.run(&[arguments, &["-o", "json"]].concat()).await.ok();
        serde_json::from_str(&out).expect("JSON")
    }
}

fn said(output: Output) -> Said {
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Said { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
}

const MAP: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\n  labels:\n    app: web\ndata:\n  a: '1'\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_are_managed_by_every_version() {
    for program in Kubectl::installed() {
        let server = Server::start().await;
        let kubectl = Kubectl::new(&program, &server);
        let out = kubectl.with_input(&["apply", "-f", "-"], MAP).await.ok();
        assert_eq!(out, "configmap/settings created\n", "{program:?}");
        assert_eq!(kubectl.with_input(&["apply", "-f", "-"], MAP).await.ok(), "configmap/settings unchanged\n");
        let changed = MAP.replace("a: '1'", "b: '2'");
        assert_eq!(kubectl.with_input(&["diff", "-f", "-"], &changed).await.code, 1);
        assert_eq!(kubectl.with_input(&["apply", "-f", "-"], &changed).await.ok(), "configmap/settings configured\n");
        assert_eq!(kubectl.json(&["get", "cm/settings"]).await["data"], serde_json::json!({"b": "2"}));
        let misspelt = MAP.replace("\ndata:", "\ndate:");
        let err = kubectl.with_input(&["apply", "-f", "-"], &misspelt).await.failed();
        assert!(err.contains("unknown field \"date\""), "{program:?}: {err}");
        let err = kubectl.with_input(&["create", "-f", "-"], MAP).await.failed();
        assert!(err.contains("configmaps \"settings\" already exists"), "{err}");
        kubectl.run(&["label", "cm", "settings", "tier=front"]).await.ok();
        kubectl.run(&["annotate", "cm", "settings", "note=hello"]).await.ok();
        let object = kubectl.json(&["get", "cm", "-l", "tier=front"]).await["items"][0].clone();
        assert_eq!(object["metadata"]["annotations"]["note"], "hello");
        kubectl
            .run(&["patch", "cm", "settings", "--type=json", "-p", r#"[{"op":"add","path":"/data/c","value":"3"}]"#])
            .await
            .ok();
        let sorted = kubectl.run(&["get", "cm", "settings", "-o", "jsonpath={.data}"]).await.ok();
        assert_eq!(sorted, r#"{"b":"2","c":"3"}"#);
        let table = kubectl.run(&["get", "cm", "-A", "--show-labels"]).await.ok();
        assert!(table.contains("NAMESPACE") && table.contains("app=web,tier=front"), "{table}");
        let out = kubectl.with_input(&["apply", "--server-side", "--force-conflicts", "-f", "-"], MAP).await.ok();
        assert_eq!(out, "configmap/settings serverside-applied\n");
        kubectl.with_input(&["replace", "-f", "-"], MAP).await.ok();
        assert!(kubectl.run(&["get", "cm", "settings", "-o", "yaml"]).await.ok().contains("kind: ConfigMap"));
        assert_eq!(kubectl.run(&["delete", "cm", "settings"]).await.ok(), "configmap \"settings\" deleted\n");
        let err = kubectl.run(&["get", "cm", "settings"]).await.failed();
        assert!(err.contains("Error from server (NotFound): configmaps \"settings\" not found"), "{err}");
        server.end().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_there_is_is_found_by_every_version() {
    for program in Kubectl::installed() {
        let server = Server::start().await;
        let kubectl = Kubectl::new(&program, &server);
        let resources = kubectl.run(&["api-resources", "-o", "name"]).await.ok();
        assert!(resources.contains("poddisruptionbudgets.policy\n") && resources.contains("pods\n"), "{resources}");
        assert!(kubectl.run(&["version"]).await.ok().contains("Server Version: "));
        let nodes = kubectl.run(&["get", "nodes", "-o", "wide"]).await.ok();
        assert!(nodes.contains(NODE) && nodes.contains("Ready") && nodes.contains("10.0.0.7"), "{nodes}");
        let node = kubectl.run(&["describe", "node", NODE]).await.ok();
        assert!(node.contains("MemoryPressure") && node.contains("Allocatable:"), "{node}");
        // Sent as protobuf by newer versions.
        assert_eq!(kubectl.run(&["create", "namespace", "team"]).await.ok(), "namespace/team created\n");
        kubectl.run(&["create", "configmap", "m", "-n", "team", "--from-literal=a=1"]).await.ok();
        kubectl.run(&["create", "secret", "generic", "s", "-n", "team", "--from-literal=a=1"]).await.ok();
        let budget = ["create", "pdb", "b", "-n", "team", "--selector=app=web", "--min-available=50%"];
        kubectl.run(&budget).await.ok();
        assert_eq!(kubectl.json(&["get", "pdb", "b", "-n", "team"]).await["spec"]["minAvailable"], "50%");
        assert_eq!(kubectl.json(&["get", "secret", "s", "-n", "team"]).await["data"]["a"], "MQ==");
        kubectl.run(&["delete", "namespace", "team"]).await.ok();
        assert!(kubectl.run(&["get", "ns", "team"]).await.failed().contains("not found"));
        server.end().await;
    }
}
