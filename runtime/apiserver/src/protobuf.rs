//! Protobuf bodies: newer clients send some objects so, and never anything else instead.
//!
//! A table of fields turns them into JSON. Field numbers are those of the published `.proto` files.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

/// Every Kubernetes protobuf body begins so.
const MAGIC: &[u8] = b"k8s\0";

/// Messages lie in messages only so deep.
const MOST_NESTED: usize = 32;

/// Why a body can't be read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Error {
    /// It is an object that the table doesn't have.
    UnknownKind(String),
    /// It is something else.
    Malformed,
}

/// What stands in a field.
enum Type {
    Text,
    /// Base64 in JSON.
    Bytes,
    Bool,
    Int,
    /// A quantity is a message with a text.
    IntOrString,
    Time,
    Message(&'static [Field]),
    /// Keys are texts.
    Map(&'static Type),
}

struct Field {
    number: u64,
    name: &'static str,
    ty: Type,
    repeated: bool,
}

const fn one(number: u64, name: &'static str, ty: Type) -> Field {
    Field { number, name, ty, repeated: false }
}

const fn many(number: u64, name: &'static str, ty: Type) -> Field {
    Field { number, name, ty, repeated: true }
}

use Type::{Bool, Bytes, Int, IntOrString, Map as MapOf, Message, Text, Time};

static OWNER: &[Field] = &[
    one(1, "kind", Text),
    one(3, "name", Text),
    one(4, "uid", Text),
    one(5, "apiVersion", Text),
    one(6, "controller", Bool),
    one(7, "blockOwnerDeletion", Bool),
];
static METADATA: &[Field] = &[
    one(1, "name", Text),
    one(2, "generateName", Text),
    one(3, "namespace", Text),
    one(5, "uid", Text),
    one(6, "resourceVersion", Text),
    one(7, "generation", Int),
    one(8, "creationTimestamp", Time),
    one(9, "deletionTimestamp", Time),
    one(10, "deletionGracePeriodSeconds", Int),
    many(11, "labels", MapOf(&Text)),
    many(12, "annotations", MapOf(&Text)),
    many(13, "ownerReferences", Message(OWNER)),
    many(14, "finalizers", Text),
];
static NAMESPACE: &[Field] = &[
    one(1, "metadata", Message(METADATA)),
    one(2, "spec", Message(&[many(1, "finalizers", Text)])),
    one(3, "status", Message(&[one(1, "phase", Text)])),
];
static CONFIG_MAP: &[Field] = &[
    one(1, "metadata", Message(METADATA)),
    many(2, "data", MapOf(&Text)),
    many(3, "binaryData", MapOf(&Bytes)),
    one(4, "immutable", Bool),
];
static SECRET: &[Field] = &[
    one(1, "metadata", Message(METADATA)),
    many(2, "data", MapOf(&Bytes)),
    one(3, "type", Text),
    many(4, "stringData", MapOf(&Text)),
    one(5, "immutable", Bool),
];
static REQUIREMENT: &[Field] = &[one(1, "key", Text), one(2, "operator", Text), many(3, "values", Text)];
static SELECTOR: &[Field] = &[many(1, "matchLabels", MapOf(&Text)), many(2, "matchExpressions", Message(REQUIREMENT))];
static BUDGET_SPEC: &[Field] = &[
    one(1, "minAvailable", IntOrString),
    one(2, "selector", Message(SELECTOR)),
    one(3, "maxUnavailable", IntOrString),
    one(4, "unhealthyPodEvictionPolicy", Text),
];
static BUDGET: &[Field] = &[one(1, "metadata", Message(METADATA)), one(2, "spec", Message(BUDGET_SPEC))];
static PRECONDITIONS: &[Field] = &[one(1, "uid", Text), one(2, "resourceVersion", Text)];
static DELETE_OPTIONS: &[Field] = &[
    one(1, "gracePeriodSeconds", Int),
    one(2, "preconditions", Message(PRECONDITIONS)),
    one(3, "orphanDependents", Bool),
    one(4, "propagationPolicy", Text),
    many(5, "dryRun", Text),
];
static EVICTION: &[Field] = &[one(1, "metadata", Message(METADATA)), one(2, "deleteOptions", Message(DELETE_OPTIONS))];

static KINDS: &[(&str, &str, &[Field])] = &[
    ("v1", "Namespace", NAMESPACE),
    ("v1", "ConfigMap", CONFIG_MAP),
    ("v1", "Secret", SECRET),
    ("policy/v1", "PodDisruptionBudget", BUDGET),
    ("policy/v1", "Eviction", EVICTION),
    ("v1", "DeleteOptions", DELETE_OPTIONS),
];

static TYPE_META: &[Field] = &[one(1, "apiVersion", Text), one(2, "kind", Text)];
static UNKNOWN: &[Field] = &[one(1, "typeMeta", Message(TYPE_META)), one(2, "raw", Bytes)];

/// Reads an object.
pub(crate) fn object(bytes: &[u8]) -> Result<Value, Error> {
    let envelope = bytes.strip_prefix(MAGIC).and_then(|bytes| message(bytes, UNKNOWN, 0)).ok_or(Error::Malformed)?;
    let text = |name: &str| envelope["typeMeta"][name].as_str().unwrap_or_default();
    let (version, kind) = (text("apiVersion"), text("kind"));
    let known = KINDS.iter().find(|(v, k, _)| (*v, *k) == (version, kind));
    let (_, _, fields) = known.ok_or_else(|| Error::UnknownKind(format!("{kind} of {version}")))?;
    let raw = envelope["raw"].as_str().and_then(|raw| STANDARD.decode(raw).ok()).unwrap_or_default();
    let mut object = message(&raw, fields, 0).ok_or(Error::Malformed)?;
    object["apiVersion"] = version.into();
    object["kind"] = kind.into();
    Ok(object)
}

fn message(mut bytes: &[u8], fields: &[Field], depth: usize) -> Option<Value> {
    if depth > MOST_NESTED {
        return None;
    }
    let mut object = Map::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes)?;
        let wire = wire(&mut bytes, tag & 7)?;
        let Some(field) = fields.iter().find(|field| field.number == tag >> 3) else { continue };
        let Some(value) = value(&field.ty, wire, depth)? else { continue };
        match (&field.ty, field.repeated) {
            (MapOf(_), _) => {
                let entries = object.entry(field.name).or_insert_with(|| Value::Object(Map::new()));
                if let (Value::Object(entries), Value::Object(entry)) = (entries, value) {
                    entries.extend(entry);
                }
            }
            (_, true) => {
                let items = object.entry(field.name).or_insert_with(|| Value::Array(Vec::new()));
                items.as_array_mut()?.push(value);
            }
            (_, false) => {
                object.insert(field.name.into(), value);
            }
        }
    }
    Some(Value::Object(object))
}

