//! Claims that are made for a pod: the template in an ephemeral volume.

use k8s_openapi::api::core::v1 as k8s;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::errors::{Errors, Path};
use super::pod::text;
use super::{affinity, metadata, names};
use crate::amount;

const CLAIM_KIND: &str = "PersistentVolumeClaim";

pub(super) fn ephemeral(volume: &k8s::Volume, path: &Path, errors: &mut Errors) {
    let path = path.child("volumeClaimTemplate");
    let Some(template) = volume.ephemeral.as_ref().and_then(|source| source.volume_claim_template.as_ref()) else {
        return errors.required(&path, "");
    };
    if let Some(metadata) = &template.metadata {
        template_metadata(metadata, &path.child("metadata"), errors);
    }
    let (spec, path) = (&template.spec, path.child("spec"));
    access_modes(spec.access_modes.as_deref().unwrap_or_default(), &path.child("accessModes"), errors);
    affinity::label_selector(spec.selector.as_ref(), &path.child("selector"), errors);
    storage(spec, &path.child("resources").key("storage"), errors);
    let classes = [
        (&spec.storage_class_name, "storageClassName"),
        (&spec.volume_attributes_class_name, "volumeAttributesClassName"),
    ];
    for (name, field) in classes {
        if !text(name).is_empty() {
            errors.invalid_all(&path.child(field), names::subdomain(text(name)));
        }
    }
    if let Some(mode) = &spec.volume_mode {
        errors.one_of(mode, &path.child("volumeMode"), &["Block", "Filesystem"]);
    }
    data_sources(spec, &path, errors);
}

/// Only labels and annotations are taken over.
fn template_metadata(template: &ObjectMeta, path: &Path, errors: &mut Errors) {
    metadata::annotations(template.annotations.as_ref(), &path.child("annotations"), errors);
    metadata::labels(template.labels.as_ref(), &path.child("labels"), errors);
    let set = |text: &Option<String>| !text.as_deref().unwrap_or_default().is_empty();
    let table = [
        (set(&template.name), "name"),
        (set(&template.generate_name), "generateName"),
        (set(&template.namespace), "namespace"),
        (set(&template.self_link), "selfLink"),
        (set(&template.uid), "uID"),
        (set(&template.resource_version), "resourceVersion"),
        (template.generation.is_some_and(|generation| generation != 0), "generation"),
        (template.creation_timestamp.is_some(), "creationTimestamp"),
        (template.deletion_timestamp.is_some(), "deletionTimestamp"),
        (template.deletion_grace_period_seconds.is_some(), "deletionGracePeriodSeconds"),
        (template.owner_references.is_some(), "ownerReferences"),
        (template.finalizers.is_some(), "finalizers"),
        (template.managed_fields.is_some(), "managedFields"),
    ];
    for (is_set, field) in table {
        errors.forbidden_if(is_set, &path.child(field), "cannot be set");
    }
}

fn access_modes(modes: &[String], path: &Path, errors: &mut Errors) {
    const MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
    if modes.is_empty() {
        errors.required(path, "at least 1 access mode is required");
    }
    for mode in modes {
        errors.one_of(mode, path, &MODES);
    }
    let of_one_pod = |mode: &String| mode == "ReadWriteOncePod";
    let is_mixed =
        modes.iter().any(of_one_pod) && modes.iter().any(|mode| !of_one_pod(mode) && MODES.contains(&mode.as_str()));
    errors.forbidden_if(is_mixed, path, "may not use ReadWriteOncePod with other access modes");
}

fn storage(spec: &k8s::PersistentVolumeClaimSpec, path: &Path, errors: &mut Errors) {
    let requests = spec.resources.as_ref().and_then(|resources| resources.requests.as_ref());
    match requests.and_then(|requests| requests.get("storage")).map(amount::of) {
        None => errors.required(path, ""),
        Some(amount) => {
            let is_positive = !amount.is_negative() && !amount.is_zero();
            errors.invalid_if(!is_positive, path, "must be greater than zero");
        }
    }
}

fn data_sources(spec: &k8s::PersistentVolumeClaimSpec, path: &Path, errors: &mut Errors) {
    if let Some(source) = &spec.data_source {
        data_source(&source.name, &source.kind, text(&source.api_group), &path.child("dataSource"), errors);
    }
    let Some(reference) = &spec.data_source_ref else { return };
    let reference_path = path.child("dataSourceRef");
    data_source(&reference.name, &reference.kind, text(&reference.api_group), &reference_path, errors);
    let namespace = text(&reference.namespace);
    if !namespace.is_empty() {
        errors.invalid_all(&reference_path.child("namespace"), names::label(namespace));
    }
    let Some(source) = &spec.data_source else { return };
    let same =
        source.api_group == reference.api_group && source.kind == reference.kind && source.name == reference.name;
    if !namespace.is_empty() {
        errors.invalid(path, "may not be specified when dataSourceRef.namespace is specified");
    } else {
        errors.invalid_if(!same, path, "must match dataSourceRef");
    }
}

fn data_source(name: &str, kind: &str, group: &str, path: &Path, errors: &mut Errors) {
    errors.required_text(Some(name), &path.child("name"), "");
    errors.required_text(Some(kind), &path.child("kind"), "");
    if group.is_empty() {
        let rule = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
        errors.invalid_if(kind != CLAIM_KIND, path, rule);
    } else {
        errors.invalid_all(&path.child("apiGroup"), names::subdomain(group));
    }
}
