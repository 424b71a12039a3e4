//! A node with an API server for one test.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use husk_agent::{AgentConfig, ImageTable, ImagesConfig, LocalNode, MemoryReferences, NodeLimits, Notice};
use husk_api::{Wall, status_object};
use husk_apiserver::{Api, Device, Key, Listener, Memory, Objects, RESOURCES, Resource, Shared, serve};
use husk_core::backoff::BackoffConfig;
use husk_core::io::PodUid;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinHandle;

/// Far longer than anything here takes on the slowest machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(5);

/// Where the objects of pods are, by uid.
type Keys = Arc<Mutex<HashMap<PodUid, Key>>>;

pub(crate) struct World {
    pub(crate) address: SocketAddr,
    pub(crate) folder: TempDir,
    api: Api,
    tasks: Vec<JoinHandle<()>>,
}

impl World {
    pub(crate) async fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let config = AgentConfig {
            data_dir: folder.path().join("data"),
            cache_dir: Some(Path::new(env!("CARGO_TARGET_TMPDIR")).join("modules")),
            images: ImageTable::new([("toolbox".into(), guest("toolbox.wasm"))]),
            images_config: ImagesConfig::default(),
            references: Arc::new(MemoryReferences::default()),
            node_name: "device".into(),
            // A container that crashes is back in a moment.
            limits: NodeLimits {
                crash_loop: BackoffConfig::standard(Some(Duration::from_secs(1))),
                ..NodeLimits::default()
            },
        };
        let node = Arc::new(LocalNode::start(config).expect("an agent"));
        let objects = Objects::new(Arc::new(Memory::default()));
        let device = Device { node_name: "device".into(), agent_version: "0.1.0".into(), ..Device::default() };
        let api = Api::new(objects.clone(), Arc::new(node.containers()), device);
        let tcp = Listener::tcp("127.0.0.1:0".parse().expect("an address")).await.expect("a port");
        let unix = Listener::unix(&folder.path().join("api.sock")).expect("a socket");
        let address = tcp.address().expect("an address");
        let served = api.clone();
        let serving = tokio::spawn(async move { serve(served, vec![tcp, unix]).await.expect("memory takes it") });
        let keys = Keys::default();
        let statuses = tokio::spawn(report(node.clone(), objects.clone(), keys.clone()));
        let pods = tokio::spawn(apply(node, objects, keys, folder.path().to_owned()));
        let world = Self { address, folder, api, tasks: vec![serving, statuses, pods] };
        world.until("there are namespaces", async || world.object("Namespace", "", "kube-system").await).await;
        world
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("api.sock")
    }

    async fn object(&self, kind: &str, namespace: &str, name: &str) -> Option<Shared> {
        self.api.objects().get(&resource(kind).key(namespace, name)).await.expect("memory")
    }

    /// Makes a pod.
    pub(crate) async fn create(&self, pod: &Value) {
        let answer = self.client().send("POST", "/api/v1/namespaces/default/pods", pod).await;
        assert_eq!(answer.0, 201, "{}", answer.1);
    }

    /// The status of a pod.
    pub(crate) async fn status(&self, pod: &str) -> Value {
        self.object("Pod", "default", pod).await.map(|pod| pod["status"].clone()).unwrap_or_default()
    }

    /// Waits until the status of a container is as wanted.
    pub(crate) async fn container(&self, pod: &str, name: &str, what: &str, wanted: impl Fn(&Value) -> bool) {
        let given_up = Instant::now() + PATIENCE;
        loop {
            let status = self.status(pod).await;
            let lists = ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"];
            let mut all = lists.iter().flat_map(|list| status[*list].as_array().into_iter().flatten());
            if all.any(|status| status["name"] == name && wanted(status)) {
                return;
            }
            assert!(Instant::now() < given_up, "waited {PATIENCE:?} in vain: {name} {what}: {status}");
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Waits until the container `main` of a pod runs.
    pub(crate) async fn running(&self, pod: &str) {
        self.container(pod, "main", "runs", |status| !status["state"]["running"].is_null()).await;
    }

    /// Asks until there is an answer.
    pub(crate) async fn until<T>(&self, what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
        let answered = async {
            loop {
                if let Some(answer) = ask().await {
                    return answer;
                }
                tokio::time::sleep(PAUSE).await;
            }
        };
        within(what, answered).await
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.api.end();
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// Waits for something.
pub(crate) async fn within<T>(what: &str, happens: impl Future<Output = T>) -> T {
    let happened = tokio::time::timeout(PATIENCE, happens).await;
    happened.unwrap_or_else(|_| panic!("waited {PATIENCE:?} in vain: {what}"))
}

/// A pod whose container `main` runs a script in the toolbox.
pub(crate) fn shell_pod(name: &str, script: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "main", "image": "toolbox", "command": ["sh", "-c", script]}],
        },
    })
}

/// One of the example guests, which `cargo xtask guests` compiles next to this test's own target directory.
fn guest(name: &str) -> PathBuf {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("guests").join(name);
    assert!(file.exists(), "{} is missing: run `cargo xtask guests` first", file.display());
    file
}

fn resource(kind: &str) -> &'static Resource {
    RESOURCES.iter().find(|resource| resource.kind == kind).expect("it is served")
}

/// Takes pods from the objects, as an agent does.
async fn apply(node: Arc<LocalNode>, objects: Objects, keys: Keys, folder: PathBuf) {
    let mut changes = objects.watch(resource("Pod").scope(None), 1).expect("a watch");
    loop {
        let change = changes.next().await.expect("a change");
        let Some(object) = &change.after else { continue };
        let pod: Pod = serde_json::from_value((**object).clone()).expect("a pod");
        let uid = PodUid::from(pod.metadata.uid.as_deref().expect("a uid"));
        keys.lock().expect("a lock").insert(uid.clone(), change.key.clone());
        if pod.metadata.deletion_timestamp.is_some() {
            node.delete(&uid, pod.metadata.deletion_grace_period_seconds);
        } else if change.before.as_ref().is_none_or(|before| before["spec"] != object["spec"]) {
            node.apply(Pod { status: None, ..pod }, folder.clone());
        }
    }
}

/// Writes statuses into the objects, as an agent does.
async fn report(node: Arc<LocalNode>, objects: Objects, keys: Keys) {
    let wall = Wall(node.epoch().try_into().expect("a time"));
    let mut notices = node.watch();
    drop(node);
    while let Ok(notice) = notices.recv().await {
        let key = |uid: &PodUid| keys.lock().expect("a lock").get(uid).cloned().expect("it was applied");
        match notice {
            Notice::Status { pod, status, .. } => {
                let status = serde_json::to_value(status_object(&status, &wall)).expect("JSON");
                let change = |object: &mut Value| {
                    object["status"] = status.clone();
                    true
                };
                objects.update(&key(&pod), change).await.expect("memory");
            }
            Notice::Gone { pod, .. } => objects.remove(&key(&pod), &pod.0).await.expect("memory"),
            Notice::Event { .. }
            | Notice::Moved { .. }
            | Notice::Forgotten { .. }
            | Notice::Node { .. }
            | Notice::ShutDown { .. } => {}
        }
    }
}
