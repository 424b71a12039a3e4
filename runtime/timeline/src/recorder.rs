//! Watches one pod and notes what changes.

use husk_core::event::{Event, EventKind};
use husk_core::io::ProbeOutcome;
use husk_core::spec::{PodMeta, PodSpec, ProbeKind};
use husk_core::status::{ConditionStatus, ContainerState, ContainerStatus, Phase, PodStatus, Terminated, Word};
use husk_core::{Action, Input, Instant};

use crate::change::{Change, LaneState, Role};
use crate::log::{Log, noted};
use crate::stretches::Stretches;
use crate::timeline::{Lane, Timeline};

/// Probes as they take their turns in a container's life.
const PROBES: [ProbeKind; 3] = [ProbeKind::Startup, ProbeKind::Liveness, ProbeKind::Readiness];
/// More containers than these no pod has.
const MOST_LANES: usize = u16::MAX as usize;
/// Longer messages are cut, where there is a bound at all.
const LONGEST_MESSAGE: usize = 512;

/// Watches one pod and writes its timeline.
#[derive(Clone, Debug)]
pub struct Recorder {
    /// `namespace/name`.
    name: Box<str>,
    pub(crate) origin: Instant,
    lanes: Vec<LaneNow>,
    phase: Option<Phase>,
    conditions: Vec<(Word, ConditionStatus)>,
    stretches: Stretches,
    pub(crate) log: Log,
    gone: Option<Instant>,
    is_bounded: bool,
}

/// A container as it is now, and what orders about it are out that say more than its status does.
#[derive(Clone, Debug)]
struct LaneNow {
    name: Box<str>,
    state: Option<LaneState>,
    last_exit: Option<Instant>,
    restarts: u32,
    role: Role,
    probes: [bool; 3],
    is_pulling: bool,
    is_starting: bool,
    is_stopping: bool,
}

impl Recorder {
    /// Notes everything about a pod.
    pub fn new(origin: Instant, meta: &PodMeta, spec: &PodSpec) -> Self {
        Self::with(origin, meta, spec, None)
    }

    /// Notes what is newest about a pod, in about so many bytes. What probes say again and again is one entry, however long it lasts.
    pub fn bounded(origin: Instant, meta: &PodMeta, spec: &PodSpec, bytes: usize) -> Self {
        Self::with(origin, meta, spec, Some(bytes))
    }

    fn with(origin: Instant, meta: &PodMeta, spec: &PodSpec, limit: Option<usize>) -> Self {
        let namespace = if meta.namespace.is_empty() { "default" } else { &meta.namespace };
        let mut recorder = Self {
            name: format!("{namespace}/{}", meta.name).into(),
            origin: noted(origin),
            lanes: Vec::new(),
            phase: None,
            conditions: Vec::new(),
            stretches: Stretches::default(),
            log: Log::bounded(limit),
            gone: None,
            is_bounded: limit.is_some(),
        };
        recorder.applied(spec);
        recorder
    }

    /// `namespace/name` of its pod.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// When its pod was first seen.
    pub const fn origin(&self) -> Instant {
        self.origin
    }

    /// When its pod was gone.
    pub const fn gone(&self) -> Option<Instant> {
        self.gone
    }

    /// Bytes that it takes, about.
    pub fn size(&self) -> usize {
        let lanes =
            self.lanes.capacity() * size_of::<LaneNow>() + self.lanes.iter().map(|l| l.name.len()).sum::<usize>();
        let conditions = self.conditions.capacity() * size_of::<(Word, ConditionStatus)>();
        size_of::<Self>() + self.name.len() + lanes + conditions + self.stretches.size() + self.log.size()
    }

    /// Nothing more will happen.
    pub fn shrink(&mut self) {
        self.log.shrink();
    }

    /// What it wrote, up to now.
    pub fn timeline(&self, now: Instant) -> Timeline {
        let lane = |lane: &LaneNow| Lane {
            name: lane.name.to_string(),
            role: lane.role,
            probe_kinds: PROBES.into_iter().zip(lane.probes).filter(|(_, has)| *has).map(|(kind, _)| kind).collect(),
            states: Vec::new(),
            probes: Vec::new(),
            exits: Vec::new(),
            restarts: lane.restarts,
        };
        let mut timeline = Timeline {
            pod: self.name.to_string(),
            origin: self.origin,
            begin: self.origin,
            complete_since: self.log.complete_since(),
            lanes: self.lanes.iter().map(lane).collect(),
            ..Timeline::default()
        };
        let mut changes = self.log.changes();
        changes.extend(self.stretches.going_on().map(|(at, change)| (noted(at), change)));
        changes.sort_by_key(|(at, _)| *at);
        changes.into_iter().for_each(|(at, change)| timeline.put(at, change));
        match self.gone {
            Some(gone) => timeline.finished(gone),
            None => timeline.cut(noted(now)),
        }
    }

