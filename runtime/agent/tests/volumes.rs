//! Volumes and environments of running pods, whose objects come, change and go.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use husk_agent::{AgentConfig, ImageTable, ImagesConfig, LocalNode, MemoryReferences, NodeLimits, Notice, PodHandle};
use husk_api::k8s::{ConfigMap, Pod, Secret};
use husk_core::status::{ContainerState, Phase, PodStatus};
use husk_engine::Log;
use tempfile::TempDir;
use tokio::sync::broadcast::Receiver;

/// A test that waits longer is stuck.
const STUCK: Duration = Duration::from_secs(120);

struct World {
    folder: TempDir,
    node: LocalNode,
    references: Arc<MemoryReferences>,
    notices: Receiver<Notice>,
    /// The last status that was seen.
    last: Option<Arc<PodStatus>>,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
        let references = Arc::new(MemoryReferences::default());
        let config = AgentConfig {
            data_dir: folder.path().join("data"),
            cache_dir: Some(Path::new(env!("CARGO_TARGET_TMPDIR")).join("modules")),
            images: ImageTable::new([]),
            images_config: ImagesConfig::default(),
            references: references.clone(),
            node_name: "test".into(),
            limits: NodeLimits::default(),
        };
        let node = LocalNode::start(config).expect("an agent");
        let notices = node.watch();
        Self { folder, node, references, notices, last: None }
    }

    fn apply(&self, pod: Pod) -> PodHandle {
        self.node.apply(pod, self.folder.path().to_owned())
    }

    /// Waits for a status, unless it is so already.
    async fn status(&mut self, wanted: impl Fn(&PodStatus) -> bool) -> Arc<PodStatus> {
        if let Some(status) = self.last.clone().filter(|status| wanted(status)) {
            return status;
        }
        self.notice(|notice| match notice {
            Notice::Status { status, .. } if wanted(&status) => Some(status),
            _ => None,
        })
        .await
    }

    async fn event(&mut self, reason: &str) -> String {
        self.notice(|notice| match notice {
            Notice::Event { event, .. } if event.reason == reason => Some(event.message.clone()),
            _ => None,
        })
        .await
    }

    async fn notice<T>(&mut self, wanted: impl Fn(Notice) -> Option<T>) -> T {
        let wait = async {
            loop {
                let notice = self.notices.recv().await.expect("the agent lives");
                if let Notice::Status { status, .. } = &notice {
                    self.last = Some(status.clone());
                }
                if let Some(found) = wanted(notice) {
                    return found;
                }
            }
        };
        tokio::time::timeout(STUCK, wait).await.expect("in time")
    }

    async fn end(self) {
        self.node.shutdown().await.expect("in order");
        assert!(!self.folder.path().join("data/pods/u-1").exists(), "nothing is left of the pod");
    }
}

/// A pod of one container with a script.
fn pod(script: &str, container: &str, spec: &str) -> Pod {
    let script = serde_json::to_string(script).expect("text");
    let text = format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: p, namespace: default, uid: u-1, annotations: {{note: first}}}}\nspec:\n  \
         restartPolicy: Never\n  terminationGracePeriodSeconds: 0\n{spec}  containers:\n  - name: app\n    image: busybox\n    command: [sh, -c, {script}]\n{container}"
    );
    let decoded = husk_api::check(&text, "pod.yaml");
    assert!(decoded.errors.is_empty(), "{:?}", decoded.errors);
    let mut pod = husk_api::pod_of(&decoded.documents[0].object).expect("a pod");
    husk_api::default_pod(&mut pod);
    pod
}

fn config_map(name: &str, data: &[(&str, &str)]) -> ConfigMap {
    let mut object = ConfigMap::default();
    object.metadata.name = Some(name.into());
    object.data = Some(data.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect());
    object
}

fn secret(name: &str, data: &[(&str, &str)]) -> Secret {
    let mut object = Secret::default();
    object.metadata.name = Some(name.into());
    let data = data.iter().map(|(key, value)| ((*key).into(), k8s_openapi::ByteString(value.as_bytes().to_vec())));
    object.data = Some(data.collect());
    object
}

