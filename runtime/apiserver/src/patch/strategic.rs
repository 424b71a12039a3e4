//! Strategic merge patch: a merge patch that knows which lists are maps, with directives for what it can't say otherwise.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::lists::Lists;
use crate::resource::ListMerge;
use crate::status::ApiError;

/// `replace`, `delete` or `merge`.
const DIRECTIVE: &str = "$patch";
/// Keys that stay; all others go.
const RETAIN: &str = "$retainKeys";
/// Values that leave a set.
const DELETE_FROM: &str = "$deleteFromPrimitiveList/";
/// The order that a list has afterwards.
const ORDER: &str = "$setElementOrder/";

/// Changes an object as the patch says.
pub(super) fn apply(
    patch: &Value,
    object: &mut Value,
    lists: &'static [(&'static str, ListMerge)],
) -> Result<(), ApiError> {
    let merge = Merge { lists: Lists(lists) };
    match patch {
        Value::Object(fields) => merge.object(fields, object, &mut Vec::new()),
        _ => Err(ApiError::bad_request("the patch must be an object")),
    }
}

struct Merge {
    lists: Lists,
}

impl Merge {
    /// `path` leads to the object, with `*` for any item of a list.
    fn object<'a>(
        &self,
        patch: &'a Map<String, Value>,
        target: &mut Value,
        path: &mut Vec<&'a str>,
    ) -> Result<(), ApiError> {
        match patch.get(DIRECTIVE).map(|directive| directive.as_str().unwrap_or_default()) {
            None | Some("merge") => {}
            Some("replace") => {
                *target = without_directives(patch);
                return Ok(());
            }
            Some("delete") => {
                *target = Value::Object(Map::new());
                return Ok(());
            }
            Some(other) => return Err(unknown_directive(other)),
        }
        if !target.is_object() {
            *target = Value::Object(Map::new());
        }
        let Some(fields) = target.as_object_mut() else { return Ok(()) };
        if let Some(retained) = patch.get(RETAIN) {
            let retained = retained.as_array().ok_or_else(|| malformed(RETAIN))?;
            fields.retain(|key, _| retained.iter().any(|kept| kept == key));
        }
        for (key, value) in patch {
            if let Some(name) = key.strip_prefix(DELETE_FROM) {
                let gone = value.as_array().ok_or_else(|| malformed(key))?;
                if let Some(items) = fields.get_mut(name).and_then(Value::as_array_mut) {
                    items.retain(|item| !gone.contains(item));
                }
            } else if !key.starts_with('$') {
                self.field(key, value, fields, path)?;
            }
        }
        for (key, value) in patch {
            if let Some(name) = key.strip_prefix(ORDER) {
                let wanted = value.as_array().ok_or_else(|| malformed(key))?;
                path.push(name);
                let rule = self.lists.rule(path);
                path.pop();
                if let Some(items) = fields.get_mut(name).and_then(Value::as_array_mut) {
                    in_order(items, wanted, rule);
                }
            }
        }
        Ok(())
    }

    fn field<'a>(
        &self,
        key: &'a str,
        value: &'a Value,
        fields: &mut Map<String, Value>,
        path: &mut Vec<&'a str>,
    ) -> Result<(), ApiError> {
        path.push(key);
        match value {
            Value::Null => {
                fields.remove(key);
            }
            Value::Object(patch) => {
                let target = fields.entry(key).or_insert(Value::Null);
                self.object(patch, target, path)?;
            }
            Value::Array(patch) => match self.lists.rule(path) {
                None => {
                    fields.insert(key.into(), value.clone());
                }
                Some(rule) => {
                    let mut items = match fields.remove(key) {
                        Some(Value::Array(items)) => items,
                        _ => Vec::new(),
                    };
                    match rule {
                        ListMerge::Set => {
                            let new: Vec<Value> = patch.iter().filter(|item| !items.contains(item)).cloned().collect();
                            items.extend(new);
                        }
                        ListMerge::ByKey(name) | ListMerge::ByKeyRetaining(name) => {
                            self.items(patch, &mut items, name, path)?;
                        }
                    }
                    fields.insert(key.into(), items.into());
                }
            },
            _ => {
                fields.insert(key.into(), value.clone());
            }
        }
        path.pop();
        Ok(())
    }

    /// Merges a list of objects that are told apart by a field.
    fn items<'a>(
        &self,
        patch: &'a [Value],
        items: &mut Vec<Value>,
        name: &str,
        path: &mut Vec<&'a str>,
    ) -> Result<(), ApiError> {
        // An item that is nothing but this directive is about the whole list.
        let is_replace =
            |item: &Value| item.as_object().is_some_and(|item| item.len() == 1) && item[DIRECTIVE] == "replace";
        if patch.iter().any(is_replace) {
            let others = patch.iter().filter(|item| !is_replace(item));
            *items = others.map(|item| item.as_object().map_or_else(|| item.clone(), without_directives)).collect();
            return Ok(());
        }
        let mut places: HashMap<String, usize> = HashMap::new();
        for (place, item) in items.iter().enumerate() {
            places.entry(item[name].to_string()).or_insert(place);
        }
        path.push("*");
        for item in patch {
            let Some(fields) = item.as_object() else {
                return Err(ApiError::bad_request(format!("{}: the items must be objects", path.join("."))));
            };
            let key = fields.get(name).ok_or_else(|| {
                ApiError::bad_request(format!("map: {item} does not contain declared merge key: {name}"))
            })?;
            let place = places.get(&key.to_string()).copied();
            match (fields.get(DIRECTIVE).and_then(Value::as_str), place.and_then(|place| items.get_mut(place))) {
                (Some("delete"), Some(found)) => {
                    *found = Value::Null;
                    places.remove(&key.to_string());
                }
                (Some("delete"), None) => {}
                (_, Some(found)) => self.object(fields, found, path)?,
                (_, None) => {
                    let mut new = Value::Object(Map::new());
                    self.object(fields, &mut new, path)?;
                    places.insert(key.to_string(), items.len());
                    items.push(new);
                }
            }
        }
        path.pop();
        items.retain(|item| !item.is_null());
        Ok(())
    }
}

