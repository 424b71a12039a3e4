//! What was measured, as objects of `metrics.k8s.io` (RES-13).

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use husk_apiserver::{Expected, Key, NODE_METRICS, POD_METRICS, Page, Scope, Shared, Storage, StorageError, Watch};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::measures::{Measured, Measures, PodUse};

/// The measures as the API server sees them: objects that nobody writes.
pub(super) struct MeasuredObjects {
    pub(super) measures: Measures,
    pub(super) node_name: String,
}

impl MeasuredObjects {
    /// All of a resource, in the order of their keys.
    fn all(&self, resource: &str) -> Vec<(Key, Shared)> {
        let Some(measured) = self.measures.last() else { return Vec::new() };
        if resource == NODE_METRICS.qualified() {
            return self.node(&measured).into_iter().collect();
        }
        let mut pods: Vec<(Key, Shared)> = measured.pods.values().filter_map(|pod| object(&measured, pod)).collect();
        pods.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        pods
    }

    fn node(&self, measured: &Measured) -> Option<(Key, Shared)> {
        let machine = measured.machine?;
        let metadata = json!({"name": self.node_name, "creationTimestamp": time(measured)});
        let mut object = head(measured, NODE_METRICS.kind, metadata);
        object["usage"] = usage(machine.cores, machine.memory);
        Some((NODE_METRICS.key("", &self.node_name), Arc::new(object)))
    }
}

fn object(measured: &Measured, pod: &PodUse) -> Option<(Key, Shared)> {
    let about = &pod.pod.metadata;
    let (namespace, name) = (about.namespace.as_deref()?, about.name.as_deref()?);
    // As metrics-server: a pod of which nothing runs uses nothing.
    if pod.containers.is_empty() {
        return None;
    }
    let mut metadata = json!({"name": name, "namespace": namespace, "creationTimestamp": time(measured)});
    if let Some(labels) = &about.labels {
        metadata["labels"] = json!(labels);
    }
    let mut object = head(measured, POD_METRICS.kind, metadata);
    let containers = pod
        .containers
        .iter()
        .map(|container| json!({"name": container.name, "usage": usage(container.cores, container.memory.used)}));
    object["containers"] = containers.collect();
    Some((POD_METRICS.key(namespace, name), Arc::new(object)))
}

fn head(measured: &Measured, kind: &str, metadata: Value) -> Value {
    json!({
        "kind": kind,
        "apiVersion": POD_METRICS.api_version(),
        "metadata": metadata,
        "timestamp": time(measured),
        "window": window(measured.window),
    })
}

fn time(measured: &Measured) -> String {
    let time = Timestamp::try_from(measured.time).unwrap_or_default();
    Timestamp::from_second(time.as_second()).unwrap_or_default().to_string()
}

/// As Go writes it.
fn window(window: Duration) -> String {
    format!("{:.3}s", window.as_secs_f64())
}

fn usage(cores: f64, bytes: u64) -> Value {
    // As metrics-server writes them.
    json!({"cpu": format!("{}n", (cores * 1e9).round() as u64), "memory": format!("{}Ki", bytes / 1024)})
}

#[async_trait]
impl Storage for MeasuredObjects {
    fn revision(&self) -> u64 {
        self.measures.last().map_or(0, |measured| measured.number)
    }

    async fn get(&self, key: &Key) -> Result<Option<Shared>, StorageError> {
        Ok(self.all(&key.resource).into_iter().find_map(|(known, object)| (known == *key).then_some(object)))
    }

    async fn list(&self, scope: &Scope, after: Option<&Key>) -> Result<Page, StorageError> {
        let is_asked = |key: &Key| scope.has(key) && after.is_none_or(|after| key > after);
        let all = self.all(&scope.resource).into_iter();
        let items = all.filter_map(|(key, object)| is_asked(&key).then_some(object)).collect();
        Ok(Page { revision: self.revision(), items })
    }

    async fn put(&self, _: &Key, _: Expected, _: Value) -> Result<Shared, StorageError> {
        Err(unwritten())
    }

    async fn delete(&self, _: &Key, _: u64) -> Result<Shared, StorageError> {
        Err(unwritten())
    }

    fn watch(&self, _: Scope, _: u64) -> Result<Watch, StorageError> {
        Err(unwritten())
    }
}

fn unwritten() -> StorageError {
    StorageError::Failed("what is measured can be looked at only".into())
}
