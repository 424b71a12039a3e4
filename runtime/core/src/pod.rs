//! One pod: what is known of it and what it waits for.
//!
//! Facts change the state ([`Pod::observe`]); [`Pod::sync`] then decides anew, from the whole state, what has to be done.

mod disruption;
mod ending;
mod generation;
mod observe;
mod persisting;
mod probing;
mod report;
mod resize;
mod restoring;
mod seat;
mod slot;
mod starting;
mod stopping;
mod sync;

use alloc::collections::{BTreeSet, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;

use ending::Ending;
pub(crate) use ending::NodeVerdict;
use generation::Generation;
pub(crate) use probing::ProbeResult;
use resize::Resize;
pub(crate) use resize::{DeferredPlace, Pending};
use seat::Seat;
use serde::{Deserialize, Serialize};
use slot::{Slot, SlotState};

use crate::deletion::Deletion;
use crate::event::{Event, EventKind, Recorder};
use crate::io::{Action, InstanceRef, PodUid};
use crate::node::NodeConfig;
use crate::qos;
use crate::reasons;
use crate::runtime::{RuntimeStatus, Verdict};
use crate::spec::{ContainerKind, ContainerSpec, PodMeta, PodSpec, ProbeKind, ResourceList};
use crate::status::{PodStatus, Word};
use crate::time::Instant;

/// What a pod may use while it looks at itself: the time, the node's settings and a place for orders.
pub(crate) struct Out<'a> {
    pub(crate) now: Instant,
    pub(crate) config: &'a NodeConfig,
    pub(crate) actions: &'a mut VecDeque<Action>,
}

impl Out<'_> {
    fn order(&mut self, action: Action) {
        self.actions.push_back(action);
    }
}

/// A pod.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Pod {
    pub(crate) uid: PodUid,
    pub(crate) meta: PodMeta,
    pub(crate) spec: PodSpec,
    pub(crate) status: PodStatus,
    pub(crate) deletion: Option<Deletion>,
    /// The object has disappeared (forced deletion); what is left of it is being cleaned up.
    pub(crate) gone: bool,
    /// People have been told that it has disappeared.
    pub(crate) hidden: bool,
    /// Another pod of this name has to end first.
    pub(crate) blocked: bool,
    /// How many pods the node had taken before this one.
    pub(crate) accepted: u64,
    /// The timer of this pod, as the node has it in its index.
    pub(crate) wake: Option<Instant>,
    /// What it has of the node, as the node counted it.
    #[serde(skip)]
    pub(crate) charged: Option<ResourceList>,
    /// Its resize among those that are tried again, as the node has it in its index.
    #[serde(skip)]
    pub(crate) deferred: Option<DeferredPlace>,
    /// It is in the node's queue for a place.
    #[serde(skip)]
    pub(crate) queued: bool,
    /// Who has to end before it gets the room that is being made for it; none if none is being made.
    pub(crate) nomination: Option<BTreeSet<PodUid>>,
    seat: Seat,
    /// When it has to leave, for a taint of the node that it tolerates only for a time.
    taint_deadline: Option<Instant>,
    resize: Resize,
    generation: Generation,
    slots: Vec<Slot>,
    runtime: RuntimeStatus,
    sandbox: SandboxState,
    ending: Option<Ending>,
    /// RestartAllContainers is under way (RESTART-09).
    restart_all: bool,
    recorder: Recorder,
    /// Digest of what was last ordered to be persisted; none if it has to be in any case.
    #[serde(skip)]
    persisted: Option<persisting::Digest>,
}

/// The pod's address, volumes and devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum SandboxState {
    /// Not made yet; not before the given instant, if it failed before.
    None { retry_at: Option<Instant> },
    /// Ordered.
    SettingUp { attempt: u32 },
    /// There.
    Ready { attempt: u32 },
    /// Being removed.
    TearingDown { attempt: u32 },
    /// Removed for good.
    TornDown,
}

impl Pod {
    pub(crate) fn new(uid: PodUid, meta: PodMeta, spec: PodSpec, blocked: bool, accepted: u64) -> Self {
        let status = PodStatus { qos_class: Some(qos::qos_class(&spec)), ..PodStatus::default() };
        let mut pod = Self {
            uid,
            meta,
            spec,
            status,
            deletion: None,
            gone: false,
            hidden: false,
            blocked,
            accepted,
            wake: None,
            charged: None,
            deferred: None,
            queued: false,
            nomination: None,
            seat: Seat::Waiting { reason: Word::Borrowed(reasons::UNSCHEDULABLE), message: String::new() },
            taint_deadline: None,
            resize: Resize::default(),
            generation: Generation::default(),
            slots: Vec::new(),
            runtime: RuntimeStatus::default(),
            sandbox: SandboxState::None { retry_at: None },
            ending: None,
            restart_all: false,
            recorder: Recorder::default(),
            persisted: None,
        };
        pod.begin_generation();
        pod.add_slots();
        pod
    }

