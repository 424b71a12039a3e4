//! What happened to a pod. It may be gone: who asks then wants to know most of all.

use crate::api::Api;
use crate::query::Query;
use crate::respond::{self, Response};
use crate::route::Place;
use crate::status::ApiError;

/// Answers with a pod's timeline.
pub(crate) fn answer(api: &Api, place: &Place, query: &Query) -> Result<Response, ApiError> {
    let name = place.name.as_deref().unwrap_or_default();
    let previous = query.flag("previous");
    match api.backend().timeline(place.namespace(), name, previous) {
        Some(timeline) => Ok(respond::json(200, &timeline)),
        None if previous => Err(ApiError::bad_request(format!("nothing is known of a pod \"{name}\" before this one"))),
        None => Err(ApiError::not_found(place.resource, name)),
    }
}
