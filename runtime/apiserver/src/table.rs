//! Tables, as `kubectl get` prints them, and lists of metadata.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::query::Query;
use crate::resource::{Column, Resource};
use crate::status::ApiError;

/// What of an object stands in its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Include {
    /// Nothing.
    None,
    /// Its metadata.
    Metadata,
    /// All of it.
    Object,
}

impl Include {
    /// What a query asks for.
    pub(crate) fn of(query: &Query) -> Result<Self, ApiError> {
        match query.get("includeObject") {
            None | Some("Metadata") => Ok(Self::Metadata),
            Some("None") => Ok(Self::None),
            Some("Object") => Ok(Self::Object),
            Some(other) => Err(ApiError::bad_request(format!("unrecognized includeObject value: {other:?}"))),
        }
    }
}

/// A table of objects. `metadata` is that of the list.
pub(crate) fn table<'a>(
    resource: &Resource,
    metadata: Value,
    objects: impl Iterator<Item = &'a Value>,
    include: Include,
    with_columns: bool,
) -> Value {
    let now = Timestamp::now();
    let row = |object: &Value| {
        let mut row = json!({"cells": (resource.row)(object, now)});
        match include {
            Include::None => {}
            Include::Metadata => row["object"] = metadata_only(object),
            Include::Object => row["object"] = object.clone(),
        }
        row
    };
    let columns: Value = if with_columns { resource.columns.iter().map(column).collect() } else { Value::Null };
    json!({
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": columns,
        "rows": objects.map(row).collect::<Vec<_>>(),
    })
}

/// The metadata of an object.
pub(crate) fn metadata_only(object: &Value) -> Value {
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"]})
}

fn column(column: &Column) -> Value {
    json!({
        "name": column.name,
        "type": column.kind,
        "format": if column.name == "Name" && !column.wide { "name" } else { "" },
        "description": column.description,
        "priority": i32::from(column.wide),
    })
}
