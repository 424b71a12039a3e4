//! The node: pods by uid, and who has to be looked at when.
//!
//! What a pod may do beside its own life is decided in the modules below: who has a place, who has to go.

mod collect;
mod groups;
mod pods;
mod preemption;
mod pressure;
mod resize;
mod seats;
mod shutdown;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;

use collect::Collection;
use groups::Groups;
use pods::Pods;
use seats::Seats;
use shutdown::Shutdown;

use crate::admission::NodeState;
use crate::backoff::BackoffConfig;
use crate::deletion::Deletion;
use crate::eviction::Pressure;
use crate::io::{Action, Input, PodUid};
use crate::pod::{DeferredPlace, Out, Pod, ProbeResult};
use crate::record::{Interruption, PodRecord};
use crate::spec::{PodMeta, PodSpec, ProbeKind, ResourceList, Resources};
use crate::status::PodStatus;
use crate::time::Instant;

/// What holds for every pod of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeConfig {
    /// Name of the node, for events.
    pub node_name: String,
    /// Delays of the crash-loop back-off (RESTART-02, RESTART-05).
    pub crash_loop: BackoffConfig,
    /// Delays of the image pull back-off.
    pub image_pull: BackoffConfig,
    /// `terminated-pod-gc-threshold`: terminal pods beyond that number are deleted, the oldest first; 0 for never (TERM-09).
    pub terminated_pod_gc_threshold: usize,
    /// When the node began, with all its pods at once: what begins to be probed within a probe's period of that doesn't do so
    /// all at the same time, but somewhere in that period (PROBE-14).
    pub spread_probes_after: Option<Instant>,
}

impl Default for NodeConfig {
    /// Upstream's defaults: 10 s to 300 s, for restarts and for images.
    fn default() -> Self {
        Self {
            node_name: String::from("husk"),
            crash_loop: BackoffConfig::standard(None),
            image_pull: BackoffConfig::standard(None),
            terminated_pod_gc_threshold: 12_500,
            spread_probes_after: None,
        }
    }
}

/// The lifecycle engine of one node.
///
/// Four kinds of method: facts come in by [`handle`](Self::handle), time passes by [`advance`](Self::advance), orders go out
/// by [`poll_action`](Self::poll_action), and the rest only looks. After every `handle` or `advance` poll until there is no
/// action left, then wait for a fact or for [`next_wake`](Self::next_wake), whichever is first. Time that is handed in must
/// not run backwards; if it does, it is taken to stand still.
#[derive(Debug, Default)]
pub struct Node {
    config: NodeConfig,
    now: Instant,
    pods: Pods,
    /// Pods of one namespace and name, oldest first: only the first may run, the others wait for its end.
    names: BTreeMap<(String, String), Vec<PodUid>>,
    /// Who has to be looked at when: a pod that has no timer is not here and costs nothing.
    wakes: BTreeSet<(Instant, PodUid)>,
    /// How many pods were taken so far.
    accepted: u64,
    actions: VecDeque<Action>,
    /// Pods of which nothing is left but a [`Action::Gone`] that was not polled yet.
    parting: BTreeMap<PodUid, Box<Pod>>,
    /// What the node has and is.
    state: NodeState,
    seats: Seats,
    groups: Groups,
    /// Resizes that are tried again when there is room.
    deferred: BTreeSet<DeferredPlace>,
    /// What the node is short of.
    short_of: BTreeSet<Pressure>,
    /// Who went last for that.
    victim: Option<PodUid>,
    /// When the last of those who went for that was gone.
    freed_at: Instant,
    shutdown: Option<Shutdown>,
    collection: Collection,
}

impl Node {
    /// A node without pods.
    pub fn new(config: NodeConfig) -> Self {
        Self { config, ..Self::default() }
    }

    /// Many pods are about to begin together: [`NodeConfig::spread_probes_after`] is now.
    pub fn spread_probes(&mut self, now: Instant) {
        self.config.spread_probes_after = Some(now);
    }

