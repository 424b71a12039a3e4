//! Events of the core as objects: bounded, one object for a series.

use std::sync::atomic::Ordering;

use husk_core::Instant;
use husk_core::event::{Event, EventKind};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

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

impl Objects {
    /// Records an event about a pod: a new one, or the next of a series. Nothing new comes to a namespace that ends or is gone.
    pub async fn record_event(
        &self,
        pod: &Value,
        event: &Event,
        times: EventTimes,
        node: &str,
    ) -> Result<(), StorageError> {
        let text = |field: &str| pod["metadata"][field].as_str().unwrap_or_default();
        let name = format!("{}.{:016x}", text("name"), series(text("uid"), event));
        let key = EVENTS.key(text("namespace"), &name);
        let (count, last) = (Value::from(event.count), Value::from(times.last.to_string()));
        let counted = self.update(&key, |object| {
            object["count"] = count.clone();
            object["lastTimestamp"] = last.clone();
            true
        });
        if counted.await?.is_some() {
            return Ok(());
        }
        let namespace = self.get(&NAMESPACES.key("", &key.namespace)).await?;
        if namespace.is_none_or(|namespace| !namespace["metadata"]["deletionTimestamp"].is_null()) {
            return Ok(());
        }
        self.begin_series(&key, object("Pod", pod, event, times, node, &name)).await
    }

    /// Records an event about the node itself: a new one, or once more the same. As upstream it stands in the namespace `default`, and
    /// the node's uid in it is its name.
    pub async fn record_node_event(
        &self,
        node: &str,
        kind: EventKind,
        reason: &'static str,
        message: &str,
    ) -> Result<(), StorageError> {
        let now = now();
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
        let name = format!("{node}.{:016x}", series(node, &event));
        let key = EVENTS.key(husk_api::DEFAULT_NAMESPACE, &name);
        let counted = self.update(&key, |object| {
            object["count"] = (object["count"].as_i64().unwrap_or(0) + 1).into();
            object["lastTimestamp"] = now.to_string().into();
            true
        });
        if counted.await?.is_some() {
            return Ok(());
        }
        let about = json!({"metadata": {"name": node, "uid": node}});
        let times = EventTimes { first: now, last: now };
        self.begin_series(&key, object("Node", &about, &event, times, node, &name)).await
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
    let component = match &*event.reason {
        "Scheduled" | "FailedScheduling" | "Preempted" => "default-scheduler",
        _ => "kubelet",
    };
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

/// The same for all events of a series (FNV-1a).
fn series(uid: &str, event: &Event) -> u64 {
    let parts = [uid, &event.field_path, event.kind.as_str(), &event.reason, &event.message];
    let bytes = parts.iter().flat_map(|part| part.bytes().chain([0]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