    /// Something happened.
    pub fn input(&mut self, now: Instant, input: &Input) {
        match input {
            Input::Applied { spec, .. } => self.applied(spec),
            Input::ImageReady { instance, .. } | Input::ImageFailed { instance, .. } => {
                self.change_lane(&instance.container, |lane| lane.is_pulling = false);
            }
            Input::StartFailed { instance, .. } => {
                self.change_lane(&instance.container, |lane| lane.is_starting = false);
            }
            Input::Exited { instance, .. } => {
                self.change_lane(&instance.container, |lane| (lane.is_starting, lane.is_stopping) = (false, false));
                let ended = self.lane(&instance.container).map(|lane| self.stretches.ended(lane));
                ended.into_iter().flatten().for_each(|(at, change)| self.log.push(at, &change));
            }
            Input::ProbeResult { instance, kind, result, .. } => {
                let ok = matches!(result, ProbeOutcome::Success | ProbeOutcome::Warning);
                if let Some(lane) = self.lane(&instance.container) {
                    self.probed(now, lane, *kind, ok);
                }
            }
            Input::DeleteRequested { .. } => self.log.push(now, &Change::Deleted),
            _ => {}
        }
    }

    /// Something was ordered. Says whether the state of a container may be another by that alone.
    pub fn action(&mut self, now: Instant, action: &Action) -> bool {
        match action {
            Action::PullImage { instance } => {
                self.change_lane(&instance.container, |lane| lane.is_pulling = true);
            }
            Action::Start { instance } => self.change_lane(&instance.container, |lane| lane.is_starting = true),
            Action::Signal { instance, .. } | Action::Kill { instance } => {
                self.change_lane(&instance.container, |lane| lane.is_stopping = true);
            }
            Action::Record { event } => {
                // Stopping begins here: preStop comes before the signal, and `sleep` hooks are no order.
                if event.reason == "Killing"
                    && let Some(container) = event.container()
                {
                    self.change_lane(container, |lane| lane.is_stopping = true);
                }
                self.event(now, event);
            }
            Action::Gone { .. } => {
                self.gone = Some(noted(now));
                self.log.push(now, &Change::Gone);
                return false;
            }
            Action::StatusChanged { .. } => {}
            _ => return false,
        }
        true
    }

    /// All orders of an instant are out and this is the status.
    pub fn settled(&mut self, now: Instant, status: &PodStatus) {
        if self.phase.replace(status.phase) != Some(status.phase) {
            self.log.push(now, &Change::Phase(status.phase));
        }
        for condition in &status.conditions {
            let known = self.conditions.iter_mut().find(|(kind, _)| *kind == condition.kind);
            match known {
                Some((_, status)) if *status == condition.status => continue,
                Some((_, status)) => *status = condition.status,
                None => {
                    self.conditions.reserve_exact(1);
                    self.conditions.push((condition.kind.clone(), condition.status));
                }
            }
            let change = Change::Condition {
                kind: condition.kind.clone(),
                status: condition.status,
                reason: condition.reason.clone(),
                message: self.cut(&condition.message),
            };
            self.log.push(now, &change);
        }
        for container in containers(status) {
            let Some(lane) = self.lane(&container.name) else { continue };
            self.see(now, lane, container);
        }
    }

    /// It was so already, and that is noted.
    pub(crate) fn assume(&mut self, status: &PodStatus) {
        self.phase = Some(status.phase);
        self.conditions =
            status.conditions.iter().map(|condition| (condition.kind.clone(), condition.status)).collect();
        for container in containers(status) {
            let Some(lane) = self.lanes.iter_mut().find(|lane| *lane.name == *container.name) else { continue };
            lane.restarts = container.restart_count;
            lane.state = Some(lane.state_of(container));
            lane.last_exit = last_end(container).and_then(|end| end.finished_at);
        }
    }

