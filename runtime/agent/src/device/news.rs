//! What the node has said of its pods and clients don't see yet.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use husk_core::event::Event;
use husk_core::io::PodUid;
use tokio::time::Instant;

use super::node_events::Remark;
use super::pod_object::State;
use crate::notice::Notice;

/// A disk that says nothing keeps nobody from seeing what is: after that time it is shown all the same. Records wait for each other
/// for half of it at most.
const PATIENCE: Duration = Duration::from_secs(10);
/// What the disk refused is tried again after that.
const PAUSE: Duration = Duration::from_secs(2);

/// What happened, in order, with only the newest status of each pod.
#[derive(Default)]
pub(super) struct News {
    order: Vec<PodUid>,
    of: HashMap<PodUid, OfPod>,
    /// What is no pod's.
    pub(super) of_node: Vec<Remark>,
}

/// The newest that is known of a pod and not written yet.
pub(super) struct OfPod {
    pub(super) state: Option<State>,
    pub(super) events: Vec<Arc<Event>>,
    /// It is from a file that is called otherwise now.
    pub(super) file: Option<String>,
    pub(super) is_gone: bool,
    pub(super) is_forgotten: bool,
    /// It waits for its record until then, or for a disk that refused it.
    until: Instant,
    was_refused: bool,
}

impl News {
    /// Takes a notice.
    pub(super) fn take(&mut self, notice: Notice) {
        match notice {
            Notice::Event { event, .. } => self.of(event.pod.clone()).events.push(event),
            Notice::Status { pod, status, views, deletion, .. } => self.state(&pod, State { status, views, deletion }),
            Notice::Moved { pod, file, .. } => self.moved(&pod, file),
            Notice::Gone { pod, .. } => self.of(pod).is_gone = true,
            Notice::Forgotten { pod, .. } => self.of(pod).is_forgotten = true,
            Notice::Node { kind, reason, message, .. } => self.of_node.push((kind, reason, message)),
            Notice::ShutDown { .. } => {}
        }
    }

    /// A pod is like this now.
    pub(super) fn state(&mut self, pod: &PodUid, state: State) {
        self.of(pod.clone()).state = Some(state);
    }

    /// A pod is from this file now.
    pub(super) fn moved(&mut self, pod: &PodUid, file: String) {
        self.of(pod.clone()).file = Some(file);
    }

    /// Nobody has heard of its end.
    pub(super) fn missed(&mut self, pod: &PodUid, is_forgotten: bool) {
        let news = self.of(pod.clone());
        news.is_gone = true;
        news.is_forgotten |= is_forgotten;
    }

    /// Takes out, in order, what may be written now: of pods of whom that is so, and what has waited long enough.
    pub(super) fn take_ready(&mut self, is_so: impl Fn(&PodUid) -> bool) -> Vec<(PodUid, OfPod)> {
        let now = Instant::now();
        let mut ready = Vec::new();
        self.order.retain(|pod| {
            let waits = |news: &OfPod| news.until > now && (news.was_refused || !is_so(pod));
            if self.of.get(pod).is_some_and(waits) {
                return true;
            }
            ready.extend(self.of.remove(pod).map(|news| (pod.clone(), news)));
            false
        });
        ready
    }

    /// The disk refused something of it: that waits a moment.
    pub(super) fn put_back(&mut self, pod: PodUid, mut news: OfPod) {
        (news.until, news.was_refused) = (Instant::now() + PAUSE, true);
        self.order.push(pod.clone());
        self.of.insert(pod, news);
    }

    /// When something has waited long enough.
    pub(super) fn due(&self) -> Option<Instant> {
        self.of.values().map(|news| news.until).min()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    fn of(&mut self, pod: PodUid) -> &mut OfPod {
        self.of.entry(pod).or_insert_with_key(|pod| {
            self.order.push(pod.clone());
            OfPod::new()
        })
    }
}

impl OfPod {
    fn new() -> Self {
        let until = Instant::now() + PATIENCE;
        Self {
            state: None,
            events: Vec::new(),
            file: None,
            is_gone: false,
            is_forgotten: false,
            until,
            was_refused: false,
        }
    }

    /// Is there more to do than to show something?
    pub(super) fn needs_disk(&self) -> bool {
        self.file.is_some() || self.is_gone || self.is_forgotten
    }
}
