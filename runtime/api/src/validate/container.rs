//! Containers: what all kinds have in common, and what apps and init containers have of their own.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1 as k8s;

use super::errors::{Errors, Path};
use super::pod::{text, unique};
use super::{env, ephemeral, lifecycle, mounts, names, probe, resources, restart_rules, security};
use crate::gates::Gates;

/// What the rules for a container ask of its pod.
pub(super) struct Scope<'a> {
    pub(super) spec: &'a k8s::PodSpec,
    /// The volumes that are sound, by name.
    pub(super) volumes: &'a BTreeMap<&'a str, &'a k8s::Volume>,
    /// Names of `resourceClaims`.
    pub(super) claims: &'a BTreeSet<&'a str>,
    /// The pod's grace, in seconds.
    pub(super) grace: Option<i64>,
    /// What is on.
    pub(super) gates: &'a Gates,
}

/// All containers of a pod.
pub(super) fn validate_all(scope: &Scope<'_>, path: &Path, errors: &mut Errors) {
    apps(scope, &path.child("containers"), errors);
    init(scope, &path.child("initContainers"), errors);
    ephemeral::validate(scope, &path.child("ephemeralContainers"), errors);
}

fn apps(scope: &Scope<'_>, path: &Path, errors: &mut Errors) {
    let containers = &scope.spec.containers;
    if containers.is_empty() {
        return errors.required(path, "");
    }
    let mut names = BTreeSet::new();
    for (index, container) in containers.iter().enumerate() {
        let path = path.index(index);
        common(container, scope, &path, errors);
        unique(&container.name, &mut names, &path.child("name"), errors);
        long_running(container, scope, &path, errors);
        restart_rules::validate(container, scope.gates, &path, errors);
    }
    host_ports(containers, path, errors);
}

fn init(scope: &Scope<'_>, path: &Path, errors: &mut Errors) {
    let mut names: BTreeSet<&str> = scope.spec.containers.iter().map(|container| container.name.as_str()).collect();
    for (index, container) in scope.spec.init_containers.iter().flatten().enumerate() {
        let at = path.index(index);
        common(container, scope, &at, errors);
        restart_rules::validate_init(container, scope.gates, &at, errors);
        let name = container.name.as_str();
        if !name.is_empty() || names.contains(&name) {
            unique(name, &mut names, &at.child("name"), errors);
        }
        // They run one after the other, so each is checked on its own. (The index is upstream's.)
        host_ports(std::slice::from_ref(container), path, errors);
        if container.restart_policy.as_deref() == Some("Always") {
            long_running(container, scope, &at, errors);
            continue;
        }
        let table = [
            (container.lifecycle.is_some(), "lifecycle"),
            (container.liveness_probe.is_some(), "livenessProbe"),
            (container.readiness_probe.is_some(), "readinessProbe"),
            (container.startup_probe.is_some(), "startupProbe"),
        ];
        for (is_set, field) in table {
            let rule = "may not be set for init containers without restartPolicy=Always";
            errors.forbidden_if(is_set, &at.child(field), rule);
        }
        for (index, policy) in container.resize_policy.iter().flatten().enumerate() {
            let path = at.child("resizePolicy").index(index).child("restartPolicy");
            let rule = "must not be set to 'RestartContainer' for non-sidecar initContainers";
            errors.invalid_if(policy.restart_policy == "RestartContainer", &path, rule);
        }
    }
}

/// Hooks and probes, which make sense for containers that stay.
fn long_running(container: &k8s::Container, scope: &Scope<'_>, path: &Path, errors: &mut Errors) {
    lifecycle::validate(container.lifecycle.as_ref(), scope, &path.child("lifecycle"), errors);
    probe::liveness(container.liveness_probe.as_ref(), &path.child("livenessProbe"), errors);
    probe::readiness(container.readiness_probe.as_ref(), &path.child("readinessProbe"), errors);
    probe::startup(container.startup_probe.as_ref(), &path.child("startupProbe"), errors);
}

/// What holds for every container.
pub(super) fn common(container: &k8s::Container, scope: &Scope<'_>, path: &Path, errors: &mut Errors) {
    if container.name.is_empty() {
        errors.required(&path.child("name"), "");
    } else {
        errors.invalid_all(&path.child("name"), names::label(&container.name));
    }
    errors.required_text(container.image.as_deref(), &path.child("image"), "");
    let policies = ["File", "FallbackToLogsOnError"];
    let policy = container.termination_message_policy.as_deref();
    errors.required_one_of(policy, &path.child("terminationMessagePolicy"), &policies);
    ports(container.ports.as_deref().unwrap_or_default(), &path.child("ports"), errors);
    env::variables(container.env.as_deref().unwrap_or_default(), scope, &path.child("env"), errors);
    env::sources(container.env_from.as_deref().unwrap_or_default(), &path.child("envFrom"), errors);
    mounts::volume_mounts(container, scope, &path.child("volumeMounts"), errors);
    mounts::volume_devices(container, scope, &path.child("volumeDevices"), errors);
    pull_policy(container.image_pull_policy.as_deref(), &path.child("imagePullPolicy"), errors);
    let resources_path = path.child("resources");
    if let Some(written) = &container.resources {
        resources::validate(written, resources::container_resource_name, scope.claims, &resources_path, errors);
    }
    resources::resize_policy(container, scope.spec, &path.child("resizePolicy"), errors);
    if let Some(context) = &container.security_context {
        security::of_container(context, scope.spec, &path.child("securityContext"), errors);
    }
}

/// Of a container or an image volume.
pub(super) fn pull_policy(policy: Option<&str>, path: &Path, errors: &mut Errors) {
    errors.required_one_of(policy, path, &["Always", "IfNotPresent", "Never"]);
}

fn ports(ports: &[k8s::ContainerPort], path: &Path, errors: &mut Errors) {
    let mut names = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let path = path.index(index);
        if let Some(name) = port.name.as_deref().filter(|name| !name.is_empty()) {
            let broken = names::port(name);
            if broken.is_empty() {
                unique(name, &mut names, &path.child("name"), errors);
            }
            errors.invalid_all(&path.child("name"), broken);
        }
        if port.container_port == 0 {
            errors.required(&path.child("containerPort"), "");
        } else {
            port_number(port.container_port, &path.child("containerPort"), errors);
        }
        if let Some(number) = port.host_port.filter(|number| *number != 0) {
            port_number(number, &path.child("hostPort"), errors);
        }
        errors.required_one_of(port.protocol.as_deref(), &path.child("protocol"), &["SCTP", "TCP", "UDP"]);
    }
}

pub(super) fn port_number(number: i32, path: &Path, errors: &mut Errors) {
    errors.in_range(i64::from(number), 1, 65535, path);
}

/// Two containers of a pod can't have the same port of the host.
fn host_ports(containers: &[k8s::Container], path: &Path, errors: &mut Errors) {
    let mut known = BTreeSet::new();
    for (index, container) in containers.iter().enumerate() {
        let ports_path = path.index(index).child("ports");
        for (index, port) in container.ports.iter().flatten().enumerate() {
            let Some(number) = port.host_port.filter(|number| *number != 0) else { continue };
            let key = (text(&port.protocol), text(&port.host_ip), number);
            if !known.insert(key) {
                errors.duplicate(&ports_path.index(index).child("hostPort"));
            }
        }
    }
}
