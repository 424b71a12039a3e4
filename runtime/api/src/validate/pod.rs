//! A pod as it is created.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1 as k8s;

use super::container::{self, Scope};
use super::errors::{ErrorKind, Errors, FieldError, Path};
use super::{
    affinity, annotations, host, metadata, names, network, os, placement, pod_resources, resources, security, volumes,
};
use crate::gates::Gates;

/// Everything that keeps a pod from being created, by the rules that Husk runs with.
pub fn validate_pod(pod: &k8s::Pod) -> Vec<FieldError> {
    validate_pod_with(pod, &Gates::default())
}

/// The same with other feature gates.
pub fn validate_pod_with(pod: &k8s::Pod, gates: &Gates) -> Vec<FieldError> {
    let mut errors = Errors::default();
    let spec_path = Path::new("spec");
    metadata_and_spec(pod, gates, &mut errors);
    let empty = k8s::PodSpec::default();
    let spec = pod.spec.as_ref().unwrap_or(&empty);
    if spec.ephemeral_containers.as_ref().is_some_and(|containers| !containers.is_empty()) {
        errors.forbidden(&spec_path.child("ephemeralContainers"), "cannot be set on create");
    }
    let is_gated = spec.scheduling_gates.as_ref().is_some_and(|gates| !gates.is_empty());
    if is_gated && !text(&spec.node_name).is_empty() {
        errors.forbidden(&spec_path.child("nodeName"), "cannot be set until all schedulingGates have been cleared");
    }
    if let Some(written) = &pod.metadata.annotations {
        annotations::match_fields(written, spec, &spec_path, &mut errors);
    }
    errors.into_sorted()
}

/// What holds for a pod at all times.
pub(super) fn metadata_and_spec(pod: &k8s::Pod, gates: &Gates, errors: &mut Errors) {
    let empty = k8s::PodSpec::default();
    let spec = pod.spec.as_ref().unwrap_or(&empty);
    let metadata_path = Path::new("metadata");
    metadata::validate(&pod.metadata, &metadata_path, errors);
    if let Some(written) = &pod.metadata.annotations {
        annotations::validate(written, spec, gates, &metadata_path.child("annotations"), errors);
    }
    let path = Path::new("spec");
    validate_spec(spec, &pod.metadata, gates, &path, errors);
    // A template may lack these two, a pod may not.
    service_account_tokens(spec, &path, errors);
    trimmed_images(&spec.containers, &path.child("containers"), errors);
    trimmed_images(spec.init_containers.as_deref().unwrap_or_default(), &path.child("initContainers"), errors);
}

fn validate_spec(
    spec: &k8s::PodSpec,
    metadata: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
    gates: &Gates,
    path: &Path,
    errors: &mut Errors,
) {
    let volumes = volumes::validate(spec, metadata, &path.child("volumes"), errors);
    let claims = resources::pod_claims(spec, metadata, &path.child("resourceClaims"), errors);
    let scope = Scope { spec, volumes: &volumes, claims: &claims, grace: spec.termination_grace_period_seconds, gates };
    container::validate_all(&scope, path, errors);
    if let Some(written) = &spec.resources {
        pod_resources::validate(written, &scope, &path.child("resources"), errors);
    }
    host::host_network(spec, path, errors);
    let restart_policies = ["Always", "OnFailure", "Never"];
    errors.required_one_of(spec.restart_policy.as_deref(), &path.child("restartPolicy"), &restart_policies);
    network::dns_policy(spec, &path.child("dnsPolicy"), errors);
    metadata::labels(spec.node_selector.as_ref(), &path.child("nodeSelector"), errors);
    if let Some(context) = &spec.security_context {
        security::of_pod(context, spec, &path.child("securityContext"), errors);
    }
    affinity::validate(spec.affinity.as_ref(), &path.child("affinity"), errors);
    network::dns_config(spec, &path.child("dnsConfig"), errors);
    placement::readiness_gates(spec, &path.child("readinessGates"), errors);
    placement::scheduling_gates(spec, &path.child("schedulingGates"), errors);
    placement::topology_spread(spec, &path.child("topologySpreadConstraints"), errors);
    os::host_processes(spec, path, errors);
    host::host_users(spec, gates, path, errors);
    names_of_others(spec, path, errors);
    if let Some(seconds) = spec.active_deadline_seconds {
        errors.in_range(seconds, 1, i64::from(i32::MAX), &path.child("activeDeadlineSeconds"));
    }
    host::hostnames(spec, path, errors);
    placement::tolerations(spec.tolerations.as_deref().unwrap_or_default(), gates, &path.child("tolerations"), errors);
    network::host_aliases(spec, &path.child("hostAliases"), errors);
    if let Some(policy) = &spec.preemption_policy {
        errors.required_one_of(Some(policy), &path.child("preemptionPolicy"), &["PreemptLowerPriority", "Never"]);
    }
    if let Some(overhead) = &spec.overhead {
        let limits = k8s::ResourceRequirements { limits: Some(overhead.clone()), ..Default::default() };
        resources::validate(
            &limits,
            resources::container_resource_name,
            &BTreeSet::new(),
            &path.child("overhead"),
            errors,
        );
    }
    os::validate(spec, path, errors);
    placement::scheduling_group(spec, &path.child("schedulingGroup"), errors);
}

/// Names of objects that the pod refers to.
fn names_of_others(spec: &k8s::PodSpec, path: &Path, errors: &mut Errors) {
    let table = [
        (&spec.service_account_name, "serviceAccountName"),
        (&spec.node_name, "nodeName"),
        (&spec.priority_class_name, "priorityClassName"),
    ];
    for (name, field) in table {
        if !text(name).is_empty() {
            errors.invalid_all(&path.child(field), names::subdomain(text(name)));
        }
    }
    if let Some(class) = &spec.runtime_class_name {
        errors.invalid_all(&path.child("runtimeClassName"), names::subdomain(class));
    }
}

fn service_account_tokens(spec: &k8s::PodSpec, path: &Path, errors: &mut Errors) {
    if !text(&spec.service_account_name).is_empty() {
        return;
    }
    for (index, volume) in spec.volumes.iter().flatten().enumerate() {
        let sources = volume.projected.iter().flat_map(|projected| projected.sources.iter().flatten());
        let path = path.child("volumes").index(index).child("projected").child("sources");
        for (index, source) in sources.enumerate() {
            let token = path.index(index).child("serviceAccountToken");
            let has_token = source.service_account_token.is_some();
            errors.forbidden_if(has_token, &token, "must not be specified when serviceAccountName is not set");
        }
    }
}

fn trimmed_images(containers: &[k8s::Container], path: &Path, errors: &mut Errors) {
    for (index, container) in containers.iter().enumerate() {
        trimmed_image(text(&container.image), &path.index(index), errors);
    }
}

pub(super) fn trimmed_image(image: &str, path: &Path, errors: &mut Errors) {
    errors.invalid_if(image.trim() != image, &path.child("image"), "must not have leading or trailing whitespace");
}

/// A text that is not there is empty.
pub(super) fn text(text: &Option<String>) -> &str {
    text.as_deref().unwrap_or_default()
}

/// Names must be unique; gives whether this one was new.
pub(super) fn unique<'a>(name: &'a str, known: &mut BTreeSet<&'a str>, path: &Path, errors: &mut Errors) -> bool {
    let is_new = known.insert(name);
    if !is_new {
        errors.push(ErrorKind::Duplicate, path, "");
    }
    is_new
}
