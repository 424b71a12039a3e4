//! JSON merge patch (RFC 7386).

use serde_json::{Map, Value};

/// Changes an object: what is null goes, objects are merged, everything else is replaced.
pub(super) fn apply(patch: &Value, object: &mut Value) {
    let Value::Object(fields) = patch else {
        *object = patch.clone();
        return;
    };
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    let Some(target) = object.as_object_mut() else { return };
    for (key, value) in fields {
        if value.is_null() {
            target.remove(key);
        } else {
            apply(value, target.entry(key.clone()).or_insert(Value::Null));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn examples_of_the_rfc() {
        for (object, patch, result) in [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"})),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}})),
            (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
            (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
            (json!([1, 2]), json!({"a": "b", "c": null}), json!({"a": "b"})),
            (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
        ] {
            let mut patched = object.clone();
            apply(&patch, &mut patched);
            assert_eq!(patched, result, "{object} with {patch}");
        }
    }
}