/// The value of a patch where there is nothing to patch.
fn without_directives(patch: &Map<String, Value>) -> Value {
    let clean = |value: &Value| match value {
        Value::Object(fields) => without_directives(fields),
        other => other.clone(),
    };
    let fields = patch.iter().filter(|(key, value)| !key.starts_with('$') && !value.is_null());
    Value::Object(fields.map(|(key, value)| (key.clone(), clean(value))).collect())
}

/// Puts items into the order that the patch names; those that it doesn't name keep their place among the others.
fn in_order(items: &mut Vec<Value>, wanted: &[Value], rule: Option<ListMerge>) {
    let identity = |item: &Value| match rule {
        Some(ListMerge::ByKey(name) | ListMerge::ByKeyRetaining(name)) => item[name].to_string(),
        _ => item.to_string(),
    };
    let ranks: HashMap<String, usize> = wanted.iter().enumerate().map(|(n, item)| (identity(item), n)).collect();
    let rank = |(_, item): &(usize, Value)| ranks.get(&identity(item)).copied();
    let (mut named, unnamed): (Vec<_>, Vec<_>) = items.drain(..).enumerate().partition(|item| rank(item).is_some());
    named.sort_by_key(rank);
    let (mut named, mut unnamed) = (named.into_iter().peekable(), unnamed.into_iter().peekable());
    loop {
        let next = match (named.peek(), unnamed.peek()) {
            (Some((place, _)), Some((other, _))) if other < place => unnamed.next(),
            (Some(_), _) => named.next(),
            (None, _) => unnamed.next(),
        };
        match next {
            Some((_, item)) => items.push(item),
            None => return,
        }
    }
}

fn malformed(key: &str) -> ApiError {
    ApiError::bad_request(format!("{key}: expected a list"))
}

