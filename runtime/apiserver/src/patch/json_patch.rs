//! JSON patch (RFC 6902).

use serde::Deserialize;
use serde_json::Value;

use crate::status::ApiError;

/// As upstream.
const MOST_OPERATIONS: usize = 10_000;
/// Copies could make a small patch into a large object.
const MOST_COPIED: usize = 3 << 20;
/// And into a deep one, which nobody could walk through: bodies are read no deeper either.
const DEEPEST: usize = 128;

/// One step.
#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub(crate) enum Operation {
    /// Sets a field or inserts an item.
    Add {
        /// Where.
        path: String,
        /// What.
        value: Value,
    },
    /// Removes what is there.
    Remove {
        /// Where.
        path: String,
    },
    /// Replaces what is there.
    Replace {
        /// Where.
        path: String,
        /// By what.
        value: Value,
    },
    /// Removes and adds.
    Move {
        /// From where.
        from: String,
        /// To where.
        path: String,
    },
    /// Adds what is elsewhere.
    Copy {
        /// From where.
        from: String,
        /// To where.
        path: String,
    },
    /// Goes on only if that is there.
    Test {
        /// Where.
        path: String,
        /// What.
        value: Value,
    },
}

/// Reads the steps.
pub(super) fn read(patch: Value) -> Result<Vec<Operation>, ApiError> {
    let operations: Vec<Operation> = serde_json::from_value(patch)
        .map_err(|error| ApiError::bad_request(format!("error decoding patch: {error}")))?;
    if operations.len() > MOST_OPERATIONS {
        let message = format!("the allowed maximum operations in a JSON patch is {MOST_OPERATIONS}");
        return Err(ApiError::new(413, "RequestEntityTooLarge", message));
    }
    Ok(operations)
}

/// Takes the steps.
pub(super) fn apply(operations: &[Operation], object: &mut Value) -> Result<(), ApiError> {
    let mut copied = 0;
    for operation in operations {
        match operation {
            Operation::Add { path, value } => add(object, path, value.clone())?,
            Operation::Remove { path } => {
                remove(object, path)?;
            }
            Operation::Replace { path, value } => {
                not_too_deep(path, value)?;
                *object.pointer_mut(path).ok_or_else(|| missing("replace", path))? = value.clone();
            }
            Operation::Move { from, path } => {
                let value = remove(object, from)?;
                add(object, path, value)?;
            }
            Operation::Copy { from, path } => {
                let value = object.pointer(from).ok_or_else(|| missing("copy", from))?.clone();
                copied += value.to_string().len();
                if copied > MOST_COPIED {
                    return Err(ApiError::too_large(MOST_COPIED));
                }
                add(object, path, value)?;
            }
            Operation::Test { path, value } => {
                if object.pointer(path).unwrap_or(&Value::Null) != value {
                    return Err(unprocessable(format!("testing value {path} failed")));
                }
            }
        }
    }
    Ok(())
}

fn add(object: &mut Value, path: &str, value: Value) -> Result<(), ApiError> {
    not_too_deep(path, &value)?;
    let Some((parent, key)) = path.rsplit_once('/') else {
        if path.is_empty() {
            *object = value;
            return Ok(());
        }
        return Err(missing("add", path));
    };
    match object.pointer_mut(parent).ok_or_else(|| missing("add", path))? {
        Value::Object(fields) => {
            fields.insert(unescaped(key), value);
        }
        Value::Array(items) => {
            let index = if key == "-" { Some(items.len()) } else { index(key) };
            let index = index.filter(|index| *index <= items.len()).ok_or_else(|| missing("add", path))?;
            items.insert(index, value);
        }
        _ => return Err(missing("add", path)),
    }
    Ok(())
}

fn remove(object: &mut Value, path: &str) -> Result<Value, ApiError> {
    let (parent, key) = path.rsplit_once('/').ok_or_else(|| missing("remove", path))?;
    let removed = match object.pointer_mut(parent) {
        Some(Value::Object(fields)) => fields.remove(&unescaped(key)),
        Some(Value::Array(items)) => index(key).filter(|index| *index < items.len()).map(|index| items.remove(index)),
        _ => None,
    };
    removed.ok_or_else(|| missing("remove", path))
}

/// Would a value reach too deep at that path?
fn not_too_deep(path: &str, value: &Value) -> Result<(), ApiError> {
    let above = path.bytes().filter(|byte| *byte == b'/').count();
    if above + depth(value) <= DEEPEST {
        return Ok(());
    }
    Err(unprocessable(format!("the value at {path} would nest deeper than {DEEPEST} levels")))
}

