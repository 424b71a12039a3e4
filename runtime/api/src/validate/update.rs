//! Changes of a pod: which fields may change, and how.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1 as k8s;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::errors::{Errors, FieldError, Path};
use super::pod::{metadata_and_spec, text, trimmed_image};
use super::same::equal;
use super::{annotations, metadata, placement, resize};
use crate::gates::Gates;

const ONLY_THESE: &str = "pod updates may not change fields other than `spec.containers[*].image`,\
    `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),\
    `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// The door that a change comes through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Subresource {
    /// The pod itself.
    #[default]
    None,
    /// `pods/NAME/ephemeralcontainers`: only those change.
    EphemeralContainers,
    /// `pods/NAME/resize`: only resources change.
    Resize,
}

/// Everything that keeps `new` from taking the place of `old`; both are defaulted.
pub fn validate_pod_update(old: &k8s::Pod, new: &k8s::Pod, subresource: Subresource, gates: &Gates) -> Vec<FieldError> {
    let mut errors = Errors::default();
    match subresource {
        Subresource::None => update(old, new, gates, &mut errors),
        Subresource::EphemeralContainers => ephemeral(old, new, gates, &mut errors),
        Subresource::Resize => resize::validate(old, new, gates, &mut errors),
    }
    errors.into_sorted()
}

fn update(old: &k8s::Pod, new: &k8s::Pod, gates: &Gates, errors: &mut Errors) {
    let (new, path) = (&with_metadata_kept(old, new), Path::new("spec"));
    object_meta(&old.metadata, &new.metadata, &Path::new("metadata"), errors);
    metadata_and_spec(new, gates, errors);
    pod_annotations(old, new, gates, errors);
    let empty = k8s::PodSpec::default();
    let (old, new) = (old.spec.as_ref().unwrap_or(&empty), new.spec.as_ref().unwrap_or(&empty));
    let init = |spec: &k8s::PodSpec| spec.init_containers.clone().unwrap_or_default();
    let stop = !images(&old.containers, &new.containers, &path.child("containers"), errors)
        || !images(&init(old), &init(new), &path.child("initContainers"), errors)
        || !deadline(old, new, &path.child("activeDeadlineSeconds"), errors);
    if stop {
        return;
    }
    added_tolerations(old, new, gates, &path.child("tolerations"), errors);
    removed_gates(old, new, &path.child("schedulingGates"), errors);
    if !equal(&masked(old, new, &path, errors), old) {
        errors.forbidden(&path, ONLY_THESE);
    }
}

/// The new spec with everything that may change set back to the old.
fn masked(old: &k8s::PodSpec, new: &k8s::PodSpec, path: &Path, errors: &mut Errors) -> k8s::PodSpec {
    let mut spec = new.clone();
    for (container, old) in spec.containers.iter_mut().zip(&old.containers) {
        container.image = old.image.clone();
    }
    for (container, old) in spec.init_containers.iter_mut().flatten().zip(old.init_containers.iter().flatten()) {
        container.image = old.image.clone();
    }
    spec.active_deadline_seconds = old.active_deadline_seconds;
    spec.scheduling_gates = old.scheduling_gates.clone();
    spec.tolerations = old.tolerations.clone();
    let was_negative = old.termination_grace_period_seconds.is_some_and(|seconds| seconds < 0);
    if was_negative && spec.termination_grace_period_seconds == Some(1) {
        spec.termination_grace_period_seconds = old.termination_grace_period_seconds;
    }
    if old.scheduling_gates.as_ref().is_some_and(|gates| !gates.is_empty()) {
        selector_of_gated(old, &mut spec, &path.child("nodeSelector"), errors);
        affinity_of_gated(old, &mut spec, &path.child("affinity").child("nodeAffinity"), errors);
    }
    spec
}

/// Before it is placed, a pod's choice of nodes may become narrower.
fn selector_of_gated(old: &k8s::PodSpec, spec: &mut k8s::PodSpec, path: &Path, errors: &mut Errors) {
    let new = spec.node_selector.clone().unwrap_or_default();
    let kept = old.node_selector.iter().flatten().all(|(key, value)| new.get(key) == Some(value));
    errors.invalid_if(!kept, path, "only additions to spec.nodeSelector are allowed (no mutations or deletions)");
    spec.node_selector = old.node_selector.clone();
}

