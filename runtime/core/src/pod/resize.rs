//! Resources of a running pod that change (RES-11, COND-07).
//!
//! A pod has up to three of each amount: what its object asks for, what the node granted, and what the running instance has. The
//! pod's spec here holds what is granted, so that every decision, a restart included, goes by that (edge case 28).

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::slot::{Slot, SlotState};
use super::{Out, Pod};
use crate::actions::{Actuated, ResizeUpdates};
use crate::event::EventKind;
use crate::io::{Action, InstanceRef};
use crate::reasons;
use crate::resources;
use crate::runtime::{InstanceState, StopReason};
use crate::spec::{ContainerSpec, PodSpec, ResourceList, Resources};
use crate::status::{Condition, ConditionStatus, ContainerStatus, PodStatus, Word};
use crate::time::{Duration, Instant};

/// Time between two tries to give an instance its resources.
const RETRY: Duration = Duration::from_secs(10);

/// How far a pod's resize is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Resize {
    /// What is asked for, if that isn't granted.
    asked: Option<Asked>,
    /// What instances were last started with or given.
    pub(super) actuated: Actuated,
    /// Orders that aren't answered yet, by container.
    orders: BTreeMap<String, Order>,
    next_revision: u32,
    /// The last try failed: why, and when the next one is, if it isn't under way already.
    error: Option<(String, Option<Instant>)>,
    /// It has been said that a resize is under way.
    announced: bool,
}

/// A resize that is asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Asked {
    wanted: Allocation,
    since: Instant,
    pending: Option<(Pending, String)>,
}

/// Why a resize isn't granted; reason of condition PodResizePending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Pending {
    /// The node will never have that much; not tried again.
    Infeasible,
    /// Not now; tried again when there is room.
    Deferred,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Order {
    revision: u32,
    resources: Resources,
}

/// Resources of a pod and of all its containers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Allocation {
    pod: Option<Resources>,
    containers: BTreeMap<String, Resources>,
}

impl Allocation {
    fn of(spec: &PodSpec) -> Self {
        let containers = spec.all_containers().map(|(_, c)| (c.name.clone(), c.resources.clone())).collect();
        Self { pod: spec.resources.clone(), containers }
    }

    /// Puts it into a spec. Containers that it doesn't know keep what they have.
    fn put_into(&self, spec: &mut PodSpec) {
        spec.resources.clone_from(&self.pod);
        let PodSpec { init_containers, containers, ephemeral_containers, .. } = spec;
        for container in init_containers.iter_mut().chain(containers).chain(ephemeral_containers) {
            if let Some(resources) = self.containers.get(&container.name) {
                container.resources.clone_from(resources);
            }
        }
    }
}

impl Pod {
    /// Takes a changed spec whose resources may have to wait: what is granted stays in force.
    pub(super) fn take_spec(&mut self, mut spec: PodSpec, now: Instant) {
        if !self.is_seated() {
            self.spec = spec;
            return;
        }
        let wanted = Allocation::of(&spec);
        Allocation::of(&self.spec).put_into(&mut spec);
        let granted = Allocation::of(&spec);
        if wanted == granted {
            self.resize.asked = None;
        } else if self.resize.asked.as_ref().is_none_or(|asked| asked.wanted != wanted) {
            self.resize.asked = Some(Asked { wanted, since: now, pending: None });
        }
        self.spec = spec;
    }

    /// Requests as they would be after the resize that is asked for and not decided on, or to be tried again.
    pub(crate) fn resize_wanted(&self) -> Option<ResourceList> {
        let asked = self.resize.asked.as_ref().filter(|_| self.ending.is_none() && self.is_seated())?;
        let infeasible = matches!(asked.pending, Some((Pending::Infeasible, _)));
        (!infeasible).then(|| resources::pod_requests(&self.spec_after(asked)))
    }

    /// The spec as it was last asked for.
    pub(super) fn wanted_spec(&self) -> PodSpec {
        self.resize.asked.as_ref().map_or_else(|| self.spec.clone(), |asked| self.spec_after(asked))
    }

    fn spec_after(&self, asked: &Asked) -> PodSpec {
        let mut spec = self.spec.clone();
        asked.wanted.put_into(&mut spec);
        spec
    }

