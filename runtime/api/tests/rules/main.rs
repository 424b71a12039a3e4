//! Rules of validation, row by row, each with the function upstream that has it: what the vectors don't reach.

mod changes;
mod defaults;
mod pods;
mod volumes;

use husk_api::{FieldError, Gates, default_pod, drop_disabled_fields, k8s, pod_from_json, validate_pod_with};
use serde_json::{Value, json};

/// A pod that nothing is wrong with, and what is laid over it.
pub fn pod(patch: &Value) -> k8s::Pod {
    let mut pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "d", "resourceVersion": "1"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    });
    merge(&mut pod, patch);
    let mut pod = pod_from_json(&pod).unwrap();
    default_pod(&mut pod);
    pod
}

fn merge(onto: &mut Value, patch: &Value) {
    match (onto, patch) {
        (Value::Object(onto), Value::Object(patch)) => {
            patch.iter().for_each(|(key, value)| merge(onto.entry(key).or_insert(Value::Null), value));
        }
        (Value::Array(onto), Value::Array(patch)) if !patch.is_empty() => {
            for (index, value) in patch.iter().enumerate() {
                if index == onto.len() {
                    onto.push(Value::Null);
                }
                merge(&mut onto[index], value);
            }
        }
        (onto, patch) => *onto = patch.clone(),
    }
}

/// `TYPE FIELD: DETAIL`, sorted.
pub fn lines(errors: &[FieldError]) -> Vec<String> {
    let mut lines: Vec<String> =
        errors.iter().map(|error| format!("{} {}: {}", error.kind.as_str(), error.field, error.detail)).collect();
    lines.sort();
    lines
}

/// Each row: the function upstream, the patch, and how each error begins.
pub fn check(rows: &[(&str, Value, &[&str])], gates: &Gates) {
    for (function, patch, expected) in rows {
        let mut pod = pod(patch);
        drop_disabled_fields(&mut pod, gates);
        assert_begin(function, patch, &lines(&validate_pod_with(&pod, gates)), expected);
    }
}

/// Each error found begins as one of those expected, and none is left over.
pub fn assert_begin(function: &str, patch: &Value, found: &[String], expected: &[&str]) {
    let mut expected: Vec<&str> = expected.to_vec();
    expected.sort_unstable();
    let fits =
        found.len() == expected.len() && found.iter().zip(&expected).all(|(found, start)| found.starts_with(start));
    assert!(fits, "{function}\n{patch}\nfound    {found:#?}\nexpected {expected:#?}");
}

/// A row's patch of the spec.
pub fn spec(spec: Value) -> Value {
    json!({"spec": spec})
}

/// A row's patch of the only container.
pub fn container(container: Value) -> Value {
    spec(json!({"containers": [container]}))
}