/// Waits for a line of a log.
async fn line(log: &Log, wanted: &str) {
    let mut follower = log.follow();
    let wait = async { while &*follower.next().await.expect("a line").text != wanted {} };
    tokio::time::timeout(STUCK, wait).await.unwrap_or_else(|_| panic!("no {wanted:?} in {:?}", log.lines()));
}

fn reason(status: &PodStatus) -> Option<&str> {
    match &status.container_statuses[0].state {
        ContainerState::Waiting { reason, .. } => Some(reason),
        _ => None,
    }
}

// spec: META-05
// spec: META-02
#[tokio::test(flavor = "multi_thread")]
async fn files_of_running_pods_follow_what_they_are_made_from() {
    let world = World::new();
    world.references.put_config_map(config_map("conf", &[("a", "1"), ("gone", "x")]));
    world.references.put_secret(secret("key", &[("key", "k1")]));
    let spec = "  volumes:
  - {name: conf, configMap: {name: conf}}
  - name: all
    projected:
      sources:
      - {secret: {name: key}}
      - {downwardAPI: {items: [{path: notes, fieldRef: {fieldPath: metadata.annotations}}]}}
      - {configMap: {name: later, optional: true}}
";
    let container = "    volumeMounts:
    - {name: conf, mountPath: /conf}
    - {name: conf, mountPath: /once/a, subPath: a}
    - {name: all, mountPath: /all}
";
    let script = "while true; do echo conf $(ls /conf) $(cat /conf/a) once $(cat /once/a); echo all $(ls /all) $(cat /all/*); sleep 0.05; done";
    let handle = world.apply(pod(script, container, spec));
    let log = &handle.logs["app"];
    line(log, "conf a gone 1 once 1").await;
    line(log, "all key notes k1note=\"first\"").await;
    world.references.put_config_map(config_map("conf", &[("a", "2"), ("new", "y")]));
    // What a subPath mounts stays as it is.
    line(log, "conf a new 2 once 1").await;
    world.references.put_secret(secret("key", &[("key", "k2")]));
    line(log, "all key notes k2note=\"first\"").await;
    world.references.put_config_map(config_map("later", &[("then", "t")]));
    line(log, "all key notes then k2note=\"first\"t").await;
    let mut changed = pod(script, container, spec);
    changed.metadata.annotations = Some([("note".to_owned(), "second".to_owned())].into());
    world.apply(changed);
    line(log, "all key notes then k2note=\"second\"t").await;
    // What is gone can't be made any more: files stay as they were.
    world.references.remove_secret("default", "key");
    world.references.put_config_map(config_map("conf", &[("a", "3")]));
    line(log, "conf a 3 once 1").await;
    line(log, "all key notes then k2note=\"second\"t").await;
    world.end().await;
}

// spec: META-05
#[tokio::test(flavor = "multi_thread")]
async fn a_pod_waits_for_what_its_volumes_are_made_from_and_goes_on_when_it_is_there() {
    let mut world = World::new();
    let spec = "  volumes: [{name: v, projected: {sources: [{configMap: {name: conf, items: [{key: k, path: p}]}}, {secret: {name: key}}]}}]\n";
    let handle = world.apply(pod("cat /v/p /v/key", "    volumeMounts: [{name: v, mountPath: /v}]\n", spec));
    let message = world.event("FailedMount").await;
    assert_eq!(message, "MountVolume.SetUp failed for volume \"v\" : configmap \"conf\" not found");
    world.status(|status| status.phase == Phase::Pending && reason(status) == Some("ContainerCreating")).await;
    world.references.put_config_map(config_map("conf", &[("other", "x")]));
    let message = world.event("FailedMount").await;
    assert_eq!(message, "MountVolume.SetUp failed for volume \"v\" : references non-existent config key: k");
    world.references.put_config_map(config_map("conf", &[("k", "value\n")]));
    let message = world.event("FailedMount").await;
    assert_eq!(message, "MountVolume.SetUp failed for volume \"v\" : secret \"key\" not found");
    world.references.put_secret(secret("key", &[("key", "kept")]));
    world.status(|status| status.phase == Phase::Succeeded).await;
    line(&handle.logs["app"], "value").await;
    world.end().await;
}

