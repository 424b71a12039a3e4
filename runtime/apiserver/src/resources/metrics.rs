//! What pods and the node use (<https://kubernetes.io/docs/reference/external-api/metrics.v1beta1/>): nobody writes it, it is measured.

use husk_core::quantity::Quantity;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::typed::{self, text};
use crate::resource::{Column, Removal, Resource, Strategy};

/// Figures can be looked at only, and of the past nothing is kept.
const VERBS: &[&str] = &["get", "list"];

/// What pods use.
pub static POD_METRICS: Resource = Resource {
    kind: "PodMetrics",
    plural: "pods",
    namespaced: true,
    columns: &[
        Column::text("Name", "Name of the pod"),
        Column::text("CPU", "Processors that it uses"),
        Column::text("Memory", "Bytes that it holds"),
        Column::text("Window", "Over which time this was measured"),
    ],
    row: pod_row,
    ..METRICS
};

/// What the node uses.
pub static NODE_METRICS: Resource = Resource {
    kind: "NodeMetrics",
    plural: "nodes",
    namespaced: false,
    columns: &[
        Column::text("Name", "Name of the node"),
        Column::text("CPU", "Processors that are busy"),
        Column::text("Memory", "Bytes that are in use"),
        Column::text("Window", "Over which time this was measured"),
    ],
    row: node_row,
    ..METRICS
};

const METRICS: Resource = Resource {
    group: "metrics.k8s.io",
    version: "v1beta1",
    kind: "",
    plural: "",
    singular: "",
    short_names: &[],
    namespaced: false,
    categories: &[],
    verbs: VERBS,
    subresources: &[],
    strategy: UNWRITTEN,
    lists: &[],
    columns: &[],
    row: node_row,
    selectable: &[],
};

/// Not asked for, as nothing is written: no verb does.
const UNWRITTEN: Strategy = Strategy {
    read: |_| Err("what is measured can't be written".into()),
    default: typed::as_it_is,
    prepare_create: typed::as_it_is,
    prepare_update: typed::keep_nothing,
    drop_disabled: typed::all_enabled,
    settle: typed::settled,
    validate: |_, _| Vec::new(),
    validate_update: |_, _, _, _| Vec::new(),
    removal: Removal::AtOnce,
};

fn pod_row(metrics: &Value, _: Timestamp) -> Vec<Value> {
    let containers = metrics["containers"].as_array().into_iter().flatten();
    row(metrics, containers.map(|container| &container["usage"]).collect())
}

fn node_row(metrics: &Value, _: Timestamp) -> Vec<Value> {
    row(metrics, vec![&metrics["usage"]])
}

fn row(metrics: &Value, usages: Vec<&Value>) -> Vec<Value> {
    let sum = |resource: &str| {
        let amounts = usages.iter().filter_map(|usage| Quantity::parse(usage[resource].as_str()?).ok());
        amounts.reduce(|sum, more| sum.checked_add(&more).unwrap_or(sum)).unwrap_or(Quantity::ZERO).to_string()
    };
    let [name, window] = ["/metadata/name", "/window"].map(|pointer| json!(text(metrics, pointer, "")));
    vec![name, json!(sum("cpu")), json!(sum("memory")), window]
}