    /// Takes a fact. Facts about unknown pods or about instances that are not current change nothing.
    pub fn handle(&mut self, now: Instant, input: Input) {
        let now = self.clock(now);
        match input {
            Input::Applied { meta, spec } => self.apply(now, meta, *spec),
            Input::Restored { record, after } => self.restore(now, *record, after),
            Input::NodeChanged { state } => self.change(now, *state),
            Input::Pressure { resource, shortage } => self.feel_pressure(now, resource, shortage.as_deref()),
            Input::Shutdown { grace, critical } => self.shut_down(now, grace, critical),
            Input::GroupApplied { group } => self.apply_group(now, group),
            Input::GroupRemoved { name } => self.groups.forget(&name),
            Input::ProbeResult { instance, kind, run, result: outcome, message } => {
                let result = ProbeResult { instance: &instance, kind, run, outcome, message: &message };
                self.tend(now, &instance.pod, |pod, out| pod.hear_probe(result, out));
            }
            about_pod => {
                let Some(uid) = about_pod.pod() else { return };
                self.with_pod(now, &uid, |pod, out| pod.observe(about_pod, out));
            }
        }
        self.use_room(now);
    }

    /// Lets time pass: does what was due until now.
    pub fn advance(&mut self, now: Instant) {
        let now = self.clock(now);
        while let Some((due, _)) = self.wakes.first()
            && *due <= now
        {
            let Some((due, uid)) = self.wakes.pop_first() else { break };
            if let Some(pod) = self.pods.get_mut(&uid) {
                pod.wake = None;
            }
            self.tend(now, &uid, |pod, out| pod.tend_probes(due, out));
        }
        self.go_on_shutting_down(now);
        self.use_room(now);
    }

    /// The next order, oldest first.
    pub fn poll_action(&mut self) -> Option<Action> {
        let action = self.actions.pop_front()?;
        if let Action::Gone { pod } = &action {
            self.parting.remove(pod);
            if let Some(pod) = self.pods.get_mut(pod) {
                pod.hidden = true;
            }
        }
        Some(action)
    }

    /// When [`advance`](Self::advance) has work to do, if nothing happens before. None: never.
    pub fn next_wake(&self) -> Option<Instant> {
        let pod = self.wakes.first().map(|(due, _)| *due);
        let shutdown = self.shutdown.as_ref().and_then(|shutdown| shutdown.next_wake(&self.seats));
        pod.into_iter().chain(shutdown).min()
    }

    /// Status of a pod that exists or is ending; until its [`Action::Gone`] is polled, so that its last status can be read.
    pub fn status(&self, pod: &PodUid) -> Option<&PodStatus> {
        self.visible(pod).map(|pod| &pod.status)
    }

    /// Spec of a pod.
    pub fn spec(&self, pod: &PodUid) -> Option<&PodSpec> {
        self.visible(pod).map(|pod| &pod.spec)
    }

    /// Who a pod is.
    pub fn meta(&self, pod: &PodUid) -> Option<&PodMeta> {
        self.visible(pod).map(|pod| &pod.meta)
    }

    /// `deletionTimestamp` and `deletionGracePeriodSeconds`, if the pod is being deleted (TERM-01).
    pub fn deletion(&self, pod: &PodUid) -> Option<Deletion> {
        self.visible(pod).and_then(|pod| pod.deletion)
    }

    /// What has to survive of a pod (see [`crate::record`]); also of one whose object is gone and of which something is left.
    pub fn record(&self, pod: &PodUid) -> Option<PodRecord> {
        Some(PodRecord::new(self.now, self.pods.get(pod)?))
    }

    /// All pods that exist.
    pub fn pods(&self) -> impl Iterator<Item = &PodUid> {
        let all = self.pods.iter().chain(self.parting.values().map(|pod| &**pod));
        all.filter(|pod| !pod.hidden).map(|pod| &pod.uid)
    }

    /// Last published verdict of a probe of the current instance; none if there is no probe or it published nothing.
    pub fn probe_verdict(&self, pod: &PodUid, container: &str, kind: ProbeKind) -> Option<bool> {
        self.visible(pod)?.probe_verdict(container, kind)
    }

    /// When a container that waits (for its back-off, for another try) is tried again.
    pub fn retry_at(&self, pod: &PodUid, container: &str) -> Option<Instant> {
        self.visible(pod)?.retry_at(container)
    }

