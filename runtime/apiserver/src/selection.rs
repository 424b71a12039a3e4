//! Which objects a request is about: label and field selectors.

use husk_core::field_selector::FieldSelector;
use husk_core::selector::{Labels, Selector};
use serde_json::Value;

use crate::query::Query;
use crate::resource::Resource;
use crate::status::ApiError;

/// What objects must have.
#[derive(Debug)]
pub(crate) struct Selection {
    resource: &'static Resource,
    labels: Option<Selector>,
    fields: Option<FieldSelector>,
}

impl Selection {
    /// What a query asks for.
    pub(crate) fn of(resource: &'static Resource, query: &Query) -> Result<Self, ApiError> {
        let labels = query.get("labelSelector").map(Selector::parse).transpose();
        let labels = labels.map_err(|error| ApiError::bad_request(format!("unable to parse requirement: {error}")))?;
        let fields = query.get("fieldSelector").map(FieldSelector::parse).transpose();
        let fields = fields.map_err(|error| ApiError::bad_request(format!("invalid field selector: {error}")))?;
        let asked = || fields.iter().flat_map(FieldSelector::fields);
        if let Some(unknown) = asked().find(|field| !resource.can_select(field)) {
            return Err(ApiError::bad_request(format!("field label not supported: {unknown}")));
        }
        Ok(Self { resource, labels, fields })
    }

    /// Does it leave anything out?
    pub(crate) fn is_everything(&self) -> bool {
        self.labels.is_none() && self.fields.is_none()
    }

    /// Is an object what was asked for?
    pub(crate) fn has(&self, object: &Value) -> bool {
        let by_field = |name: &str| self.resource.field(object, name).unwrap_or_default();
        self.fields.as_ref().is_none_or(|selector| selector.matches(by_field))
            && self.labels.as_ref().is_none_or(|selector| selector.matches(&labels(object)))
    }
}

/// Labels of an object.
pub(crate) fn labels(object: &Value) -> Labels {
    let labels = object["metadata"]["labels"].as_object();
    labels.into_iter().flatten().filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}
