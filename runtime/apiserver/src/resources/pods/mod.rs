//! Pods.

mod doors;
mod mirrors;

use husk_api::{
    FieldError, Gates, PodRow, default_pod, drop_disabled_fields, gates_with_used, read_pod, validate_pod_update,
    validate_pod_with,
};
use husk_core::qos;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use serde::Deserialize;
use serde_json::{Value, json};

use super::typed::{self, malformed};
use crate::api::Device;
use crate::resource::{ALL_VERBS, Column, Door, ListMerge, Reading, Removal, Resource, Strategy, Subresource};

const EVICTION: (&str, &str, &str) = ("policy", "v1", "Eviction");
const TIMELINE: (&str, &str, &str) = ("husk.dev", "v1", "Timeline");

/// Pods.
pub static PODS: Resource = Resource {
    group: "",
    version: "v1",
    kind: "Pod",
    plural: "pods",
    singular: "pod",
    short_names: &["po"],
    namespaced: true,
    categories: &["all"],
    verbs: ALL_VERBS,
    subresources: &[
        door("attach", Door::Attach, &["create", "get"]),
        door("ephemeralcontainers", Door::EphemeralContainers, &["get", "patch", "update"]),
        Subresource { name: "eviction", door: Door::Eviction, kind: Some(EVICTION), verbs: &["create"] },
        door("exec", Door::Exec, &["create", "get"]),
        door("log", Door::Log, &["get"]),
        door("resize", Door::Resize, &["get", "patch", "update"]),
        door("status", Door::Status, &["get", "patch", "update"]),
        Subresource { name: "timeline", door: Door::Timeline, kind: Some(TIMELINE), verbs: &["get"] },
    ],
    strategy: Strategy {
        read,
        default: |json| with_pod(json, default_pod),
        prepare_create,
        prepare_update: doors::prepare_update,
        drop_disabled,
        settle: bind,
        validate,
        validate_update,
        removal: Removal::Graceful,
    },
    lists: LISTS,
    columns: &[
        Column::text(PodRow::COLUMNS[0], "Name of the pod"),
        Column::text(PodRow::COLUMNS[1], "Ready ones of its containers"),
        Column::text(PodRow::COLUMNS[2], "What it is doing"),
        Column::text(PodRow::COLUMNS[3], "How often its containers were restarted"),
        Column::text(PodRow::COLUMNS[4], "Since it was created"),
        Column::wide(PodRow::COLUMNS[5], "Its address"),
        Column::wide(PodRow::COLUMNS[6], "Where it runs"),
        Column::wide(PodRow::COLUMNS[7], "Where room is made for it"),
        Column::wide(PodRow::COLUMNS[8], "How many of its readiness gates are open"),
    ],
    row,
    selectable: &[
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    ],
};

