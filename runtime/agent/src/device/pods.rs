//! The pods of the API and the node, each told of the other: what clients want goes to the node, what becomes of it comes back.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use husk_apiserver::{Change, EventTimes, Key, Objects, PODS, Shared, StorageError};
use husk_core::Input;
use husk_core::event::Event;
use husk_core::io::PodUid;
use serde_json::{Value, json};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, sleep_until};

use super::health::Health;
use super::news::{News, OfPod};
use super::node_events;
use super::pod_object::{self, State, is_from_file, is_leaving, key_of, uid_of};
use super::records::Records;
use super::wall::WallClock;
use crate::local::{LocalNode, PodState};
use crate::notice::Notice;
use crate::pod::file;
use crate::static_pods::FILE;

/// After a failure that might repeat itself.
const PAUSE: Duration = Duration::from_millis(500);
/// So often at most pods of before the start are waited for that change all the time.
const ATTEMPTS: usize = 20;

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
    /// What has been heard and isn't written.
    heard: News,
    /// The disk refused the last object.
    refused: bool,
    health: Arc<Health>,
}

/// A pod that has an object, or is to have one.
struct Known {
    key: Key,
    /// It is run whatever clients do: its object is only a mirror.
    is_static: bool,
    /// The node has forgotten it, and somebody's finalizer keeps the object.
    is_over: bool,
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
        let (notices, heard) = (node.watch(), News::default());
        Self { node, objects, wall, base, known, records, notices, heard, refused: false, health }
    }

    /// Shows how the pods are now that go on.
    pub(crate) async fn begin(&mut self) {
        let shown = async {
            let page = self.objects.list(&PODS.scope(None)).await?;
            self.compare(&page.items).await
        };
        if let Err(error) = shown.await {
            tracing::warn!(%error, "pods that go on can't be shown yet");
        }
        // What the start has changed is on the disk before it is seen, and more of it may change meanwhile.
        for _ in 0..ATTEMPTS {
            self.records.flush().await;
            self.write().await;
            if self.heard.is_empty() || self.records.is_refused() {
                return;
            }
        }
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
            let due = self.heard.due();
            tokio::select! {
                change = changes.next() => self.changed(&*change?).await?,
                _ = written.changed(), if due.is_some() => self.write().await,
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => self.write().await,
                notice = self.notices.recv() => match notice {
                    Ok(notice) => {
                        self.hear(notice);
                        self.write().await;
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
            if let Some(shown) = State::of(state) {
                self.heard.state(&state.uid, shown);
            }
        }
        let there: HashMap<&PodUid, &PodState> = states.iter().map(|state| (&state.uid, state)).collect();
        let of_objects: HashSet<PodUid> = objects.iter().map(|object| uid_of(object)).collect();
        self.known.retain(|uid, _| there.contains_key(uid) || of_objects.contains(uid));
        for object in objects {
            let uid = uid_of(object);
            let state = there.get(&uid);
            let is_there = state.is_some_and(|state| state.status.is_some());
            let is_static = self.known.get(&uid).is_some_and(|known| known.is_static);
            let file = state.and_then(|state| file(&state.pod));
            if let Some(file) = file.filter(|file| is_static && object["metadata"]["annotations"][FILE] != *file) {
                self.heard.moved(&uid, file.to_owned());
            }
            if !is_there && (is_static || is_leaving(object)) {
                self.heard.missed(&uid, !there.contains_key(&uid));
            }
        }
        self.write().await;
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
                if self.known.get(&uid).is_some_and(|known| known.is_over) {
                    self.known.remove(&uid);
                    self.records.forget(&uid);
                } else if !self.known.get(&uid).is_some_and(|known| known.is_static) {
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
        if is_from_file(object) {
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
            self.node.tell(pod_object::deletion(object));
        }
    }

    /// Takes a notice and all others that wait.
    fn hear(&mut self, notice: Notice) {
        self.heard.take(notice);
        // Whatever else there is to say of it, the next `recv` says again.
        while let Ok(notice) = self.notices.try_recv() {
            self.heard.take(notice);
        }
    }

    /// Writes what was heard of pods whose records are on the disk: what a client has seen no power cut takes back. While the disk
    /// refuses what is to be kept, it is shown all the same; and what it refuses of one pod waits without the others.
    async fn write(&mut self) {
        let of_node = std::mem::take(&mut self.heard.of_node);
        node_events::record(&self.objects, self.node.node_name(), of_node).await;
        let records = &self.records;
        let ready = self.heard.take_ready(|uid| records.is_refused() || !records.is_pending(uid));
        let mut refused = None;
        for (uid, mut news) in ready {
            if refused.is_some() && news.needs_disk() {
                self.heard.put_back(uid, news);
            } else if let Err(error) = self.write_news(&uid, &mut news).await {
                refused = Some(error);
                self.heard.put_back(uid, news);
            }
        }
        match &refused {
            Some(error) if !self.refused => {
                tracing::warn!(%error, "ended pods can't be removed yet; it is tried again")
            }
            None if self.refused && self.heard.is_empty() => tracing::info!("ended pods are removed again"),
            Some(_) | None => {}
        }
        self.refused = refused.is_some() || self.refused && !self.heard.is_empty();
    }

    /// What was done is no news any more.
    async fn write_news(&mut self, uid: &PodUid, news: &mut OfPod) -> Result<(), StorageError> {
        if let Some(state) = news.state.take() {
            self.write_status(uid, &state).await?;
        }
        if let Some(file) = &news.file {
            self.write_file(uid, file).await?;
            news.file = None;
        }
        // Events first: their pod may be gone in the next moment.
        for event in std::mem::take(&mut news.events) {
            self.write_event(&event).await?;
        }
        if news.is_gone {
            self.gone(uid).await?;
            news.is_gone = false;
        }
        if news.is_forgotten {
            self.forgotten(uid).await?;
        }
        Ok(())
    }

    /// Nothing is left of it but perhaps its object. The record goes last, since it says what became of the pod.
    async fn forgotten(&mut self, uid: &PodUid) -> Result<(), StorageError> {
        if let Some(known) = self.known.get_mut(uid).filter(|known| !known.is_static)
            && self.objects.get(&known.key).await?.is_some_and(|object| uid_of(&object) == *uid)
        {
            known.is_over = true;
            return Ok(());
        }
        self.known.remove(uid);
        self.records.forget(uid);
        Ok(())
    }

    async fn write_status(&mut self, uid: &PodUid, state: &State) -> Result<(), StorageError> {
        if !self.known.contains_key(uid) && !self.make_mirror(uid).await? {
            return Ok(());
        }
        let Some(known) = self.known.get(uid) else { return Ok(()) };
        let wall = self.wall.now();
        let written = self.objects.update(&known.key, |object| {
            uid_of(object) == *uid && pod_object::show(object, state, known.is_static, &wall)
        });
        written.await.map(drop)
    }

    /// Who begins again knows by it whose pod it is while the file can't be read.
    async fn write_file(&self, uid: &PodUid, file: &str) -> Result<(), StorageError> {
        let Some(known) = self.known.get(uid).filter(|known| known.is_static) else { return Ok(()) };
        let is_new = |object: &mut Value| {
            let known = &mut object["metadata"]["annotations"][FILE];
            let is_new = *known != file;
            *known = file.into();
            is_new
        };
        let written = self.objects.update(&known.key, |object| uid_of(object) == *uid && is_new(object));
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
        self.known.insert(uid.clone(), Known { key: key.clone(), is_static: true, is_over: false });
        let Some(state) = State::of(&state) else { return Ok(true) };
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
        let shown = self.objects.update(&key, |object| pod_object::show(object, &state, true, &wall));
        shown.await.map(|_| true)
    }
}

impl Known {
    fn of(object: &Value) -> Self {
        let is_static = is_from_file(object);
        Self { key: key_of(object), is_static, is_over: false }
    }
}

/// Is nothing of it to be run, not even to its end?
fn is_over(object: &Value) -> bool {
    object["metadata"]["deletionGracePeriodSeconds"] == 0
}
