//! What was there before the agent started: which pods go on, which begin anew, and what is left over of others.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use husk_api::Wall;
use husk_apiserver::{Objects, PODS, Shared, StorageError};
use husk_core::Instant;
use husk_core::io::PodUid;
use husk_core::reasons;
use husk_core::record::PodRecord;
use husk_store::{Store, Unreadable};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use serde_json::Value;

use super::pod_object::{self, State, is_from_file, is_leaving, key_of, uid_of};
use crate::driver::remove;
use crate::local::{Restored, pod_folder};
use crate::users::PODS as FOLDERS;
use crate::view::ContainerView;
use crate::volumes::Memory;

/// What a new run begins with.
#[derive(Default)]
pub(super) struct Before {
    /// Pods that go on.
    pub(super) restored: Vec<Restored>,
    /// Their objects.
    pub(super) objects: Vec<Shared>,
    /// Those of them that come from files.
    pub(super) from_files: Vec<Pod>,
    /// Folders of pods of which nothing is known. A manifest may name one of them still: the state may have been set aside.
    pub(super) leftovers: Vec<PathBuf>,
}

/// The folders that images of pods are relative to.
#[derive(Clone, Copy)]
pub(super) struct Bases<'a> {
    /// Of pods of the API, which have no file: the data folder.
    pub(super) data_dir: &'a Path,
    /// Of pods from files: that of the manifests, if there is one.
    pub(super) manifests: Option<&'a Path>,
    /// Of volumes in memory.
    pub(super) memory: &'a Memory,
}

impl Bases<'_> {
    fn of(self, object: &Value) -> PathBuf {
        self.manifests.filter(|_| is_from_file(object)).unwrap_or(self.data_dir).to_owned()
    }
}

/// Puts records and objects together.
pub(super) async fn gather(
    objects: &Objects,
    store: &Store,
    now: Instant,
    records: Vec<PodRecord>,
    unreadable: &[Unreadable],
    bases: Bases<'_>,
    wall: &Wall,
) -> Before {
    let page = match objects.list(&PODS.scope(None)).await {
        Ok(page) => page,
        Err(error) => {
            tracing::error!(%error, "the pods in the store can't be read");
            return Before::default();
        }
    };
    let mut by_uid: HashMap<PodUid, Shared> = page.items.into_iter().map(|object| (uid_of(&object), object)).collect();
    let mut before = Before::default();
    // A pod keeps its volumes for as long as something says that it goes on: its record, readable or not, or its object.
    let of_records = records.iter().map(|record| record.uid().clone());
    let mut used: HashSet<PodUid> = unreadable.iter().map(|record| PodUid::from(&*record.uid)).collect();
    used.extend(of_records.filter(|uid| by_uid.contains_key(uid)));
    used.extend(by_uid.iter().filter(|(_, object)| !is_leaving(object)).map(|(uid, _)| uid.clone()));
    for record in records {
        let uid = record.uid().clone();
        let object = by_uid.remove(&uid);
        let pod = object.as_ref().and_then(|object| serde_json::from_value::<Pod>(Value::clone(object)).ok());
        let (Some(object), Some(pod)) = (object, pod) else {
            // Its object is gone or of no use, and nothing of it runs any more.
            store.forget(now, &uid.0);
            continue;
        };
        if was_shut_down(&record, &pod) {
            store.forget(now, &uid.0);
            used.remove(&uid);
            // One from a file has the same uid once more.
            remove(&pod_folder(bases.data_dir, &uid));
            bases.memory.remove(&uid);
            if let Err(error) = begin_anew(objects, &object).await {
                tracing::error!(pod = %uid, %error, "a pod that the node's shutdown ended can't begin anew");
            }
            continue;
        }
        if is_from_file(&object) {
            before.from_files.push(pod.clone());
        }
        // Its record may be from before that was asked for.
        let is_news = is_leaving(&object) && !record.is_leaving() && !is_from_file(&object);
        if (record.is_leaving() || is_news) && record.status().phase.is_terminal() {
            // What the node says of it may be no more than that it is gone, and somebody's finalizer keeps the object.
            show(objects, &record, (&pod, &object), wall).await;
        }
        let deletion = is_news.then(|| pod_object::deletion(&object));
        before.restored.push(Restored { record, pod, deletion, base: bases.of(&object) });
        before.objects.push(object);
    }
    for (uid, object) in by_uid.into_iter().filter(|(_, object)| is_leaving(object)) {
        // The power went before a record of it was written, so that nothing was seen of it; or after its last one was dropped.
        store.forget(now, &uid.0);
        used.remove(&uid);
        let key = key_of(&object);
        if let Err(error) = objects.end(&key, &uid.0).await {
            tracing::error!(pod = key.name, %error, "a pod that was deleted can't be removed yet");
        }
        before.objects.push(object);
    }
    before.leftovers = leftovers(bases, &used);
    before
}

/// Shows a pod as it ended.
async fn show(objects: &Objects, record: &PodRecord, (pod, object): (&Pod, &Shared), wall: &Wall) {
    let is_static = is_from_file(object);
    let key = key_of(object);
    let views = ContainerView::of_ended(pod.spec.as_ref());
    let state = State { status: Arc::new(record.status().clone()), views, deletion: None };
    let shown = objects
        .update(&key, |object| uid_of(object) == *record.uid() && pod_object::show(object, &state, is_static, wall));
    if let Err(error) = shown.await {
        tracing::error!(pod = %record.uid(), %error, "how a pod ended can't be shown");
    }
}

/// Did the node end it because it was shut down, and not the pod? Elsewhere a controller makes another pod then; here the node
/// does, also if the power went before the pod was down. One that is never to be restarted stays as it ended.
fn was_shut_down(record: &PodRecord, pod: &Pod) -> bool {
    let restarts = pod.spec.as_ref().is_some_and(|spec| spec.restart_policy.as_deref() != Some("Never"));
    restarts && record.ended_by_node() == Some(reasons::TERMINATED) && !record.is_leaving()
}

/// The same pod once more: another one for all who look. One from a file gets its object when it runs.
async fn begin_anew(objects: &Objects, object: &Shared) -> Result<(), StorageError> {
    let key = key_of(object);
    objects.remove(&key, &uid_of(object).0).await?;
    if is_from_file(object) {
        return Ok(());
    }
    let mut new = Value::clone(object);
    let metadata = &mut new["metadata"];
    metadata["uid"] = uuid::Uuid::new_v4().to_string().into();
    let second = Timestamp::from_second(Timestamp::now().as_second()).unwrap_or(Timestamp::UNIX_EPOCH);
    metadata["creationTimestamp"] = second.to_string().into();
    if let Some(fields) = new.as_object_mut() {
        fields.insert("status".into(), serde_json::json!({"phase": "Pending"}));
    }
    objects.create(&key, new).await.map(drop)
}

/// Folders that are not of these pods.
fn leftovers(bases: Bases<'_>, used: &HashSet<PodUid>) -> Vec<PathBuf> {
    let used: HashSet<&OsStr> = used.iter().map(|uid| OsStr::new(&*uid.0)).collect();
    let entries = std::fs::read_dir(bases.data_dir.join(FOLDERS)).into_iter().flatten().flatten();
    let on_disk = entries.filter(|entry| !used.contains(&*entry.file_name())).map(|entry| entry.path());
    on_disk.chain(bases.memory.leftovers(&used)).collect()
}
