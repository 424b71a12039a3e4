//! A device with an agent, and what is seen of one pod.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use husk_agent::{
    AgentConfig, ImageStore, ImageTable, ImagesConfig, LocalNode, MemoryReferences, NodeLimits, Notice, PodHandle,
};
use husk_core::io::PodUid;
use husk_core::status::{ContainerState, ContainerStatus};
use tempfile::TempDir;
use tokio::sync::broadcast::Receiver;

/// A test that waits longer is stuck.
const STUCK: Duration = Duration::from_secs(60);

/// A module with this body for `_start`.
pub(crate) fn module(body: &str) -> Vec<u8> {
    let text = format!(
        r#"(module
            (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
            (import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
            (import "wasi_snapshot_preview1" "path_open"
                (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
            (memory (export "memory") 1)
            (data (i32.const 64) "data/code")
            (func (export "_start") {body}))"#
    );
    wat::parse_str(text).expect("a module")
}

/// A module that ends with that exit code.
pub(crate) fn exits(code: u32) -> Vec<u8> {
    module(&format!("(call $exit (i32.const {code}))"))
}

/// Ends with the first byte of `data/code` in the first folder that it has.
pub(crate) const EXIT_WITH_FILE: &str = "
    (i32.store (i32.const 0) (i32.const 200)) (i32.store (i32.const 4) (i32.const 1))
    (drop (call $open (i32.const 3) (i32.const 0) (i32.const 64) (i32.const 9) (i32.const 0)
        (i64.const 2) (i64.const 0) (i32.const 0) (i32.const 16)))
    (drop (call $fd_read (i32.load (i32.const 16)) (i32.const 0) (i32.const 1) (i32.const 32)))
    (call $exit (i32.load8_u (i32.const 200)))";

/// Waits for something.
pub(crate) async fn in_time<T>(what: &str, wait: impl Future<Output = T>) -> T {
    tokio::time::timeout(STUCK, wait).await.unwrap_or_else(|_| panic!("waited {STUCK:?} in vain: {what}"))
}

/// A device: a folder.
pub(crate) struct Device(TempDir);

impl Device {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The agent's store, as another process sees it.
    pub(crate) fn store(&self) -> ImageStore {
        ImageStore::of(&self.path("data"))
    }

    pub(crate) fn node(&self, images_config: ImagesConfig) -> LocalNode {
        let config = AgentConfig {
            data_dir: self.path("data"),
            cache_dir: None,
            images: ImageTable::new([]),
            images_config,
            references: Arc::new(MemoryReferences::default()),
            node_name: "edge".into(),
            limits: NodeLimits::default(),
        };
        LocalNode::start(config).expect("an agent")
    }

    /// A file with a module that never ends.
    pub(crate) fn forever(&self) -> PathBuf {
        let path = self.path("forever.wasm");
        fs::write(&path, module("(loop (br 0))")).expect("written");
        path
    }

    /// Without a policy the tag decides.
    pub(crate) fn apply(&self, node: &LocalNode, image: &str, policy: &str) -> PodHandle {
        let policy = if policy.is_empty() { String::new() } else { format!(", imagePullPolicy: {policy}") };
        self.apply_spec(node, &format!("  containers:\n  - {{name: app, image: {image:?}{policy}}}\n"))
    }

    /// A pod whose init container needs an image, and its app another one.
    pub(crate) fn apply_after(&self, node: &LocalNode, init: &str, app: &str) -> PodHandle {
        self.apply_spec(
            node,
            &format!(
                "  initContainers: [{{name: init, image: {init:?}}}]\n  containers: [{{name: app, image: {app:?}}}]\n"
            ),
        )
    }

    fn apply_spec(&self, node: &LocalNode, spec: &str) -> PodHandle {
        let uid = uuid::Uuid::new_v4();
        let head = format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: p-{uid}, namespace: default, uid: {uid}}}\n");
        let decoded = husk_api::decode(&format!("{head}spec:\n  restartPolicy: Never\n{spec}"), "pod.yaml");
        let document = decoded.documents.first().unwrap_or_else(|| panic!("{:?}", decoded.errors));
        let mut pod = husk_api::pod_of(&document.object).expect("a pod");
        husk_api::default_pod(&mut pod);
        node.apply(pod, self.path("."))
    }

    /// Runs a pod of that image to its end.
    pub(crate) async fn run(&self, image: &str, policy: &str) -> Seen {
        self.run_with(|config| config, image, policy).await
    }

    pub(crate) async fn run_with(
        &self,
        configure: impl FnOnce(ImagesConfig) -> ImagesConfig,
        image: &str,
        policy: &str,
    ) -> Seen {
        self.watch(configure(ImagesConfig::default()), image, policy, |seen| seen.exit_code().is_some()).await
    }

    /// Applies a pod that can't run, and waits until it says why.
    pub(crate) async fn fails(&self, image: &str, policy: &str) -> Seen {
        self.watch(ImagesConfig::default(), image, policy, |seen| {
            let (reason, _) = seen.waiting();
            !matches!(&*reason, "" | "ContainerCreating" | "PodInitializing")
        })
        .await
    }

    pub(crate) async fn waits_for(&self, image: &str, policy: &str, reason: &str) -> Seen {
        self.watch(ImagesConfig::default(), image, policy, |seen| seen.waiting().0 == reason).await
    }

    pub(crate) async fn watch(
        &self,
        config: ImagesConfig,
        image: &str,
        policy: &str,
        enough: impl Fn(&Seen) -> bool,
    ) -> Seen {
        let node = self.node(config);
        let notices = node.watch();
        let pod = self.apply(&node, image, policy);
        let mut seen = Seen::of(notices, pod);
        seen.until(enough).await;
        node.shutdown().await.expect("in order");
        seen
    }
}

/// What is seen of the only container of a pod.
#[derive(Debug)]
pub(crate) struct Seen {
    notices: Receiver<Notice>,
    pod: PodUid,
    status: ContainerStatus,
    events: Vec<(String, String)>,
}

impl Seen {
    pub(crate) fn of(notices: Receiver<Notice>, pod: PodHandle) -> Self {
        Self { notices, pod: pod.uid, status: ContainerStatus::default(), events: Vec::new() }
    }

    pub(crate) async fn until(&mut self, enough: impl Fn(&Self) -> bool) {
        let wait = async {
            while !enough(self) {
                match self.notices.recv().await.expect("the agent lives") {
                    Notice::Event { event, .. } if event.pod == self.pod => {
                        self.events.push((event.reason.to_string(), event.message.clone()));
                    }
                    Notice::Status { pod, status, .. } if pod == self.pod => {
                        self.status = status.container_statuses[0].clone();
                    }
                    _ => {}
                }
            }
        };
        let done = tokio::time::timeout(STUCK, wait).await.is_ok();
        assert!(done, "stuck at {:?} after {:?}", self.status, self.events);
    }

    pub(crate) fn exit_code(&self) -> Option<i32> {
        match &self.status.state {
            ContainerState::Terminated(ended) => Some(ended.exit_code),
            _ => None,
        }
    }

    pub(crate) fn is_running(&self) -> bool {
        matches!(self.status.state, ContainerState::Running { .. })
    }

    pub(crate) fn image_id(&self) -> &str {
        &self.status.image_id
    }

    /// Reason and message.
    pub(crate) fn waiting(&self) -> (String, String) {
        match &self.status.state {
            ContainerState::Waiting { reason, message } => (reason.to_string(), message.clone()),
            _ => Default::default(),
        }
    }

    /// Messages of all events of that reason.
    pub(crate) fn events(&self, reason: &str) -> Vec<&str> {
        self.events.iter().filter(|(known, _)| known == reason).map(|(_, message)| message.as_str()).collect()
    }
}

/// Waits until something is so that nobody tells of.
pub(crate) async fn until(enough: impl Fn() -> bool) {
    let wait = async {
        while !enough() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(STUCK, wait).await.expect("in time");
}
