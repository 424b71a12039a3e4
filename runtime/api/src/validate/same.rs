//! When two objects say the same.

use serde_json::Value as Json;

use crate::amount;

/// Fields where `false` is the same as nothing.
const FLAGS: [&str; 7] = ["hostNetwork", "hostPID", "hostIPC", "readOnly", "stdin", "stdinOnce", "tty"];
/// Fields where 0 is the same as nothing.
const NUMBERS: [&str; 3] = ["initialDelaySeconds", "hostPort", "partition"];
/// Fields where `{}` is the same as nothing. `emptyDir: {}` says something.
const MAPS: [&str; 9] = [
    "resources",
    "limits",
    "requests",
    "overhead",
    "nodeSelector",
    "matchLabels",
    "options",
    "volumeAttributes",
    "userAnnotations",
];
/// Lists of amounts, which are equal if they are as much.
const AMOUNTS: [&str; 3] = ["limits", "requests", "overhead"];

/// Whether two objects say the same: what is empty is as good as not there.
pub(super) fn equal<T: serde::Serialize>(a: &T, b: &T) -> bool {
    let json = |object: &T| serde_json::to_value(object).map(normal).unwrap_or_default();
    json(a) == json(b)
}

fn normal(json: Json) -> Json {
    match json {
        Json::Object(entries) => entries
            .into_iter()
            .map(|(key, value)| {
                let value = if AMOUNTS.contains(&key.as_str()) { amounts(value) } else { normal(value) };
                (key, value)
            })
            .filter(|(key, value)| match value {
                Json::Null => false,
                Json::Bool(flag) => *flag || !FLAGS.contains(&key.as_str()),
                Json::String(text) => !text.is_empty(),
                Json::Array(items) => !items.is_empty(),
                Json::Object(entries) => !entries.is_empty() || !MAPS.contains(&key.as_str()),
                Json::Number(number) => number.as_i64() != Some(0) || !NUMBERS.contains(&key.as_str()),
            })
            .collect(),
        Json::Array(items) => items.into_iter().map(normal).collect(),
        other => other,
    }
}

fn amounts(json: Json) -> Json {
    let Json::Object(entries) = json else { return json };
    let exact = |amount: Json| match amount.as_str().and_then(amount::parse) {
        Some(amount) => amount.nanos().to_string().into(),
        None => amount,
    };
    entries.into_iter().map(|(name, amount)| (name, exact(amount))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_empty_is_as_good_as_not_there() {
        let table = [
            (json!({"hostPort": 0, "tty": false, "args": [], "nodeSelector": {}}), json!({}), true),
            (json!({"emptyDir": {}}), json!({}), false),
            (json!({"runAsUser": 0}), json!({}), false),
            (json!({"limits": {"cpu": "1e3"}}), json!({"limits": {"cpu": "1k"}}), true),
            (json!({"limits": {"cpu": "1"}}), json!({"limits": {"cpu": "2"}}), false),
            (json!({"resources": {"limits": {}}}), json!({"resources": null}), true),
        ];
        for (a, b, same) in table {
            assert_eq!(equal(&a, &b), same, "{a} {b}");
        }
    }
}