const fn door(name: &'static str, door: Door, verbs: &'static [&'static str]) -> Subresource {
    Subresource { name, door, kind: None, verbs }
}

/// As the patch strategies of Kubernetes' types have it. `*` is any item of a list, and `containers` in the third part stands for the
/// three lists of containers.
const LISTS: &[(&str, ListMerge)] = &[
    ("spec.volumes", ListMerge::ByKeyRetaining("name")),
    ("spec.initContainers", ListMerge::ByKey("name")),
    ("spec.containers", ListMerge::ByKey("name")),
    ("spec.ephemeralContainers", ListMerge::ByKey("name")),
    ("spec.{containers}.*.ports", ListMerge::ByKey("containerPort")),
    ("spec.{containers}.*.env", ListMerge::ByKey("name")),
    ("spec.{containers}.*.volumeMounts", ListMerge::ByKey("mountPath")),
    ("spec.{containers}.*.volumeDevices", ListMerge::ByKey("devicePath")),
    ("spec.imagePullSecrets", ListMerge::ByKey("name")),
    ("spec.hostAliases", ListMerge::ByKey("ip")),
    ("spec.topologySpreadConstraints", ListMerge::ByKey("topologyKey")),
    ("spec.schedulingGates", ListMerge::ByKey("name")),
    ("spec.resourceClaims", ListMerge::ByKeyRetaining("name")),
    ("status.conditions", ListMerge::ByKey("type")),
    ("status.podIPs", ListMerge::ByKey("ip")),
    ("status.hostIPs", ListMerge::ByKey("ip")),
    ("status.resourceClaimStatuses", ListMerge::ByKeyRetaining("name")),
];

fn read(json: &Value) -> Result<Reading, String> {
    let reading = read_pod(json).map_err(|problem| {
        if problem.path.is_empty() { problem.message } else { format!("{}: {}", problem.path, problem.message) }
    })?;
    // What the server sets itself is in every object that comes back to it.
    let concerns_client = |path: &str| !path.starts_with("metadata.") && path != "status";
    let remarks = reading.without_effect.into_iter().filter(|(path, _)| concerns_client(path));
    Ok(Reading {
        object: serde_json::to_value(&reading.pod).map_err(|error| error.to_string())?,
        unknown: reading.unknown,
        remarks: remarks.map(|(path, message)| format!("{path}: {message}")).collect(),
        refused: reading.unsupported,
    })
}

fn prepare_create(pod: &mut Value) {
    let class = Pod::deserialize(&*pod).map(|pod| qos::qos_class(&husk_api::core_spec(&pod)));
    pod["metadata"]["generation"] = 1.into();
    pod["status"] = json!({"phase": "Pending"});
    if let Ok(class) = class {
        pod["status"]["qosClass"] = class.as_str().into();
    }
}

/// There is one node: a pod that waits for nothing is its own.
fn bind(pod: &mut Value, device: &Device) {
    let spec = &pod["spec"];
    let waits = spec["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty());
    if !waits && typed::text(pod, "/spec/nodeName", "").is_empty() && !device.node_name.is_empty() {
        pod["spec"]["nodeName"] = device.node_name.as_str().into();
    }
}

/// Fields of features that are off.
fn drop_disabled(old: Option<&Value>, new: &mut Value, device: &Device) -> Vec<String> {
    let gates = gates_for(old, device);
    let mut dropped = Vec::new();
    with_pod(new, |pod| dropped = drop_disabled_fields(pod, &gates));
    dropped
        .into_iter()
        .map(|(field, gate)| format!("{field}: it is not taken: the feature gate {} is off", gate.name()))
        .collect()
}

/// What a pod uses already stays.
fn gates_for(old: Option<&Value>, device: &Device) -> Gates {
    match old.map(Pod::deserialize) {
        Some(Ok(old)) => gates_with_used(&old, &device.gates),
        _ => device.gates,
    }
}

fn validate(new: &Value, device: &Device) -> Vec<FieldError> {
    let mut errors = mirrors::created(new);
    match Pod::deserialize(new) {
        Ok(pod) => errors.extend(validate_pod_with(&pod, &device.gates)),
        Err(error) => errors.push(malformed(&error)),
    }
    errors
}

fn validate_update(old: &Value, new: &Value, door: Door, device: &Device) -> Vec<FieldError> {
    let subresource = match door {
        Door::EphemeralContainers => husk_api::Subresource::EphemeralContainers,
        Door::Resize => husk_api::Subresource::Resize,
        // Statuses have rules of their own, and what else might change was kept.
        Door::Status => return doors::validate_status(old, new),
        _ => husk_api::Subresource::None,
    };
    match (Pod::deserialize(old), Pod::deserialize(new)) {
        (Ok(before), Ok(after)) => {
            let gates = gates_with_used(&before, &device.gates);
            let mut errors = mirrors::changed(old, new);
            errors.extend(validate_pod_update(&before, &after, subresource, &gates));
            errors
        }
        (Err(error), _) | (_, Err(error)) => vec![malformed(&error)],
    }
}

fn with_pod(json: &mut Value, apply: impl FnOnce(&mut Pod)) {
    let Ok(mut pod) = Pod::deserialize(&*json) else { return };
    apply(&mut pod);
    if let Ok(pod) = serde_json::to_value(pod) {
        *json = pod;
    }
}

fn row(json: &Value, now: Timestamp) -> Vec<Value> {
    match Pod::deserialize(json) {
        Ok(pod) => PodRow::of(&pod, now).cells().iter().map(|cell| (*cell).into()).collect(),
        Err(_) => vec![typed::text(json, "/metadata/name", "").into()],
    }
}