    /// What an instance of a container gets: what it starts with, and what a resize gives it (RES-11).
    pub fn allocated(&self, pod: &PodUid, container: &str) -> Option<&Resources> {
        self.visible(pod)?.allocated(container)
    }

    /// What pods have of the node altogether, by the requests that were granted; `pods` is their number.
    pub fn used(&self) -> &ResourceList {
        self.seats.used()
    }

    /// Who was the last that had to go because the node is short of something (RES-09).
    pub fn last_evicted(&self) -> Option<&PodUid> {
        self.victim.as_ref()
    }

    /// The node shuts down and every pod that had to end has ended, or its time is over (TERM-10).
    pub fn is_shut_down(&self) -> bool {
        self.shutdown.as_ref().is_some_and(Shutdown::is_over)
    }

    fn visible(&self, pod: &PodUid) -> Option<&Pod> {
        self.pods.get(pod).or_else(|| self.parting.get(pod).map(|pod| &**pod)).filter(|pod| !pod.hidden)
    }

    fn clock(&mut self, now: Instant) -> Instant {
        self.now = self.now.max(now);
        self.now
    }

    fn apply(&mut self, now: Instant, meta: PodMeta, spec: PodSpec) {
        let uid = PodUid::from(meta.uid.as_str());
        if let Some(pod) = self.pods.get_mut(&uid) {
            if pod.meta.labels != meta.labels {
                self.seats.company_changed();
            }
            pod.update(meta, spec, &mut Out { now, config: &self.config, actions: &mut self.actions });
            self.try_resize(now, &uid);
            self.try_seat(now, &uid);
            return self.settle(now, &uid);
        }
        let namesakes = self.names.entry((meta.namespace.clone(), meta.name.clone())).or_default();
        let blocked = !namesakes.is_empty();
        namesakes.push(uid.clone());
        let pod = Box::new(Pod::new(uid.clone(), meta, spec, blocked, self.accepted));
        self.accepted = self.accepted.saturating_add(1);
        self.groups.join(&pod);
        self.pods.insert(pod);
        self.try_seat(now, &uid);
        self.settle(now, &uid);
    }

    /// What the node has and is changed: who waits may have a chance, who is there may have to leave.
    fn change(&mut self, now: Instant, state: NodeState) {
        let taints_changed = state.taints != self.state.taints;
        self.state = state;
        self.seats.make_room();
        if taints_changed {
            let seated: Vec<PodUid> =
                self.pods.iter().filter(|pod| pod.is_seated()).map(|pod| pod.uid.clone()).collect();
            let taints = self.state.taints.clone();
            for uid in seated {
                self.with_pod(now, &uid, |pod, out| pod.mind_taints(&taints, out));
            }
        }
    }

