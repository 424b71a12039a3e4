//! Events of the core as objects: bounded, one object for a series.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time;

use husk_core::Instant;
use husk_core::event::{Event, EventKind};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::event_correlator::{Compared, Verdict, hash};
use crate::incoming::now;
use crate::objects::Objects;
use crate::resources::{EVENTS, NAMESPACES};
use crate::storage::{Key, Shared, StorageError};

/// As upstream.
const KEPT_FOR: SignedDuration = SignedDuration::from_hours(1);
/// The oldest ones beyond go first.
const MOST_EVENTS: usize = 1000;
/// So many are made room for at once.
const ROOM: usize = 100;

/// When an event happened, as people tell the time.
#[derive(Clone, Copy, Debug)]
pub struct EventTimes {
    /// The first of its series.
    pub first: Timestamp,
    /// The last one.
    pub last: Timestamp,
}

/// What an event is about.
#[derive(Clone, Copy, Debug)]
pub enum Involved<'a> {
    /// A pod: its object, or as much of it as names it.
    Pod(&'a Value),
    /// The node. As upstream its events stand in the namespace `default`, and its uid in them is its name.
    Node,
}

impl Objects {
    /// Records an event about a pod, which the node has counted: a new one, or the next of a series.
    pub async fn record_event(
        &self,
        pod: &Value,
        event: &Event,
        times: EventTimes,
        node: &str,
    ) -> Result<(), StorageError> {
        self.record(Involved::Pod(pod), event, times, node, Some(event.count)).await
    }

    /// Records an event that nobody counts: a new one, or once more the same.
    pub async fn record_remark(
        &self,
        about: Involved<'_>,
        node: &str,
        kind: EventKind,
        reason: &'static str,
        message: &str,
    ) -> Result<(), StorageError> {
        let event = Event {
            pod: node.into(),
            field_path: String::new(),
            kind,
            reason: reason.into(),
            message: message.into(),
            count: 1,
            first_seen: Instant::ZERO,
            last_seen: Instant::ZERO,
        };
        let now = now();
        self.record(about, &event, EventTimes { first: now, last: now }, node, None).await
    }

    /// Similar ones are one, and too many are none. Nothing new comes to a namespace that ends or is gone.
    async fn record(
        &self,
        about: Involved<'_>,
        event: &Event,
        times: EventTimes,
        node: &str,
        count: Option<u32>,
    ) -> Result<(), StorageError> {
        let (kind, involved) = match about {
            Involved::Pod(pod) => ("Pod", pod.clone()),
            Involved::Node => ("Node", json!({"metadata": {"name": node, "uid": node}})),
        };
        let text = |field: &str| involved["metadata"][field].as_str().unwrap_or_default();
        let (uid, what) = (text("uid"), [event.kind.as_str(), &*event.reason]);
        let compared = Compared { object: &[component(event), kind, uid], what, message: &event.message };
        let verdict =
            self.correlator.lock().unwrap_or_else(PoisonError::into_inner).take(time::Instant::now(), compared);
        let (series, event, count) = match verdict {
            Verdict::Dropped => return Ok(()),
            Verdict::Own => {
                let series = hash([uid, &event.field_path, what[0], what[1], &event.message]);
                (series, event.clone(), count)
            }
            Verdict::Combined => {
                let message = format!("(combined from similar events): {}", event.message);
                (hash([uid, what[0], what[1]]), Event { message, count: 1, ..event.clone() }, None)
            }
        };
        let name = format!("{}.{series:016x}", text("name"));
        let namespace = involved["metadata"]["namespace"].as_str().unwrap_or(husk_api::DEFAULT_NAMESPACE);
        let key = EVENTS.key(namespace, &name);
        let counted = self.update(&key, |object| {
            let before = object["count"].as_i64().unwrap_or(0);
            object["count"] = count.map_or(before + 1, i64::from).into();
            object["message"] = event.message.as_str().into();
            object["lastTimestamp"] = times.last.to_string().into();
            true
        });
        if counted.await?.is_some() {
            return Ok(());
        }
        if matches!(about, Involved::Pod(_)) {
            let namespace = self.get(&NAMESPACES.key("", namespace)).await?;
            if namespace.is_none_or(|namespace| !namespace["metadata"]["deletionTimestamp"].is_null()) {
                return Ok(());
            }
        }
        self.begin_series(&key, object(kind, &involved, &event, times, node, &name)).await
    }

    async fn begin_series(&self, key: &Key, event: Value) -> Result<(), StorageError> {
        match self.create(key, event).await {
            // Somebody else recorded the same: it is there.
            Ok(_) | Err(StorageError::Conflict) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Looks at them once for [`ROOM`] new ones: to look at all is much more work than to keep one.
    pub(crate) async fn make_room_for_events(&self) -> Result<(), StorageError> {
        if !self.events.fetch_add(1, Ordering::Relaxed).is_multiple_of(ROOM) {
            return Ok(());
        }
        let mut events = self.list(&EVENTS.scope(None)).await?.items;
        let last = |event: &Shared| {
            let time = event["lastTimestamp"].as_str().or_else(|| event["metadata"]["creationTimestamp"].as_str());
            time.and_then(|time| time.parse::<Timestamp>().ok()).unwrap_or(Timestamp::MIN)
        };
        events.sort_by_cached_key(last);
        let limit = Timestamp::now().checked_sub(KEPT_FOR).unwrap_or(Timestamp::MIN);
        let old = events.partition_point(|event| last(event) < limit);
        let surplus = events.len().saturating_sub(MOST_EVENTS - ROOM);
        for event in events.iter().take(old.max(surplus)) {
            let text = |field: &str| event["metadata"][field].as_str().unwrap_or_default();
            let key = EVENTS.key(text("namespace"), text("name"));
            self.remove(&key, text("uid")).await?;
        }
        Ok(())
    }
}

fn object(kind: &str, about: &Value, event: &Event, times: EventTimes, node: &str, name: &str) -> Value {
    let component = component(event);
    let about = &about["metadata"];
    let namespace = about["namespace"].as_str().unwrap_or(husk_api::DEFAULT_NAMESPACE);
    let mut object = json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": uuid::Uuid::new_v4().to_string(),
            "creationTimestamp": times.first.to_string(),
        },
        "involvedObject": {
            "kind": kind,
            "name": about["name"],
            "uid": about["uid"],
            "apiVersion": "v1",
        },
        "reason": event.reason,
        "message": event.message,
        "source": {"component": component, "host": node},
        "reportingComponent": component,
        "reportingInstance": node,
        "firstTimestamp": times.first.to_string(),
        "lastTimestamp": times.last.to_string(),
        "count": event.count,
        "type": event.kind.as_str(),
    });
    for field in ["namespace", "resourceVersion"] {
        if about[field].is_string() {
            object["involvedObject"][field] = about[field].clone();
        }
    }
    if !event.field_path.is_empty() {
        object["involvedObject"]["fieldPath"] = event.field_path.as_str().into();
    }
    object
}

/// Who says so.
fn component(event: &Event) -> &'static str {
    match &*event.reason {
        "Scheduled" | "FailedScheduling" | "Preempted" => "default-scheduler",
        _ => "kubelet",
    }
}
