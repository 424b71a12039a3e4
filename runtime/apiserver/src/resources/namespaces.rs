//! Namespaces.

use k8s_openapi::api::core::v1::Namespace;
use serde_json::{Value, json};

use super::typed::{self, CREATED, age, text};
use crate::resource::{Column, Door, ListMerge, Removal, Resource, Strategy, Subresource};

/// The label that each namespace has, so that selectors can name it.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

pub(crate) static NAMESPACES: Resource = Resource {
    group: "",
    version: "v1",
    kind: "Namespace",
    plural: "namespaces",
    singular: "namespace",
    short_names: &["ns"],
    namespaced: false,
    categories: &[],
    verbs: &["create", "delete", "get", "list", "patch", "update", "watch"],
    subresources: &[Subresource { name: "status", door: Door::Status, kind: None, verbs: &["get", "patch", "update"] }],
    strategy: Strategy {
        read: typed::read::<Namespace>,
        default: |namespace| {
            if let Some(name) = namespace["metadata"]["name"].as_str().map(str::to_owned) {
                namespace["metadata"]["labels"][NAME_LABEL] = name.into();
            }
        },
        prepare_create: |namespace| {
            namespace["spec"] = json!({"finalizers": ["kubernetes"]});
            namespace["status"] = json!({"phase": "Active"});
        },
        prepare_update: |old, new, door| {
            new["spec"] = old["spec"].clone();
            typed::keep_status(old, new, door)
        },
        drop_disabled: typed::all_enabled,
        settle: typed::settled,
        validate: typed::validate::<Namespace>,
        validate_update: typed::validate_update::<Namespace>,
        removal: Removal::WithContents,
    },
    lists: &[("status.conditions", ListMerge::ByKey("type"))],
    columns: &[
        Column::text("Name", "Name of the namespace"),
        Column::text("Status", "Active, or Terminating while what is in it goes"),
        Column::text("Age", "Since it was created"),
    ],
    row: |object: &Value, now| {
        let name = text(object, "/metadata/name", "");
        vec![json!(name), json!(text(object, "/status/phase", "")), json!(age(object, CREATED, now))]
    },
    selectable: &["status.phase"],
};
