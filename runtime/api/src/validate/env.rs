//! Environment variables and where their values come from.

use husk_core::quantity::Quantity;
use k8s_openapi::api::core::v1 as k8s;

use super::container::Scope;
use super::errors::{Errors, Path};
use super::pod::text;
use super::{names, paths};
use crate::amount;

/// Fields of a pod that its variables can show.
const FIELDS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
/// Fields that a reference may name at all.
const REFERABLE: [&str; 15] = [
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.serviceAccountName",
    "spec.schedulerName",
    "status.phase",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
    "spec.host",
];
const RESOURCES: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];
const CPU_DIVISORS: [&str; 2] = ["1m", "1"];
const BYTE_DIVISORS: [&str; 13] = ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];

pub(super) fn variables(variables: &[k8s::EnvVar], scope: &Scope<'_>, path: &Path, errors: &mut Errors) {
    for (index, variable) in variables.iter().enumerate() {
        let path = path.index(index);
        if variable.name.is_empty() {
            errors.required(&path.child("name"), "");
        } else {
            errors.invalid_all(&path.child("name"), names::variable(&variable.name));
        }
        if let Some(source) = &variable.value_from {
            value_from(source, !text(&variable.value).is_empty(), scope, &path.child("valueFrom"), errors);
        }
    }
}

fn value_from(source: &k8s::EnvVarSource, has_value: bool, scope: &Scope<'_>, path: &Path, errors: &mut Errors) {
    let mut sources = 0;
    if let Some(field) = &source.field_ref {
        sources += 1;
        object_field(field, &FIELDS, &path.child("fieldRef"), errors);
    }
    if let Some(resource) = &source.resource_field_ref {
        sources += 1;
        container_resource(resource, false, &path.child("resourceFieldRef"), errors);
    }
    if let Some(key) = &source.config_map_key_ref {
        sources += 1;
        object_key(&key.name, &key.key, &path.child("configMapKeyRef"), errors);
    }
    if let Some(key) = &source.secret_key_ref {
        sources += 1;
        object_key(&key.name, &key.key, &path.child("secretKeyRef"), errors);
    }
    if let Some(file) = &source.file_key_ref {
        sources += 1;
        file_key(file, &path.child("fileKeyRef"), errors);
        file_volume(file, scope.spec, &path.child("fileKeyRef").child("volumeName"), errors);
    }
    match (sources, has_value) {
        (0, _) => errors.invalid(
            path,
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
        ),
        (_, true) => errors.invalid(path, "may not be specified when `value` is not empty"),
        (1, false) => {}
        _ => errors.invalid(path, "may not have more than one field specified at a time"),
    }
}

fn object_key(name: &str, key: &str, path: &Path, errors: &mut Errors) {
    errors.invalid_all(&path.child("name"), names::subdomain(name));
    if key.is_empty() {
        errors.required(&path.child("key"), "");
    } else {
        errors.invalid_all(&path.child("key"), names::config_key(key));
    }
}

fn file_key(file: &k8s::FileKeySelector, path: &Path, errors: &mut Errors) {
    for (value, field) in [(&file.key, "key"), (&file.path, "path"), (&file.volume_name, "volumeName")] {
        errors.required_text(Some(value), &path.child(field), "");
    }
    if !file.key.is_empty() {
        errors.invalid_all(&path.child("key"), names::variable(&file.key));
    }
    if !file.volume_name.is_empty() {
        errors.invalid_all(&path.child("volumeName"), names::label(&file.volume_name));
    }
    paths::no_backsteps(&file.path, &path.child("path"), errors);
}

/// The volume may be broken in other ways; the last of a name counts.
fn file_volume(file: &k8s::FileKeySelector, spec: &k8s::PodSpec, path: &Path, errors: &mut Errors) {
    match spec.volumes.iter().flatten().rfind(|volume| volume.name == file.volume_name) {
        None => errors.not_found(path),
        Some(volume) => {
            errors.invalid_if(volume.empty_dir.is_none(), path, "referenced volume must be of type emptyDir");
        }
    }
}