    /// The spec changed: definitions that differ make their instances out of date (POD-08).
    pub(crate) fn update(&mut self, meta: PodMeta, spec: PodSpec, out: &mut Out<'_>) {
        if !self.may_become(&meta, &spec) {
            return;
        }
        let known: Vec<u64> = (0..self.slots.len()).map(|index| self.container(index).hash).collect();
        if self.meta != meta || self.spec != spec {
            self.persisted = None;
        }
        self.number_generation(meta, &spec);
        self.take_spec(spec, out.now);
        self.add_slots();
        for (index, before) in known.into_iter().enumerate() {
            let hash = self.container(index).hash;
            if hash == before {
                continue;
            }
            let slot = &mut self.slots[index];
            match slot.state {
                SlotState::Idle => slot.forget_failures(),
                SlotState::Pulling { .. } => {
                    // It may be another image now: what the answer says doesn't matter any more.
                    slot.state = SlotState::Idle;
                    slot.forget_failures();
                }
                SlotState::Starting { .. } | SlotState::Live(_) => {}
            }
            let (name, started) = (slot.name.clone(), slot.started_hash);
            if let Some(newest) = self.runtime.instances.iter_mut().find(|i| *i.name == *name) {
                newest.changed = started.is_some_and(|started| started != hash);
            }
        }
    }

    /// A pod keeps its name and its containers; only ephemeral ones are added (POD-08). Anything else is another pod.
    fn may_become(&self, meta: &PodMeta, spec: &PodSpec) -> bool {
        (&self.meta.namespace, &self.meta.name) == (&meta.namespace, &meta.name)
            && same_names(&self.spec.init_containers, &spec.init_containers)
            && same_names(&self.spec.containers, &spec.containers)
            && spec
                .ephemeral_containers
                .get(..self.spec.ephemeral_containers.len())
                .is_some_and(|known| same_names(&self.spec.ephemeral_containers, known))
    }

    /// Nothing is left to be done, the object is gone.
    pub(crate) fn is_finished(&self) -> bool {
        self.gone && self.sandbox == SandboxState::TornDown
    }

    pub(crate) fn probe_verdict(&self, container: &str, kind: ProbeKind) -> Option<bool> {
        let verdicts = self.runtime.newest(container)?.verdicts;
        let verdict = match kind {
            ProbeKind::Liveness => verdicts.liveness,
            ProbeKind::Readiness => verdicts.readiness,
            ProbeKind::Startup => verdicts.startup,
        };
        match verdict? {
            Verdict::Success => Some(true),
            Verdict::Failure => Some(false),
            Verdict::Unknown => None,
        }
    }

    pub(crate) fn retry_at(&self, container: &str) -> Option<Instant> {
        let slot = self.slots.iter().find(|slot| *slot.name == *container)?;
        slot.hold.as_ref()?.retry_at
    }

    /// Every container of the spec has a slot; the lists only ever grow (ephemeral containers).
    fn add_slots(&mut self) {
        let known = self.slots.len();
        let new: Vec<_> = self.spec.all_containers().skip(known).map(|(kind, c)| (kind, c.name.clone())).collect();
        self.slots.reserve_exact(new.len());
        for (kind, name) in new {
            let index = self.slots.iter().filter(|slot| slot.kind == kind).count();
            self.slots.push(Slot::new(kind, index, &name));
        }
    }

    fn container(&self, slot: usize) -> &ContainerSpec {
        self.container_of(&self.slots[slot])
    }

    fn container_of(&self, slot: &Slot) -> &ContainerSpec {
        let Slot { kind, index, .. } = *slot;
        match kind {
            ContainerKind::Init => &self.spec.init_containers[index],
            ContainerKind::App => &self.spec.containers[index],
            ContainerKind::Ephemeral => &self.spec.ephemeral_containers[index],
        }
    }

    fn slot_of(&self, kind: ContainerKind, index: usize) -> Option<usize> {
        self.slots.iter().position(|slot| slot.kind == kind && slot.index == index)
    }

    fn slot_named(&self, name: &str) -> Option<usize> {
        self.slots.iter().position(|slot| *slot.name == *name)
    }

    fn instance_ref(&self, slot: usize, attempt: u32) -> InstanceRef {
        InstanceRef { pod: self.uid.clone(), container: self.slots[slot].name.clone(), attempt }
    }

    /// No container runs or may be about to.
    fn all_down(&self) -> bool {
        self.slots.iter().all(|slot| matches!(slot.state, SlotState::Idle))
    }

    /// The newest of each series of events.
    pub(crate) fn events(&self) -> impl Iterator<Item = &Event> {
        self.recorder.events()
    }

    /// Records an event about a container or, without a slot, about the pod.
    pub(crate) fn event(
        &mut self,
        out: &mut Out<'_>,
        slot: Option<usize>,
        kind: EventKind,
        reason: impl Into<Word>,
        message: impl Into<String>,
    ) {
        let field_path = slot.map(|slot| self.slots[slot].field_path()).unwrap_or_default();
        let event = self.recorder.record(&self.uid, out.now, field_path, kind, reason.into(), message.into());
        out.order(Action::Record { event });
    }
}

fn same_names(known: &[ContainerSpec], new: &[ContainerSpec]) -> bool {
    known.iter().map(|container| &container.name).eq(new.iter().map(|container| &container.name))
}
