//! What of a pod's object is the node's, and what is its clients'.

use std::sync::Arc;

use husk_api::{Wall, status_object};
use husk_apiserver::{Key, PODS};
use husk_core::Input;
use husk_core::deletion::Deletion;
use husk_core::disruption::Disruption;
use husk_core::io::PodUid;
use husk_core::reasons;
use husk_core::status::{Condition, ConditionStatus, PodStatus};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use crate::local::PodState;
use crate::view::ContainerView;

/// Says that a pod comes from a file.
const FROM_FILE: &str = "kubernetes.io/config.source";

/// What the node says of a pod.
pub(crate) struct State {
    pub(crate) status: Arc<PodStatus>,
    /// What the status doesn't say, by container.
    pub(crate) views: Arc<[ContainerView]>,
    pub(crate) deletion: Option<Deletion>,
}

impl State {
    /// None of a pod that is gone for those who watch.
    pub(crate) fn of(pod: &PodState) -> Option<Self> {
        Some(Self { status: pod.status.clone()?, views: pod.views.clone(), deletion: pod.deletion })
    }
}

/// Under which key a pod's object is kept.
pub(crate) fn key_of(object: &Value) -> Key {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    PODS.key(text("namespace"), text("name"))
}

/// Which pod it is.
pub(crate) fn uid_of(object: &Value) -> PodUid {
    PodUid::from(object["metadata"]["uid"].as_str().unwrap_or_default())
}

/// Does it only show a pod that comes from a file?
pub(crate) fn is_from_file(object: &Value) -> bool {
    object["metadata"]["annotations"][FROM_FILE].is_string()
}

/// Does a client ask for another pod than before? Statuses and versions are no wishes.
pub(crate) fn asks_otherwise(before: &Value, after: &Value) -> bool {
    let metadata = ["annotations", "generation", "labels"];
    before["spec"] != after["spec"]
        || metadata.iter().any(|field| before["metadata"][field] != after["metadata"][field])
}

/// Conditions that clients have set since: the node has a say in none of them (COND-05).
pub(crate) fn conditions_of_clients(after: &Value, before: Option<&std::sync::Arc<Value>>) -> Vec<Condition> {
    let conditions = |object: &Value| object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let known = before.map(|before| conditions(before)).unwrap_or_default();
    let said = conditions(after).into_iter().filter(|condition| is_of_client(condition) && !known.contains(condition));
    said.map(|condition| {
        let text = |field: &str| condition[field].as_str().unwrap_or_default().to_owned();
        Condition {
            kind: text("type").into(),
            status: match condition["status"].as_str() {
                Some("True") => ConditionStatus::True,
                Some("False") => ConditionStatus::False,
                _ => ConditionStatus::Unknown,
            },
            reason: text("reason").into(),
            message: text("message"),
            last_transition_time: None,
            observed_generation: condition["observedGeneration"].as_i64().unwrap_or(0),
        }
    })
    .collect()
}

/// Did the eviction API ask for its end? It says so with a condition.
fn is_evicted(object: &Value) -> bool {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    conditions
        .filter(|condition| condition["type"] == reasons::DISRUPTION_TARGET)
        .any(|condition| condition["reason"] == "EvictionByEvictionAPI")
}

/// Is it being deleted?
pub(crate) fn is_leaving(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

/// Asks the node to end a pod that is being deleted. In full also if that began long ago: the node knows how much of it is over.
pub(crate) fn deletion(object: &Value) -> Input {
    let (pod, grace_seconds) = (uid_of(object), object["metadata"]["deletionGracePeriodSeconds"].as_i64());
    match is_evicted(object) {
        true => Input::Evict { pod, disruption: Disruption::EvictionByEvictionApi, grace_seconds },
        false => Input::DeleteRequested { pod, grace_seconds },
    }
}

/// Writes what the node says into an object. Returns false if it said so already.
pub(crate) fn show(object: &mut Value, state: &State, is_static: bool, wall: &Wall) -> bool {
    let State { status, views, deletion } = state;
    let mut new = status_object(status, wall);
    ContainerView::complete(views, &mut new);
    let Ok(mut new) = serde_json::to_value(new) else { return false };
    let old = &object["status"];
    let conditions = |status: &Value| status["conditions"].as_array().cloned().unwrap_or_default();
    let of_clients: Vec<Value> = conditions(old).into_iter().filter(is_of_client).collect();
    if let Some(shown) = new["conditions"].as_array_mut() {
        // What a client has written is newer than what the node has heard of it.
        shown.retain(|condition| of_clients.iter().all(|theirs| theirs["type"] != condition["type"]));
        shown.extend(of_clients);
    }
    if status.start_time.is_some() {
        new["hostIP"] = "127.0.0.1".into();
        new["hostIPs"] = json!([{"ip": "127.0.0.1"}]);
    }
    let is_new_deletion = deletion.is_some() && !is_static && object["metadata"]["deletionTimestamp"].is_null();
    if let Some(deletion) = deletion.filter(|_| is_new_deletion) {
        // The node itself asked for its end, as for a taint.
        let metadata = &mut object["metadata"];
        metadata["deletionTimestamp"] = wall.timestamp(deletion.timestamp).to_string().into();
        metadata["deletionGracePeriodSeconds"] = deletion.grace_seconds.into();
    }
    if object["status"] == new && !is_new_deletion {
        return false;
    }
    object["status"] = new;
    true
}

/// The object that shows a pod from a file; none for other pods.
pub(crate) fn mirror(pod: &Pod) -> Option<Value> {
    let annotations = pod.metadata.annotations.as_ref()?;
    annotations.get(FROM_FILE)?;
    let mut pod = pod.clone();
    pod.status = None;
    pod.metadata.creation_timestamp.get_or_insert_with(|| {
        k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(
            Timestamp::from_second(Timestamp::now().as_second()).unwrap_or(Timestamp::UNIX_EPOCH),
        )
    });
    serde_json::to_value(pod).ok()
}

fn is_of_client(condition: &Value) -> bool {
    let kind = condition["type"].as_str().unwrap_or_default();
    !reasons::is_owned_by_node(kind) && !reasons::is_shared_by_node(kind)
}
