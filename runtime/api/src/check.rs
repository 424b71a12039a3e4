//! Everything there is to say about a manifest before anything of it is started.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use crate::decode::{self, Decoded, Document, Reader, decode};
use crate::gates::Gates;
use crate::object::{Object, pod_of};
use crate::problem::Problem;
use crate::validate::{ErrorKind, FieldError, ObjectRules as _, validate_pod_with};
use crate::{DEFAULT_NAMESPACE, default_pod};

/// Reads a manifest as [`decode`] does and checks its objects by the rules of Kubernetes as well.
///
/// Nothing may be started if there are errors.
pub fn check(text: &str, file: &str) -> Decoded {
    checked(decode(text, file), file, &Gates::default())
}

/// The same for a manifest whose pods an agent runs, which honours more fields than a command can.
pub fn check_for_agent(text: &str, file: &str, gates: &Gates) -> Decoded {
    checked(decode::read(text, file, Reader::Agent), file, gates)
}

/// The same for a manifest that may hold objects of other kinds, which an agent's server will check. What is off there, it says itself.
pub fn check_with_others(text: &str, file: &str) -> Decoded {
    checked(decode::read(text, file, Reader::Client), file, &Gates::ALL)
}

fn checked(mut decoded: Decoded, file: &str, gates: &Gates) -> Decoded {
    let mut found = Vec::new();
    let mut first_of: BTreeMap<(&str, String, String), &Document> = BTreeMap::new();
    for document in &decoded.documents {
        let errors = errors_of(&document.object, gates);
        found.extend(errors.iter().map(|error| problem(document, file, error)));
        let metadata = document.object.metadata();
        let name = metadata.name.clone().unwrap_or_default();
        let namespace = metadata.namespace.clone().unwrap_or_else(|| DEFAULT_NAMESPACE.into());
        if name.is_empty() {
            continue;
        }
        if let Some(first) = first_of.insert((document.object.kind(), namespace, name.clone()), document) {
            let kind = document.object.kind();
            let message = format!("{kind} {name:?} is in the file already, at line {}; rename one of them", first.line);
            found.push(located(document, file, "metadata.name", message));
        }
    }
    decoded.errors.extend(found);
    decoded.errors.sort_by_key(|problem| (problem.document, problem.line));
    decoded
}

/// What is wrong with one object, with the paths of that object.
fn errors_of(object: &Object, gates: &Gates) -> Vec<FieldError> {
    match object {
        Object::ConfigMap(object) => return object.validate(),
        Object::Secret(object) => return object.validate(),
        _ => {}
    }
    let Some(mut pod) = pod_of(object) else {
        return vec![error("spec.template", ErrorKind::Required, "")];
    };
    if let (None, Some(prefix)) = (&pod.metadata.name, &pod.metadata.generate_name) {
        // As long as a generated one, so that what follows from the name's length is seen.
        pod.metadata.name = Some(format!("{prefix}xxxxx"));
    }
    default_pod(&mut pod);
    let mut errors = validate_pod_with(&pod, gates);
    if object.template().is_none() {
        return errors;
    }
    for error in &mut errors {
        let of_owner = ["metadata.name", "metadata.namespace", "metadata.generateName"].contains(&error.field.as_str());
        if !of_owner {
            error.field = format!("spec.template.{}", error.field);
        }
    }
    errors.extend(workload_errors(object, pod.spec.and_then(|spec| spec.restart_policy).as_deref()));
    errors
}

/// What Kubernetes asks of a workload beyond what it asks of its pods.
fn workload_errors(object: &Object, restart_policy: Option<&str>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let policies: &[&str] = match object {
        Object::Job(_) => &["OnFailure", "Never"],
        _ => &["Always"],
    };
    if restart_policy.is_some_and(|policy| !policies.contains(&policy)) {
        let quoted: Vec<String> = policies.iter().map(|policy| format!("\"{policy}\"")).collect();
        let detail = format!("supported values: {}; a {} takes no other", quoted.join(", "), object.kind());
        errors.push(error("spec.template.spec.restartPolicy", ErrorKind::NotSupported, &detail));
    }
    let Some(selector) = selector_of(object) else { return errors };
    let labels = object.template().and_then(|template| template.metadata.as_ref()?.labels.clone()).unwrap_or_default();
    let is_empty = |selector: &LabelSelector| {
        selector.match_labels.as_ref().is_none_or(|labels| labels.is_empty())
            && selector.match_expressions.as_ref().is_none_or(|expressions| expressions.is_empty())
    };
    if is_empty(selector) {
        errors.push(error("spec.selector", ErrorKind::Required, "it says which pods are its own, by their labels"));
    } else if !selector.match_labels.iter().flatten().all(|(key, value)| labels.get(key) == Some(value)) {
        let detail = "`selector` does not match template `labels`";
        errors.push(error("spec.template.metadata.labels", ErrorKind::Invalid, detail));
    }
    errors
}

/// The selector of workloads that need one.
fn selector_of(object: &Object) -> Option<&LabelSelector> {
    match object {
        Object::Pod(_) | Object::Job(_) | Object::ConfigMap(_) | Object::Secret(_) => None,
        Object::Deployment(object) => Some(&object.spec.selector),
        Object::ReplicaSet(object) => Some(&object.spec.selector),
        Object::DaemonSet(object) => Some(&object.spec.selector),
        Object::StatefulSet(object) => Some(&object.spec.selector),
    }
}

fn error(field: &str, kind: ErrorKind, detail: &str) -> FieldError {
    FieldError { field: field.into(), kind, detail: detail.into() }
}

fn problem(document: &Document, file: &str, error: &FieldError) -> Problem {
    let is_secret = matches!(document.object, Object::Secret(_));
    let value = document.shown(&error.field).filter(|_| !is_secret);
    let value = value.map(|value| format!(" {value}")).unwrap_or_default();
    let detail = match (error.detail.as_str(), error.kind) {
        ("", ErrorKind::Required) => "it must be given",
        ("", ErrorKind::Duplicate) => "it stands there already; use another",
        ("", ErrorKind::NotFound) => "the pod defines nothing of that name",
        (detail, _) => detail,
    };
    let message = format!("{}{value}: {detail}", error.kind.label());
    located(document, file, &error.field, message)
}

fn located(document: &Document, file: &str, field: &str, message: String) -> Problem {
    let path = if document.prefix.is_empty() { field.into() } else { format!("{}.{field}", document.prefix) };
    Problem { file: file.into(), document: document.index, line: Some(document.line_of(field)), path, message }
}