// spec: META-04
// spec: STATE-02
#[tokio::test(flavor = "multi_thread")]
async fn a_container_waits_for_what_its_environment_is_made_from_and_goes_on_when_it_is_there() {
    let mut world = World::new();
    let container = "    env:
    - {name: A, valueFrom: {configMapKeyRef: {name: conf, key: a}}}
    - {name: B, valueFrom: {secretKeyRef: {name: key, key: b}}}
    - {name: C, valueFrom: {secretKeyRef: {name: key, key: none, optional: true}}}
    envFrom: [{secretRef: {name: key}, prefix: ALL_}, {configMapRef: {name: none, optional: true}}]
";
    let handle = world.apply(pod("echo $A $B ${C-none} $ALL_b", container, ""));
    let waits = |status: &PodStatus| reason(status) == Some("CreateContainerConfigError");
    let status = world.status(waits).await;
    let ContainerState::Waiting { message, .. } = &status.container_statuses[0].state else { panic!("{status:?}") };
    assert!(message.ends_with("\"key\" not found"), "{message}");
    world.references.put_secret(secret("key", &[("b", "2")]));
    world.event("Failed").await;
    world.references.put_config_map(config_map("conf", &[("b", "1")]));
    let message = world.event("Failed").await;
    assert!(message.contains("\"conf\" not found") || message.contains("couldn't find key a"), "{message}");
    world.references.put_config_map(config_map("conf", &[("a", "1")]));
    world.status(|status| status.phase == Phase::Succeeded).await;
    line(&handle.logs["app"], "1 2 none 2").await;
    world.end().await;
}

// spec: RES-06
// spec: META-05
#[tokio::test(flavor = "multi_thread")]
async fn a_pod_whose_volume_holds_too_much_is_evicted() {
    let mut world = World::new();
    let spec = "  volumes: [{name: data, emptyDir: {sizeLimit: 1Mi}}, {name: more, emptyDir: {}}]\n";
    let container = "    volumeMounts: [{name: data, mountPath: /data}, {name: more, mountPath: /more}]\n";
    let much = "x=0123456789abcdef; for i in 1 2 3 4 5 6 7 8 9 10 11 12; do x=$x$x; done; mkdir /data/deep";
    let script = format!(
        "{much}; n=0; while true; do echo $x > /data/deep/$n; echo $x > /more/$n; n=$((n+1)); sleep 0.02; done"
    );
    world.apply(pod(&script, container, spec));
    let status = world.status(|status| status.phase == Phase::Failed).await;
    assert_eq!(status.reason, "Evicted");
    assert_eq!(status.message, "Usage of EmptyDir volume \"data\" exceeds the limit \"1Mi\". ");
    world.end().await;
}

// spec: META-04
#[tokio::test(flavor = "multi_thread")]
async fn a_variable_is_read_from_a_file_that_an_init_container_wrote() {
    let mut world = World::new();
    let spec = "  volumes: [{name: data, emptyDir: {}}]
  initContainers:
  - name: write
    image: busybox
    command: [sh, -c, \"mkdir /data/d; echo \\\"A='from a file'\\\" > /data/d/env\"]
    volumeMounts: [{name: data, mountPath: /data}]
";
    let container = "    env:
    - {name: A, valueFrom: {fileKeyRef: {volumeName: data, path: d/env, key: A}}}
    - {name: B, valueFrom: {fileKeyRef: {volumeName: data, path: none, key: A, optional: true}}}
";
    let handle = world.apply(pod("echo $A ${B-none}", container, spec));
    world.status(|status| status.phase == Phase::Succeeded).await;
    line(&handle.logs["app"], "from a file none").await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_in_volumes_is_the_nodes_own_user_s_business() {
    use std::os::unix::fs::PermissionsExt as _;
    let mut world = World::new();
    world.references.put_secret(secret("key", &[("key", "k1")]));
    let spec = "  volumes: [{name: key, secret: {secretName: key, defaultMode: 0400}}]\n";
    world.apply(pod("sleep 1000", "    volumeMounts: [{name: key, mountPath: /key}]\n", spec));
    world.status(|status| status.phase == Phase::Running).await;
    let volumes = world.folder.path().join("data/pods/u-1/volumes");
    let mode = |path: &Path| std::fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!((mode(&volumes), mode(&volumes.join("key/key"))), (0o700, 0o400));
    world.end().await;
}
