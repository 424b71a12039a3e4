//! Looks after disruption budgets: their statuses say how many pods may be evicted now (DISR-02).

use husk_api::label_selector;
use husk_core::pdb::{Budget, BudgetError, BudgetStatus, BudgetedPod, Share, budget_status, condition_reason};
use husk_core::selector::Selector;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::delete::{instant, timestamp};
use crate::incoming::now;
use crate::objects::Objects;
use crate::resources::{BUDGETS, PODS};
use crate::selection::labels;
use crate::storage::{Key, Shared, StorageError};

/// Keeps the statuses of all budgets up to date, until it is dropped.
pub(crate) async fn look_after(objects: &Objects) -> Result<(), StorageError> {
    let (pods, budgets) = (PODS.scope(None), BUDGETS.scope(None));
    let mut pods = objects.watch(pods.clone(), objects.storage(&pods.resource).revision())?;
    let mut changes = objects.watch(budgets.clone(), objects.storage(&budgets.resource).revision())?;
    for budget in objects.list(&budgets).await?.items {
        refresh(objects, &key_of(&budget)).await?;
    }
    loop {
        tokio::select! {
            change = changes.next() => {
                let change = change?;
                if change.after.is_some() {
                    refresh(objects, &change.key).await?;
                }
            }
            change = pods.next() => {
                let change = change?;
                let touched: Vec<&Shared> = change.before.iter().chain(&change.after).collect();
                if let [before, after] = touched.as_slice()
                    && counts(before) == counts(after)
                {
                    continue;
                }
                let scope = BUDGETS.scope(Some(&change.key.namespace));
                for budget in objects.list(&scope).await?.items {
                    if touched.iter().any(|pod| selects(&budget, pod)) {
                        refresh(objects, &key_of(&budget)).await?;
                    }
                }
            }
        }
    }
}

/// What of a pod a budget looks at.
fn counts(pod: &Value) -> (bool, bool, &Value) {
    (is_ready(pod), pod["metadata"]["deletionTimestamp"].is_null(), &pod["metadata"]["labels"])
}

/// Does a budget speak for a pod? An empty selector is for all.
pub(crate) fn selects(budget: &Value, pod: &Value) -> bool {
    budget["metadata"]["namespace"] == pod["metadata"]["namespace"]
        && selector(budget).is_some_and(|selector| selector.matches(&labels(pod)))
}

fn selector(budget: &Value) -> Option<Selector> {
    let written = Option::<LabelSelector>::deserialize(&budget["spec"]["selector"]).ok()?;
    label_selector(written.as_ref()).ok()
}

/// Is the pod's condition Ready true?
pub(crate) fn is_ready(pod: &Value) -> bool {
    let mut conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

/// Computes a budget's status anew.
pub(crate) async fn refresh(objects: &Objects, key: &Key) -> Result<(), StorageError> {
    let pods = objects.list(&PODS.scope(Some(&key.namespace))).await?.items;
    let changed = objects.update(key, |budget| {
        let status = computed(budget, &pods);
        let is_other = budget["status"] != status;
        budget["status"] = status;
        is_other
    });
    changed.await.map(|_| ())
}

fn computed(budget: &Value, pods: &[Shared]) -> Value {
    let disrupted = &budget["status"]["disruptedPods"];
    let time = |text: &Value| text.as_str().and_then(|text| text.parse().ok()).map(instant);
    let ended = |pod: &Value| matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    let selected = pods.iter().filter(|pod| selects(budget, pod) && !ended(pod));
    let counted: Vec<BudgetedPod> = selected
        .map(|pod| {
            let name = pod["metadata"]["name"].as_str().unwrap_or_default();
            BudgetedPod {
                name: name.into(),
                owner: controller(pod),
                ready: is_ready(pod),
                deleting: !pod["metadata"]["deletionTimestamp"].is_null(),
                evicted_at: time(&disrupted[name]),
            }
        })
        .collect();
    let status = share(budget).and_then(|budget| budget_status(budget, &counted, |_| None, instant(now())));
    written(budget, &status)
}

fn share(budget: &Value) -> Result<Budget, BudgetError> {
    let read = |value: &Value| Share::parse(&value.as_str().map_or_else(|| value.to_string(), str::to_owned));
    match (&budget["spec"]["maxUnavailable"], &budget["spec"]["minAvailable"]) {
        (Value::Null, Value::Null) => Ok(Budget::MinAvailable(Share::Count(1))),
        (Value::Null, min) => read(min).map(Budget::MinAvailable),
        (max, _) => read(max).map(Budget::MaxUnavailable),
    }
}

fn controller(pod: &Value) -> Option<String> {
    let owners = pod["metadata"]["ownerReferences"].as_array()?;
    let owner = owners.iter().find(|owner| owner["controller"] == true)?;
    owner["uid"].as_str().map(str::to_owned)
}

fn written(budget: &Value, status: &Result<BudgetStatus, BudgetError>) -> Value {
    let reason = condition_reason(status);
    let message = status.as_ref().err().map(ToString::to_string).unwrap_or_default();
    let numbers = status.clone().unwrap_or_default();
    let is_true = if numbers.disruptions_allowed > 0 { "True" } else { "False" };
    let before = budget["status"]["conditions"].as_array().and_then(|conditions| conditions.first());
    let since = before.filter(|condition| condition["status"] == is_true).map(|c| c["lastTransitionTime"].clone());
    let disrupted: Map<String, Value> =
        numbers.disrupted_pods.iter().map(|(name, at)| (name.clone(), timestamp(*at).to_string().into())).collect();
    let mut status = json!({
        "expectedPods": numbers.expected_pods,
        "desiredHealthy": numbers.desired_healthy,
        "currentHealthy": numbers.current_healthy,
        "disruptionsAllowed": numbers.disruptions_allowed,
        "observedGeneration": budget["metadata"]["generation"],
        "conditions": [{
            "type": "DisruptionAllowed",
            "status": is_true,
            "reason": reason,
            "message": message,
            "observedGeneration": budget["metadata"]["generation"],
            "lastTransitionTime": since.unwrap_or_else(|| now().to_string().into()),
        }],
    });
    if !disrupted.is_empty() {
        status["disruptedPods"] = disrupted.into();
    }
    status
}

fn key_of(budget: &Value) -> Key {
    let text = |field: &str| budget["metadata"][field].as_str().unwrap_or_default();
    BUDGETS.key(text("namespace"), text("name"))
}
