//! The ways to say what is to be changed about an object.

mod apply;
mod fields;
mod json_patch;
mod lists;
mod merge;
mod strategic;

use serde_json::Value;

pub(crate) use apply::Applier;

use crate::body::Body;
use crate::resource::Resource;
use crate::status::ApiError;

const TYPES: &str = "application/json-patch+json, application/merge-patch+json, \
    application/strategic-merge-patch+json, application/apply-patch+yaml";

/// A change of an object.
#[derive(Debug)]
pub(crate) enum Patch {
    /// RFC 6902.
    Json(Vec<json_patch::Operation>),
    /// RFC 7386.
    Merge(Value),
    /// Kubernetes' own: it knows which lists are maps.
    Strategic(Value),
    /// What a manager wants of the object, all of it.
    Apply {
        /// The object as the manager wants it.
        object: Value,
        /// Keys that stand in it twice.
        duplicates: Vec<String>,
    },
}

impl Patch {
    /// Reads a patch.
    pub(crate) fn read(body: &Body) -> Result<Self, ApiError> {
        match body.media_type.as_str() {
            "application/json-patch+json" => json_patch::read(body.json()?.value).map(Self::Json),
            "application/merge-patch+json" => object(body.json()?.value).map(Self::Merge),
            "application/strategic-merge-patch+json" => object(body.json()?.value).map(Self::Strategic),
            "application/apply-patch+yaml" | "application/apply-patch+json" => {
                let decoded = body.yaml()?;
                Ok(Self::Apply { object: object(decoded.value)?, duplicates: decoded.repeated })
            }
            _ => Err(ApiError::unsupported_media_type(TYPES)),
        }
    }

    /// The object with the change made.
    pub(crate) fn apply_to(&self, applier: &Applier, resource: &Resource, current: &Value) -> Result<Value, ApiError> {
        let mut object = current.clone();
        match self {
            Self::Json(operations) => json_patch::apply(operations, &mut object)?,
            Self::Merge(patch) => merge::apply(patch, &mut object),
            Self::Strategic(patch) => strategic::apply(patch, &mut object, resource.lists)?,
            Self::Apply { object: wanted, .. } => return applier.apply(wanted, current, resource),
        }
        Ok(object)
    }
}

fn object(value: Value) -> Result<Value, ApiError> {
    if value.is_object() { Ok(value) } else { Err(ApiError::bad_request("the patch must be an object")) }
}
