//! What a pod shares with its host, and what it is called.

use k8s_openapi::api::core::v1 as k8s;

use super::errors::{Errors, Path};
use super::names;
use super::pod::text;
use crate::gates::{Gate, Gates};

const MAX_HOSTNAME_OVERRIDE: usize = 64;

/// On the host's network a port of the container is a port of the host.
pub(super) fn host_network(spec: &k8s::PodSpec, path: &Path, errors: &mut Errors) {
    if spec.host_network != Some(true) {
        return;
    }
    for (index, container) in spec.containers.iter().enumerate() {
        let ports_path = path.child("containers").index(index).child("ports");
        for (index, port) in container.ports.iter().flatten().enumerate() {
            let differs = port.host_port.unwrap_or_default() != port.container_port;
            let rule = "must match `containerPort` when `hostNetwork` is true";
            errors.invalid_if(differs, &ports_path.index(index).child("hostPort"), rule);
        }
    }
}

/// With users of its own a pod can't share other things with its host.
pub(super) fn host_users(spec: &k8s::PodSpec, gates: &Gates, path: &Path, errors: &mut Errors) {
    if spec.host_users.unwrap_or(true) {
        return;
    }
    let rule = "when `hostUsers` is false";
    let shares_network = spec.host_network == Some(true) && !gates.has(Gate::UserNamespacesHostNetworkSupport);
    errors.forbidden_if(shares_network, &path.child("hostNetwork"), rule);
    errors.forbidden_if(spec.host_pid == Some(true), &path.child("HostPID"), rule);
    errors.forbidden_if(spec.host_ipc == Some(true), &path.child("HostIPC"), rule);
    let apps = spec.containers.iter().map(|container| &container.volume_devices);
    let init = spec.init_containers.iter().flatten().map(|container| &container.volume_devices);
    let ephemeral = spec.ephemeral_containers.iter().flatten().map(|container| &container.volume_devices);
    let lists = [
        ("containers", apps.collect::<Vec<_>>()),
        ("initContainers", init.collect()),
        ("ephemeralContainers", ephemeral.collect()),
    ];
    for (list, devices) in lists {
        for (index, devices) in devices.into_iter().enumerate() {
            let has_devices = devices.as_ref().is_some_and(|devices| !devices.is_empty());
            errors.forbidden_if(has_devices, &path.child(list).index(index).child("volumeDevices"), rule);
        }
    }
}

pub(super) fn hostnames(spec: &k8s::PodSpec, path: &Path, errors: &mut Errors) {
    for (name, field) in [(&spec.hostname, "hostname"), (&spec.subdomain, "subdomain")] {
        if !text(name).is_empty() {
            errors.invalid_all(&path.child(field), names::label(text(name)));
        }
    }
    let Some(name) = &spec.hostname_override else { return };
    let path = path.child("hostnameOverride");
    errors.invalid_all(&path, names::subdomain(name));
    if name.len() > MAX_HOSTNAME_OVERRIDE {
        errors.too_long(&path, MAX_HOSTNAME_OVERRIDE);
    }
    let table = [
        (spec.set_hostname_as_fqdn, "may not be specified when setHostnameAsFQDN is true"),
        (spec.host_network, "may not be specified when hostNetwork is true"),
    ];
    for (is_set, rule) in table {
        errors.forbidden_if(is_set == Some(true), &path, rule);
    }
}
