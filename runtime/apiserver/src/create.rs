//! Creating objects.

use husk_api::RawObject;
use serde_json::Value;

use crate::api::{Api, Ask};
use crate::body::Body;
use crate::incoming::{self, FieldValidation, now, place, remove_metadata};
use crate::objects::api_error;
use crate::patch::Applier;
use crate::read;
use crate::resource::Resource;
use crate::resources::NAMESPACES;
use crate::respond::{self, Response};
use crate::status::{ApiError, Cause};
use crate::storage::{Shared, StorageError};

/// Without letters that make words.
const SUFFIX_LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
const SUFFIX_LENGTH: usize = 5;
const LONGEST_NAME: usize = 63;
/// So often a name is made up if it is taken.
const NAME_ATTEMPTS: usize = 8;

/// Creates an object.
pub(crate) async fn create(api: &Api, ask: &Ask, body: Body) -> Result<Response, ApiError> {
    let (object, warnings) = made(api, ask, body.object()?, None).await?;
    Ok(respond::with_warnings(read::one(ask, 201, &object)?, &warnings))
}

/// Makes an object, by an apply or not. Gives what there is to warn about too.
pub(crate) async fn made(
    api: &Api,
    ask: &Ask,
    decoded: RawObject,
    applier: Option<&Applier>,
) -> Result<(Shared, Vec<String>), ApiError> {
    let resource = ask.place.resource;
    let dry_run = ask.query.dry_run()?;
    let validation = FieldValidation::of(&ask.query)?;
    let (reading, mut warnings) = incoming::read(resource, &decoded, validation)?;
    let mut object = reading.object;
    place(resource, &mut object, ask.place.namespace(), ask.name())?;
    if object["metadata"]["resourceVersion"].as_str().is_some_and(|version| !version.is_empty()) {
        return Err(ApiError::bad_request("resourceVersion should not be set on objects to be created"));
    }
    // Typed objects have metadata.
    remove_metadata(
        &mut object,
        &[
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "generation",
            "managedFields",
            "resourceVersion",
            "selfLink",
        ],
    );
    object["metadata"]["uid"] = uuid::Uuid::new_v4().to_string().into();
    object["metadata"]["creationTimestamp"] = now().to_string().into();
    let disabled = (resource.strategy.drop_disabled)(None, &mut object, api.device());
    if validation != FieldValidation::Ignore {
        warnings.extend(disabled);
    }
    (resource.strategy.prepare_create)(&mut object);
    if let Some(applier) = applier {
        applier.created(&decoded.value, &mut object, resource);
    }
    let prefix = object["metadata"]["generateName"].as_str().unwrap_or_default().to_owned();
    let is_generated = !prefix.is_empty() && object["metadata"]["name"].as_str().unwrap_or_default().is_empty();
    for attempt in 0..NAME_ATTEMPTS {
        if is_generated {
            object["metadata"]["name"] = generated(&prefix).into();
        }
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        if attempt == 0 {
            (resource.strategy.default)(&mut object);
            let mut errors = reading.refused.clone();
            errors.extend((resource.strategy.validate)(&object, api.device()));
            if !errors.is_empty() {
                return Err(ApiError::invalid(resource, &name, &errors));
            }
            namespace_takes(api, ask, &name).await?;
            (resource.strategy.settle)(&mut object, api.device());
        }
        let key = resource.key(ask.place.namespace(), &name);
        let storage = api.objects().storage(&key.resource);
        let written = if dry_run {
            let there = storage.get(&key).await.map_err(|error| api_error(error, resource, &name))?;
            if there.is_some() { Err(StorageError::Conflict) } else { Ok(Shared::new(object.clone())) }
        } else {
            api.objects().create(&key, object.clone()).await
        };
        match written {
            Ok(object) => return Ok((object, warnings)),
            Err(StorageError::Conflict) if is_generated && attempt + 1 < NAME_ATTEMPTS => {}
            Err(StorageError::Conflict) => return Err(ApiError::already_exists(resource, &name)),
            Err(error) => return Err(api_error(error, resource, &name)),
        }
    }
    Err(ApiError::already_exists(resource, &prefix))
}

/// The namespace must be there, and stay.
async fn namespace_takes(api: &Api, ask: &Ask, name: &str) -> Result<(), ApiError> {
    let resource = ask.place.resource;
    if !resource.namespaced {
        return Ok(());
    }
    let namespace = ask.place.namespace();
    let found = api.objects().get(&NAMESPACES.key("", namespace)).await;
    match found.map_err(|error| api_error(error, &NAMESPACES, namespace))? {
        None => Err(ApiError::not_found(&NAMESPACES, namespace)),
        Some(found) if is_ending(&found) => Err(no_new_content(resource, name, namespace)),
        Some(_) => Ok(()),
    }
}

fn is_ending(namespace: &Value) -> bool {
    !namespace["metadata"]["deletionTimestamp"].is_null()
}

fn no_new_content(resource: &Resource, name: &str, namespace: &str) -> ApiError {
    let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
    ApiError::forbidden(resource, name, &why).causes([Cause {
        reason: "NamespaceTerminating",
        message: format!("namespace {namespace} is being terminated"),
        field: "metadata.namespace".into(),
    }])
}

fn generated(prefix: &str) -> String {
    let kept =
        prefix.char_indices().map(|(at, c)| at + c.len_utf8()).take_while(|end| *end <= LONGEST_NAME - SUFFIX_LENGTH);
    let kept = kept.last().unwrap_or(0);
    let random = uuid::Uuid::new_v4();
    let letters = random.as_bytes().iter().take(SUFFIX_LENGTH);
    let suffix = letters.map(|byte| char::from(SUFFIX_LETTERS[usize::from(*byte) % SUFFIX_LETTERS.len()]));
    prefix[..kept].chars().chain(suffix).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_names_are_no_longer_than_names_may_be() {
        let name = generated("web-");
        assert!(name.starts_with("web-") && name.len() == 9, "{name}");
        assert_eq!(generated(&"x".repeat(200)).len(), 63);
        assert!(generated(&"é".repeat(100)).len() <= 63);
    }
}