fn affinity_of_gated(old: &k8s::PodSpec, spec: &mut k8s::PodSpec, path: &Path, errors: &mut Errors) {
    let of = |spec: &k8s::PodSpec| spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.clone());
    let (old_affinity, new_affinity) = (of(old), of(spec));
    if old_affinity == new_affinity {
        return;
    }
    let terms = |affinity: Option<&k8s::NodeAffinity>| {
        let required =
            affinity.and_then(|affinity| affinity.required_during_scheduling_ignored_during_execution.clone());
        required.map(|selector| selector.node_selector_terms).unwrap_or_default()
    };
    let (before, after) = (terms(old_affinity.as_ref()), terms(new_affinity.as_ref()));
    let path = path.child("requiredDuringSchedulingIgnoredDuringExecution").child("nodeSelectorTerms");
    if !before.is_empty() && before.len() != after.len() {
        errors.invalid(&path, "no additions/deletions to non-empty NodeSelectorTerms list are allowed");
    } else {
        for (index, (before, after)) in before.iter().zip(&after).enumerate() {
            let path = path.index(index);
            let rule = "only additions are allowed (no mutations or deletions)";
            errors.invalid_if(!only_adds(before, after), &path, rule);
        }
    }
    let has_others = spec.affinity.as_ref().is_some_and(|a| a.pod_affinity.is_some() || a.pod_anti_affinity.is_some());
    match &mut spec.affinity {
        None if old_affinity.is_some() => {
            spec.affinity = Some(k8s::Affinity { node_affinity: old_affinity, ..Default::default() });
        }
        Some(_) if old.affinity.is_none() && !has_others => spec.affinity = None,
        Some(affinity) => affinity.node_affinity = old_affinity,
        None => {}
    }
}

fn only_adds(before: &k8s::NodeSelectorTerm, after: &k8s::NodeSelectorTerm) -> bool {
    let lists = |term: &k8s::NodeSelectorTerm| {
        [term.match_expressions.clone().unwrap_or_default(), term.match_fields.clone().unwrap_or_default()]
    };
    let (before, after) = (lists(before), lists(after));
    if before.iter().all(Vec::is_empty) {
        // An empty term matches nothing: with a condition it would match more.
        return after.iter().all(Vec::is_empty);
    }
    before.iter().zip(&after).all(|(before, after)| after.starts_with(before))
}

/// Gives whether it makes sense to look further.
fn images(old: &[k8s::Container], new: &[k8s::Container], path: &Path, errors: &mut Errors) -> bool {
    if old.len() != new.len() {
        errors.forbidden(path, "pod updates may not add or remove containers");
        return false;
    }
    for (index, container) in new.iter().enumerate() {
        let path = path.index(index);
        errors.required_text(container.image.as_deref(), &path.child("image"), "");
        trimmed_image(text(&container.image), &path, errors);
    }
    true
}

/// Gives whether it makes sense to look further.
fn deadline(old: &k8s::PodSpec, new: &k8s::PodSpec, path: &Path, errors: &mut Errors) -> bool {
    let before = errors.len();
    match (old.active_deadline_seconds, new.active_deadline_seconds) {
        (_, Some(new)) if !(0..=i64::from(i32::MAX)).contains(&new) => {
            errors.in_range(new, 0, i64::from(i32::MAX), path);
        }
        (Some(old), Some(new)) if old < new => errors.invalid(path, "must be less than or equal to previous value"),
        (Some(_), None) => {
            errors.invalid(path, "must not update from a positive integer to nil value");
            return true;
        }
        _ => {}
    }
    errors.len() == before
}

fn added_tolerations(old: &k8s::PodSpec, new: &k8s::PodSpec, gates: &Gates, path: &Path, errors: &mut Errors) {
    let new = new.tolerations.as_deref().unwrap_or_default();
    for old in old.tolerations.iter().flatten() {
        let is_kept = new.iter().any(|new| {
            let same = k8s::Toleration { toleration_seconds: new.toleration_seconds, ..old.clone() };
            equal(&same, new)
        });
        if !is_kept {
            return errors.forbidden(path, "existing toleration can not be modified except its tolerationSeconds");
        }
    }
    placement::tolerations(new, gates, path, errors);
}

fn removed_gates(old: &k8s::PodSpec, new: &k8s::PodSpec, path: &Path, errors: &mut Errors) {
    let gates = new.scheduling_gates.as_deref().unwrap_or_default();
    let known: BTreeSet<&str> = old.scheduling_gates.iter().flatten().map(|gate| gate.name.as_str()).collect();
    // A second one of a name is an error of its own.
    let last: BTreeMap<&str, usize> =
        gates.iter().enumerate().map(|(index, gate)| (gate.name.as_str(), index)).collect();
    for (index, gate) in gates.iter().enumerate() {
        if last.get(&*gate.name) == Some(&index) && !known.contains(&*gate.name) {
            let rule = format!("only deletion is allowed, but found new scheduling gate '{}'", gate.name);
            errors.forbidden(&path.index(index).child("name"), rule);
        }
    }
}