/// Also for files of a downward API volume, which can show other `fields`.
pub(super) fn object_field(field: &k8s::ObjectFieldSelector, fields: &[&str], path: &Path, errors: &mut Errors) {
    let version = text(&field.api_version);
    if version.is_empty() {
        return errors.required(&path.child("apiVersion"), "");
    }
    let path_in_pod = field.field_path.as_str();
    let field_path = path.child("fieldPath");
    if path_in_pod.is_empty() {
        return errors.required(&field_path, "");
    }
    let subscripted = subscripted(path_in_pod);
    let problem = match subscripted {
        _ if version != "v1" => Some(format!("unsupported pod version: {version}")),
        Some(("metadata.annotations" | "metadata.labels", _)) => None,
        Some(_) => Some(format!("field label does not support subscript: {path_in_pod}")),
        None if !REFERABLE.contains(&path_in_pod) => Some(format!("field label not supported: {path_in_pod}")),
        None => None,
    };
    if let Some(problem) = problem {
        return errors.invalid(&field_path, format!("error converting fieldPath: {problem}"));
    }
    match subscripted {
        Some(("metadata.annotations", key)) => errors.invalid_all(path, names::qualified(&key.to_lowercase())),
        Some((_, key)) => errors.invalid_all(path, names::qualified(key)),
        // The older name of the same field.
        None if path_in_pod == "spec.host" => errors.one_of("spec.nodeName", &field_path, fields),
        None => errors.one_of(path_in_pod, &field_path, fields),
    }
}

/// `metadata.labels['key']` as its two parts.
fn subscripted(path: &str) -> Option<(&str, &str)> {
    let (object, key) = path.strip_suffix("']")?.split_once("['")?;
    (!object.is_empty()).then_some((object, key))
}

/// Also for files of a downward API volume, which must name the container.
pub(super) fn container_resource(
    selector: &k8s::ResourceFieldSelector,
    in_volume: bool,
    path: &Path,
    errors: &mut Errors,
) {
    let resource = selector.resource.as_str();
    let is_huge_page = resource.starts_with("limits.hugepages-") || resource.starts_with("requests.hugepages-");
    if in_volume && text(&selector.container_name).is_empty() {
        errors.required(&path.child("containerName"), "");
    } else if resource.is_empty() {
        errors.required(&path.child("resource"), "");
    } else if !is_huge_page {
        errors.one_of(resource, &path.child("resource"), &RESOURCES);
    }
    let divisor = selector.divisor.as_ref().map(amount::of).unwrap_or_default();
    if divisor == Quantity::default() {
        return;
    }
    let (divisors, noun): (&[&str], _) = match resource {
        "limits.cpu" | "requests.cpu" => (&CPU_DIVISORS, "cpu"),
        "limits.memory" | "requests.memory" => (&BYTE_DIVISORS, "memory"),
        "limits.ephemeral-storage" | "requests.ephemeral-storage" => (&BYTE_DIVISORS, "local ephemeral storage"),
        _ if is_huge_page => (&BYTE_DIVISORS, "hugepages"),
        _ => return,
    };
    let list = if noun == "cpu" { "1m and 1".into() } else { divisors.join(", ") };
    let rule = format!("only divisor's values {list} are supported with the {noun} resource");
    errors.invalid_if(!divisors.contains(&divisor.to_string().as_str()), &path.child("divisor"), &rule);
}

pub(super) fn sources(sources: &[k8s::EnvFromSource], path: &Path, errors: &mut Errors) {
    for (index, source) in sources.iter().enumerate() {
        let at = path.index(index);
        let prefix = text(&source.prefix);
        if !prefix.is_empty() {
            errors.invalid_all(&at.child("prefix"), names::variable(prefix));
        }
        let names = [
            (source.config_map_ref.as_ref().map(|map| map.name.as_str()), "configMapRef"),
            (source.secret_ref.as_ref().map(|secret| secret.name.as_str()), "secretRef"),
        ];
        for (name, field) in names {
            let path = at.child(field).child("name");
            match name {
                None => {}
                Some("") => errors.required(&path, ""),
                Some(name) => errors.invalid_all(&path, names::subdomain_prefix(name)),
            }
        }
        match (source.config_map_ref.is_some(), source.secret_ref.is_some()) {
            (false, false) => errors.invalid(path, "must specify one of: `configMapRef` or `secretRef`"),
            (true, true) => errors.invalid(path, "may not have more than one field specified at a time"),
            _ => {}
        }
    }
}
