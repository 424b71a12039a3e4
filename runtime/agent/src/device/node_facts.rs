//! The node object and the node: what this device has and is, and what people want of it (NODE-01).

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use husk_apiserver::{NODES, NodeFacts, Objects, Shared, StorageError};
use husk_core::Input;
use husk_core::admission::NodeState;
use husk_core::eviction::Pressure;
use husk_core::quantity::{Notation, Quantity};
use husk_core::spec::ResourceList;
use k8s_openapi::api::core::v1::Node;
use serde_json::Value;
use tokio::sync::watch;

use super::health::Health;
use super::node_events;
use crate::local::LocalNode;

/// How often the device is looked at anew.
const LOOK: Duration = Duration::from_secs(10);
/// After a failure that might repeat itself.
const PAUSE: Duration = Duration::from_secs(1);

/// Keeps the node object and tells the node what people write there.
pub(crate) struct NodeFactsKeeper {
    node: Arc<LocalNode>,
    objects: Objects,
    /// `maxPods`.
    max_pods: watch::Receiver<u32>,
    health: Arc<Health>,
    data_dir: PathBuf,
}

impl NodeFactsKeeper {
    pub(crate) fn new(
        node: Arc<LocalNode>,
        objects: Objects,
        max_pods: watch::Receiver<u32>,
        health: Arc<Health>,
        data_dir: PathBuf,
    ) -> Self {
        Self { node, objects, max_pods, health, data_dir }
    }

    /// Says once what the device has, before any pod is looked at.
    pub(crate) async fn report(&self) {
        if let Err(error) = self.write().await {
            tracing::warn!(%error, "the node object can't be written");
        }
        let key = NODES.key("", self.node.node_name());
        let object = self.objects.get(&key).await.ok().flatten();
        self.tell(object.as_ref());
    }

    /// Works for as long as the agent lives.
    pub(crate) async fn keep(self) {
        loop {
            if let Err(error) = self.follow().await {
                tracing::warn!(%error, "following the node object begins again");
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn follow(&self) -> Result<(), StorageError> {
        let scope = NODES.scope(None);
        let mut changes = self.objects.watch(scope.clone(), self.objects.storage(&scope.resource).revision())?;
        self.report().await;
        let mut looks = tokio::time::interval(LOOK);
        let mut max_pods = self.max_pods.clone();
        let mut short_of = self.node.short_of();
        loop {
            tokio::select! {
                _ = looks.tick() => {
                    let remarks = self.health.store.remark(&self.data_dir).into_iter().collect();
                    node_events::record(&self.objects, self.node.node_name(), remarks).await;
                    self.write().await?;
                    self.objects.renew_lease(self.node.node_name()).await?;
                }
                // Told as well when something else of the configuration is another one.
                Ok(()) = max_pods.changed() => self.report().await,
                Ok(()) = short_of.changed() => self.write().await?,
                change = changes.next() => {
                    let change = change?;
                    let asks = |node: &Option<Shared>| node.as_ref().map(|node| {
                        (node["spec"].clone(), node["metadata"]["labels"].clone(), node["status"]["allocatable"].clone())
                    });
                    if change.key.name == self.node.node_name() && asks(&change.before) != asks(&change.after) {
                        self.tell(change.after.as_ref());
                    }
                }
            }
        }
    }

    async fn write(&self) -> Result<(), StorageError> {
        let short_of = self.node.short_of().borrow().clone();
        let capacity = self.with_pods(self.node.machine().look());
        let written =
            |list: &ResourceList| list.iter().map(|(name, amount)| (name.clone(), amount.to_string())).collect();
        let facts = NodeFacts {
            name: self.node.node_name().to_owned(),
            capacity: written(&capacity),
            allocatable: written(&self.allocatable()),
            info: info(),
            memory_pressure: short_of.contains(Pressure::Memory.condition()),
            disk_pressure: short_of.contains(Pressure::Disk.condition()),
            ..NodeFacts::default()
        };
        self.objects.report_node(&facts).await
    }

    fn allocatable(&self) -> ResourceList {
        self.with_pods(ResourceList::clone(&self.node.machine().allocatable()))
    }

    fn with_pods(&self, mut list: ResourceList) -> ResourceList {
        list.insert("pods".into(), Quantity::new(i64::from(*self.max_pods.borrow()), Notation::Decimal));
        list
    }

    /// Tells the node what it has, and what its object says of it.
    fn tell(&self, object: Option<&Shared>) {
        let node =
            object.and_then(|object| serde_json::from_value::<Node>(Value::clone(object)).ok()).unwrap_or_default();
        let spec = node.spec.unwrap_or_default();
        let labels = node.metadata.labels.unwrap_or_default();
        let state = NodeState {
            allocatable: Some(self.allocatable()),
            labels: labels.into_iter().collect(),
            taints: spec.taints.iter().flatten().map(husk_api::taint).collect(),
            cordoned: spec.unschedulable.unwrap_or(false),
            os: "linux".into(),
        };
        self.node.tell(Input::NodeChanged { state: Box::new(state) });
    }
}

/// `nodeInfo`.
fn info() -> BTreeMap<String, String> {
    let read = |path: &str| std::fs::read_to_string(path).map(|text| text.trim().to_owned()).unwrap_or_default();
    let release = read("/etc/os-release");
    let os_image =
        release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME=")).unwrap_or("Linux").trim_matches('"');
    let version = env!("CARGO_PKG_VERSION");
    let facts = [
        ("osImage", os_image.to_owned()),
        ("kernelVersion", read("/proc/sys/kernel/osrelease")),
        ("kubeletVersion", format!("v1.33.0+husk-{version}")),
        ("containerRuntimeVersion", format!("husk://{version}")),
        ("machineID", read("/etc/machine-id")),
        ("bootID", read("/proc/sys/kernel/random/boot_id")),
        ("systemUUID", read("/etc/machine-id")),
    ];
    facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
