//! OpenAPI: as much as clients need to leave the checking of fields to the server.

use serde_json::{Map, Value, json};

use crate::resource::Resource;
use crate::resources::RESOURCES;
use crate::respond::{self, Response};
use crate::status::ApiError;

/// Clients keep a document until its hash is another one.
const HASH: &str = concat!("husk-", env!("CARGO_PKG_VERSION"));

/// `/openapi/v3`
pub(crate) fn index() -> Response {
    let entries = RESOURCES.iter().map(|resource| {
        let path = root(resource.group, resource.version);
        let entry = json!({"serverRelativeURL": format!("/openapi/v3/{path}?hash={HASH}")});
        (path, entry)
    });
    respond::json(200, &json!({"paths": entries.collect::<Map<_, _>>()}))
}

/// `/openapi/v3/…`
pub(crate) fn document(group: &str, version: &str) -> Response {
    let served: Vec<&Resource> =
        RESOURCES.iter().copied().filter(|resource| resource.group == group && resource.version == version).collect();
    if served.is_empty() {
        return respond::error(&ApiError::no_such_path());
    }
    let paths: Map<String, Value> = served.into_iter().map(path).collect();
    let document = json!({
        "openapi": "3.0.0",
        "info": {"title": "Husk", "version": env!("CARGO_PKG_VERSION")},
        "paths": paths,
        "components": {"schemas": {}},
    });
    respond::json(200, &document)
}

/// `/openapi/v2`: an empty document in the only form that old clients read.
pub(crate) fn v2() -> Response {
    respond::bytes(200, "application/com.github.proto-openapi.spec.v2.v1.0+protobuf", bytes::Bytes::new())
}

fn root(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

/// The operation that tells a client that the server checks fields.
fn path(resource: &Resource) -> (String, Value) {
    let namespace = if resource.namespaced { "/namespaces/{namespace}" } else { "" };
    let path = format!("/{}{namespace}/{}/{{name}}", root(resource.group, resource.version), resource.plural);
    let parameter = |name: &str| json!({"name": name, "in": "query", "schema": {"type": "string"}});
    let parameters = ["dryRun", "fieldManager", "fieldValidation", "force"].map(parameter);
    let operation = json!({
        "x-kubernetes-action": "patch",
        "x-kubernetes-group-version-kind":
            {"group": resource.group, "version": resource.version, "kind": resource.kind},
        "parameters": parameters,
        "responses": {"200": {"description": "OK"}},
    });
    (path, json!({"patch": operation}))
}