fn unknown_directive(directive: &str) -> ApiError {
    ApiError::bad_request(format!("unknown value for $patch: {directive:?}; replace, delete and merge are known"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::resources::PODS;

    fn patched(object: Value, patch: Value) -> Value {
        let mut object = object;
        apply(&patch, &mut object, PODS.lists).expect("a patch");
        object
    }

    fn pod() -> Value {
        json!({
            "metadata": {"labels": {"a": "1"}, "finalizers": ["x/y"]},
            "spec": {
                "containers": [
                    {"name": "a", "image": "i", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]},
                    {"name": "b", "image": "j", "args": ["x"]},
                ],
                "tolerations": [{"key": "k"}],
                "volumes": [{"name": "v", "emptyDir": {}}],
            },
        })
    }

    #[test]
    fn lists_with_keys_are_merged_and_others_replaced() {
        let patch = json!({"spec": {
            "containers": [{"name": "b", "image": "k", "args": ["y"]}, {"name": "a", "env": [{"name": "B", "value": "3"}]}],
            "tolerations": [{"key": "l"}],
        }, "metadata": {"labels": {"a": null, "b": "2"}, "finalizers": ["x/z", "x/y"]}});
        let result = patched(pod(), patch);
        assert_eq!(result["spec"]["containers"][1], json!({"name": "b", "image": "k", "args": ["y"]}));
        let env = json!([{"name": "A", "value": "1"}, {"name": "B", "value": "3"}]);
        assert_eq!(result["spec"]["containers"][0]["env"], env);
        assert_eq!(result["spec"]["tolerations"], json!([{"key": "l"}]));
        assert_eq!(result["metadata"], json!({"labels": {"b": "2"}, "finalizers": ["x/y", "x/z"]}));
    }

    #[test]
    fn directives_delete_replace_retain_and_order() {
        let delete =
            json!({"spec": {"containers": [{"name": "a", "$patch": "delete"}, {"name": "z", "$patch": "delete"}]}});
        assert_eq!(patched(pod(), delete)["spec"]["containers"].as_array().map(Vec::len), Some(1));
        let replace = json!({"spec": {"containers": [{"$patch": "replace"}, {"name": "n"}]}});
        assert_eq!(patched(pod(), replace)["spec"]["containers"], json!([{"name": "n"}]));
        let map = json!({"metadata": {"labels": {"$patch": "replace", "n": "1"}}});
        assert_eq!(patched(pod(), map)["metadata"]["labels"], json!({"n": "1"}));
        let retain = json!({"spec": {"volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/"}}]}});
        assert_eq!(patched(pod(), retain)["spec"]["volumes"], json!([{"name": "v", "hostPath": {"path": "/"}}]));
        let set = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["x/y"]}});
        assert_eq!(patched(pod(), set)["metadata"]["finalizers"], json!([]));
        let order = json!({"spec": {
            "$setElementOrder/containers": [{"name": "n"}, {"name": "b"}, {"name": "a"}],
            "containers": [{"name": "n"}],
        }});
        let names: Vec<Value> = patched(pod(), order)["spec"]["containers"]
            .as_array()
            .expect("containers")
            .iter()
            .map(|container| container["name"].clone())
            .collect();
        assert_eq!(names, ["n", "b", "a"]);
    }

    #[test]
    fn what_it_does_not_name_keeps_its_place() {
        let mut items = vec![json!({"name": "s"}), json!({"name": "a"}), json!({"name": "t"}), json!({"name": "b"})];
        in_order(&mut items, &[json!({"name": "b"}), json!({"name": "a"})], Some(ListMerge::ByKey("name")));
        let names: Vec<&str> = items.iter().filter_map(|item| item["name"].as_str()).collect();
        assert_eq!(names, ["s", "t", "b", "a"]);
    }

    #[test]
    fn malformed_patches_are_refused() {
        for patch in [
            json!({"spec": {"containers": [{"image": "i"}]}}),
            json!({"spec": {"containers": [1]}}),
            json!({"spec": {"$patch": "jump"}}),
            json!({"spec": {"$retainKeys": 1}}),
            json!({"spec": {"$setElementOrder/containers": {}}}),
        ] {
            assert!(apply(&patch, &mut pod(), PODS.lists).is_err(), "{patch}");
        }
    }
}