/// How many levels there are in a value. Nothing that was let in is deeper than can be walked through.
fn depth(value: &Value) -> usize {
    match value {
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

fn index(key: &str) -> Option<usize> {
    let is_number = key == "0" || (!key.starts_with('0') && key.bytes().all(|byte| byte.is_ascii_digit()));
    key.parse().ok().filter(|_| is_number)
}

fn unescaped(key: &str) -> String {
    key.replace("~1", "/").replace("~0", "~")
}

fn missing(operation: &str, path: &str) -> ApiError {
    unprocessable(format!("{operation} operation does not apply: doc is missing path: {path}: missing value"))
}

fn unprocessable(message: String) -> ApiError {
    ApiError::new(422, "Invalid", format!("the server rejected our request due to an error in our request: {message}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn nested(levels: usize) -> Value {
        (0..levels).fold(json!(1), |value, _| json!([value]))
    }

    /// Each step puts a copy of all into its own deepest place: twice as deep each time, and hardly larger.
    fn doubled() -> Value {
        let steps = (0..18).map(|step| {
            let depth = (1 << step) - 1;
            json!({"op": "copy", "from": "", "path": format!("{}/a", "/a".repeat(depth))})
        });
        steps.collect()
    }

    fn patched(object: Value, patch: Value) -> Result<Value, u16> {
        let mut object = object;
        let operations = read(patch).map_err(|error| error.code)?;
        apply(&operations, &mut object).map_err(|error| error.code)?;
        Ok(object)
    }

    #[test]
    fn each_operation_does_what_it_says() {
        let object = json!({"a": {"b/c": 1}, "l": [1, 2]});
        for (patch, result) in [
            (json!([{"op": "add", "path": "/a/x", "value": 2}]), json!({"a": {"b/c": 1, "x": 2}, "l": [1, 2]})),
            (json!([{"op": "remove", "path": "/a/b~1c"}]), json!({"a": {}, "l": [1, 2]})),
            (json!([{"op": "add", "path": "/l/1", "value": 9}]), json!({"a": {"b/c": 1}, "l": [1, 9, 2]})),
            (json!([{"op": "add", "path": "/l/-", "value": 9}]), json!({"a": {"b/c": 1}, "l": [1, 2, 9]})),
            (json!([{"op": "move", "from": "/l/0", "path": "/m"}]), json!({"a": {"b/c": 1}, "l": [2], "m": 1})),
            (json!([{"op": "copy", "from": "/l", "path": "/a"}]), json!({"a": [1, 2], "l": [1, 2]})),
            (json!([{"op": "test", "path": "/l/1", "value": 2}]), object.clone()),
            (json!([{"op": "replace", "path": "", "value": 1}]), json!(1)),
        ] {
            assert_eq!(patched(object.clone(), patch.clone()), Ok(result), "{patch}");
        }
    }

    #[test]
    fn what_does_not_apply_is_refused() {
        let object = json!({"l": [1]});
        for patch in [
            json!([{"op": "remove", "path": "/x"}]),
            json!([{"op": "replace", "path": "/x", "value": 1}]),
            json!([{"op": "add", "path": "/l/2", "value": 1}]),
            json!([{"op": "add", "path": "/l/01", "value": 1}]),
            json!([{"op": "add", "path": "x", "value": 1}]),
            json!([{"op": "remove", "path": ""}]),
            json!([{"op": "test", "path": "/l/0", "value": 2}]),
            doubled(),
            json!([{"op": "add", "path": "/a", "value": nested(DEEPEST)}]),
            json!([{"op": "replace", "path": "/l", "value": nested(DEEPEST)}]),
            json!([{"op": "add", "path": "/a", "value": nested(DEEPEST - 1)}, {"op": "move", "from": "/a", "path": "/l/0"}]),
        ] {
            assert_eq!(patched(object.clone(), patch.clone()), Err(422), "{patch}");
        }
        assert!(patched(object.clone(), json!([{"op": "add", "path": "/a", "value": nested(DEEPEST - 1)}])).is_ok());
        for patch in [json!({}), json!([{"op": "jump", "path": "/l"}]), json!([1])] {
            assert_eq!(patched(object.clone(), patch.clone()), Err(400), "{patch}");
        }
        let double = json!({"op": "copy", "from": "", "path": "/l/-"});
        let bomb: Vec<Value> = std::iter::repeat_n(double, 64).collect();
        assert_eq!(patched(object, bomb.into()), Err(413));
    }
}
