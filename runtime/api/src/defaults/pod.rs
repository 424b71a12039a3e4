//! Defaults of pods and pod templates.

use std::collections::BTreeMap;

use husk_core::resources::{is_pod_level, pod_limits, pod_requests};
use husk_core::spec::PodSpec;
use k8s_openapi::api::core::v1 as k8s;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::container::{self, fields, requests_from_limits, set_text};
use super::volumes;
use crate::{amount, core_spec};

/// Fills in a pod as Kubernetes does when it is created.
pub fn default_pod(pod: &mut k8s::Pod) {
    fill_pod(pod);
    pod.spec.iter_mut().for_each(older_names);
}

/// Fills in the template of a workload: as a pod's, but what is derived from other fields waits for the pod.
pub fn default_template(template: &mut k8s::PodTemplateSpec) {
    fill_template(template);
    template.spec.iter_mut().for_each(older_names);
}

/// The older name of the account is kept equal to the newer. Upstream does so when it converts, not when it fills in.
fn older_names(spec: &mut k8s::PodSpec) {
    match spec.service_account_name.clone().filter(|name| !name.is_empty()) {
        Some(name) => spec.service_account = Some(name),
        None => spec.service_account_name = spec.service_account.clone(),
    }
}

/// Fills in a pod, and nothing else.
pub(super) fn fill_pod(pod: &mut k8s::Pod) {
    let spec = pod.spec.get_or_insert_default();
    spec.enable_service_links.get_or_insert(true);
    let host_network = spec.host_network.unwrap_or_default();
    for container in spec.containers.iter_mut().chain(spec.init_containers.iter_mut().flatten()) {
        container.resources.iter_mut().for_each(requests_from_limits);
        for port in container.ports.iter_mut().flatten().filter(|_| host_network) {
            if port.host_port.unwrap_or_default() == 0 {
                port.host_port = Some(port.container_port);
            }
        }
    }
    // Sums are taken of what was written: amounts are rounded after that.
    pod_resources(spec);
    fill_pod_spec(spec);
}

/// Fills in a template, and nothing else.
pub(super) fn fill_template(template: &mut k8s::PodTemplateSpec) {
    fill_pod_spec(template.spec.get_or_insert_default());
}

fn fill_pod_spec(spec: &mut k8s::PodSpec) {
    set_text(&mut spec.dns_policy, "ClusterFirst");
    set_text(&mut spec.restart_policy, "Always");
    set_text(&mut spec.scheduler_name, "default-scheduler");
    spec.termination_grace_period_seconds.get_or_insert(30);
    spec.security_context.get_or_insert_default();
    spec.volumes.iter_mut().flatten().for_each(volumes::apply);
    for container in spec.init_containers.iter_mut().flatten().chain(&mut spec.containers) {
        container::apply(fields!(container));
    }
    for container in spec.ephemeral_containers.iter_mut().flatten() {
        container::apply(fields!(container));
    }
    spec.overhead.iter_mut().flat_map(|overhead| overhead.values_mut()).for_each(amount::round_to_milli);
    spec.resources.iter_mut().for_each(container::requirements);
}

/// Pod-level requests and limits that follow from those of the containers, once some are given.
fn pod_resources(spec: &mut k8s::PodSpec) {
    let Some(resources) = &spec.resources else { return };
    let has = |list: &Option<BTreeMap<String, Quantity>>| list.as_ref().is_some_and(|list| !list.is_empty());
    let (has_limits, has_requests) = (has(&resources.limits), has(&resources.requests));
    let of_containers = of_containers(spec);
    let (requested, limited) = (pod_requests(&of_containers), pod_limits(&of_containers));
    let Some(resources) = &mut spec.resources else { return };
    if has_limits || has_requests {
        for (name, amount) in limited.iter().filter(|(name, _)| name.starts_with("hugepages-")) {
            let limits = resources.limits.get_or_insert_default();
            limits.entry(name.clone()).or_insert_with(|| Quantity(amount.to_string()));
        }
    }
    let Some(limits) = resources.limits.clone().filter(|limits| !limits.is_empty()) else { return };
    let requests = resources.requests.get_or_insert_default();
    for (name, amount) in requested.iter().filter(|(name, _)| matches!(name.as_str(), "cpu" | "memory")) {
        requests.entry(name.clone()).or_insert_with(|| Quantity(amount.to_string()));
    }
    for (name, amount) in limits.iter().filter(|(name, _)| is_pod_level(name)) {
        requests.entry(name.clone()).or_insert_with(|| amount.clone());
    }
    if requests.is_empty() {
        resources.requests = None;
    }
}

/// The pod as the core sees it, without what is said for the pod as a whole.
pub(crate) fn of_containers(spec: &k8s::PodSpec) -> PodSpec {
    let spec = k8s::PodSpec { resources: None, overhead: None, ..spec.clone() };
    core_spec(&k8s::Pod { spec: Some(spec), ..k8s::Pod::default() })
}