enum Wire<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

fn wire<'a>(bytes: &mut &'a [u8], kind: u64) -> Option<Wire<'a>> {
    let mut take = |length: usize| {
        let (taken, rest) = bytes.split_at_checked(length)?;
        *bytes = rest;
        Some(taken)
    };
    match kind {
        0 => varint(bytes).map(Wire::Number),
        1 => take(8).map(Wire::Bytes),
        2 => {
            let length = usize::try_from(varint(bytes)?).ok()?;
            let (taken, rest) = bytes.split_at_checked(length)?;
            *bytes = rest;
            Some(Wire::Bytes(taken))
        }
        5 => take(4).map(Wire::Bytes),
        _ => None,
    }
}

/// The outer none is an error, the inner one an absent value.
fn value(ty: &Type, wire: Wire<'_>, depth: usize) -> Option<Option<Value>> {
    let value = match (ty, wire) {
        (Text, Wire::Bytes(bytes)) => match std::str::from_utf8(bytes).ok()? {
            // An empty text is one that isn't there, as Go has it.
            "" if depth > 0 => return Some(None),
            text => text.into(),
        },
        (Bytes, Wire::Bytes(bytes)) => STANDARD.encode(bytes).into(),
        (Bool, Wire::Number(number)) => (number != 0).into(),
        (Int, Wire::Number(number)) => number.cast_signed().into(),
        (IntOrString, Wire::Bytes(bytes)) => {
            let parts = message(bytes, &[one(1, "type", Int), one(2, "int", Int), one(3, "text", Text)], depth + 1)?;
            match parts["type"].as_i64().unwrap_or(0) {
                0 => parts["int"].as_i64().unwrap_or(0).into(),
                _ => parts["text"].as_str().unwrap_or_default().into(),
            }
        }
        (Time, Wire::Bytes(bytes)) => {
            let parts = message(bytes, &[one(1, "seconds", Int)], depth + 1)?;
            let Some(seconds) = parts["seconds"].as_i64() else { return Some(None) };
            jiff::Timestamp::from_second(seconds).ok()?.to_string().into()
        }
        (Message(fields), Wire::Bytes(bytes)) => message(bytes, fields, depth + 1)?,
        (MapOf(ty), Wire::Bytes(bytes)) => entry(bytes, ty, depth + 1)?,
        _ => return None,
    };
    Some(Some(value))
}

/// An entry of a map is a message of its key and its value.
fn entry(mut bytes: &[u8], ty: &Type, depth: usize) -> Option<Value> {
    let (mut key, mut content) = (String::new(), Value::from(""));
    while !bytes.is_empty() {
        let tag = varint(&mut bytes)?;
        let wire = wire(&mut bytes, tag & 7)?;
        match (tag >> 3, wire) {
            (1, Wire::Bytes(bytes)) => key = std::str::from_utf8(bytes).ok()?.into(),
            (2, wire) => content = value(ty, wire, depth)?.unwrap_or_else(|| "".into()),
            _ => {}
        }
    }
    Some(Value::Object(Map::from_iter([(key, content)])))
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(number: u8, content: &[u8]) -> Vec<u8> {
        [&[number << 3 | 2, content.len() as u8], content].concat()
    }

    fn body(kind: &str, raw: &[u8]) -> Vec<u8> {
        let meta = [field(1, b"v1"), field(2, kind.as_bytes())].concat();
        [MAGIC, &field(1, &meta), &field(2, raw)].concat()
    }

    #[test]
    fn a_config_map_is_read() {
        let metadata = [field(1, b"settings"), field(11, &[field(1, b"app"), field(2, b"web")].concat())].concat();
        let data = [field(1, b"key"), field(2, b"value")].concat();
        let raw = [field(1, &metadata), field(2, &data), vec![4 << 3, 1]].concat();
        let expected = serde_json::json!({
            "apiVersion": "v1", "kind": "ConfigMap", "immutable": true, "data": {"key": "value"},
            "metadata": {"name": "settings", "labels": {"app": "web"}},
        });
        assert_eq!(object(&body("ConfigMap", &raw)), Ok(expected));
    }

    #[test]
    fn anything_else_is_an_error() {
        assert_eq!(object(b""), Err(Error::Malformed));
        assert_eq!(object(&body("Pod", b"")), Err(Error::UnknownKind("Pod of v1".into())));
        let whole = body("ConfigMap", &field(1, &field(1, b"settings")));
        for end in 0..whole.len() {
            assert!(object(&whole[..end]).is_err() || end > 4, "{end}");
        }
        assert!(object(&body("ConfigMap", &[0x0a, 0xff, 0xff])).is_err());
    }
}
