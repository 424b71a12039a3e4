//! What may change by which door of a pod: everything else stays as it was.

use husk_api::{ErrorKind, FieldError};
use husk_core::reasons::BUILT_IN_CONDITIONS;
use serde_json::Value;

use crate::resource::Door;
use crate::resources::typed::put;

const CONTAINER_LISTS: [&str; 2] = ["containers", "initContainers"];

pub(super) fn prepare_update(old: &Value, new: &mut Value, door: Door) -> Vec<String> {
    match door {
        Door::Status => status(old, new),
        Door::EphemeralContainers => {
            let containers = new["spec"]["ephemeralContainers"].take();
            with_old(old, new, |spec| put(spec, "ephemeralContainers", containers));
            Vec::new()
        }
        Door::Resize => {
            resize(old, new);
            Vec::new()
        }
        _ => {
            put(new, "status", old["status"].clone());
            let asked = new["spec"]["ephemeralContainers"].take();
            let kept = old["spec"]["ephemeralContainers"].clone();
            let differs = !asked.is_null() && asked != kept;
            put(&mut new["spec"], "ephemeralContainers", kept);
            let remark = "spec.ephemeralContainers: not changed: that goes through the subresource ephemeralcontainers";
            if differs { vec![remark.into()] } else { Vec::new() }
        }
    }
}

/// Puts the old object in the place of the new one, but for what is set, and for the version that the client saw.
fn with_old(old: &Value, new: &mut Value, set: impl FnOnce(&mut Value)) {
    let mut kept = old.clone();
    set(&mut kept["spec"]);
    *new = kept;
}

/// Only resources change. A list of other containers is taken as it is, so that it is refused.
fn resize(old: &Value, new: &mut Value) {
    let names = |pod: &Value| {
        CONTAINER_LISTS
            .map(|list| items(&pod["spec"][list]).iter().map(|item| item["name"].clone()).collect::<Vec<_>>())
    };
    if names(old) != names(new) {
        return put(new, "status", old["status"].clone());
    }
    let asked = new["spec"].take();
    with_old(old, new, |spec| {
        put(spec, "resources", asked["resources"].clone());
        for list in CONTAINER_LISTS {
            let containers = spec.get_mut(list).and_then(Value::as_array_mut);
            for (container, asked) in containers.into_iter().flatten().zip(items(&asked[list])) {
                for field in ["resources", "resizePolicy"] {
                    put(container, field, asked[field].clone());
                }
            }
        }
    });
}

/// Clients set conditions of their own; the rest is the node's.
fn status(old: &Value, new: &mut Value) -> Vec<String> {
    let mut asked = new["status"].take();
    let conditions = asked["conditions"].take();
    let mut kept = old["status"].clone();
    let mut rest = kept.clone();
    for status in [&mut asked, &mut rest] {
        put(status, "conditions", Value::Null);
    }
    let own = items(&old["status"]["conditions"]).iter().filter(|condition| is_built_in(condition));
    let theirs = items(&conditions).iter().filter(|condition| !is_built_in(condition));
    let merged: Vec<Value> = own.chain(theirs).cloned().collect();
    // What they ask of the node's own is looked at afterwards.
    let refused = items(&conditions).iter().filter(|condition| is_built_in(condition) && contradicts(old, condition));
    let merged: Vec<Value> = merged.into_iter().chain(refused.cloned()).collect();
    if !merged.is_empty() || !kept["conditions"].is_null() {
        put(&mut kept, "conditions", merged.into());
    }
    *new = old.clone();
    put(new, "status", kept);
    let remark = "status: not changed: only conditions that aren't the node's own are set by clients";
    let is_silent = asked.as_object().is_none_or(serde_json::Map::is_empty);
    if is_silent || asked == rest { Vec::new() } else { vec![remark.into()] }
}

/// A built-in condition stands there twice if a client asked for another one.
pub(super) fn validate_status(old: &Value, new: &Value) -> Vec<FieldError> {
    let conditions = items(&new["status"]["conditions"]).iter().enumerate();
    let refused = conditions.filter(|(_, condition)| is_built_in(condition) && contradicts(old, condition));
    let mut errors: Vec<FieldError> = refused
        .map(|(_, condition)| {
            let kind = condition["type"].as_str().unwrap_or_default();
            let field = format!("status.conditions[{kind}]");
            let detail = "this condition is the node's; clients set conditions of their own types";
            FieldError { field, kind: ErrorKind::Forbidden, detail: detail.into() }
        })
        .collect();
    for (index, condition) in items(&new["status"]["conditions"]).iter().enumerate() {
        let status = condition["status"].as_str().unwrap_or_default();
        if !matches!(status, "True" | "False" | "Unknown") {
            let detail = "supported values: \"False\", \"True\", \"Unknown\"".into();
            let field = format!("status.conditions[{index}].status");
            errors.push(FieldError { field, kind: ErrorKind::NotSupported, detail });
        }
    }
    errors
}

fn is_built_in(condition: &Value) -> bool {
    condition["type"].as_str().is_some_and(|kind| BUILT_IN_CONDITIONS.contains(&kind))
}

fn contradicts(old: &Value, condition: &Value) -> bool {
    let own = items(&old["status"]["conditions"]).iter().find(|own| own["type"] == condition["type"]);
    own.is_none_or(|own| own["status"] != condition["status"])
}

fn items(list: &Value) -> &[Value] {
    list.as_array().map(Vec::as_slice).unwrap_or_default()
}
