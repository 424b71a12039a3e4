//! `metadata`: names, labels, annotations, owners, finalizers.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta, OwnerReference};
use std::collections::BTreeMap;

use super::errors::{Errors, Path};
use super::names;

/// Annotations are for small things.
const MAX_ANNOTATION_BYTES: usize = 256 << 10;
/// Of the name of who manages fields.
const MAX_MANAGER_BYTES: usize = 128;
/// Of the name of a subresource.
const MAX_SUBRESOURCE_BYTES: usize = 256;
const STANDARD_FINALIZERS: [&str; 3] = ["kubernetes", "orphan", "foregroundDeletion"];

pub(super) fn validate(metadata: &ObjectMeta, path: &Path, errors: &mut Errors) {
    if let Some(prefix) = metadata.generate_name.as_deref().filter(|prefix| !prefix.is_empty()) {
        errors.invalid_all(&path.child("generateName"), names::subdomain_prefix(prefix));
    }
    match metadata.name.as_deref().unwrap_or_default() {
        "" => errors.required(&path.child("name"), "name or generateName is required"),
        name => errors.invalid_all(&path.child("name"), names::subdomain(name)),
    }
    match metadata.namespace.as_deref().unwrap_or_default() {
        "" => errors.required(&path.child("namespace"), ""),
        namespace => errors.invalid_all(&path.child("namespace"), names::label(namespace)),
    }
    errors.not_negative(metadata.generation.unwrap_or_default(), &path.child("generation"));
    changeable(metadata, path, errors);
    finalizers(metadata, &path.child("finalizers"), errors);
}

/// What is looked at again in an update, on top of everything else.
pub(super) fn changeable(metadata: &ObjectMeta, path: &Path, errors: &mut Errors) {
    labels(metadata.labels.as_ref(), &path.child("labels"), errors);
    annotations(metadata.annotations.as_ref(), &path.child("annotations"), errors);
    owners(metadata.owner_references.as_deref().unwrap_or_default(), &path.child("ownerReferences"), errors);
    for (index, entry) in metadata.managed_fields.iter().flatten().enumerate() {
        managed_fields(entry, &path.child("managedFields").index(index), errors);
    }
}

/// Labels, also of node selectors.
pub(super) fn labels(labels: Option<&BTreeMap<String, String>>, path: &Path, errors: &mut Errors) {
    for (key, value) in labels.into_iter().flatten() {
        errors.invalid_all(path, names::qualified(key));
        errors.invalid_all(path, names::label_value(value));
    }
}

pub(super) fn annotations(annotations: Option<&BTreeMap<String, String>>, path: &Path, errors: &mut Errors) {
    let mut bytes = 0;
    for (key, value) in annotations.into_iter().flatten() {
        errors.invalid_all(path, names::qualified(&key.to_lowercase()));
        bytes += key.len() + value.len();
    }
    if bytes > MAX_ANNOTATION_BYTES {
        errors.too_long(path, MAX_ANNOTATION_BYTES);
    }
}

fn owners(owners: &[OwnerReference], path: &Path, errors: &mut Errors) {
    let mut controller: Option<String> = None;
    for owner in owners {
        let (group, version) = group_version(&owner.api_version);
        errors.invalid_if(version.is_empty(), &path.child("apiVersion"), "version must not be empty");
        for (text, field) in [(&owner.kind, "kind"), (&owner.name, "name"), (&owner.uid, "uid")] {
            errors.invalid_if(text.is_empty(), &path.child(field), "must not be empty");
        }
        if (group, version, owner.kind.as_str()) == ("", "v1", "Event") {
            errors.invalid(path, "/v1, Kind=Event is disallowed from being an owner");
        }
        if owner.controller == Some(true) {
            let name = format!("{}/{}", owner.kind, owner.name);
            match &controller {
                Some(first) => errors.invalid(
                    path,
                    format!(
                        "Only one reference can have Controller set to true. \
                         Found \"true\" in references for {first} and {name}"
                    ),
                ),
                None => controller = Some(name),
            }
        }
    }
}

/// Who wrote which fields. Nobody asks for it here, but what is stored must make sense.
fn managed_fields(entry: &ManagedFieldsEntry, path: &Path, errors: &mut Errors) {
    let written = |text: &Option<String>| text.clone().unwrap_or_default();
    let operation = written(&entry.operation);
    let is_known = ["Apply", "Update"].contains(&operation.as_str());
    errors.invalid_if(!is_known, &path.child("operation"), "must be `Apply` or `Update`");
    let is_known = ["", "FieldsV1"].contains(&written(&entry.fields_type).as_str());
    errors.invalid_if(!is_known, &path.child("fieldsType"), "must be `FieldsV1`");
    let (manager, path_to_it) = (written(&entry.manager), path.child("manager"));
    if manager.len() > MAX_MANAGER_BYTES {
        errors.too_long(&path_to_it, MAX_MANAGER_BYTES);
    }
    for (at, _) in manager.char_indices().filter(|(_, c)| c.is_control() || (c.is_whitespace() && *c != ' ')) {
        errors.invalid(&path_to_it, format!("should only contain printable characters (at position {at})"));
    }
    if written(&entry.subresource).len() > MAX_SUBRESOURCE_BYTES {
        errors.too_long(&path.child("subresource"), MAX_SUBRESOURCE_BYTES);
    }
}

fn group_version(text: &str) -> (&str, &str) {
    match text.split_once('/') {
        None => ("", text),
        Some((_, version)) if version.contains('/') => ("", ""),
        Some((group, version)) => (group, version),
    }
}

fn finalizers(metadata: &ObjectMeta, path: &Path, errors: &mut Errors) {
    let finalizers = metadata.finalizers.as_deref().unwrap_or_default();
    for finalizer in finalizers {
        errors.invalid_all(path, names::qualified(finalizer));
    }
    let has = |name: &str| finalizers.iter().any(|finalizer| finalizer == name);
    let both = "finalizer orphan and foregroundDeletion cannot be both set";
    errors.invalid_if(has("orphan") && has("foregroundDeletion"), path, both);
    known_finalizers(metadata, path, errors);
}

/// Names without a domain are Kubernetes' own.
pub(super) fn known_finalizers(metadata: &ObjectMeta, path: &Path, errors: &mut Errors) {
    for (index, finalizer) in metadata.finalizers.iter().flatten().enumerate() {
        let is_known = finalizer.contains('/') || STANDARD_FINALIZERS.contains(&finalizer.as_str());
        let rule = "name is neither a standard finalizer name nor is it fully qualified";
        errors.invalid_if(!is_known, &path.index(index), rule);
    }
}
