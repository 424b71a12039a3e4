//! Looks after disruption budgets: their statuses say how many pods may be evicted now (DISR-02).

use husk_api::label_selector;
use husk_core::pdb::{Budget, BudgetError, BudgetStatus, BudgetedPod, Share, budget_status, condition_reason};
use husk_core::selector::{Labels, Selector};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::delete::{instant, timestamp};
use crate::incoming::now;
use crate::objects::Objects;
use crate::resources::{BUDGETS, PODS};
use crate::selection::labels;
use crate::storage::{Expected, Key, Shared, StorageError, revision_of};

/// So often a status is computed if others change the budget in between.
const ATTEMPTS: usize = 16;

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
                let touched: Vec<Labels> = touched.into_iter().map(|pod| labels(pod)).collect();
                for budget in objects.list(&scope).await?.items {
                    let selector = selector(&budget);
                    if touched.iter().any(|labels| selector.matches(labels)) {
                        refresh(objects, &key_of(&budget)).await?;
                    }
                }
            }
        }
    }
}

/// What of a pod a budget looks at.
fn counts(pod: &Value) -> (bool, bool, bool, &Value) {
    (has_ended(pod), is_ready(pod), pod["metadata"]["deletionTimestamp"].is_null(), &pod["metadata"]["labels"])
}

fn has_ended(pod: &Value) -> bool {
    matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"))
}

/// For which pods of its namespace a budget speaks. An empty selector is for all, one that can't be read for none.
pub(crate) fn selector(budget: &Value) -> Selector {
    let written = Option::<LabelSelector>::deserialize(&budget["spec"]["selector"]).ok();
    written.and_then(|written| label_selector(written.as_ref()).ok()).unwrap_or_else(Selector::nothing)
}

/// Is the pod's condition Ready true?
pub(crate) fn is_ready(pod: &Value) -> bool {
    let mut conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

/// Computes a budget's status anew.
pub(crate) async fn refresh(objects: &Objects, key: &Key) -> Result<(), StorageError> {
    let storage = objects.storage(&key.resource);
    for _ in 0..ATTEMPTS {
        let Some(current) = storage.get(key).await? else { return Ok(()) };
        // Pods after the budget: what an eviction takes from it while they are looked at is not given back.
        let pods = objects.list(&PODS.scope(Some(&key.namespace))).await?.items;
        let mut budget = (*current).clone();
        budget["status"] = computed(&current, &pods);
        if budget["status"] == current["status"] {
            return Ok(());
        }
        match storage.put(key, Expected::Revision(revision_of(&current)), budget).await {
            Err(StorageError::Conflict) => tokio::task::yield_now().await,
            other => return other.map(drop),
        }
    }
    Err(StorageError::Failed(format!("{} is changed all the time", key.name)))
}

fn computed(budget: &Value, pods: &[Shared]) -> Value {
    let disrupted = &budget["status"]["disruptedPods"];
    let time = |text: &Value| text.as_str().and_then(|text| text.parse().ok()).map(instant);
    let selector = selector(budget);
    let selected = pods.iter().filter(|pod| !has_ended(pod) && selector.matches(&labels(pod)));
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use async_trait::async_trait;

    use super::*;
    use crate::changes::Watch;
    use crate::memory::Memory;
    use crate::storage::{Page, Scope, Storage};

    /// While somebody looks at the pods for the first time, one of them is evicted: it goes, and the budget says so.
    struct Evicting(Memory, AtomicBool);

    #[async_trait]
    impl Storage for Evicting {
        fn revision(&self) -> u64 {
            self.0.revision()
        }

        async fn get(&self, key: &Key) -> Result<Option<Shared>, StorageError> {
            self.0.get(key).await
        }

        async fn list(&self, scope: &Scope, after: Option<&Key>) -> Result<Page, StorageError> {
            let page = self.0.list(scope, after).await?;
            if *scope.resource == *"pods" && !self.1.swap(true, Ordering::Relaxed) {
                for (key, field, value) in [
                    (PODS.key("default", "a"), "/metadata/deletionTimestamp", json!("2030-01-01T00:00:00Z")),
                    (BUDGETS.key("default", "b"), "/status/disruptionsAllowed", json!(0)),
                ] {
                    let current = self.0.get(&key).await?.expect("it is there");
                    let mut object = (*current).clone();
                    *object.pointer_mut(field).expect("a field") = value;
                    self.0.put(&key, Expected::Revision(revision_of(&current)), object).await?;
                }
            }
            Ok(page)
        }

        async fn put(&self, key: &Key, expected: Expected, object: Value) -> Result<Shared, StorageError> {
            self.0.put(key, expected, object).await
        }

        async fn delete(&self, key: &Key, revision: u64) -> Result<Shared, StorageError> {
            self.0.delete(key, revision).await
        }

        fn watch(&self, scope: Scope, since: u64) -> Result<Watch, StorageError> {
            self.0.watch(scope, since)
        }
    }

    #[tokio::test]
    async fn what_an_eviction_takes_meanwhile_is_not_given_back() {
        let objects = Objects::new(Arc::new(Evicting(Memory::default(), AtomicBool::new(false))));
        for name in ["a", "c"] {
            let pod = json!({
                "metadata": {"name": name, "namespace": "default", "deletionTimestamp": null},
                "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
            });
            objects.create(&PODS.key("default", name), pod).await.expect("memory takes it");
        }
        let key = BUDGETS.key("default", "b");
        let budget = json!({
            "metadata": {"name": "b", "namespace": "default"},
            "spec": {"minAvailable": 1, "selector": {}},
            "status": {"disruptionsAllowed": 1},
        });
        objects.create(&key, budget).await.expect("memory takes it");
        refresh(&objects, &key).await.expect("memory takes it");
        let status = objects.get(&key).await.expect("memory").expect("a budget")["status"].clone();
        assert_eq!((&status["currentHealthy"], &status["disruptionsAllowed"]), (&json!(1), &json!(0)));
    }
}
