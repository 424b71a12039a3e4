//! Objects on their way in: what is unknown in them, and what the server sets itself.

use husk_api::RawObject;
use jiff::Timestamp;
use serde_json::Value;

use crate::query::Query;
use crate::resource::{Reading, Resource};
use crate::status::ApiError;

/// What is done about fields that are unknown or stand there twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    /// They are an error.
    Strict,
    /// The client is warned.
    Warn,
    /// Nothing.
    Ignore,
}

impl FieldValidation {
    /// What a query asks for.
    pub(crate) fn of(query: &Query) -> Result<Self, ApiError> {
        match query.get("fieldValidation") {
            Some("Strict") => Ok(Self::Strict),
            None | Some("Warn") => Ok(Self::Warn),
            Some("Ignore") => Ok(Self::Ignore),
            Some(other) => Err(ApiError::bad_request(format!(
                "fieldValidation: Unsupported value: {other:?}: supported values: \"Ignore\", \"Strict\", \"Warn\""
            ))),
        }
    }
}

/// Reads an object as one of its kind. Gives what there is to warn about.
pub(crate) fn read(
    resource: &Resource,
    decoded: &RawObject,
    validation: FieldValidation,
) -> Result<(Reading, Vec<String>), ApiError> {
    let object = &decoded.value;
    kind(resource, object)?;
    let version = resource.api_version();
    let cannot = |why: &str| {
        let kind = resource.kind;
        ApiError::bad_request(format!("{kind} in version \"{version}\" cannot be handled as a {kind}: {why}"))
    };
    let reading = (resource.strategy.read)(object).map_err(|why| cannot(&why))?;
    let mut strange: Vec<String> = decoded.repeated.iter().map(|path| format!("duplicate field \"{path}\"")).collect();
    strange.extend(reading.unknown.iter().map(|path| format!("unknown field \"{path}\"")));
    match validation {
        FieldValidation::Strict if !strange.is_empty() => {
            Err(cannot(&format!("strict decoding error: {}", strange.join(", "))))
        }
        FieldValidation::Ignore => Ok((reading, Vec::new())),
        FieldValidation::Strict | FieldValidation::Warn => {
            strange.extend(reading.remarks.iter().cloned());
            Ok((reading, strange))
        }
    }
}

fn kind(resource: &Resource, object: &Value) -> Result<(), ApiError> {
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    let (version, kind) = (text("apiVersion"), text("kind"));
    if kind.is_empty() {
        return Err(ApiError::bad_request("Object 'Kind' is missing in the body"));
    }
    if (version, kind) != (resource.api_version().as_str(), resource.kind) {
        let wanted = format!("{} in version {:?}", resource.kind, resource.api_version());
        return Err(ApiError::bad_request(format!("{kind} in version {version:?} cannot be handled as a {wanted}")));
    }
    if !object["metadata"].is_object() && !object["metadata"].is_null() {
        return Err(ApiError::bad_request(format!("{kind}: metadata: expected an object")));
    }
    Ok(())
}

/// The object's namespace and name must be those of the path, or not given.
pub(crate) fn place(resource: &Resource, object: &mut Value, namespace: &str, name: &str) -> Result<(), ApiError> {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    let (own_namespace, own_name) = (text("namespace").to_owned(), text("name"));
    if !name.is_empty() && !own_name.is_empty() && own_name != name {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({own_name}) does not match the name on the URL ({name})"
        )));
    }
    if !own_namespace.is_empty() && own_namespace != namespace {
        return Err(ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    if !name.is_empty() {
        object["metadata"]["name"] = name.into();
    }
    if resource.namespaced {
        object["metadata"]["namespace"] = namespace.into();
    }
    Ok(())
}

/// Now, in whole seconds as everywhere in the API.
pub(crate) fn now() -> Timestamp {
    let now = Timestamp::now();
    Timestamp::from_second(now.as_second()).unwrap_or(now)
}

/// Removes a field of the metadata.
pub(crate) fn remove_metadata(object: &mut Value, fields: &[&str]) {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for field in fields {
            metadata.remove(*field);
        }
    }
}
