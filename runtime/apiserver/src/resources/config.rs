//! ConfigMaps and Secrets.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::{Value, json};

use super::typed::{self, CREATED, age, entries, text};
use crate::resource::{ALL_VERBS, Column, Door, Resource, Strategy};

/// ConfigMaps.
pub static CONFIG_MAPS: Resource = Resource {
    group: "",
    version: "v1",
    kind: "ConfigMap",
    plural: "configmaps",
    singular: "configmap",
    short_names: &["cm"],
    namespaced: true,
    categories: &[],
    verbs: ALL_VERBS,
    subresources: &[],
    strategy: typed::plain::<ConfigMap>(),
    lists: &[],
    columns: &[
        Column::text("Name", "Name of the object"),
        Column::number("Data", "How many entries it has"),
        Column::text("Age", "Since it was created"),
    ],
    row: |object, now| {
        let count = entries(object, "/data") + entries(object, "/binaryData");
        vec![json!(text(object, "/metadata/name", "")), json!(count), json!(age(object, CREATED, now))]
    },
    selectable: &[],
};

/// Secrets.
pub static SECRETS: Resource = Resource {
    group: "",
    version: "v1",
    kind: "Secret",
    plural: "secrets",
    singular: "secret",
    short_names: &[],
    namespaced: true,
    categories: &[],
    verbs: ALL_VERBS,
    subresources: &[],
    strategy: Strategy {
        default: default_secret,
        prepare_create: take_strings,
        prepare_update: |old, new, _: Door| {
            take_strings(new);
            if new["type"].is_null() {
                new["type"] = old["type"].clone();
            }
            Vec::new()
        },
        ..typed::plain::<Secret>()
    },
    lists: &[],
    columns: &[
        Column::text("Name", "Name of the object"),
        Column::text("Type", "What it is for"),
        Column::number("Data", "How many entries it has"),
        Column::text("Age", "Since it was created"),
    ],
    row: secret_row,
    selectable: &["type"],
};

fn secret_row(object: &Value, now: Timestamp) -> Vec<Value> {
    let count = entries(object, "/data");
    let kind = text(object, "/type", "");
    vec![json!(text(object, "/metadata/name", "")), json!(kind), json!(count), json!(age(object, CREATED, now))]
}

fn default_secret(secret: &mut Value) {
    if let Some(defaulted) = husk_api::default_json(secret) {
        *secret = defaulted;
    }
}

/// `stringData` is another way to write `data`, and is never shown.
fn take_strings(secret: &mut Value) {
    let Value::Object(strings) = secret["stringData"].take() else {
        return typed::put(secret, "stringData", Value::Null);
    };
    typed::put(secret, "stringData", Value::Null);
    for (key, value) in strings {
        secret["data"][key] = STANDARD.encode(value.as_str().unwrap_or_default()).into();
    }
}