    /// Does something to a pod and brings it up to date.
    fn with_pod(&mut self, now: Instant, uid: &PodUid, act: impl FnOnce(&mut Pod, &mut Out<'_>)) {
        let Some(pod) = self.pods.get_mut(uid) else { return };
        act(pod, &mut Out { now, config: &self.config, actions: &mut self.actions });
        self.settle(now, uid);
    }

    /// Does something to a pod's probes. They nearly always say what they said before: then it is only a matter of the timer.
    fn tend(&mut self, now: Instant, uid: &PodUid, act: impl FnOnce(&mut Pod, &mut Out<'_>) -> bool) {
        let Some(pod) = self.pods.get_mut(uid) else { return };
        if act(pod, &mut Out { now, config: &self.config, actions: &mut self.actions }) {
            self.settle(now, uid);
        } else {
            self.rearm(now, uid);
        }
    }

    /// Takes a pod again.
    fn restore(&mut self, now: Instant, record: PodRecord, after: Interruption) {
        let mut pod = Box::new(record.into_pod());
        let uid = pod.uid.clone();
        if self.pods.contains(&uid) {
            return;
        }
        let namesakes = self.names.entry((pod.meta.namespace.clone(), pod.meta.name.clone())).or_default();
        let older = |other: &PodUid| self.pods.get(other).is_some_and(|other| other.accepted <= pod.accepted);
        let place = namesakes.partition_point(older);
        namesakes.insert(place, uid.clone());
        pod.blocked = place > 0;
        self.accepted = self.accepted.max(pod.accepted.saturating_add(1));
        self.groups.join(&pod);
        if after == Interruption::Handover && !pod.is_finished() {
            pod.go_on();
            self.wakes.extend(pod.wake.map(|due| (due, uid.clone())));
            self.pods.insert(pod);
            self.keep_books(now, &uid);
            return self.seats.wait_for_records();
        }
        pod.go_on();
        pod.wake = None;
        pod.begin_again(after, &mut Out { now, config: &self.config, actions: &mut self.actions });
        self.pods.insert(pod);
        self.settle(now, &uid);
        self.seats.wait_for_records();
    }

    /// Brings a pod up to date and its timer with it.
    fn settle(&mut self, now: Instant, uid: &PodUid) {
        let Some(pod) = self.pods.get_mut(uid) else { return };
        pod.sync(&mut Out { now, config: &self.config, actions: &mut self.actions });
        if pod.is_finished() {
            let key = (pod.meta.namespace.clone(), pod.meta.name.clone());
            if let Some(due) = pod.wake {
                self.wakes.remove(&(due, uid.clone()));
            }
            self.leave(uid);
            if let Some(pod) = self.pods.remove(uid).filter(|pod| !pod.hidden) {
                self.parting.insert(uid.clone(), pod);
            }
            self.actions.push_back(Action::Forget { pod: uid.clone() });
            self.go_on_shutting_down(now);
            self.release_name(now, &key, uid);
            return;
        }
        self.keep_books(now, uid);
        let Some(pod) = self.pods.get_mut(uid) else { return };
        if let Some(urgency) = pod.has_to_be_persisted() {
            self.actions.push_back(Action::Persist { pod: uid.clone(), urgency });
        }
        self.rearm(now, uid);
    }

    /// Brings a pod's timer in line with what it waits for.
    fn rearm(&mut self, now: Instant, uid: &PodUid) {
        let Some(pod) = self.pods.get_mut(uid) else { return };
        let after = pod.next_wake(now);
        let before = core::mem::replace(&mut pod.wake, after);
        if before == after {
            return;
        }
        if let Some(due) = before {
            self.wakes.remove(&(due, uid.clone()));
        }
        if let Some(due) = after {
            self.wakes.insert((due, uid.clone()));
        }
    }

    /// Brings what the node knows of a pod in line with the pod.
    fn keep_books(&mut self, now: Instant, uid: &PodUid) {
        let Some(pod) = self.pods.get_mut(uid) else { return };
        let deferred = pod.deferred_place();
        if deferred != pod.deferred {
            if let Some(before) = core::mem::replace(&mut pod.deferred, deferred.clone()) {
                self.deferred.remove(&before);
            }
            self.deferred.extend(deferred);
        }
        let had = pod.charged.is_some();
        self.seats.keep(pod);
        let ended = !pod.holds_resources();
        let is_released = had && pod.charged.is_none();
        if ended && let Some(shutdown) = &mut self.shutdown {
            shutdown.ended(uid);
        }
        self.collection.note(pod);
        if is_released {
            self.note_relief(now, uid);
        }
        self.go_on_shutting_down(now);
        self.collect(now);
    }

    /// A pod is no more.
    fn leave(&mut self, uid: &PodUid) {
        self.note_relief(self.now, uid);
        let Some(pod) = self.pods.get_mut(uid) else { return };
        if let Some(deferred) = &pod.deferred {
            self.deferred.remove(deferred);
        }
        self.seats.remove(pod);
        self.groups.leave(pod);
        self.collection.remove(pod);
        if let Some(shutdown) = &mut self.shutdown {
            shutdown.ended(uid);
        }
    }

    /// A pod with the same name as one that ended may begin now.
    fn release_name(&mut self, now: Instant, key: &(String, String), ended: &PodUid) {
        let Some(namesakes) = self.names.get_mut(key) else { return };
        namesakes.retain(|uid| uid != ended);
        match namesakes.first().cloned() {
            None => {
                self.names.remove(key);
            }
            Some(next) => {
                if let Some(pod) = self.pods.get_mut(&next) {
                    pod.blocked = false;
                }
                self.settle(now, &next);
            }
        }
    }
}
