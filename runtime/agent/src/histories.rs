//! What happened to pods, kept in memory within bounds: for people who ask what became of theirs.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use husk_core::io::PodUid;
use husk_core::{Action, Input, Instant, Node};
use husk_timeline::{Recorder, Timeline};

use crate::clock::Clock;

/// The most bytes of one pod; one that idles takes a few hundred.
const BYTES: usize = 8 << 10;
/// So many pods that are gone are remembered, the newest ones.
const GONE: usize = 64;

/// The histories of a node's pods. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Histories {
    clock: Clock,
    kept: Arc<Mutex<Kept>>,
}

#[derive(Debug, Default)]
struct Kept {
    pods: HashMap<PodUid, Recorder>,
    /// Pods of which something has changed that isn't noted yet.
    changed: HashSet<PodUid>,
    /// The one that went last is last.
    gone: VecDeque<(PodUid, Recorder)>,
}

impl Histories {
    /// Of a node with that clock.
    pub(crate) fn new(clock: Clock) -> Self {
        Self { clock, kept: Arc::default() }
    }

    /// Something happened.
    pub(crate) fn input(&self, now: Instant, input: &Input) {
        let mut kept = self.kept();
        match input {
            Input::Applied { meta, spec } => match kept.pods.entry(PodUid::from(meta.uid.as_str())) {
                Entry::Occupied(known) => known.into_mut().input(now, input),
                Entry::Vacant(new) => drop(new.insert(Recorder::bounded(now, meta, spec, BYTES))),
            },
            Input::Restored { record, after } => {
                kept.pods.insert(record.uid().clone(), Recorder::restored(now, record, *after, BYTES));
            }
            _ => {
                let pod = input.pod();
                if let Some(recorder) = pod.and_then(|pod| kept.pods.get_mut(&pod)) {
                    recorder.input(now, input);
                }
            }
        }
    }

    /// Something was ordered.
    pub(crate) fn action(&self, now: Instant, action: &Action) {
        let mut kept = self.kept();
        if let Action::Forget { pod } = action {
            kept.changed.remove(pod);
            if let Some(mut recorder) = kept.pods.remove(pod) {
                recorder.shrink();
                kept.gone.push_back((pod.clone(), recorder));
                kept.gone.len().checked_sub(GONE).into_iter().for_each(|over| drop(kept.gone.drain(..over)));
            }
        } else if kept.pods.get_mut(action.pod()).is_some_and(|recorder| recorder.action(now, action)) {
            kept.changed.insert(action.pod().clone());
        }
    }

    /// All orders are out: pods are as the node says now.
    pub(crate) fn settled(&self, now: Instant, node: &Node) {
        let mut kept = self.kept();
        let Kept { pods, changed, .. } = &mut *kept;
        for pod in changed.drain() {
            if let (Some(recorder), Some(status)) = (pods.get_mut(&pod), node.status(&pod)) {
                recorder.settled(now, status);
            }
        }
    }

    /// What happened to the pod of that name, or to the one that had it before.
    pub(crate) fn find(&self, namespace: &str, name: &str, previous: bool) -> Option<Timeline> {
        let kept = self.kept();
        let name = format!("{namespace}/{name}");
        let gone = kept.gone.iter().map(|(uid, recorder)| (uid, recorder));
        let mut found: Vec<(&PodUid, &Recorder)> =
            kept.pods.iter().chain(gone).filter(|(_, recorder)| recorder.name() == name).collect();
        found.sort_by_key(|(_, recorder)| recorder.origin());
        let (uid, recorder) = found[found.len().checked_sub(1 + usize::from(previous))?];
        let now = self.clock.now();
        let mut timeline = recorder.timeline(now);
        timeline.uid = uid.to_string();
        timeline.start = jiff::Timestamp::now().checked_sub(now - timeline.origin).ok();
        Some(timeline)
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
