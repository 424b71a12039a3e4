//! Deleting objects: at once, within a grace, or when what is in them is gone.

use husk_core::deletion::{self, Deletion, Target, Verdict};
use husk_core::status::Phase;
use husk_core::time::Instant;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::api::{Api, Ask};
use crate::body::Body;
use crate::incoming::now;
use crate::namespaces::ALWAYS;
use crate::objects::api_error;
use crate::read::{list_head, one, whole_list};
use crate::resource::{Removal, Resource};
use crate::respond::{self, Response};
use crate::selection::Selection;
use crate::status::ApiError;
use crate::storage::{Expected, Key, Shared, StorageError, revision_of};

const ATTEMPTS: usize = 8;

/// How something is to be deleted.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct DeleteOptions {
    pub(crate) grace_period_seconds: Option<i64>,
    pub(crate) preconditions: Option<Preconditions>,
    pub(crate) dry_run: Option<Vec<String>>,
    propagation_policy: Option<String>,
}

/// What must hold of an object for its deletion.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Preconditions {
    pub(crate) uid: Option<String>,
    pub(crate) resource_version: Option<String>,
}

impl DeleteOptions {
    /// Of the body if there is one, else of the query.
    fn of(ask: &Ask, body: &Body) -> Result<Self, ApiError> {
        let mut options = if body.is_empty() {
            Self {
                grace_period_seconds: ask.query.number("gracePeriodSeconds")?,
                propagation_policy: ask.query.get("propagationPolicy").map(str::to_owned),
                ..Self::default()
            }
        } else {
            let value = body.object()?.value;
            Self::deserialize(&value).map_err(|error| ApiError::bad_request(format!("DeleteOptions: {error}")))?
        };
        if ask.query.dry_run()? {
            options.dry_run = Some(vec!["All".into()]);
        }
        options.check()?;
        Ok(options)
    }

    pub(crate) fn check(&self) -> Result<(), ApiError> {
        if let Some(other) = self.dry_run.iter().flatten().find(|value| *value != "All") {
            return Err(ApiError::bad_request(format!("dryRun: {other:?} is not supported, only \"All\" is")));
        }
        match self.propagation_policy.as_deref() {
            None | Some("" | "Background" | "Foreground" | "Orphan") => Ok(()),
            Some(other) => Err(ApiError::bad_request(format!(
                "propagationPolicy: {other:?} is not supported; Background, Foreground and Orphan are"
            ))),
        }
    }

    pub(crate) fn is_dry(&self) -> bool {
        self.dry_run.as_ref().is_some_and(|values| !values.is_empty())
    }
}

/// What became of an object.
pub(crate) struct Outcome {
    pub(crate) object: Shared,
    pub(crate) is_gone: bool,
}

/// Deletes an object.
pub(crate) async fn delete(api: &Api, ask: &Ask, body: Body) -> Result<Response, ApiError> {
    let options = DeleteOptions::of(ask, &body)?;
    let resource = ask.place.resource;
    let outcome = remove(api, resource, &ask.key(), &options).await?;
    if outcome.is_gone && resource.strategy.removal == Removal::AtOnce {
        let mut details =
            json!({"name": ask.name(), "kind": resource.plural, "uid": outcome.object["metadata"]["uid"]});
        if !resource.group.is_empty() {
            details["group"] = resource.group.into();
        }
        let status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details,
        });
        return Ok(respond::json(200, &status));
    }
    one(ask, 200, &outcome.object)
}

/// Deletes every object that was selected.
pub(crate) async fn collection(api: &Api, ask: &Ask, body: Body) -> Result<Response, ApiError> {
    let options = DeleteOptions::of(ask, &body)?;
    let resource = ask.place.resource;
    let selection = Selection::of(resource, &ask.query)?;
    let scope = resource.scope(ask.place.namespace.as_deref());
    let page = api.objects().list(&scope).await.map_err(|error| api_error(error, resource, ""))?;
    let mut deleted = Vec::new();
    for object in page.items.into_iter().filter(|object| selection.has(object)) {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        let key = resource.key(text("namespace"), text("name"));
        match remove(api, resource, &key, &options).await {
            Ok(outcome) => deleted.push(outcome.object),
            // Somebody was faster.
            Err(error) if error.code == 404 => {}
            Err(error) => return Err(error),
        }
    }
    Ok(whole_list(&list_head(ask, &json!({"resourceVersion": page.revision.to_string()})), &deleted))
}

