//! A server for one test.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use husk_apiserver::{Api, Device, Listener, Memory, NodeFacts, Objects, serve};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinHandle;

use crate::client::Client;
use crate::processes::Processes;
use crate::until::{until, within};

pub(crate) const NODE: &str = "device";

/// Serves until it is dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) api: Api,
    pub(crate) folder: TempDir,
    serving: JoinHandle<()>,
    running: JoinHandle<()>,
}

impl Server {
    /// With everything in memory, and pods that are processes of this machine.
    pub(crate) async fn start() -> Self {
        Self::with(Memory::default()).await
    }

    pub(crate) async fn with(memory: Memory) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let objects = Objects::new(Arc::new(memory)).with("events", Arc::new(Memory::default()));
        let processes = Arc::new(Processes::new(objects.clone()));
        let device = Device { node_name: NODE.into(), agent_version: "0.1.0".into(), ..Device::default() };
        let api = Api::new(objects.clone(), processes.clone(), device);
        let tcp = Listener::tcp("127.0.0.1:0".parse().expect("an address")).await.expect("a port");
        let unix = Listener::unix(&folder.path().join("api.sock")).expect("a socket");
        let address = tcp.address().expect("an address");
        let facts = NodeFacts {
            name: NODE.into(),
            address: Some("10.0.0.7".into()),
            capacity: [
                ("cpu".to_owned(), "2".to_owned()),
                ("memory".into(), "512Mi".into()),
                ("pods".into(), "110".into()),
            ]
            .into(),
            allocatable: [("cpu".to_owned(), "2".to_owned()), ("memory".into(), "256Mi".into())].into(),
            info: [("kubeletVersion".to_owned(), "v1.33.0+husk".to_owned())].into(),
            ..NodeFacts::default()
        };
        objects.report_node(&facts).await.expect("memory takes it");
        let serving = {
            let api = api.clone();
            tokio::spawn(async move { serve(api, vec![tcp, unix]).await.expect("memory takes it") })
        };
        let running = tokio::spawn(processes.run());
        let server = Self { address, api, folder, serving, running };
        // The namespaces are made at the start.
        let client = server.client();
        until("there are namespaces", async || {
            (client.get("/api/v1/namespaces/kube-system").await.code == 200).then_some(())
        })
        .await;
        server
    }

    pub(crate) fn client(&self) -> Client {
        Client::tcp(self.address)
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("api.sock")
    }

    /// Ends it and waits for that.
    pub(crate) async fn end(self) {
        let Self { api, serving, running, folder, .. } = self;
        api.end();
        within("the server ends", serving).await.expect("it ends");
        running.abort();
        drop(folder);
    }
}

/// A pod that sleeps.
pub(crate) fn pod(name: &str) -> Value {
    shell_pod(name, "trap 'exit 0' TERM; while :; do sleep 0.05; done")
}

/// A pod that runs a script.
pub(crate) fn shell_pod(name: &str, script: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "terminationGracePeriodSeconds": 5,
            "containers": [{"name": "main", "image": "shell", "command": ["sh", "-c", script]}],
        },
    })
}
