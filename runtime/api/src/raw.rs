//! Objects as a server gets them: one at a time, without lines, to be taken even if fields in them are unknown.

use k8s_openapi::api::core::v1::Pod;
use serde_json::Value as Json;

use crate::decode::typed_leniently;
use crate::json;
use crate::problem::Problem;
use crate::schema::{KINDS, Runner};
use crate::strict::{self, Findings, Found, NOT_SUPPORTED, What};
use crate::tree::{Node, Value};
use crate::validate::{ErrorKind, FieldError};
use crate::yaml::{self, MAX_DEPTH, MAX_VALUES};

/// More repeated keys are not told.
const MOST_REPEATED: usize = 32;

/// A document as JSON.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RawObject {
    /// What stands in it; of a repeated key, what stands last.
    pub value: Json,
    /// Paths of keys that stand there twice.
    pub repeated: Vec<String>,
}

/// Reads one YAML document without any knowledge of fields.
///
/// # Errors
/// If it is malformed, too large, or not exactly one.
pub fn json_of_yaml(text: &str) -> Result<RawObject, Problem> {
    let problem =
        |line, message: String| Problem { file: String::new(), document: 1, line, path: String::new(), message };
    let (nodes, stop) = yaml::documents(text);
    if let Some(stop) = stop {
        return Err(problem(stop.line, stop.message));
    }
    let [(_, node)] = nodes.as_slice() else {
        return Err(problem(None, format!("there are {} documents in it, and there must be one", nodes.len())));
    };
    Ok(RawObject::of(node))
}

/// Reads one JSON value without any knowledge of fields.
///
/// # Errors
/// If it isn't one, or is too deep or too large.
pub fn json_of_json(bytes: &[u8]) -> Result<RawObject, String> {
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    if let Some([(_, node)]) = json::documents(text).as_deref() {
        return Ok(RawObject::of(node));
    }
    // Somebody else knows how to say what is wrong.
    match serde_json::from_str::<serde::de::IgnoredAny>(text) {
        Err(error) => Err(error.to_string()),
        Ok(_) => Err(format!("it is deeper than {MAX_DEPTH} or has more than {MAX_VALUES} values")),
    }
}

impl RawObject {
    fn of(node: &Node) -> Self {
        let mut repeated = Vec::new();
        repeated_keys(node, "", &mut repeated);
        Self { value: node.to_json(), repeated }
    }
}

/// Paths of keys that stand in a map twice, the first few of them.
pub(crate) fn repeated_keys(node: &Node, path: &str, found: &mut Vec<String>) {
    match &node.value {
        Value::List(items) => {
            for (index, item) in items.iter().enumerate() {
                repeated_keys(item, &format!("{path}[{index}]"), found);
            }
        }
        Value::Map(entries) => {
            let mut keys = std::collections::BTreeSet::new();
            for entry in entries {
                let path = if path.is_empty() { entry.key.clone() } else { format!("{path}.{}", entry.key) };
                repeated_keys(&entry.value, &path, found);
                if !keys.insert(&entry.key) && found.len() < MOST_REPEATED {
                    found.push(path);
                }
            }
        }
        _ => {}
    }
}

/// A pod as it was read, with what there is to say about its fields.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PodReading {
    /// The pod, with known fields only.
    pub pod: Pod,
    /// Fields that pods don't have.
    pub unknown: Vec<String>,
    /// Fields that are taken and have no effect, with what happens instead.
    pub without_effect: Vec<(String, String)>,
    /// Fields that can't be honoured and mustn't be ignored.
    pub unsupported: Vec<FieldError>,
}

/// Reads a pod that an agent is to run; fields that have no effect are taken.
///
/// # Errors
/// A value of the wrong type, with its path.
pub fn read_pod(json: &Json) -> Result<PodReading, Problem> {
    let mut findings = Findings::default();
    let known = strict::read(&Node::from_json(json), KINDS[0].object, Runner::Agent, "", &mut findings);
    let mut reading = PodReading::default();
    for Found { path, what, message, .. } in findings.errors {
        match what {
            What::Unknown => reading.unknown.push(path),
            What::Unsupported => {
                let detail = message.strip_prefix(NOT_SUPPORTED).unwrap_or(&message).to_owned();
                reading.unsupported.push(FieldError { field: path, kind: ErrorKind::Forbidden, detail });
            }
            What::Other => return Err(Problem { file: String::new(), document: 1, line: None, path, message }),
        }
    }
    reading.without_effect = findings.warnings.into_iter().map(|Found { path, message, .. }| (path, message)).collect();
    reading.pod = typed_leniently(known)?;
    Ok(reading)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaml_becomes_json_and_repeated_keys_are_told() {
        let read = json_of_yaml("a: 1\nb:\n- c: p\n  c: q\na: 2\n").expect("it is YAML");
        assert_eq!(read.value, serde_json::json!({"a": 2, "b": [{"c": "q"}]}));
        assert_eq!(read.repeated, ["b[0].c", "a"]);
        assert!(json_of_yaml("a: [").is_err() && json_of_yaml("a: 1\n---\nb: 2\n").is_err());
    }

    #[test]
    fn json_is_read_with_the_keys_that_stand_in_it_twice() {
        let text = br#"{"a": 1, "b": [{"c": 1, "c": 2}], "a": -1.5, "d": "\u00e9"}"#;
        let read = json_of_json(text).expect("it is JSON");
        assert_eq!(read.repeated, ["b[0].c", "a"]);
        assert_eq!(read.value, serde_json::json!({"a": -1.5, "b": [{"c": 2}], "d": "é"}));
        for text in ["", "{", "{} {}", "nul", "\u{1}", "{a: 1}", "a: 1"] {
            assert!(json_of_json(text.as_bytes()).is_err(), "{text:?}");
        }
        assert!(json_of_json("[".repeat(100_000).as_bytes()).is_err());
        let deep = "[".repeat(MAX_DEPTH + 2) + &"]".repeat(MAX_DEPTH + 2);
        assert!(json_of_json(deep.as_bytes()).is_err());
        assert!(json_of_json(&[0xff, 0xfe]).is_err());
    }

    #[test]
    fn what_a_pod_says_in_vain_is_told_apart() {
        let pod = serde_json::json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"},
            "spec": {"bogus": 1, "containers": [{"name": "c", "image": "i", "volumeDevices": [{"name": "d", "devicePath": "/d"}]}],
                "serviceAccountName": "robot"},
        });
        let reading = read_pod(&pod).expect("a pod");
        assert_eq!(reading.unknown, ["spec.bogus"]);
        assert_eq!(reading.unsupported.len(), 1);
        assert_eq!(reading.unsupported[0].field, "spec.containers[0].volumeDevices");
        assert_eq!(reading.pod.spec.map(|spec| spec.containers.len()), Some(1));
        assert!(read_pod(&serde_json::json!({"apiVersion": "v1", "kind": "Pod", "spec": {"containers": 5}})).is_err());
    }
}
