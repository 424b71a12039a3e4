//! An agent, its pods, and what it tells of them.

use std::fmt::Write;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use husk_agent::{AgentConfig, ImageTable, ImagesConfig, LocalNode, MemoryReferences, NodeLimits, Notice};
use husk_core::io::PodUid;
use husk_core::status::PodStatus;
use tokio::sync::broadcast::Receiver;

/// Sleeps for ever.
const GUEST: &str = r#"(module
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "_start")
    (i32.store (i32.const 16) (i32.const 1))
    (i64.store (i32.const 24) (i64.const 3600000000000))
    (loop (drop (call $poll (i32.const 0) (i32.const 64) (i32.const 128) (i32.const 192))) (br 0))))"#;

/// Nothing takes so long; a test that waits longer is stuck.
const STUCK: Duration = Duration::from_secs(120);

/// An agent with a folder of its own.
pub(crate) struct Node {
    node: LocalNode,
    notices: Receiver<Notice>,
    /// What was told so far.
    seen: Vec<Notice>,
    folder: tempfile::TempDir,
}

impl Node {
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("sleeper.wat"), GUEST).expect("written");
        let config = AgentConfig {
            data_dir: folder.path().join("data"),
            cache_dir: None,
            images: ImageTable::new([]),
            images_config: ImagesConfig::default(),
            references: Arc::new(MemoryReferences::default()),
            node_name: "test".into(),
            limits: NodeLimits::default(),
        };
        let node = LocalNode::start(config).expect("an agent");
        Self { notices: node.watch(), node, seen: Vec::new(), folder }
    }

    /// Applies a pod whose containers have these names and further fields.
    pub(crate) fn apply(&self, name: &str, containers: &[(&str, String)]) -> PodUid {
        let mut manifest = format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, namespace: default, uid: {name}}}\nspec:\n  \
             terminationGracePeriodSeconds: 1\n  containers:\n"
        );
        for (name, more) in containers {
            writeln!(manifest, "  - {{name: {name}, image: sleeper.wat, {more}}}").expect("in memory");
        }
        let decoded = husk_api::check(&manifest, "pod.yaml");
        assert!(decoded.errors.is_empty() && decoded.warnings.is_empty(), "{:?}", (decoded.errors, decoded.warnings));
        let mut pod = husk_api::pod_of(&decoded.documents[0].object).expect("a pod");
        husk_api::default_pod(&mut pod);
        self.node.apply(pod, self.folder.path().to_owned()).uid
    }

    /// Deletes a pod and waits until nothing is left of it.
    pub(crate) async fn delete(&mut self, pod: &PodUid) {
        self.node.delete(pod, Some(0));
        self.find(|notice| matches!(notice, Notice::Forgotten { pod: gone, .. } if gone == pod).then_some(())).await;
    }

    pub(crate) async fn shutdown(self) {
        self.node.shutdown().await.expect("in order");
    }

    /// The pod's address, once it has one.
    pub(crate) async fn address(&mut self, pod: &PodUid) -> Ipv4Addr {
        self.status(pod, |status| status.pod_ips.first().map(|ip| ip.parse().expect("an address"))).await
    }

    /// Waits until that container is ready.
    pub(crate) async fn ready(&mut self, pod: &PodUid, container: &str) {
        self.status(pod, |status| is_ready(status, container).then_some(())).await;
    }

    /// The message of the first event with that reason.
    pub(crate) async fn event(&mut self, pod: &PodUid, container: &str, reason: &str) -> String {
        self.find(|notice| event(notice, pod, container, reason)).await
    }

    /// Waits for an event whose message begins so.
    pub(crate) async fn event_that_says(&mut self, pod: &PodUid, container: &str, message: &str) {
        let says = |said: String| said.starts_with(message).then_some(());
        self.find(|notice| event(notice, pod, container, "Unhealthy").and_then(says)).await;
    }

    /// Its figures.
    pub(crate) fn metrics(&self) -> String {
        self.node.metrics().text()
    }

    /// Forgets what was told meanwhile.
    pub(crate) fn drain(&mut self) {
        while self.notices.try_recv().is_ok() {}
    }

    /// Whether there was such an event so far.
    pub(crate) fn had_event(&self, pod: &PodUid, container: &str, reason: &str) -> bool {
        self.seen.iter().any(|notice| event(notice, pod, container, reason).is_some())
    }

    /// Whether the container was ready so far.
    pub(crate) fn was_ready(&self, pod: &PodUid, container: &str) -> bool {
        self.seen.iter().any(
            |notice| matches!(notice, Notice::Status { pod: of, status, .. } if of == pod && is_ready(status, container)),
        )
    }

    async fn status<T>(&mut self, pod: &PodUid, wanted: impl Fn(&PodStatus) -> Option<T>) -> T {
        self.find(|notice| match notice {
            Notice::Status { pod: of, status, .. } if of == pod => wanted(status),
            _ => None,
        })
        .await
    }

    /// What is wanted of everything that was told and will be.
    async fn find<T>(&mut self, wanted: impl Fn(&Notice) -> Option<T>) -> T {
        if let Some(found) = self.seen.iter().find_map(&wanted) {
            return found;
        }
        let wait = async {
            loop {
                let notice = self.notices.recv().await.expect("the agent lives");
                let found = wanted(&notice);
                self.seen.push(notice);
                if let Some(found) = found {
                    return found;
                }
            }
        };
        let found = tokio::time::timeout(STUCK, wait).await;
        found.unwrap_or_else(|_| panic!("it didn't come; instead: {:?}", self.seen))
    }
}

fn is_ready(status: &PodStatus, container: &str) -> bool {
    status.container_statuses.iter().any(|status| status.name == container && status.ready)
}

fn event(notice: &Notice, pod: &PodUid, container: &str, reason: &str) -> Option<String> {
    let Notice::Event { event, .. } = notice else { return None };
    let is_it = event.pod == *pod && event.container() == Some(container) && &*event.reason == reason;
    is_it.then(|| event.message.clone())
}
