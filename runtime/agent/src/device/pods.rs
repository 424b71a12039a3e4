//! The pods of the API and the node, each told of the other: what clients want goes to the node, what becomes of it comes back.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use husk_apiserver::{Change, EventTimes, Key, Objects, PODS, Shared, StorageError};
use husk_core::Input;
use husk_core::deletion::Deletion;
use husk_core::disruption::Disruption;
use husk_core::event::Event;
use husk_core::io::PodUid;
use husk_core::status::PodStatus;
use serde_json::{Value, json};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, sleep_until};

use super::health::Health;
use super::node_events::{self, Remark};
use super::pod_object::{self, FROM_FILE};
use super::records::Records;
use super::wall::WallClock;
use crate::local::LocalNode;
use crate::notice::Notice;

/// After a failure that might repeat itself.
const PAUSE: Duration = Duration::from_millis(500);
/// A disk that doesn't take what is to be kept keeps nobody from seeing what is: after that time it is shown all the same.
const PATIENCE: Duration = Duration::from_secs(2);

/// Keeps objects and node in line.
pub(crate) struct Pods {
    node: Arc<LocalNode>,
    objects: Objects,
    wall: Arc<WallClock>,
    /// The folder that images of the API's pods are relative to.
    base: PathBuf,
    known: HashMap<PodUid, Known>,
    records: Arc<Records>,
    notices: broadcast::Receiver<Notice>,
    /// What has been heard and isn't written, and since when.
    heard: Batch,
    since: Option<Instant>,
    health: Arc<Health>,
}

/// A pod that has an object, or is to have one.
struct Known {
    key: Key,
    /// It is run whatever clients do: its object is only a mirror.
    is_static: bool,
}

/// The newest that is known of a pod and not written yet.
#[derive(Default)]
struct News {
    status: Option<(Arc<PodStatus>, Option<Deletion>)>,
    events: Vec<Arc<Event>>,
    is_gone: bool,
    is_forgotten: bool,
}

/// What happened, in order, with only the newest status of each pod.
#[derive(Default)]
struct Batch {
    order: Vec<PodUid>,
    news: HashMap<PodUid, News>,
    of_node: Vec<Remark>,
}

impl Pods {
    /// With the pods that the node has been given already, whatever has become of them.
    pub(crate) fn new(
        node: Arc<LocalNode>,
        objects: Objects,
        wall: Arc<WallClock>,
        base: PathBuf,
        records: Arc<Records>,
        restored: &[Shared],
        health: Arc<Health>,
    ) -> Self {
        let known = restored.iter().map(|object| (uid_of(object), Known::of(object))).collect();
        let (notices, heard) = (node.watch(), Batch::default());
        Self { node, objects, wall, base, known, records, notices, heard, since: None, health }
    }

