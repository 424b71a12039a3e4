//! Evictions: deletions that ask the disruption budgets first.

use husk_core::time::Instant;
use serde::Deserialize;
use serde_json::Value;

use crate::api::{Api, Ask};
use crate::body::Body;
use crate::budgets;
use crate::delete::{self, DeleteOptions, instant};
use crate::incoming::now;
use crate::objects::api_error;
use crate::resources::{BUDGETS, PODS};
use crate::respond::{self, Response};
use crate::selection::labels;
use crate::status::{ApiError, Cause};
use crate::storage::{Key, Shared};

/// Evicts a pod if its budgets let it go.
pub(crate) async fn evict(api: &Api, ask: &Ask, body: Body) -> Result<Response, ApiError> {
    let eviction = body.object()?.value;
    let named = eviction["metadata"]["name"].as_str().unwrap_or_default();
    if !named.is_empty() && named != ask.name() {
        let message = format!("name in URL does not match name in Eviction object: {} != {named}", ask.name());
        return Err(ApiError::bad_request(message));
    }
    let mut options: DeleteOptions = match &eviction["deleteOptions"] {
        Value::Null => DeleteOptions::default(),
        options => DeleteOptions::deserialize(options)
            .map_err(|error| ApiError::bad_request(format!("deleteOptions: {error}")))?,
    };
    options.check()?;
    if ask.query.dry_run()? {
        options.dry_run = Some(vec!["All".into()]);
    }
    let key = PODS.key(ask.place.namespace(), ask.name());
    let found = api.objects().get(&key).await.map_err(|error| api_error(error, &PODS, ask.name()))?;
    let pod = found.ok_or_else(|| ApiError::not_found(&PODS, ask.name()))?;
    // Before anything is charged or said; from here on it is about this pod, not about the next one of its name.
    delete::preconditions(&PODS, ask.name(), &pod, &options)?;
    options.preconditions.get_or_insert_default().uid = pod["metadata"]["uid"].as_str().map(str::to_owned);
    if needs_leave(&pod) {
        leave(api, ask, &pod, options.is_dry()).await?;
    }
    if !options.is_dry() {
        mark(api, &key, &mut options).await?;
    }
    delete::remove(api, &PODS, &key, &options).await?;
    let status = serde_json::json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201,
    });
    Ok(respond::json(201, &status))
}

/// A pod that doesn't run any more, or not yet, or goes anyway, is missed by nobody.
fn needs_leave(pod: &Value) -> bool {
    let phase = pod["status"]["phase"].as_str().unwrap_or_default();
    !matches!(phase, "Succeeded" | "Failed" | "Pending") && pod["metadata"]["deletionTimestamp"].is_null()
}

/// Asks the pod's budget, and takes the disruption from it.
async fn leave(api: &Api, ask: &Ask, pod: &Shared, dry_run: bool) -> Result<(), ApiError> {
    let scope = BUDGETS.scope(ask.place.namespace.as_deref());
    let page = api.objects().list(&scope).await.map_err(|error| api_error(error, &BUDGETS, ""))?;
    let labels = labels(pod);
    let matching: Vec<Shared> =
        page.items.into_iter().filter(|budget| budgets::selector(budget).matches(&labels)).collect();
    let budget = match matching.as_slice() {
        [] => return Ok(()),
        [budget] => budget,
        _ => {
            let message =
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
            return Err(ApiError::internal(message));
        }
    };
    let key = BUDGETS.key(ask.place.namespace(), budget["metadata"]["name"].as_str().unwrap_or_default());
    // As it is now, not as it was when it was last looked at.
    budgets::refresh(api.objects(), &key).await.map_err(|error| api_error(error, &BUDGETS, &key.name))?;
    let mut refusal = None;
    let at = instant(now());
    let changed = api.objects().update(&key, |budget| {
        refusal = refused(budget, pod).err();
        if refusal.is_some() || dry_run || is_free(budget, pod) {
            return false;
        }
        take(budget, ask.name(), at);
        true
    });
    changed.await.map_err(|error| api_error(error, &BUDGETS, &key.name))?;
    refusal.map_or(Ok(()), Err)
}

/// Pods that aren't healthy may go without leave, if the budget is kept or says so.
fn is_free(budget: &Value, pod: &Value) -> bool {
    let status = |field: &str| budget["status"][field].as_i64().unwrap_or(0);
    let always = budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow";
    let is_kept = status("currentHealthy") >= status("desiredHealthy") && status("desiredHealthy") > 0;
    !budgets::is_ready(pod) && (always || is_kept)
}

fn refused(budget: &Value, pod: &Value) -> Result<(), ApiError> {
    let status = |field: &str| budget["status"][field].as_i64().unwrap_or(0);
    if is_free(budget, pod) || status("disruptionsAllowed") > 0 {
        return Ok(());
    }
    let name = budget["metadata"]["name"].as_str().unwrap_or_default();
    let (needed, current) = (status("desiredHealthy"), status("currentHealthy"));
    let message = "Cannot evict pod as it would violate the pod's disruption budget.";
    // No time to come back is given: clients would wait that long again and again before they say anything.
    Err(ApiError::new(429, "TooManyRequests", message).causes([Cause {
        reason: "DisruptionBudget",
        message: format!("The disruption budget {name} needs {needed} healthy pods and has {current} currently"),
        field: String::new(),
    }]))
}

fn take(budget: &mut Value, pod: &str, at: Instant) {
    let allowed = budget["status"]["disruptionsAllowed"].as_i64().unwrap_or(0);
    budget["status"]["disruptionsAllowed"] = (allowed - 1).max(0).into();
    budget["status"]["disruptedPods"][pod] = delete::timestamp(at).to_string().into();
}

/// Says in the pod's status who ends it. The version that was asked for is that of before.
async fn mark(api: &Api, key: &Key, options: &mut DeleteOptions) -> Result<(), ApiError> {
    use husk_core::disruption::Disruption;

    let (reason, message) = (Disruption::EvictionByEvictionApi.as_str(), Disruption::EvictionByEvictionApi.message());
    let condition = serde_json::json!({
        "type": "DisruptionTarget", "status": "True", "reason": reason, "message": message,
        "lastTransitionTime": now().to_string(),
    });
    let mut holds = Ok(());
    let changed = api.objects().update(key, |pod| {
        holds = delete::preconditions(&PODS, &key.name, pod, options);
        if holds.is_err() {
            return false;
        }
        let mut conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
        if conditions.iter().any(|condition| condition["type"] == "DisruptionTarget") {
            return false;
        }
        conditions.push(condition.clone());
        pod["status"]["conditions"] = conditions.into();
        true
    });
    changed.await.map_err(|error| api_error(error, &PODS, &key.name))?;
    holds?;
    options.preconditions.get_or_insert_default().resource_version = None;
    Ok(())
}
