//! What a pod may know about itself (META-02, META-03).

use std::collections::BTreeMap;

use husk_core::quantity::{Notation, Quantity};
use husk_core::spec::ResourceList;
use k8s_openapi::api::core::v1 as k8s;

use super::EnvError;
use crate::amount;
use crate::quote::quote;
use husk_core::names::is_qualified_name;

/// Value of a `fieldRef`.
///
/// # Errors
/// If a pod can't know that field.
pub fn field_value(path: &str, pod: &k8s::Pod) -> Result<String, EnvError> {
    let unsupported = || EnvError(format!("unsupported fieldPath: {path}"));
    if let Some((map, key)) = subscript(path) {
        let (entries, key_is_valid) = match map {
            "metadata.annotations" => (&pod.metadata.annotations, is_qualified_name(&key.to_lowercase())),
            "metadata.labels" => (&pod.metadata.labels, is_qualified_name(key)),
            _ => return Err(unsupported()),
        };
        if !key_is_valid {
            return Err(EnvError(format!("invalid key subscript in {path}")));
        }
        return Ok(entries.as_ref().and_then(|entries| entries.get(key)).cloned().unwrap_or_default());
    }
    let (metadata, spec, status) = (&pod.metadata, pod.spec.as_ref(), pod.status.as_ref());
    let value = match path {
        "metadata.name" => metadata.name.clone(),
        "metadata.namespace" => metadata.namespace.clone(),
        "metadata.uid" => metadata.uid.clone(),
        "metadata.annotations" => Some(lines_of(metadata.annotations.as_ref())),
        "metadata.labels" => Some(lines_of(metadata.labels.as_ref())),
        // The second is what it was called once.
        "spec.nodeName" | "spec.host" => spec.and_then(|spec| spec.node_name.clone()),
        "spec.serviceAccountName" => spec.and_then(|spec| spec.service_account_name.clone()),
        "status.hostIP" => status.and_then(|status| status.host_ip.clone()),
        "status.hostIPs" => status.map(|status| comma_separated(status.host_ips.iter().flatten().map(|host| &host.ip))),
        "status.podIP" => status.and_then(|status| status.pod_ip.clone()),
        "status.podIPs" => {
            status.map(|status| comma_separated(status.pod_ips.iter().flatten().map(|address| &address.ip)))
        }
        _ => return Err(unsupported()),
    };
    Ok(value.unwrap_or_default())
}

/// Value of a `resourceFieldRef`, in units of its divisor, rounded up. A limit that isn't set is all that the node has.
///
/// # Errors
/// If there is no such container or resource.
pub fn resource_value(
    field: &k8s::ResourceFieldSelector,
    pod: &k8s::Pod,
    container: &k8s::Container,
    allocatable: &ResourceList,
) -> Result<String, EnvError> {
    let container = match field.container_name.as_deref().filter(|name| !name.is_empty()) {
        None => container,
        Some(name) => named(pod, name).ok_or_else(|| EnvError(format!("container {name} not found")))?,
    };
    let unsupported = || EnvError(format!("unsupported container resource: {}", field.resource));
    let (list, resource) = field.resource.split_once('.').ok_or_else(unsupported)?;
    let is_known = matches!(resource, "cpu" | "memory" | "ephemeral-storage") || resource.starts_with("hugepages-");
    let resources = container.resources.as_ref();
    let amounts = match list {
        "limits" if is_known => amount::list(resources.and_then(|resources| resources.limits.as_ref())),
        "requests" if is_known => amount::list(resources.and_then(|resources| resources.requests.as_ref())),
        _ => return Err(unsupported()),
    };
    let node_has = allocatable.get(resource).filter(|_| list == "limits" && !resource.starts_with("hugepages-"));
    let amount = amounts.get(resource).filter(|a| list == "requests" || !a.is_zero()).or(node_has).cloned();
    let divisor = field.divisor.as_ref().map(amount::of).filter(|divisor| !divisor.is_zero());
    let divisor = divisor.unwrap_or(Quantity::new(1, Notation::Decimal));
    // CPU is counted in thousandths, all else in whole units.
    let count = |quantity: &Quantity| if resource == "cpu" { quantity.milli_value() } else { quantity.value() };
    let (amount, divisor) = (count(&amount.unwrap_or_default()), count(&divisor).max(1));
    Ok((amount / divisor + i64::from(amount % divisor != 0)).to_string())
}

fn named<'a>(pod: &'a k8s::Pod, name: &str) -> Option<&'a k8s::Container> {
    let spec = pod.spec.as_ref()?;
    spec.init_containers.iter().flatten().chain(&spec.containers).find(|container| container.name == name)
}

/// `metadata.labels['key']` → `metadata.labels` and `key`.
fn subscript(path: &str) -> Option<(&str, &str)> {
    path.strip_suffix("']")?.split_once("['").filter(|(map, _)| !map.is_empty())
}

/// `key="value"` a line, in the order of keys.
fn lines_of(entries: Option<&BTreeMap<String, String>>) -> String {
    let lines: Vec<String> =
        entries.into_iter().flatten().map(|(key, value)| format!("{key}={}", quote(value))).collect();
    lines.join("\n")
}

fn comma_separated<'a>(addresses: impl Iterator<Item = &'a String>) -> String {
    addresses.map(String::as_str).collect::<Vec<_>>().join(",")
}
