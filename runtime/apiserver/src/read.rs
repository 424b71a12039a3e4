//! Get and list.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::api::{Api, Ask};
use crate::negotiate::Form;
use crate::objects::api_error;
use crate::respond::{self, Response};
use crate::selection::Selection;
use crate::status::ApiError;
use crate::storage::{Shared, StorageError};
use crate::table::{Include, metadata_only, table};

/// One object.
pub(crate) async fn get(api: &Api, ask: &Ask) -> Result<Response, ApiError> {
    let resource = ask.place.resource;
    let found = api.objects().get(&ask.key()).await.map_err(|error| api_error(error, resource, ask.name()))?;
    let object = found.ok_or_else(|| ApiError::not_found(resource, ask.name()))?;
    one(ask, 200, &object)
}

/// The answer that is one object.
pub(crate) fn one(ask: &Ask, code: u16, object: &Value) -> Result<Response, ApiError> {
    Ok(match ask.form {
        Form::Table => {
            let metadata = json!({"resourceVersion": object["metadata"]["resourceVersion"]});
            let rows = std::iter::once(object);
            respond::json(code, &table(ask.place.resource, metadata, rows, Include::of(&ask.query)?, true))
        }
        Form::Metadata => respond::json(code, &metadata_only(object)),
        form => respond::in_form(code, object, form),
    })
}

/// Objects.
pub(crate) async fn list(api: &Api, ask: &Ask) -> Result<Response, ApiError> {
    let resource = ask.place.resource;
    let selection = Selection::of(resource, &ask.query)?;
    let limit = ask.query.count("limit")?.unwrap_or(0);
    let start = ask.query.get("continue").map(Continue::read).transpose()?;
    let scope = resource.scope(ask.place.namespace.as_deref());
    let storage = api.objects().storage(&scope.resource);
    revision_asked(ask, start.is_some(), storage.revision())?;
    let after = start.as_ref().map(|start| resource.key(&start.namespace, &start.name));
    let page = storage.list(&scope, after.as_ref()).await.map_err(|error| api_error(error, resource, ""))?;
    let mut items: Vec<Shared> = page.items.into_iter().filter(|object| selection.has(object)).collect();
    // A later page is as it is now. With the first one's revision a watch tells again whatever has changed in between.
    let revision = start.map_or(page.revision, |start| start.revision);
    let mut metadata = json!({"resourceVersion": revision.to_string()});
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    if limit > 0 && items.len() > limit {
        let remaining = items.len() - limit;
        items.truncate(limit);
        let last = &items[limit - 1]["metadata"];
        let text = |field: &str| last[field].as_str().unwrap_or_default().to_owned();
        let next = Continue { revision, namespace: text("namespace"), name: text("name") };
        metadata["continue"] = next.written().into();
        if selection.is_everything() {
            metadata["remainingItemCount"] = remaining.into();
        }
    }
    let objects = items.iter().map(|item| &**item);
    Ok(match ask.form {
        Form::Table => respond::json(200, &table(resource, metadata, objects, Include::of(&ask.query)?, true)),
        Form::Metadata => {
            let items: Vec<Value> = objects.map(metadata_only).collect();
            let kind = "PartialObjectMetadataList";
            let list = json!({"kind": kind, "apiVersion": "meta.k8s.io/v1", "metadata": metadata, "items": items});
            respond::json(200, &list)
        }
        Form::Json => whole_list(&list_head(ask, &metadata), &items),
        form => {
            let mut list = list_head(ask, &metadata);
            list["items"] = objects.cloned().collect();
            respond::in_form(200, &list, form)
        }
    })
}

/// A list without its items.
pub(crate) fn list_head(ask: &Ask, metadata: &Value) -> Value {
    let resource = ask.place.resource;
    json!({"kind": format!("{}List", resource.kind), "apiVersion": resource.api_version(), "metadata": metadata})
}

/// Writes shared objects as they are, without a copy of each.
pub(crate) fn whole_list(head: &Value, items: &[Shared]) -> Response {
    let mut bytes = serde_json::to_vec(head).unwrap_or_default();
    // Instead of the closing brace.
    bytes.pop();
    bytes.extend_from_slice(b",\"items\":[");
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            bytes.push(b',');
        }
        // Writing to a vector can't fail.
        let _ = serde_json::to_writer(&mut bytes, &**item);
    }
    bytes.extend_from_slice(b"]}");
    respond::bytes(200, "application/json", bytes.into())
}

/// Which revision a client wants to see: any that isn't older, or exactly one, which is only there if it is the newest.
fn revision_asked(ask: &Ask, continues: bool, current: u64) -> Result<(), ApiError> {
    let resource = ask.place.resource;
    let matching = ask.query.get("resourceVersionMatch");
    let Some(asked) = ask.query.get("resourceVersion").filter(|version| *version != "0") else {
        return match matching {
            Some("Exact") => {
                Err(ApiError::bad_request("resourceVersionMatch Exact needs a resourceVersion, which is not 0"))
            }
            _ => Ok(()),
        };
    };
    let asked = asked
        .parse()
        .map_err(|_| ApiError::bad_request(format!("Invalid value: {asked:?}: resourceVersion is not a number")))?;
    match matching {
        _ if continues => Err(ApiError::bad_request("specifying resource version is not allowed when using continue")),
        _ if asked > current => Err(api_error(StorageError::Future { asked, current }, resource, "")),
        Some("Exact") if asked != current => {
            Err(api_error(StorageError::Expired { asked, oldest: current }, resource, ""))
        }
        None | Some("Exact" | "NotOlderThan") => Ok(()),
        Some(other) => Err(ApiError::bad_request(format!("resourceVersionMatch: {other:?} is not supported"))),
    }
}

/// Where the next page begins.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Continue {
    #[serde(rename = "rv")]
    revision: u64,
    #[serde(rename = "ns", default)]
    namespace: String,
    name: String,
}

impl Continue {
    fn read(token: &str) -> Result<Self, ApiError> {
        let bytes = URL_SAFE_NO_PAD.decode(token).ok();
        let start = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        start.ok_or_else(|| ApiError::bad_request("continue key is not valid: it is not from this server"))
    }

    fn written(&self) -> String {
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_leads_to_the_next() {
        let start = Continue { revision: 7, namespace: "a".into(), name: "b".into() };
        assert_eq!(Continue::read(&start.written()), Ok(start));
        assert!(Continue::read("nonsense").is_err());
    }
}
