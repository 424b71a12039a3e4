//! Objects that stand for pods from files: only the node makes them, whatever clients write.

use husk_api::{ErrorKind, FieldError};
use serde_json::Value;

/// Annotations that say that a pod comes from a file, and which version of which. Who sees one of the first two runs nothing for the
/// object: its pod runs already. By the others the node knows a pod from a file again when it begins again.
const MARKS: [&str; 4] =
    ["kubernetes.io/config.source", "kubernetes.io/config.mirror", "kubernetes.io/config.hash", "husk.dev/config.file"];

/// A client's pod is none.
pub(super) fn created(new: &Value) -> Vec<FieldError> {
    refused(&Value::Null, new)
}

/// And doesn't become one, or stop being one.
pub(super) fn changed(old: &Value, new: &Value) -> Vec<FieldError> {
    refused(old, new)
}

fn refused(old: &Value, new: &Value) -> Vec<FieldError> {
    let changed = MARKS.into_iter().filter(|mark| of(old, mark) != of(new, mark));
    changed
        .map(|mark| FieldError {
            field: format!("metadata.annotations[{mark}]"),
            kind: ErrorKind::Forbidden,
            detail: "the node sets it for pods from files; leave it as it is, or out of a new pod".into(),
        })
        .collect()
}

fn of<'a>(object: &'a Value, mark: &str) -> &'a Value {
    &object["metadata"]["annotations"][mark]
}