/// Deletes an object, or begins to.
pub(crate) async fn remove(
    api: &Api,
    resource: &Resource,
    key: &Key,
    options: &DeleteOptions,
) -> Result<Outcome, ApiError> {
    let storage = api.objects().storage(&key.resource);
    let failed = |error| api_error(error, resource, &key.name);
    if resource.strategy.removal == Removal::WithContents && ALWAYS.contains(&&*key.name) {
        return Err(ApiError::forbidden(resource, &key.name, "this namespace may not be deleted"));
    }
    for _ in 0..ATTEMPTS {
        let current = storage.get(key).await.map_err(failed)?;
        let current = current.ok_or_else(|| ApiError::not_found(resource, &key.name))?;
        preconditions(resource, &key.name, &current, options)?;
        let Some(object) = marked(resource, &current, options.grace_period_seconds) else {
            return Ok(Outcome { object: current, is_gone: false });
        };
        let is_gone = is_over(&object);
        let written = if options.is_dry() {
            Ok(Shared::new(object))
        } else if is_gone {
            storage.delete(key, revision_of(&current)).await.map(|removed| {
                let mut object = object;
                crate::storage::set_revision(&mut object, revision_of(&removed));
                Shared::new(object)
            })
        } else {
            storage.put(key, Expected::Revision(revision_of(&current)), object).await
        };
        match written {
            Ok(object) => return Ok(Outcome { object, is_gone }),
            Err(StorageError::Conflict) => tokio::task::yield_now().await,
            Err(error) => return Err(failed(error)),
        }
    }
    Err(ApiError::outdated(resource, &key.name))
}

/// Nothing keeps it any more: its grace is over, nobody has to finish anything.
pub(crate) fn is_over(object: &Value) -> bool {
    let metadata = &object["metadata"];
    let is_kept = metadata["finalizers"].as_array().is_some_and(|finalizers| !finalizers.is_empty())
        || object["kind"] == "Namespace"
            && object["spec"]["finalizers"].as_array().is_some_and(|finalizers| !finalizers.is_empty());
    !metadata["deletionTimestamp"].is_null()
        && metadata["deletionGracePeriodSeconds"].as_i64().unwrap_or(0) == 0
        && !is_kept
}

/// The object as one that is being deleted; none if there is nothing to change about that.
fn marked(resource: &Resource, current: &Value, grace: Option<i64>) -> Option<Value> {
    let mut object = current.clone();
    let is_marked = !current["metadata"]["deletionTimestamp"].is_null();
    match resource.strategy.removal {
        Removal::Graceful => return graceful(object, grace),
        Removal::WithContents => {
            object["status"]["phase"] = "Terminating".into();
        }
        Removal::AtOnce => {}
    }
    if is_marked {
        return is_over(&object).then_some(object);
    }
    object["metadata"]["deletionTimestamp"] = now().to_string().into();
    object["metadata"]["deletionGracePeriodSeconds"] = 0.into();
    Some(object)
}

/// Pods: as the core decides.
fn graceful(mut pod: Value, requested: Option<i64>) -> Option<Value> {
    let metadata = &pod["metadata"];
    let deletion = metadata["deletionTimestamp"].as_str().map(|timestamp| Deletion {
        grace_seconds: metadata["deletionGracePeriodSeconds"].as_i64().unwrap_or(0),
        timestamp: instant(timestamp.parse().unwrap_or_else(|_| now())),
    });
    let phase = match pod["status"]["phase"].as_str() {
        Some("Running") => Phase::Running,
        Some("Succeeded") => Phase::Succeeded,
        Some("Failed") => Phase::Failed,
        Some("Unknown") => Phase::Unknown,
        _ => Phase::Pending,
    };
    let target = Target {
        deletion,
        spec_grace_seconds: pod["spec"]["terminationGracePeriodSeconds"].as_i64(),
        scheduled: pod["spec"]["nodeName"].as_str().is_some_and(|node| !node.is_empty()),
        phase,
    };
    let set = match deletion::decide(&target, requested, instant(now())) {
        Verdict::Begin(deletion) => {
            if let Some(generation) = pod["metadata"]["generation"].as_i64() {
                pod["metadata"]["generation"] = (generation + 1).into();
            }
            deletion
        }
        Verdict::Shorten(deletion) => deletion,
        Verdict::Pending => return None,
        Verdict::RemoveNow => return is_over(&pod).then_some(pod),
    };
    pod["metadata"]["deletionTimestamp"] = timestamp(set.timestamp).to_string().into();
    pod["metadata"]["deletionGracePeriodSeconds"] = set.grace_seconds.into();
    Some(pod)
}

/// The core's time counts from an epoch that the shell chooses: here that of Unix.
pub(crate) fn instant(time: Timestamp) -> Instant {
    Instant::from_secs(u64::try_from(time.as_second()).unwrap_or(0))
}

/// The same backwards.
pub(crate) fn timestamp(instant: Instant) -> Timestamp {
    let seconds = i64::try_from(instant.since_epoch().as_secs()).unwrap_or(i64::MAX);
    Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX)
}

/// Is an object the one that is to be deleted?
pub(crate) fn preconditions(
    resource: &Resource,
    name: &str,
    current: &Value,
    options: &DeleteOptions,
) -> Result<(), ApiError> {
    let Some(Preconditions { uid, resource_version }) = &options.preconditions else { return Ok(()) };
    for (asked, field, what) in [(uid, "uid", "UID"), (resource_version, "resourceVersion", "ResourceVersion")] {
        let own = current["metadata"][field].as_str().unwrap_or_default();
        if let Some(asked) = asked.as_ref().filter(|asked| *asked != own) {
            let why = format!("Precondition failed: {what} in precondition: {asked}, {what} in object meta: {own}");
            return Err(ApiError::conflict(resource, name, &why));
        }
    }
    Ok(())
}