    /// Granted: from now on it is the pod's spec.
    pub(crate) fn grant_resize(&mut self, out: &mut Out<'_>) {
        let Some(asked) = self.resize.asked.take() else { return };
        asked.wanted.put_into(&mut self.spec);
        self.resize.error = None;
        self.resize.announced = true;
        self.event(out, None, EventKind::Normal, "ResizeStarted", "Pod resize started");
    }

    /// Not granted, and why.
    pub(crate) fn refuse_resize(&mut self, pending: Pending, message: String, out: &mut Out<'_>) {
        let Some(asked) = &mut self.resize.asked else { return };
        let (reason, event) = pending.words();
        let before = asked.pending.replace((pending, message.clone()));
        if before.is_none_or(|(kind, _)| kind != pending) {
            self.event(out, None, EventKind::Warning, event, format!("Pod resize {reason}: {message}"));
        }
    }

    /// Place in the order in which deferred resizes are tried again: those that shrink, then by priority, class and age.
    pub(crate) fn deferred_place(&self) -> Option<DeferredPlace> {
        let asked = self.resize.asked.as_ref().filter(|_| self.ending.is_none())?;
        if !matches!(asked.pending, Some((Pending::Deferred, _))) {
            return None;
        }
        let after = resources::pod_requests(&self.spec_after(asked));
        let now = resources::pod_requests(&self.spec);
        let grows = after.iter().any(|(name, amount)| now.get(name).is_none_or(|now| amount > now));
        Some(DeferredPlace {
            grows,
            priority: core::cmp::Reverse(self.spec.priority()),
            class: core::cmp::Reverse(self.status.qos_class),
            since: asked.since,
            pod: self.uid.clone(),
        })
    }

    /// What an instance of a container starts with.
    pub(crate) fn allocated(&self, container: &str) -> Option<&Resources> {
        self.spec.container(container).map(|(_, container)| &container.resources)
    }

    /// An instance is about to be started with what is granted now.
    pub(super) fn starts_with(&mut self, index: usize) {
        let ContainerSpec { name, resources, .. } = self.container(index).clone();
        self.resize.orders.remove(&name);
        self.resize.actuated.insert(name, resources);
    }

    /// Gives running instances what was granted to them.
    pub(super) fn update_resources(&mut self, updates: &ResizeUpdates, out: &mut Out<'_>) {
        if self.resize.error.as_ref().is_some_and(|(_, retry_at)| retry_at.is_some_and(|at| at > out.now)) {
            return;
        }
        let mut seen = BTreeSet::new();
        let names: Vec<&String> = updates.memory.iter().chain(&updates.cpu).filter(|name| seen.insert(*name)).collect();
        if names.is_empty() {
            return;
        }
        if let Some((_, retry_at)) = &mut self.resize.error {
            *retry_at = None;
        }
        for name in names {
            let Some(index) = self.slot_named(name) else { continue };
            let SlotState::Live(live) = &self.slots[index].state else { continue };
            if live.stop.is_some() || self.resize.orders.contains_key(name) {
                continue;
            }
            let instance = self.instance_ref(index, live.attempt);
            let resources = self.container(index).resources.clone();
            let revision = self.resize.next_revision;
            self.resize.next_revision = revision.wrapping_add(1);
            self.resize.orders.insert(name.clone(), Order { revision, resources: resources.clone() });
            out.order(Action::UpdateResources { instance, revision, resources });
        }
    }

    pub(super) fn resources_updated(&mut self, at: &InstanceRef, revision: u32) {
        let Some(order) = self.answered(at, revision) else { return };
        self.resize.error = None;
        self.resize.actuated.insert(String::from(&*at.container), order.resources);
    }

    pub(super) fn resources_failed(&mut self, at: &InstanceRef, revision: u32, message: String, out: &mut Out<'_>) {
        if self.answered(at, revision).is_none() {
            return;
        }
        self.event(out, None, EventKind::Warning, "ResizeError", format!("Pod resize error: {message}"));
        self.resize.error = Some((message, Some(out.now + RETRY)));
    }