fn ephemeral(old: &k8s::Pod, new: &k8s::Pod, gates: &Gates, errors: &mut Errors) {
    let written = new.spec.as_ref().and_then(|spec| spec.ephemeral_containers.clone());
    let mut pod = with_identity(old, new);
    pod.spec.get_or_insert_default().ephemeral_containers = written.clone();
    if is_mirror(old) {
        return errors.forbidden(&Path::new(""), "static pods do not support ephemeral containers");
    }
    object_meta(&old.metadata, &pod.metadata, &Path::new("metadata"), errors);
    metadata_and_spec(&pod, gates, errors);
    pod_annotations(old, &pod, gates, errors);
    let new = written.unwrap_or_default();
    let path = Path::new("spec").child("ephemeralContainers");
    for old in old.spec.iter().flat_map(|spec| spec.ephemeral_containers.iter().flatten()) {
        // The last of one name counts; a second one is an error of its own.
        match new.iter().rfind(|new| new.name == old.name) {
            None => {
                errors.forbidden(&path, format!("existing ephemeral containers \"{}\" may not be removed", old.name));
            }
            Some(new) if !equal(old, new) => {
                errors.forbidden(&path, format!("existing ephemeral containers \"{}\" may not be changed", old.name));
            }
            Some(_) => {}
        }
    }
}

fn pod_annotations(old: &k8s::Pod, new: &k8s::Pod, gates: &Gates, errors: &mut Errors) {
    let of = |pod: &k8s::Pod| pod.metadata.annotations.clone().unwrap_or_default();
    let (old, new_annotations, path) = (of(old), of(new), Path::new("metadata").child("annotations"));
    annotations::changes(&old, &new_annotations, &path, errors);
    let spec = new.spec.clone().unwrap_or_default();
    annotations::validate(&new_annotations, &spec, gates, &path, errors);
}

pub(super) fn is_mirror(pod: &k8s::Pod) -> bool {
    pod.metadata.annotations.as_ref().is_some_and(|annotations| annotations.contains_key(annotations::MIRROR))
}

/// The old pod under the name that the new one gives: what a subresource does not touch stays as it was.
pub(super) fn with_identity(old: &k8s::Pod, new: &k8s::Pod) -> k8s::Pod {
    let mut pod = old.clone();
    pod.metadata.name = new.metadata.name.clone();
    pod.metadata.namespace = new.metadata.namespace.clone();
    pod.metadata.uid = new.metadata.uid.clone();
    pod.metadata.resource_version = new.metadata.resource_version.clone();
    with_metadata_kept(old, &pod)
}

/// What a client may leave out, because the server knows it.
fn with_metadata_kept(old: &k8s::Pod, new: &k8s::Pod) -> k8s::Pod {
    let mut pod = new.clone();
    let (metadata, old) = (&mut pod.metadata, &old.metadata);
    if text(&metadata.uid).is_empty() {
        metadata.uid = old.uid.clone();
    }
    if old.creation_timestamp.is_some() {
        metadata.creation_timestamp = old.creation_timestamp.clone();
    }
    if old.deletion_timestamp.is_some() {
        metadata.deletion_timestamp = old.deletion_timestamp.clone();
    }
    metadata.deletion_grace_period_seconds =
        metadata.deletion_grace_period_seconds.or(old.deletion_grace_period_seconds);
    pod
}

pub(super) fn object_meta(old: &ObjectMeta, new: &ObjectMeta, path: &Path, errors: &mut Errors) {
    if old.deletion_timestamp.is_some() {
        let known: BTreeSet<&String> = old.finalizers.iter().flatten().collect();
        let added: Vec<&String> = new.finalizers.iter().flatten().filter(|name| !known.contains(name)).collect();
        if !added.is_empty() {
            let names: Vec<String> = added.iter().map(|name| format!("\"{name}\"")).collect();
            let rule = "no new finalizers can be added if the object is being deleted, found new finalizers";
            errors.forbidden(&path.child("finalizers"), format!("{rule} []string{{{}}}", names.join(", ")));
        }
    }
    let no_version = text(&new.resource_version).is_empty();
    errors.invalid_if(no_version, &path.child("resourceVersion"), "must be specified for an update");
    let is_less = new.generation.unwrap_or_default() < old.generation.unwrap_or_default();
    errors.invalid_if(is_less, &path.child("generation"), "must not be decremented");
    let table = [
        (text(&old.name) != text(&new.name), "name"),
        (text(&old.namespace) != text(&new.namespace), "namespace"),
        (text(&old.uid) != text(&new.uid), "uid"),
        (old.creation_timestamp.is_some() && old.creation_timestamp != new.creation_timestamp, "creationTimestamp"),
        (old.deletion_timestamp != new.deletion_timestamp, "deletionTimestamp"),
        (old.deletion_grace_period_seconds != new.deletion_grace_period_seconds, "deletionGracePeriodSeconds"),
    ];
    for (differs, field) in table {
        errors.invalid_if(differs, &path.child(field), "field is immutable");
    }
    metadata::changeable(new, path, errors);
    metadata::known_finalizers(new, &path.child("finalizers"), errors);
}
