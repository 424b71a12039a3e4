//! Changes of resources while a pod runs.

use std::collections::BTreeMap;

use husk_core::qos::qos_class;
use k8s_openapi::api::core::v1 as k8s;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::errors::{Errors, Path};
use super::pod::{metadata_and_spec, text};
use super::same::equal;
use super::update::{is_mirror, object_meta, with_identity};
use crate::core_spec;
use crate::defaults::default_pod;
use crate::gates::Gates;

type Amounts = BTreeMap<String, Quantity>;

const RESIZABLE: [&str; 2] = ["cpu", "memory"];

pub(super) fn validate(old: &k8s::Pod, new: &k8s::Pod, gates: &Gates, errors: &mut Errors) {
    let new = &only_resources(old, new);
    let here = Path::new("");
    if is_mirror(old) {
        return errors.forbidden(&here, "static pods cannot be resized");
    }
    let empty = k8s::PodSpec::default();
    let (old_spec, new_spec) = (old.spec.as_ref().unwrap_or(&empty), new.spec.as_ref().unwrap_or(&empty));
    if old_spec.os.as_ref().is_some_and(|os| os.name == "windows") {
        return errors.forbidden(&here, "windows pods cannot be resized");
    }
    object_meta(&old.metadata, &new.metadata, &Path::new("metadata"), errors);
    metadata_and_spec(new, gates, errors);
    let path = Path::new("spec");
    if known_class(old) != qos_class(&core_spec(new)).as_str() {
        errors.invalid(&path, "Pod QOS Class may not change as a result of resizing");
    }
    errors.forbidden_if(!is_supported(old), &path, "Pod running on node without support for resize");
    let mut masked = new_spec.clone();
    pod_level(old_spec, &mut masked, &path, errors);
    if same_containers(old_spec, new_spec, &path, errors) {
        containers(old_spec, masked, &path, errors);
    }
}

/// The old pod with the new one's resources. A pod with other containers is taken as it is, so that it is refused.
fn only_resources(old: &k8s::Pod, new: &k8s::Pod) -> k8s::Pod {
    let (Some(old_spec), Some(new_spec)) = (&old.spec, &new.spec) else { return new.clone() };
    let init = |spec: &k8s::PodSpec| spec.init_containers.clone().unwrap_or_default();
    let (old_init, new_init) = (init(old_spec), init(new_spec));
    if old_spec.containers.len() != new_spec.containers.len() || old_init.len() != new_init.len() {
        return new.clone();
    }
    let mut pod = with_identity(old, new);
    let spec = pod.spec.get_or_insert_default();
    spec.resources = new_spec.resources.clone();
    spec.containers = with_resources(&old_spec.containers, &new_spec.containers);
    spec.init_containers = spec.init_containers.as_ref().map(|_| with_resources(&old_init, &new_init));
    // Requests follow from limits again.
    default_pod(&mut pod);
    pod
}

fn with_resources(old: &[k8s::Container], new: &[k8s::Container]) -> Vec<k8s::Container> {
    if old.iter().zip(new).any(|(old, new)| old.name != new.name) {
        return new.to_vec();
    }
    let merge = |(old, new): (&k8s::Container, &k8s::Container)| k8s::Container {
        resources: new.resources.clone(),
        resize_policy: new.resize_policy.clone(),
        ..old.clone()
    };
    old.iter().zip(new).map(merge).collect()
}

fn known_class(pod: &k8s::Pod) -> String {
    let stated = pod.status.as_ref().and_then(|status| status.qos_class.clone()).filter(|class| !class.is_empty());
    stated.unwrap_or_else(|| qos_class(&core_spec(pod)).as_str().into())
}

/// A node that knows how to resize reports the resources of what runs.
fn is_supported(pod: &k8s::Pod) -> bool {
    let statuses = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
    let mut running = statuses.filter(|status| status.state.as_ref().is_some_and(|state| state.running.is_some()));
    running.next().is_none_or(|status| status.resources.is_some())
}

/// What the pod has as a whole; in `masked` it is set back to the old.
fn pod_level(old: &k8s::PodSpec, masked: &mut k8s::PodSpec, path: &Path, errors: &mut Errors) {
    let says = |spec: &k8s::PodSpec| {
        spec.resources.as_ref().is_some_and(|resources| !is_empty(&resources.requests) || !is_empty(&resources.limits))
    };
    if !says(old) && !says(masked) {
        return;
    }
    let resources_path = path.child("resources");
    let (old, new) = (&old.resources, &masked.resources);
    if let Some(old) = old {
        let Some(new) = new else {
            return errors.forbidden(&resources_path, "pod-level resources cannot be removed");
        };
        removed(old, new, "pod-level resource", &resources_path, errors);
    }
    let mut back = new.as_ref().map(|new| k8s::ResourceRequirements {
        claims: new.claims.clone(),
        ..set_back(&old.clone().unwrap_or_default(), new)
    });
    if old.is_none() && back.as_ref().is_some_and(|back| equal(back, &k8s::ResourceRequirements::default())) {
        back = None;
    }
    if !equal(&back, old) {
        errors.forbidden(path, "only cpu and memory resources are mutable at pod-level");
    }
    masked.resources = back;
}