    /// The order that this answers; none if the answer is stale.
    fn answered(&mut self, at: &InstanceRef, revision: u32) -> Option<Order> {
        let index = self.slot_named(&at.container)?;
        self.slots[index].current(at.attempt)?;
        if self.resize.orders.get(&*at.container)?.revision != revision {
            return None;
        }
        self.resize.orders.remove(&*at.container)
    }

    /// When a failed try is repeated.
    pub(super) fn next_resize(&self, now: Instant) -> Option<Instant> {
        let (_, retry_at) = self.resize.error.as_ref()?;
        // Who is being stopped gets nothing any more.
        let gets_more = |slot: &Slot| slot.live().is_some_and(|live| live.stop.is_none()) && self.lacks(&slot.name);
        retry_at.filter(|at| *at > now && self.ending.is_none() && self.slots.iter().any(gets_more))
    }

    /// Some instance does not have yet what was granted to it, or is being restarted for it. One that has ended otherwise gets it
    /// when it starts again; nothing is in progress then (edge case 29).
    pub(super) fn resize_in_progress(&self) -> bool {
        self.ending.is_none()
            && self.slots.iter().any(|slot| {
                let name = &*slot.name;
                let restarting = || {
                    let newest = self.runtime.newest(name);
                    newest.is_some_and(|newest| {
                        newest.state == InstanceState::Exited && newest.stopped_for == Some(StopReason::Resize)
                    })
                };
                let differs = || self.lacks(name);
                slot.is_live() && (self.resize.orders.contains_key(name) || differs()) || differs() && restarting()
            })
    }

    /// Has a container not what was granted to it?
    fn lacks(&self, container: &str) -> bool {
        let granted = self.allocated(container);
        self.resize.actuated.get(container).is_some_and(|has| granted.is_some_and(|granted| granted != has))
    }

    /// Says when a resize is done.
    pub(super) fn announce_resize(&mut self, out: &mut Out<'_>) {
        if self.resize.announced && !self.resize_in_progress() {
            self.resize.announced = false;
            self.resize.error = None;
            self.event(out, None, EventKind::Normal, "ResizeCompleted", "Pod resize completed");
        }
    }

    /// The part of the status that is about resources.
    pub(super) fn add_resources(&self, status: &mut PodStatus) {
        let PodStatus { init_container_statuses, container_statuses, conditions, .. } = status;
        for status in init_container_statuses.iter_mut().chain(container_statuses) {
            self.add_resources_of(status);
        }
        let mut push = |kind: &'static str, reason: &'static str, message: &str| {
            conditions.push(Condition {
                kind: Word::Borrowed(kind),
                status: ConditionStatus::True,
                reason: Word::Borrowed(reason),
                message: message.into(),
                last_transition_time: None,
                observed_generation: self.meta.generation,
            });
        };
        if self.ending.is_some() {
            return;
        }
        if let Some((pending, message)) = self.resize.asked.as_ref().and_then(|asked| asked.pending.as_ref()) {
            push(reasons::POD_RESIZE_PENDING, pending.words().0, message);
        }
        if self.resize_in_progress() {
            match &self.resize.error {
                None => push(reasons::POD_RESIZE_IN_PROGRESS, "", ""),
                Some((message, _)) => push(reasons::POD_RESIZE_IN_PROGRESS, "Error", message),
            }
        }
    }

    fn add_resources_of(&self, status: &mut ContainerStatus) {
        let Some(granted) = self.allocated(&status.name) else { return };
        status.allocated_resources.clone_from(&granted.requests);
        let has = self.resize.actuated.get(&status.name).unwrap_or(granted);
        let says_something = !has.requests.is_empty() || !has.limits.is_empty();
        status.resources = says_something.then(|| has.clone());
    }
}

impl Pending {
    /// Reason of the condition, reason of the event.
    const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Infeasible => ("Infeasible", "ResizeInfeasible"),
            Self::Deferred => ("Deferred", "ResizeDeferred"),
        }
    }
}

/// Place of a deferred resize among the others; the first is tried first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DeferredPlace {
    grows: bool,
    priority: core::cmp::Reverse<i32>,
    class: core::cmp::Reverse<Option<crate::qos::QosClass>>,
    since: Instant,
    pub(crate) pod: crate::io::PodUid,
}
