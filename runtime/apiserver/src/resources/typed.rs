//! What strategies have in common: reading and checking by the typed object of a kind.

use husk_api::{ErrorKind, FieldError, ObjectRules};
use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::api::Device;
use crate::resource::{Door, Reading, Removal, Strategy};

/// Of a kind in which nothing is peculiar.
pub(super) const fn plain<T: DeserializeOwned + Serialize + ObjectRules>() -> Strategy {
    Strategy {
        read: read::<T>,
        default: as_it_is,
        prepare_create: as_it_is,
        prepare_update: keep_nothing,
        drop_disabled: all_enabled,
        settle: settled,
        validate: validate::<T>,
        validate_update: validate_update::<T>,
        removal: Removal::AtOnce,
    }
}

/// Reads an object of a kind that is as upstream has it.
pub(super) fn read<T: DeserializeOwned + Serialize>(json: &Value) -> Result<Reading, String> {
    let mut unknown = Vec::new();
    let object: T = serde_ignored::deserialize(json, |path| unknown.push(written(&path.to_string())))
        .map_err(|error: serde_json::Error| error.to_string())?;
    let object = serde_json::to_value(object).map_err(|error| error.to_string())?;
    Ok(Reading { object, unknown, ..Reading::default() })
}

/// `spec.?.containers.?.0.foo` is `spec.containers[0].foo` to people.
fn written(path: &str) -> String {
    let mut text = String::new();
    for part in path.split('.').filter(|part| *part != "?") {
        if !text.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()) {
            text.push_str(&format!("[{part}]"));
        } else {
            text.push_str(if text.is_empty() { "" } else { "." });
            text.push_str(part);
        }
    }
    text
}

/// Everything that is wrong with a new object.
pub(super) fn validate<T: DeserializeOwned + ObjectRules>(object: &Value, _: &Device) -> Vec<FieldError> {
    match T::deserialize(object) {
        Ok(object) => object.validate(),
        Err(error) => vec![malformed(&error)],
    }
}

/// Everything that is wrong with a change.
pub(super) fn validate_update<T: DeserializeOwned + ObjectRules>(
    old: &Value,
    new: &Value,
    _: Door,
    _: &Device,
) -> Vec<FieldError> {
    match (T::deserialize(old), T::deserialize(new)) {
        (Ok(old), Ok(new)) => new.validate_update(&old),
        (Err(error), _) | (_, Err(error)) => vec![malformed(&error)],
    }
}

/// Objects are read before they are checked, so that this doesn't happen.
pub(super) fn malformed(error: &dyn std::fmt::Display) -> FieldError {
    FieldError { field: String::new(), kind: ErrorKind::Invalid, detail: error.to_string() }
}

/// The path of the object itself changes all but the status, that of the status changes nothing else.
pub(super) fn keep_status(old: &Value, new: &mut Value, door: Door) -> Vec<String> {
    match door {
        Door::Status => {
            let status = new["status"].take();
            *new = old.clone();
            put(new, "status", status);
        }
        _ => put(new, "status", old["status"].clone()),
    }
    Vec::new()
}

/// Nothing has to be kept.
pub(super) fn keep_nothing(_: &Value, _: &mut Value, _: Door) -> Vec<String> {
    Vec::new()
}

/// Nothing has to be set.
pub(super) fn as_it_is(_: &mut Value) {}

/// No feature is off that has fields there.
pub(super) fn all_enabled(_: Option<&Value>, _: &mut Value, _: &Device) -> Vec<String> {
    Vec::new()
}

/// Nothing follows from the device.
pub(super) fn settled(_: &mut Value, _: &Device) {}

/// Sets a field, or removes it if there is nothing to set.
pub(super) fn put(object: &mut Value, field: &str, value: Value) {
    if let Some(object) = object.as_object_mut() {
        if value.is_null() {
            object.remove(field);
        } else {
            object.insert(field.into(), value);
        }
    }
}

/// The text at a JSON pointer; `none` if there isn't any.
pub(super) fn text<'a>(object: &'a Value, pointer: &str, none: &'a str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty()).unwrap_or(none)
}

/// How many entries a map has.
pub(super) fn entries(object: &Value, pointer: &str) -> usize {
    object.pointer(pointer).and_then(Value::as_object).map_or(0, serde_json::Map::len)
}

/// The age column: since the time at a JSON pointer.
pub(super) fn age(object: &Value, pointer: &str, now: Timestamp) -> String {
    let then = text(object, pointer, "").parse::<Timestamp>();
    then.map_or_else(|_| "<unknown>".into(), |then| husk_api::age(then, now))
}

/// Where an object says when it was created.
pub(super) const CREATED: &str = "/metadata/creationTimestamp";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_written_as_people_know_them() {
        assert_eq!(written("spec.?.containers.?.0.foo"), "spec.containers[0].foo");
        assert_eq!(written("bogus"), "bogus");
    }
}
