//! An agent through its front, with a guest that never ends by itself.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use husk_agent::{AgentConfig, ImageTable, ImagesConfig, LocalNode, MemoryReferences, NodeLimits, Notice};
use husk_core::status::Phase;
use k8s_openapi::api::core::v1::Pod;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

const POD: &str = "
apiVersion: v1
kind: Pod
metadata: {name: endless, namespace: default, uid: u-1}
spec:
  volumes: [{name: data, emptyDir: {}}]
  containers:
  - {name: app, image: endless.wat, volumeMounts: [{name: data, mountPath: /data, subPath: a/b}]}
";

const GUEST: &str = r#"(module (memory (export "memory") 1) (func (export "_start") (loop (br 0))))"#;

fn node(folder: &Path) -> LocalNode {
    std::fs::write(folder.join("endless.wat"), GUEST).expect("written");
    let config = AgentConfig {
        data_dir: folder.join("data"),
        cache_dir: None,
        images: ImageTable::new([]),
        images_config: ImagesConfig::default(),
        references: Arc::new(MemoryReferences::default()),
        node_name: "test".into(),
        limits: NodeLimits::default(),
    };
    LocalNode::start(config).expect("an agent")
}

fn pod() -> Pod {
    let decoded = husk_api::decode(POD, "pod.yaml");
    let document = decoded.documents.first().unwrap_or_else(|| panic!("{:?}", decoded.errors));
    let mut pod = husk_api::pod_of(&document.object).expect("a pod");
    husk_api::default_pod(&mut pod);
    pod
}

/// A test that waits longer is stuck.
async fn until(notices: &mut Receiver<Notice>, wanted: impl Fn(&Notice) -> bool) {
    let wait = async { while !wanted(&notices.recv().await.expect("the agent lives")) {} };
    tokio::time::timeout(Duration::from_secs(60), wait).await.expect("in time");
}

async fn until_running(notices: &mut Receiver<Notice>) {
    until(notices, |notice| matches!(notice, Notice::Status { status, .. } if status.phase == Phase::Running)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_left_of_a_pod_that_was_forced_to_go() {
    let folder = tempfile::tempdir().expect("a folder");
    let node = node(folder.path());
    let mut notices = node.watch();
    let handle = node.apply(pod(), folder.path().to_owned());
    until_running(&mut notices).await;
    assert!(folder.path().join("data/pods/u-1/volumes/data/a/b").is_dir());
    node.delete(&handle.uid, Some(0));
    until(&mut notices, |notice| matches!(notice, Notice::Gone { .. })).await;
    node.shutdown().await.expect("in order");
    assert!(!folder.path().join("data/pods/u-1").exists());
    while notices.try_recv().is_ok() {}
    assert!(matches!(notices.recv().await, Err(RecvError::Closed)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_was_just_applied_leaves_nothing_either() {
    let folder = tempfile::tempdir().expect("a folder");
    let node = node(folder.path());
    let handle = node.apply(pod(), folder.path().to_owned());
    node.delete(&handle.uid, Some(0));
    node.shutdown().await.expect("in order");
    assert!(!folder.path().join("data/pods/u-1").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_keeps_what_was_made_for_a_pod() {
    let folder = tempfile::tempdir().expect("a folder");
    let node = node(folder.path());
    let mut notices = node.watch();
    node.apply(pod(), folder.path().to_owned());
    until_running(&mut notices).await;
    let mut changed = pod();
    changed.spec.as_mut().expect("a spec").containers[0].image = Some("./endless.wat".into());
    node.apply(changed, folder.path().to_owned());
    // Its container is stopped and starts with the other image, in the sandbox that is there.
    until(&mut notices, |notice| match notice {
        Notice::Event { event, .. } => &*event.reason == "Started" && event.count == 2,
        _ => false,
    })
    .await;
    node.shutdown().await.expect("in order");
    assert!(!folder.path().join("data/pods/u-1").exists());
}