fn is_empty(list: &Option<Amounts>) -> bool {
    list.as_ref().is_none_or(BTreeMap::is_empty)
}

fn same_containers(old: &k8s::PodSpec, new: &k8s::PodSpec, path: &Path, errors: &mut Errors) -> bool {
    let before = errors.len();
    for (list, old, new) in
        [("containers", old.containers.as_slice(), new.containers.as_slice()), ("initContainers", init(old), init(new))]
    {
        let path = path.child(list);
        if old.len() != new.len() {
            errors.forbidden(&path, format!("{list} may not be added or removed on resize"));
            continue;
        }
        for (index, (old, new)) in old.iter().zip(new).enumerate() {
            let rule = format!("{list} may not be renamed or reordered on resize");
            errors.forbidden_if(old.name != new.name, &path.index(index).child("name"), &rule);
        }
    }
    errors.len() == before
}

fn init(spec: &k8s::PodSpec) -> &[k8s::Container] {
    spec.init_containers.as_deref().unwrap_or_default()
}

/// What has been given can be changed, not taken away, and nothing but CPU and memory.
fn containers(old: &k8s::PodSpec, mut masked: k8s::PodSpec, path: &Path, errors: &mut Errors) {
    for (list, old, new) in [
        ("containers", old.containers.as_slice(), masked.containers.as_slice()),
        ("initContainers", init(old), init(&masked)),
    ] {
        for (index, (old, new)) in old.iter().zip(new).enumerate() {
            let path = path.child(list).index(index).child("resources");
            let written = |container: &k8s::Container| container.resources.clone().unwrap_or_default();
            removed(&written(old), &written(new), "resource", &path, errors);
        }
    }
    for (container, old) in masked.containers.iter_mut().zip(&old.containers) {
        mask(container, old);
        errors.forbidden_if(!equal(container, old), path, "only cpu and memory resources are mutable");
    }
    let pairs = masked.init_containers.iter_mut().flatten().zip(init(old));
    for (index, (container, old)) in pairs.enumerate() {
        let path = path.child("initContainers").index(index);
        let is_modified = !equal(container, old);
        mask(container, old);
        let rule = "only cpu and memory resources for init or sidecar containers are mutable";
        errors.forbidden_if(!equal(container, old), &path, rule);
        if is_modified && text(&container.restart_policy) != "Always" {
            let policies = container.resize_policy.iter().flatten();
            let rule = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized";
            for _ in policies.filter(|policy| policy.restart_policy == "RestartContainer") {
                errors.forbidden(&path, rule);
            }
        }
    }
    // Whatever else differs is said only if nothing else is wrong.
    if errors.len() == 0 && !equal(&masked, old) {
        errors.forbidden(path, "only cpu and memory resources are mutable");
    }
}

fn removed(
    old: &k8s::ResourceRequirements,
    new: &k8s::ResourceRequirements,
    what: &str,
    path: &Path,
    errors: &mut Errors,
) {
    for (old, new, field) in [(&old.limits, &new.limits, "limits"), (&old.requests, &new.requests, "requests")] {
        let is_kept = |name: &String| new.as_ref().is_some_and(|new| new.contains_key(name));
        let is_removed = !old.iter().flatten().all(|(name, _)| is_kept(name));
        errors.forbidden_if(is_removed, &path.child(field), &format!("{what} {field} cannot be removed"));
    }
}

/// Sets back what may change. (Claims get lost here, as upstream: a container with claims can't be resized.)
fn mask(container: &mut k8s::Container, old: &k8s::Container) {
    let (old, new) = (old.resources.clone().unwrap_or_default(), container.resources.clone().unwrap_or_default());
    container.resources = Some(set_back(&old, &new));
}

fn set_back(old: &k8s::ResourceRequirements, new: &k8s::ResourceRequirements) -> k8s::ResourceRequirements {
    let list = |old: &Option<Amounts>, new: &Option<Amounts>| {
        let mut list = new.clone().unwrap_or_default();
        for name in RESIZABLE {
            match old.as_ref().and_then(|old| old.get(name)) {
                Some(amount) => list.insert(name.into(), amount.clone()),
                None => list.remove(name),
            };
        }
        Some(list)
    };
    k8s::ResourceRequirements {
        claims: None,
        limits: list(&old.limits, &new.limits),
        requests: list(&old.requests, &new.requests),
    }
}
