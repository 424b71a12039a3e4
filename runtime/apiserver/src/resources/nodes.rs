//! Nodes: this device.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use serde_json::{Value, json};

use super::typed::{self, CREATED, age, text};
use crate::resource::{ALL_VERBS, Column, Door, ListMerge, Resource, Strategy, Subresource};

const NONE: &str = "<none>";
const UNKNOWN: &str = "<unknown>";
const ROLE_PREFIX: &str = "node-role.kubernetes.io/";

/// Nodes: this device.
pub static NODES: Resource = Resource {
    group: "",
    version: "v1",
    kind: "Node",
    plural: "nodes",
    singular: "node",
    short_names: &["no"],
    namespaced: false,
    categories: &[],
    verbs: ALL_VERBS,
    subresources: &[Subresource { name: "status", door: Door::Status, kind: None, verbs: &["get", "patch", "update"] }],
    strategy: Strategy { prepare_update: typed::keep_status, ..typed::plain::<Node>() },
    lists: &[
        ("spec.podCIDRs", ListMerge::Set),
        ("status.conditions", ListMerge::ByKey("type")),
        ("status.addresses", ListMerge::ByKey("type")),
    ],
    columns: &[
        Column::text("Name", "Name of the node"),
        Column::text("Status", "Whether it is ready, and takes pods"),
        Column::text("Roles", "What it is for"),
        Column::text("Age", "Since it was created"),
        Column::text("Version", "Version of the agent"),
        Column::wide("Internal-IP", "Address in its network"),
        Column::wide("External-IP", "Address from outside"),
        Column::wide("OS-Image", "Operating system"),
        Column::wide("Kernel-Version", "Kernel"),
        Column::wide("Container-Runtime", "What runs its containers"),
    ],
    row,
    selectable: &[],
};

fn row(node: &Value, now: Timestamp) -> Vec<Value> {
    let items = |pointer: &str| node.pointer(pointer).and_then(Value::as_array).cloned().unwrap_or_default();
    let conditions = items("/status/conditions");
    let ready = conditions.iter().find(|condition| condition["type"] == "Ready");
    let mut status = match ready.map(|condition| &condition["status"]) {
        Some(status) if status == "True" => "Ready".to_owned(),
        Some(_) => "NotReady".into(),
        None => "Unknown".into(),
    };
    if node["spec"]["unschedulable"] == true {
        status.push_str(",SchedulingDisabled");
    }
    let labels = node["metadata"]["labels"].as_object();
    let roles: Vec<&str> = labels.into_iter().flatten().filter_map(|(key, _)| key.strip_prefix(ROLE_PREFIX)).collect();
    let addresses = items("/status/addresses");
    let address = |kind: &str| {
        let found = addresses.iter().find(|address| address["type"] == kind);
        found.and_then(|address| address["address"].as_str()).unwrap_or(NONE).to_owned()
    };
    let info = |field: &str| text(node, &format!("/status/nodeInfo/{field}"), UNKNOWN).to_owned();
    vec![
        json!(text(node, "/metadata/name", "")),
        json!(status),
        json!(if roles.is_empty() { NONE.into() } else { roles.join(",") }),
        json!(age(node, CREATED, now)),
        json!(text(node, "/status/nodeInfo/kubeletVersion", "")),
        json!(address("InternalIP")),
        json!(address("ExternalIP")),
        json!(info("osImage")),
        json!(info("kernelVersion")),
        json!(info("containerRuntimeVersion")),
    ]
}