    /// Works for as long as the agent lives.
    pub(crate) async fn run(mut self) {
        loop {
            match self.follow().await {
                Ok(()) => return,
                // It begins again with what is there, so that nothing is missed.
                Err(error) => tracing::warn!(%error, "following pods begins again"),
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Ends when the node has ended.
    async fn follow(&mut self) -> Result<(), StorageError> {
        let scope = PODS.scope(None);
        let page = self.objects.list(&scope).await?;
        for object in &page.items {
            self.wanted(object, None);
        }
        let mut changes = self.objects.watch(scope, page.revision)?;
        self.compare(&page.items).await?;
        self.health.is_restored.store(true, Ordering::Relaxed);
        let mut written = self.records.written();
        loop {
            let patience = self.since.map(|since| since + PATIENCE);
            tokio::select! {
                change = changes.next() => self.changed(&*change?).await?,
                _ = written.changed(), if self.since.is_some() => self.write().await?,
                () = sleep_until(patience.unwrap_or_else(Instant::now)), if patience.is_some() => self.write().await?,
                notice = self.notices.recv() => match notice {
                    Ok(notice) => {
                        self.hear(notice);
                        self.write().await?;
                    }
                    Err(RecvError::Lagged(_)) => {
                        let page = self.objects.list(&PODS.scope(None)).await?;
                        self.compare(&page.items).await?;
                    }
                    Err(RecvError::Closed) => return Ok(()),
                },
            }
        }
    }

    /// Brings all objects in line with what the node says now.
    async fn compare(&mut self, objects: &[Shared]) -> Result<(), StorageError> {
        let Some(states) = self.node.pods().await else { return Ok(()) };
        for state in &states {
            if let Some(status) = &state.status {
                self.write_status(&state.uid, status, state.deletion).await?;
            }
        }
        let there: HashMap<&PodUid, bool> = states.iter().map(|state| (&state.uid, state.status.is_some())).collect();
        let of_objects: HashSet<PodUid> = objects.iter().map(|object| uid_of(object)).collect();
        self.known.retain(|uid, _| there.contains_key(uid) || of_objects.contains(uid));
        for object in objects {
            let uid = uid_of(object);
            let is_there = there.get(&uid).copied().unwrap_or(false);
            let is_static = self.known.get(&uid).is_some_and(|known| known.is_static);
            if !is_there && (is_static || is_leaving(object)) {
                self.gone(&uid).await?;
            }
        }
        Ok(())
    }

    async fn changed(&mut self, change: &Change) -> Result<(), StorageError> {
        match (&change.after, &change.before) {
            (Some(object), before) => {
                self.wanted(object, before.as_ref());
                let is_mirror = self.known.get(&uid_of(object)).is_some_and(|known| known.is_static);
                if is_mirror && is_leaving(object) && before.as_ref().is_none_or(|before| !is_leaving(before)) {
                    // Who deletes a mirror deletes no pod (META-12).
                    self.objects.remove(&change.key, &uid_of(object).0).await?;
                }
                Ok(())
            }
            (None, Some(before)) => {
                let uid = uid_of(before);
                if !self.known.get(&uid).is_some_and(|known| known.is_static) {
                    // Nobody wants to know of it any more: deleted without grace, or ended by the node, who knows.
                    self.node.delete(&uid, Some(0));
                }
                self.make_mirrors(&change.key).await
            }
            (None, None) => Ok(()),
        }
    }

    /// A client wants a pod like this. `before` is what it wanted until now.
    fn wanted(&mut self, object: &Shared, before: Option<&Shared>) {
        let uid = uid_of(object);
        if object["metadata"]["annotations"][FROM_FILE].is_string() {
            return;
        }
        let is_new = !self.known.contains_key(&uid);
        if is_new && is_leaving(object) && (before.is_some() || is_over(object)) {
            // The node has ended it: what is told of it now is late, or somebody's finalizer keeps the object.
            return;
        }
        if is_new || before.is_some_and(|before| pod_object::asks_otherwise(before, object)) {
            match serde_json::from_value(Value::clone(object)) {
                Ok(pod) => drop(self.node.apply(pod, self.base.clone())),
                Err(error) => return tracing::error!(pod = %uid, %error, "the object can't be used"),
            }
            self.known.insert(uid.clone(), Known::of(object));
        }
        for condition in pod_object::conditions_of_clients(object, before) {
            self.node.tell(Input::ConditionSet { pod: uid.clone(), condition });
        }
        let grace = |object: &Shared| object["metadata"]["deletionGracePeriodSeconds"].as_i64();
        if is_leaving(object) && before.is_none_or(|before| !is_leaving(before) || grace(before) != grace(object)) {
            let grace_seconds = pod_object::grace_left(object, before.is_none());
            if pod_object::is_evicted(object) {
                let disruption = Disruption::EvictionByEvictionApi;
                self.node.tell(Input::Evict { pod: uid, disruption, grace_seconds });
            } else {
                self.node.delete(&uid, grace_seconds);
            }
        }
    }

    /// Takes a notice and all others that wait.
    fn hear(&mut self, notice: Notice) {
        self.heard.take(notice);
        // Whatever else there is to say of it, the next `recv` says again.
        while let Ok(notice) = self.notices.try_recv() {
            self.heard.take(notice);
        }
        self.since.get_or_insert_with(Instant::now);
    }

    /// Writes what was heard of pods whose records are on the disk: what a client has seen no power cut takes back.
    async fn write(&mut self) -> Result<(), StorageError> {
        let of_node = std::mem::take(&mut self.heard.of_node);
        node_events::record(&self.objects, self.node.node_name(), of_node).await;
        let is_over = self.since.is_some_and(|since| since.elapsed() >= PATIENCE);
        let waits = |records: &Records, uid: &PodUid| !is_over && records.is_pending(uid);
        let (later, now): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.heard.order).into_iter().partition(|uid| waits(&self.records, uid));
        self.since = if later.is_empty() { None } else { self.since.filter(|_| !is_over) };
        self.heard.order = later;
        for uid in now {
            let Some(news) = self.heard.news.remove(&uid) else { continue };
            if let Some((status, deletion)) = news.status {
                self.write_status(&uid, &status, deletion).await?;
            }
            // Events first: their pod may be gone in the next moment.
            for event in news.events {
                self.write_event(&event).await?;
            }
            if news.is_gone {
                self.gone(&uid).await?;
            }
            if news.is_forgotten {
                self.known.remove(&uid);
            }
        }
        Ok(())
    }

    async fn write_status(
        &mut self,
        uid: &PodUid,
        status: &PodStatus,
        deletion: Option<Deletion>,
    ) -> Result<(), StorageError> {
        if !self.known.contains_key(uid) && !self.make_mirror(uid).await? {
            return Ok(());
        }
        let Some(known) = self.known.get(uid) else { return Ok(()) };
        let wall = self.wall.now();
        let written = self.objects.update(&known.key, |object| {
            uid_of(object) == *uid && pod_object::show(object, status, deletion, known.is_static, &wall)
        });
        written.await.map(drop)
    }

    async fn write_event(&self, event: &Event) -> Result<(), StorageError> {
        let Some(known) = self.known.get(&event.pod) else { return Ok(()) };
        let Key { namespace, name, .. } = &known.key;
        let pod = json!({"metadata": {"namespace": namespace, "name": name, "uid": *event.pod.0}});
        let wall = self.wall.now();
        let times = EventTimes { first: wall.timestamp(event.first_seen), last: wall.timestamp(event.last_seen) };
        self.objects.record_event(&pod, event, times, self.node.node_name()).await
    }

    /// The node has ended it.
    async fn gone(&mut self, uid: &PodUid) -> Result<(), StorageError> {
        let Some(known) = self.known.get(uid) else { return Ok(()) };
        if known.is_static {
            self.objects.remove(&known.key, &uid.0).await
        } else {
            self.objects.end(&known.key, &uid.0).await
        }
    }

    /// A name is free: pods from files that have it get their mirrors.
    async fn make_mirrors(&mut self, key: &Key) -> Result<(), StorageError> {
        let of_name: Vec<PodUid> = self
            .known
            .iter()
            .filter(|(_, known)| known.is_static && known.key == *key)
            .map(|(uid, _)| uid.clone())
            .collect();
        for uid in of_name {
            self.make_mirror(&uid).await?;
        }
        Ok(())
    }

    /// Makes the object of a pod from a file. Returns false if it is no such pod.
    async fn make_mirror(&mut self, uid: &PodUid) -> Result<bool, StorageError> {
        let Some(states) = self.node.pods().await else { return Ok(false) };
        let Some(state) = states.into_iter().find(|state| state.uid == *uid) else { return Ok(false) };
        let Some(object) = pod_object::mirror(&state.pod) else { return Ok(false) };
        let key = key_of(&object);
        self.known.insert(uid.clone(), Known { key: key.clone(), is_static: true });
        let Some(status) = state.status else { return Ok(true) };
        match self.objects.create(&key, object).await {
            Ok(_) => {}
            // One of its name is still there: when that goes, this one's turn comes.
            Err(StorageError::Conflict) => return Ok(true),
            // A disk that is full keeps no pod from running, only from being seen.
            Err(StorageError::Failed(error)) => {
                tracing::warn!(pod = %key.name, %error, "a static pod can't be shown");
                return Ok(true);
            }
            Err(error) => return Err(error),
        }
        let wall = self.wall.now();
        let shown = self.objects.update(&key, |object| pod_object::show(object, &status, state.deletion, true, &wall));
        shown.await.map(|_| true)
    }
}

impl Known {
    fn of(object: &Value) -> Self {
        Self { key: key_of(object), is_static: object["metadata"]["annotations"][FROM_FILE].is_string() }
    }
}

impl Batch {
    fn take(&mut self, notice: Notice) {
        let (uid, status, event) = match notice {
            Notice::Event { event, .. } => (event.pod.clone(), None, Some(event)),
            Notice::Status { pod, status, deletion, .. } => (pod, Some((status, deletion)), None),
            Notice::Gone { pod, .. } => return self.of(pod).is_gone = true,
            Notice::Forgotten { pod, .. } => return self.of(pod).is_forgotten = true,
            Notice::Node { kind, reason, message, .. } => return self.of_node.push((kind, reason, message)),
            Notice::ShutDown { .. } => return,
        };
        let news = self.of(uid);
        news.events.extend(event);
        if status.is_some() {
            news.status = status;
        }
    }

    fn of(&mut self, uid: PodUid) -> &mut News {
        if !self.news.contains_key(&uid) {
            self.order.push(uid.clone());
        }
        self.news.entry(uid).or_default()
    }
}

fn key_of(object: &Value) -> Key {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    PODS.key(text("namespace"), text("name"))
}

fn uid_of(object: &Value) -> PodUid {
    PodUid::from(object["metadata"]["uid"].as_str().unwrap_or_default())
}

/// Is nothing of it to be run, not even to its end?
fn is_over(object: &Value) -> bool {
    object["metadata"]["deletionGracePeriodSeconds"] == 0
}

fn is_leaving(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}
