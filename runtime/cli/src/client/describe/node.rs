//! Nodes, as `kubectl describe node` writes them.

use husk_core::quantity::Quantity;
use jiff::Timestamp;
use serde_json::Value;

use super::text::{NONE, Text, date, plain};
use crate::client::happenings::time;
use crate::client::output::text;
use crate::client::resources::items;

const ROLE_PREFIX: &str = "node-role.kubernetes.io/";

pub(super) fn describe(out: &mut Text, node: &Value, pods: &[Value]) {
    let (metadata, spec, status) = (&node["metadata"], &node["spec"], &node["status"]);
    out.pair(0, "Name", text(&metadata["name"]));
    let labels = metadata["labels"].as_object().into_iter().flatten();
    let roles: Vec<&str> = labels.filter_map(|(key, _)| key.strip_prefix(ROLE_PREFIX)).collect();
    out.pair(0, "Roles", if roles.is_empty() { NONE.to_owned() } else { roles.join(",") });
    out.labels("Labels", &metadata["labels"]);
    out.annotations(&metadata["annotations"]);
    out.pair(0, "CreationTimestamp", date(&metadata["creationTimestamp"]));
    let taint = |taint: &Value| match text(&taint["value"]) {
        "" => format!("{}:{}", text(&taint["key"]), text(&taint["effect"])),
        value => format!("{}={value}:{}", text(&taint["key"]), text(&taint["effect"])),
    };
    out.below("Taints", &items(&spec["taints"]).iter().map(taint).collect::<Vec<_>>());
    out.pair(0, "Unschedulable", spec["unschedulable"] == true);
    if !items(&status["conditions"]).is_empty() {
        out.line(0, "Conditions:\n  Type\tStatus\tLastHeartbeatTime\tLastTransitionTime\tReason\tMessage");
        out.line(1, "----\t------\t-----------------\t------------------\t------\t-------");
        for condition in items(&status["conditions"]) {
            out.line(
                1,
                format_args!(
                    "{} \t{} \t{} \t{} \t{} \t{}",
                    text(&condition["type"]),
                    text(&condition["status"]),
                    date(&condition["lastHeartbeatTime"]),
                    date(&condition["lastTransitionTime"]),
                    text(&condition["reason"]),
                    text(&condition["message"])
                ),
            );
        }
    }
    out.line(0, "Addresses:");
    for address in items(&status["addresses"]) {
        out.pair(1, text(&address["type"]), text(&address["address"]));
    }
    for (title, field) in [("Capacity", "capacity"), ("Allocatable", "allocatable")] {
        if let Some(list) = status[field].as_object().filter(|list| !list.is_empty()) {
            out.line(0, format_args!("{title}:"));
            list.iter().for_each(|(name, quantity)| out.pair(1, name, plain(quantity)));
        }
    }
    system_info(out, &status["nodeInfo"]);
    for (title, field) in [("PodCIDR", "podCIDR"), ("ProviderID", "providerID")] {
        if !text(&spec[field]).is_empty() {
            out.pair(0, title, text(&spec[field]));
        }
    }
    let allocatable = &status["allocatable"];
    of_pods(out, pods, allocatable);
    allocated(out, pods, allocatable);
}

fn system_info(out: &mut Text, info: &Value) {
    out.line(0, "System Info:");
    for (title, field) in [
        ("Machine ID", "machineID"),
        ("System UUID", "systemUUID"),
        ("Boot ID", "bootID"),
        ("Kernel Version", "kernelVersion"),
        ("OS Image", "osImage"),
        ("Operating System", "operatingSystem"),
        ("Architecture", "architecture"),
        ("Container Runtime Version", "containerRuntimeVersion"),
        ("Kubelet Version", "kubeletVersion"),
    ] {
        out.pair(1, title, text(&info[field]));
    }
}

fn of_pods(out: &mut Text, pods: &[Value], allocatable: &Value) {
    out.line(0, format_args!("Non-terminated Pods:\t({} in total)", pods.len()));
    out.line(1, "Namespace\tName\t\tCPU Requests\tCPU Limits\tMemory Requests\tMemory Limits\tAge");
    out.line(1, "---------\t----\t\t------------\t----------\t---------------\t-------------\t---");
    for pod in pods {
        let metadata = &pod["metadata"];
        let part = |list: &str, resource: &str| share(&total([pod], list, resource), &allocatable[resource], resource);
        let age = time(&metadata["creationTimestamp"]).map(|time| husk_api::age(time, Timestamp::now()));
        out.line(
            1,
            format_args!(
                "{}\t{}\t\t{}\t{}\t{}\t{}\t{}",
                text(&metadata["namespace"]),
                text(&metadata["name"]),
                part("requests", "cpu"),
                part("limits", "cpu"),
                part("requests", "memory"),
                part("limits", "memory"),
                age.unwrap_or_else(|| "<unknown>".into())
            ),
        );
    }
}

fn allocated(out: &mut Text, pods: &[Value], allocatable: &Value) {
    out.line(0, "Allocated resources:\n  (Total limits may be over 100 percent, i.e., overcommitted.)");
    out.line(1, "Resource\tRequests\tLimits");
    out.line(1, "--------\t--------\t------");
    for resource in ["cpu", "memory", "ephemeral-storage"] {
        let part = |list: &str| share(&total(pods, list, resource), &allocatable[resource], resource);
        out.line(1, format_args!("{resource}\t{}\t{}", part("requests"), part("limits")));
    }
}

/// What the containers of pods ask for. Those that run one after the other need as much as the largest.
fn total<'a>(pods: impl IntoIterator<Item = &'a Value>, list: &str, resource: &str) -> Quantity {
    let mut total = Quantity::from_milli(0);
    for pod in pods {
        let spec = &pod["spec"];
        let of = |container: &Value| Quantity::parse(&plain(&container["resources"][list][resource])).ok();
        let mut staying = Quantity::from_milli(0);
        let mut largest = Quantity::from_milli(0);
        for container in items(&spec["initContainers"]) {
            let Some(quantity) = of(container) else { continue };
            let mut then = quantity.clone();
            then.add_saturating(&staying);
            if container["restartPolicy"] == "Always" {
                staying = then.clone();
            }
            if then.nanos() > largest.nanos() {
                largest = then;
            }
        }
        items(&spec["containers"]).iter().filter_map(of).for_each(|quantity| staying.add_saturating(&quantity));
        total.add_saturating(if largest.nanos() > staying.nanos() { &largest } else { &staying });
    }
    total
}

/// As in `500m (25%)`.
fn share(quantity: &Quantity, of: &Value, resource: &str) -> String {
    let shown = match (resource, quantity.is_zero()) {
        (_, true) => "0".to_owned(),
        ("cpu", _) => format!("{}m", quantity.milli_value()),
        _ => quantity.to_string(),
    };
    let all = Quantity::parse(&plain(of)).map(|all| all.nanos()).unwrap_or_default();
    match all {
        0 => format!("{shown} (0%)"),
        all => format!("{shown} ({}%)", quantity.nanos().saturating_mul(100) / all),
    }
}
