//! What there is: groups, versions and resources, in the new form and the old.

use serde_json::{Value, json};

use crate::negotiate::takes_aggregated_discovery;
use crate::resource::{Resource, Subresource};
use crate::resources::RESOURCES;
use crate::respond::{self, Response};
use crate::status::ApiError;

/// The type has to be told, or `kubectl` takes it for the old form and finds nothing.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// `/api`
pub(crate) fn core(accept: Option<&str>) -> Response {
    if takes_aggregated_discovery(accept) {
        return aggregated(&[""]);
    }
    let versions = json!({
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": ""}],
    });
    respond::json(200, &versions)
}

/// `/apis`
pub(crate) fn groups(accept: Option<&str>) -> Response {
    if takes_aggregated_discovery(accept) {
        return aggregated(&group_names());
    }
    let groups: Vec<Value> = group_names().into_iter().map(api_group).collect();
    respond::json(200, &json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}))
}

/// `/apis/GROUP`
pub(crate) fn group(name: &str) -> Response {
    if !group_names().contains(&name) {
        return respond::error(&ApiError::no_such_path());
    }
    let mut group = api_group(name);
    group["kind"] = "APIGroup".into();
    group["apiVersion"] = "v1".into();
    respond::json(200, &group)
}

/// `/api/VERSION` and `/apis/GROUP/VERSION`
pub(crate) fn resources(group: &str, version: &str) -> Response {
    let served: Vec<&Resource> =
        RESOURCES.iter().copied().filter(|resource| resource.group == group && resource.version == version).collect();
    let Some(first) = served.first() else { return respond::error(&ApiError::no_such_path()) };
    let list = json!({
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": first.api_version(),
        "resources": served.iter().flat_map(|resource| api_resources(resource)).collect::<Vec<_>>(),
    });
    respond::json(200, &list)
}

/// Named groups, without the core one.
fn group_names() -> Vec<&'static str> {
    let mut names: Vec<&str> =
        RESOURCES.iter().map(|resource| resource.group).filter(|name| !name.is_empty()).collect();
    names.dedup();
    names
}

/// Versions of a group.
fn versions(group: &str) -> Vec<&'static str> {
    let mut versions: Vec<&str> =
        RESOURCES.iter().filter(|resource| resource.group == group).map(|resource| resource.version).collect();
    versions.dedup();
    versions
}

fn api_group(name: &str) -> Value {
    let version = |version: &str| json!({"groupVersion": format!("{name}/{version}"), "version": version});
    let versions: Vec<Value> = versions(name).into_iter().map(version).collect();
    json!({"name": name, "versions": versions, "preferredVersion": versions.first()})
}

fn api_resources(resource: &Resource) -> Vec<Value> {
    let mut object = json!({
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": resource.verbs,
    });
    for (field, list) in [("shortNames", resource.short_names), ("categories", resource.categories)] {
        if !list.is_empty() {
            object[field] = json!(list);
        }
    }
    let below = resource.subresources.iter().map(|subresource| {
        let (group, version, kind) = kind_of(resource, subresource);
        let mut object = json!({
            "name": format!("{}/{}", resource.plural, subresource.name),
            "singularName": "",
            "namespaced": resource.namespaced,
            "kind": kind,
            "verbs": subresource.verbs,
        });
        if subresource.kind.is_some() {
            object["group"] = group.into();
            object["version"] = version.into();
        }
        object
    });
    std::iter::once(object).chain(below).collect()
}

fn aggregated(groups: &[&str]) -> Response {
    let items: Vec<Value> = groups.iter().map(|group| aggregated_group(group)).collect();
    let list = json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    });
    let body = serde_json::to_vec(&list).unwrap_or_default();
    respond::bytes(200, AGGREGATED, body.into())
}

fn aggregated_group(group: &str) -> Value {
    let version = |version: &str| {
        let served = RESOURCES.iter().filter(|resource| resource.group == group && resource.version == version);
        let resources: Vec<Value> = served.map(|resource| aggregated_resource(resource)).collect();
        json!({"version": version, "freshness": "Current", "resources": resources})
    };
    let versions: Vec<Value> = versions(group).into_iter().map(version).collect();
    let metadata = if group.is_empty() { json!({}) } else { json!({"name": group}) };
    json!({"metadata": metadata, "versions": versions})
}

fn aggregated_resource(resource: &Resource) -> Value {
    let kind = |(group, version, kind): (&str, &str, &str)| json!({"group": group, "version": version, "kind": kind});
    let below = resource.subresources.iter().map(|subresource| {
        json!({
            "subresource": subresource.name,
            "responseKind": kind(kind_of(resource, subresource)),
            "verbs": subresource.verbs,
        })
    });
    json!({
        "resource": resource.plural,
        "singularResource": resource.singular,
        "responseKind": kind((resource.group, resource.version, resource.kind)),
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "shortNames": resource.short_names,
        "categories": resource.categories,
        "verbs": resource.verbs,
        "subresources": below.collect::<Vec<_>>(),
    })
}

fn kind_of(resource: &Resource, subresource: &Subresource) -> (&'static str, &'static str, &'static str) {
    subresource.kind.unwrap_or((resource.group, resource.version, resource.kind))
}
