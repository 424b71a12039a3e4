//! Pods, as `kubectl describe pod` writes them.

use husk_core::qos::qos_class;
use jiff::Timestamp;
use serde_json::Value;

use super::text::{NONE, Text, date, plain};
use super::{container, volume};
use crate::client::happenings::time;
use crate::client::output::text;
use crate::client::resources::items;

pub(super) fn describe(out: &mut Text, pod: &Value) {
    head(out, pod);
    let (spec, status) = (&pod["spec"], &pod["status"]);
    for (title, list, statuses) in [
        ("Init Containers", "initContainers", "initContainerStatuses"),
        ("Containers", "containers", "containerStatuses"),
        ("Ephemeral Containers", "ephemeralContainers", "ephemeralContainerStatuses"),
    ] {
        let containers = items(&spec[list]);
        if containers.is_empty() {
            continue;
        }
        out.line(0, format_args!("{title}:"));
        for described in containers {
            let status = items(&status[statuses]).iter().find(|status| status["name"] == described["name"]);
            container::describe(out, pod, described, status);
        }
    }
    gates(out, pod);
    if !items(&status["conditions"]).is_empty() {
        out.line(0, "Conditions:\n  Type\tStatus");
        for condition in items(&status["conditions"]) {
            out.line(1, format_args!("{} \t{} ", text(&condition["type"]), text(&condition["status"])));
        }
    }
    volume::describe(out, items(&spec["volumes"]));
    out.pair(0, "QoS Class", qos(pod));
    out.labels("Node-Selectors", &spec["nodeSelector"]);
    let mut tolerations: Vec<&Value> = items(&spec["tolerations"]).iter().collect();
    tolerations.sort_by_key(|toleration| text(&toleration["key"]));
    let tolerations: Vec<String> = tolerations.into_iter().map(toleration).collect();
    out.below("Tolerations", &tolerations);
}

fn head(out: &mut Text, pod: &Value) {
    let (metadata, spec, status) = (&pod["metadata"], &pod["spec"], &pod["status"]);
    out.pair(0, "Name", text(&metadata["name"]));
    out.pair(0, "Namespace", text(&metadata["namespace"]));
    for (name, value) in [
        ("Priority", &spec["priority"]),
        ("Priority Class Name", &spec["priorityClassName"]),
        ("Runtime Class Name", &spec["runtimeClassName"]),
        ("Service Account", &spec["serviceAccountName"]),
    ] {
        if !value.is_null() && value != "" {
            out.pair(0, name, plain(value));
        }
    }
    match text(&spec["nodeName"]) {
        "" => out.pair(0, "Node", NONE),
        node => out.pair(0, "Node", format_args!("{node}/{}", text(&status["hostIP"]))),
    }
    if !status["startTime"].is_null() {
        out.pair(0, "Start Time", date(&status["startTime"]));
    }
    out.labels("Labels", &metadata["labels"]);
    out.annotations(&metadata["annotations"]);
    let phase = text(&status["phase"]);
    match time(&metadata["deletionTimestamp"]) {
        Some(end) if !["Succeeded", "Failed"].contains(&phase) => {
            let lasts = husk_api::age(end, Timestamp::now());
            out.pair(0, "Status", format_args!("Terminating (lasts {lasts})"));
            let grace = metadata["deletionGracePeriodSeconds"].as_i64().unwrap_or_default();
            out.pair(0, "Termination Grace Period", format_args!("{grace}s"));
        }
        _ => out.pair(0, "Status", phase),
    }
    for (name, value) in [("Reason", &status["reason"]), ("Message", &status["message"])] {
        if !text(value).is_empty() {
            out.pair(0, name, text(value));
        }
    }
    if !spec["securityContext"]["seccompProfile"].is_null() {
        out.pair(0, "SeccompProfile", text(&spec["securityContext"]["seccompProfile"]["type"]));
    }
    out.pair(0, "IP", text(&status["podIP"]));
    match items(&status["podIPs"]) {
        [] => out.pair(0, "IPs", NONE),
        ips => {
            out.line(0, "IPs:");
            ips.iter().for_each(|ip| out.pair(1, "IP", text(&ip["ip"])));
        }
    }
    if let Some(owner) = items(&metadata["ownerReferences"]).iter().find(|owner| owner["controller"] == true) {
        out.pair(0, "Controlled By", format_args!("{}/{}", text(&owner["kind"]), text(&owner["name"])));
    }
    if !text(&status["nominatedNodeName"]).is_empty() {
        out.pair(0, "NominatedNodeName", text(&status["nominatedNodeName"]));
    }
    container::resources(out, 0, &spec["resources"]);
}

fn gates(out: &mut Text, pod: &Value) {
    let gates = items(&pod["spec"]["readinessGates"]);
    if gates.is_empty() {
        return;
    }
    out.line(0, "Readiness Gates:\n  Type\tStatus");
    for gate in gates {
        let kind = &gate["conditionType"];
        let condition = items(&pod["status"]["conditions"]).iter().find(|condition| condition["type"] == *kind);
        let status = condition.map_or(NONE, |condition| text(&condition["status"]));
        out.line(1, format_args!("{} \t{status} ", text(kind)));
    }
}

/// What the status says, else what follows from the resources.
fn qos(pod: &Value) -> String {
    match text(&pod["status"]["qosClass"]) {
        "" => {
            let pod = husk_api::pod_from_json(pod).ok();
            pod.map(|pod| qos_class(&husk_api::core_spec(&pod)).as_str().to_owned()).unwrap_or_default()
        }
        class => class.to_owned(),
    }
}

/// As in `key=value:NoSchedule op=Exists for 300s`.
fn toleration(toleration: &Value) -> String {
    let mut shown = text(&toleration["key"]).to_owned();
    if !text(&toleration["value"]).is_empty() {
        shown.push_str(&format!("={}", text(&toleration["value"])));
    }
    if !text(&toleration["effect"]).is_empty() {
        shown.push_str(&format!(":{}", text(&toleration["effect"])));
    }
    if toleration["operator"] == "Exists" && text(&toleration["value"]).is_empty() {
        let space =
            if text(&toleration["key"]).is_empty() && text(&toleration["effect"]).is_empty() { "" } else { " " };
        shown.push_str(&format!("{space}op=Exists"));
    }
    if let Some(seconds) = toleration["tolerationSeconds"].as_i64() {
        shown.push_str(&format!(" for {seconds}s"));
    }
    shown
}