    /// Its containers are these, and more than before if somebody looks after it.
    fn applied(&mut self, spec: &PodSpec) {
        for (kind, container) in spec.all_containers() {
            if self.lanes.len() < MOST_LANES && self.lane(&container.name).is_none() {
                self.lanes.push(LaneNow {
                    name: container.name.as_str().into(),
                    state: None,
                    last_exit: None,
                    restarts: 0,
                    role: Role::of(kind, container),
                    probes: PROBES.map(|kind| container.probe(kind).is_some()),
                    is_pulling: false,
                    is_starting: false,
                    is_stopping: false,
                });
            }
        }
        self.lanes.shrink_to_fit();
    }

    pub(crate) fn event(&mut self, now: Instant, event: &Event) {
        let change = Change::Event {
            container: event.container().map(str::to_owned),
            warning: event.kind == EventKind::Warning,
            reason: event.reason.clone(),
            message: self.cut(&event.message),
            count: event.count,
        };
        self.log.push(now, &change);
    }

    fn probed(&mut self, now: Instant, lane: u16, kind: ProbeKind, ok: bool) {
        let written = match self.is_bounded {
            true => self.stretches.probed(now, lane, kind, ok),
            false => Some((now, Change::Probes { lane, kind, ok, count: 1, micros: 0 })),
        };
        if let Some((at, change)) = written {
            self.log.push(at, &change);
        }
    }

    fn see(&mut self, now: Instant, number: u16, container: &ContainerStatus) {
        let Some(lane) = self.lanes.get_mut(usize::from(number)) else { return };
        if matches!(container.state, ContainerState::Running { .. }) {
            lane.is_starting = false;
        }
        lane.restarts = container.restart_count;
        let state = lane.state_of(container);
        if lane.state.as_ref() != Some(&state) {
            lane.state = Some(state.clone());
            self.log.push(now, &Change::State { lane: number, state });
        }
        // The newest end of a container is in its state or its last state; each is noted once.
        if let Some(end) = last_end(container) {
            let at = end.finished_at.unwrap_or(now);
            if lane.last_exit.is_none_or(|last| last < at) {
                lane.last_exit = Some(at);
                let change = Change::Exit { lane: number, code: end.exit_code, reason: end.reason.clone() };
                self.log.push(at, &change);
            }
        }
    }

    pub(crate) fn lane(&self, name: &str) -> Option<u16> {
        let place = self.lanes.iter().position(|lane| *lane.name == *name)?;
        u16::try_from(place).ok()
    }

    fn change_lane(&mut self, name: &str, change: impl FnOnce(&mut LaneNow)) {
        if let Some(lane) = self.lanes.iter_mut().find(|lane| *lane.name == *name) {
            change(lane);
        }
    }

    fn cut(&self, message: &str) -> String {
        if !self.is_bounded || message.len() <= LONGEST_MESSAGE {
            return message.to_owned();
        }
        let end = (0..=LONGEST_MESSAGE).rev().find(|end| message.is_char_boundary(*end)).unwrap_or(0);
        format!("{}…", &message[..end])
    }
}

impl LaneNow {
    fn state_of(&self, container: &ContainerStatus) -> LaneState {
        match &container.state {
            ContainerState::Waiting { reason, .. } if reason.ends_with("BackOff") || reason.starts_with("Err") => {
                LaneState::BackOff(reason.clone())
            }
            ContainerState::Waiting { .. } if self.is_pulling => LaneState::Pulling,
            ContainerState::Waiting { .. } if self.is_starting => LaneState::Starting,
            ContainerState::Waiting { reason, .. } => LaneState::Waiting(reason.clone()),
            ContainerState::Running { .. } if self.is_stopping => LaneState::Stopping,
            ContainerState::Running { .. } if container.ready => LaneState::Ready,
            ContainerState::Running { .. } => LaneState::Running,
            ContainerState::Terminated(end) => ended(end),
        }
    }
}

/// How a container is that ended.
pub(crate) fn ended(end: &Terminated) -> LaneState {
    match end.exit_code {
        0 => LaneState::Succeeded(end.reason.clone()),
        code => LaneState::Failed(code, end.reason.clone()),
    }
}

/// All containers of a status.
pub(crate) fn containers(status: &PodStatus) -> impl Iterator<Item = &ContainerStatus> {
    let lists = [&status.init_container_statuses, &status.container_statuses, &status.ephemeral_container_statuses];
    lists.into_iter().flatten()
}

fn last_end(container: &ContainerStatus) -> Option<&Terminated> {
    match &container.state {
        ContainerState::Terminated(end) => Some(end),
        _ => container.last_state.as_ref(),
    }
}
