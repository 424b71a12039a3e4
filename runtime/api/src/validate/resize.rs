//! Changes of resources while a pod runs.

use std::collections::BTreeMap;

use husk_core::qos::qos_class;
use k8s_openapi::api::core::v1 as k8s;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::errors::{Errors, Path};
use super::gates::Gates;
use super::pod::metadata_and_spec;
use super::update::{equal, is_mirror, object_meta, with_identity};
use crate::core_spec;
use crate::defaults::default_pod;

pub(super) fn validate(old: &k8s::Pod, new: &k8s::Pod, gates: &Gates, errors: &mut Errors) {
    let new = &only_resources(old, new);
    object_meta(&old.metadata, &new.metadata, &Path::new("metadata"), errors);
    metadata_and_spec(new, gates, errors);
    let empty = k8s::PodSpec::default();
    let (old_spec, new_spec) = (old.spec.as_ref().unwrap_or(&empty), new.spec.as_ref().unwrap_or(&empty));
    let here = Path::new("");
    if is_mirror(old) {
        return errors.forbidden(&here, "static pods cannot be resized");
    }
    if old_spec.os.as_ref().is_some_and(|os| os.name == "windows") {
        return errors.forbidden(&here, "windows pods cannot be resized");
    }
    let path = Path::new("spec");
    if qos_class(&core_spec(old)) != qos_class(&core_spec(new)) {
        errors.invalid(&path, "Pod QOS Class may not change as a result of resizing");
    }
    if !same_containers(old_spec, new_spec, &path, errors) {
        return;
    }
    removals(old_spec, new_spec, &path, errors);
    if !equal(&masked(old_spec, new_spec), old_spec) {
        errors.forbidden(&path, "only cpu and memory resources are mutable");
    }
}

/// The old pod with the new one's resources. A pod with other containers is taken as it is, so that it is refused.
fn only_resources(old: &k8s::Pod, new: &k8s::Pod) -> k8s::Pod {
    let (Some(old_spec), Some(new_spec)) = (&old.spec, &new.spec) else { return new.clone() };
    if names(old_spec) != names(new_spec) {
        return new.clone();
    }
    let mut pod = with_identity(old, new);
    let spec = pod.spec.get_or_insert_default();
    spec.resources = new_spec.resources.clone();
    let new_init = new_spec.init_containers.iter().flatten();
    let pairs = spec.containers.iter_mut().zip(&new_spec.containers);
    for (container, new) in pairs.chain(spec.init_containers.iter_mut().flatten().zip(new_init)) {
        container.resources = new.resources.clone();
        container.resize_policy = new.resize_policy.clone();
    }
    // Requests follow from limits again.
    default_pod(&mut pod);
    pod
}

fn names(spec: &k8s::PodSpec) -> [Vec<&str>; 2] {
    let init = spec.init_containers.iter().flatten().map(|container| container.name.as_str());
    [spec.containers.iter().map(|container| container.name.as_str()).collect(), init.collect()]
}

fn same_containers(old: &k8s::PodSpec, new: &k8s::PodSpec, path: &Path, errors: &mut Errors) -> bool {
    let before = errors.len();
    for ((old, new), list) in names(old).into_iter().zip(names(new)).zip(["containers", "initContainers"]) {
        let path = path.child(list);
        if old.len() != new.len() {
            errors.forbidden(&path, format!("{list} may not be added or removed on resize"));
        } else if old != new {
            errors.forbidden(&path, format!("{list} may not be renamed or reordered on resize"));
        }
    }
    errors.len() == before
}

/// What has been given can be changed, not taken away.
fn removals(old: &k8s::PodSpec, new: &k8s::PodSpec, path: &Path, errors: &mut Errors) {
    let old_init = old.init_containers.as_deref().unwrap_or_default();
    let new_init = new.init_containers.as_deref().unwrap_or_default();
    for (list, old, new) in [("containers", &*old.containers, &*new.containers), ("initContainers", old_init, new_init)]
    {
        for (index, (old, new)) in old.iter().zip(new).enumerate() {
            let path = path.child(list).index(index).child("resources");
            removed(old.resources.as_ref(), new.resources.as_ref(), "resource", &path, errors);
        }
    }
    let path = path.child("resources");
    match (&old.resources, &new.resources) {
        (Some(_), None) => errors.forbidden(&path, "pod-level resources cannot be removed"),
        (old, new) => removed(old.as_ref(), new.as_ref(), "pod-level resource", &path, errors),
    }
}

fn removed(
    old: Option<&k8s::ResourceRequirements>,
    new: Option<&k8s::ResourceRequirements>,
    what: &str,
    path: &Path,
    errors: &mut Errors,
) {
    type List = fn(&k8s::ResourceRequirements) -> Option<&BTreeMap<String, Quantity>>;
    let lists: [(&str, List); 2] = [("limits", |r| r.limits.as_ref()), ("requests", |r| r.requests.as_ref())];
    for (field, list) in lists {
        let has = |resources: Option<&k8s::ResourceRequirements>, name: &str| {
            resources.and_then(list).is_some_and(|list| list.contains_key(name))
        };
        let is_removed = ["cpu", "memory"].iter().any(|name| has(old, name) && !has(new, name));
        errors.forbidden_if(is_removed, &path.child(field), &format!("{what} {field} cannot be removed"));
    }
}

/// The new spec with CPU and memory set back to the old.
fn masked(old: &k8s::PodSpec, new: &k8s::PodSpec) -> k8s::PodSpec {
    let mut spec = new.clone();
    let old_init = old.init_containers.iter().flatten();
    let pairs = spec.containers.iter_mut().zip(&old.containers);
    for (container, old) in pairs.chain(spec.init_containers.iter_mut().flatten().zip(old_init)) {
        container.resources = set_back(old.resources.as_ref(), container.resources.as_ref());
    }
    spec.resources = set_back(old.resources.as_ref(), spec.resources.as_ref());
    spec
}

fn set_back(
    old: Option<&k8s::ResourceRequirements>,
    new: Option<&k8s::ResourceRequirements>,
) -> Option<k8s::ResourceRequirements> {
    let mut resources = new.cloned().unwrap_or_default();
    let old = old.cloned().unwrap_or_default();
    for (new, old) in [(&mut resources.limits, &old.limits), (&mut resources.requests, &old.requests)] {
        let new = new.get_or_insert_default();
        for name in ["cpu", "memory"] {
            match old.as_ref().and_then(|list| list.get(name)) {
                Some(amount) => new.insert(name.into(), amount.clone()),
                None => new.remove(name),
            };
        }
    }
    Some(resources)
}
