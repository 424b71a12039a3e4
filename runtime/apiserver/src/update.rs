//! Changing objects: replace and patch, by any door.

use husk_api::RawObject;
use serde_json::Value;

use crate::api::{Api, Ask};
use crate::body::Body;
use crate::create;
use crate::delete;
use crate::incoming::{self, FieldValidation, place};
use crate::objects::api_error;
use crate::patch::{Applier, Patch};
use crate::read;
use crate::resource::{Door, Resource};
use crate::respond::{self, Response};
use crate::status::ApiError;
use crate::storage::{Expected, Shared, StorageError, revision_of};

/// So often a change that asks for no revision is tried if others come in between.
const ATTEMPTS: usize = 8;
/// Metadata that only the server changes.
const KEPT: [&str; 6] =
    ["creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "managedFields", "selfLink"];

/// Replaces an object.
pub(crate) async fn replace(api: &Api, ask: &Ask, body: Body) -> Result<Response, ApiError> {
    let decoded = body.object()?;
    let asked = Asked { repeated: decoded.repeated, applier: applier(ask), is_apply: false };
    let (object, warnings) = change(api, ask, asked, |_| Ok(decoded.value.clone())).await?;
    Ok(respond::with_warnings(read::one(ask, 200, &object)?, &warnings))
}

/// Patches an object.
pub(crate) async fn patch(api: &Api, ask: &Ask, body: Body) -> Result<Response, ApiError> {
    let resource = ask.place.resource;
    let patch = Patch::read(&body)?;
    let applier = applier(ask);
    let mut asked = Asked { repeated: Vec::new(), applier, is_apply: false };
    if let Patch::Apply { object, duplicates } = &patch {
        if ask.query.get("fieldManager").is_none() {
            let message =
                "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch";
            return Err(ApiError::bad_request(message));
        }
        (asked.is_apply, asked.repeated) = (true, duplicates.clone());
        let there = api.objects().get(&ask.key()).await.map_err(|error| api_error(error, resource, ask.name()))?;
        if there.is_none() && ask.door == Door::Main {
            let decoded = RawObject { value: object.clone(), repeated: duplicates.clone() };
            let (made, warnings) = create::made(api, ask, decoded, Some(&asked.applier)).await?;
            return Ok(respond::with_warnings(read::one(ask, 201, &made)?, &warnings));
        }
    }
    let applier = asked.applier.clone();
    let (object, warnings) = change(api, ask, asked, |current| patch.apply_to(&applier, resource, current)).await?;
    Ok(respond::with_warnings(read::one(ask, 200, &object)?, &warnings))
}

/// What a client said besides the change itself.
struct Asked {
    /// Keys that stood twice in the body.
    repeated: Vec<String>,
    applier: Applier,
    is_apply: bool,
}

fn applier(ask: &Ask) -> Applier {
    Applier {
        manager: ask.query.get("fieldManager").unwrap_or("unknown").into(),
        force: ask.query.flag("force"),
        subresource: ask.place.subresource.map_or(String::new(), |subresource| subresource.name.into()),
    }
}

/// Changes the object that is asked about. `wanted` says what it is to be, and may be asked again about a newer object.
async fn change(
    api: &Api,
    ask: &Ask,
    asked: Asked,
    wanted: impl Fn(&Value) -> Result<Value, ApiError>,
) -> Result<(Shared, Vec<String>), ApiError> {
    let (resource, key) = (ask.place.resource, ask.key());
    let validation = FieldValidation::of(&ask.query)?;
    let dry_run = ask.query.dry_run()?;
    let storage = api.objects().storage(&key.resource);
    let failed = |error| api_error(error, resource, ask.name());
    let mut decoded = RawObject { value: Value::Null, repeated: asked.repeated.clone() };
    for _ in 0..ATTEMPTS {
        let current = storage.get(&key).await.map_err(failed)?;
        let current = current.ok_or_else(|| ApiError::not_found(resource, ask.name()))?;
        decoded.value = wanted(&current)?;
        let (object, warnings) = candidate(api, ask, &asked, &current, &decoded, validation)?;
        let Some(mut object) = object else { return Ok((current, warnings)) };
        (resource.strategy.settle)(&mut object, api.device());
        if dry_run {
            return Ok((Shared::new(object), warnings));
        }
        let written = if delete::is_over(&object) {
            // The last thing that kept it from going is gone.
            storage.delete(&key, revision_of(&current)).await.map(|_| Shared::new(object))
        } else {
            storage.put(&key, Expected::Revision(revision_of(&current)), object).await
        };
        match written {
            // The next attempt asks whether it still is the version that the client meant.
            Err(StorageError::Conflict) => tokio::task::yield_now().await,
            Err(error) => return Err(failed(error)),
            Ok(object) => return Ok((object, warnings)),
        }
    }
    Err(ApiError::outdated(resource, ask.name()))
}

/// What the object becomes, if it is allowed; none if nothing changes. Gives what there is to warn about too.
fn candidate(
    api: &Api,
    ask: &Ask,
    asked: &Asked,
    current: &Shared,
    decoded: &RawObject,
    validation: FieldValidation,
) -> Result<(Option<Value>, Vec<String>), ApiError> {
    let resource = ask.place.resource;
    let (reading, mut warnings) = incoming::read(resource, decoded, validation)?;
    let mut object = reading.object;
    place(resource, &mut object, ask.place.namespace(), ask.name())?;
    preconditions(resource, ask.name(), current, &object)?;
    let old = (resource.strategy.read)(current).unwrap_or_default();
    warnings.retain(|warning| !old.remarks.contains(warning));
    for field in KEPT.into_iter().filter(|field| !(asked.is_apply && *field == "managedFields")) {
        let kept = current["metadata"].get(field).cloned();
        if let Some(metadata) = object["metadata"].as_object_mut() {
            match kept {
                Some(kept) => metadata.insert(field.into(), kept),
                None => metadata.remove(field),
            };
        }
    }
    // Most doors put the old object in place of the new one, but who applied what is recorded by each.
    let managed = object["metadata"]["managedFields"].take();
    let mut remarks = (resource.strategy.prepare_update)(current, &mut object, ask.door);
    remarks.extend((resource.strategy.drop_disabled)(Some(current), &mut object, api.device()));
    if let Some(metadata) = object["metadata"].as_object_mut() {
        match managed {
            Value::Null => metadata.remove("managedFields"),
            managed => metadata.insert("managedFields".into(), managed),
        };
    }
    if validation != FieldValidation::Ignore {
        warnings.extend(remarks);
    }
    (resource.strategy.default)(&mut object);
    for field in ["uid", "resourceVersion"] {
        object["metadata"][field] = current["metadata"][field].clone();
    }
    let has_generation = current["metadata"]["generation"].as_i64();
    if let Some(generation) = has_generation.filter(|_| object["spec"] != current["spec"]) {
        object["metadata"]["generation"] = (generation + 1).into();
    }
    if !asked.is_apply && object != **current {
        asked.applier.updated(current, &mut object, resource);
    }
    if object == **current {
        return Ok((None, warnings));
    }
    let mut errors: Vec<_> = reading.refused.into_iter().filter(|error| !old.refused.contains(error)).collect();
    errors.extend((resource.strategy.validate_update)(current, &object, ask.door, api.device()));
    if errors.is_empty() { Ok((Some(object), warnings)) } else { Err(ApiError::invalid(resource, ask.name(), &errors)) }
}

/// A client may say which object it means, and which version of it.
fn preconditions(resource: &Resource, name: &str, current: &Value, object: &Value) -> Result<(), ApiError> {
    let text = |object: &Value, field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
    let (asked, own) = (text(object, "uid"), text(current, "uid"));
    if !asked.is_empty() && asked != own {
        let why = format!("Precondition failed: UID in precondition: {asked}, UID in object meta: {own}");
        return Err(ApiError::conflict(resource, name, &why));
    }
    let asked = text(object, "resourceVersion");
    if !asked.is_empty() && asked != text(current, "resourceVersion") {
        return Err(ApiError::outdated(resource, name));
    }
    Ok(())
}
