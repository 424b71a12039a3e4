//! What a simulation showed: per container its states over time, probes and events; the pod's phases and conditions.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use husk_core::event::{Event, EventKind};
use husk_core::io::{PodUid, ProbeOutcome};
use husk_core::spec::{ContainerKind, PodMeta, PodSpec, ProbeKind};
use husk_core::status::{ConditionStatus, ContainerState, ContainerStatus, Phase, PodStatus, Terminated};
use husk_core::{Action, Input, Instant, Node};
use husk_sim::play::End;
use husk_sim::{Subject, Watch};
use serde::Serialize;

/// Probes as they take their turns in a container's life.
const PROBES: [ProbeKind; 3] = [ProbeKind::Startup, ProbeKind::Liveness, ProbeKind::Readiness];

/// The course of one simulation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timeline {
    /// `namespace/name`.
    pub(crate) pod: String,
    /// Where the picture ends.
    pub(crate) end: Instant,
    /// When the last thing happened, if it came to an end by itself.
    pub(crate) over: Option<Instant>,
    /// Phases, without gaps.
    pub(crate) phases: Vec<(Instant, Phase)>,
    /// Changes of conditions: when, which, to what, why.
    pub(crate) conditions: Vec<ConditionChange>,
    /// One for each container, in order of the spec: init containers, then app containers.
    pub(crate) lanes: Vec<Lane>,
    /// Everything that was recorded.
    pub(crate) events: Vec<Mark>,
    /// When the pod was asked to go.
    pub(crate) deleted: Vec<Instant>,
    /// When it was gone.
    pub(crate) gone: Option<Instant>,
}

/// A condition that changed.
#[derive(Clone, Debug)]
pub(crate) struct ConditionChange {
    /// When.
    pub(crate) at: Instant,
    /// `type`.
    pub(crate) kind: String,
    /// `status`.
    pub(crate) status: ConditionStatus,
    /// `reason`.
    pub(crate) reason: String,
    /// `message`.
    pub(crate) message: String,
}

/// An event.
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    /// When.
    pub(crate) at: Instant,
    /// Name of the container; none if about the pod.
    pub(crate) container: Option<String>,
    /// `type: Warning`.
    pub(crate) warning: bool,
    /// `reason`.
    pub(crate) reason: String,
    /// `message`.
    pub(crate) message: String,
    /// `count`.
    pub(crate) count: u32,
}

/// The course of one container.
#[derive(Clone, Debug)]
pub(crate) struct Lane {
    /// Name of the container.
    pub(crate) name: String,
    /// What role it has.
    pub(crate) role: Role,
    /// Its probes that are configured.
    pub(crate) probe_kinds: Vec<ProbeKind>,
    /// States, without gaps, each to the start of the next.
    pub(crate) states: Vec<(Instant, LaneState)>,
    /// What probes said.
    pub(crate) probes: Vec<Probed>,
    /// Ends of instances.
    pub(crate) exits: Vec<Exit>,
    /// Restarts when the picture ends.
    pub(crate) restarts: u32,
}

/// The role of a container in its pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Role {
    /// Runs to its end before the next starts.
    Init,
    /// An init container that stays.
    Sidecar,
    /// What the pod is for.
    App,
    /// Added to look after a pod.
    Ephemeral,
}

impl Role {
    /// As shown.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Init => "init",
            Self::Sidecar => "sidecar",
            Self::App => "app",
            Self::Ephemeral => "ephemeral",
        }
    }
}

/// What a container is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LaneState {
    /// Its turn has not come; the reason.
    Waiting(String),
    /// Its image is being fetched.
    Pulling,
    /// It waits before another attempt; the reason.
    BackOff(String),
    /// It is being started, or its postStart hook runs.
    Starting,
    /// It runs and isn't ready.
    Running,
    /// It runs and is ready.
    Ready,
    /// It was asked to stop.
    Stopping,
    /// It ended well; the reason.
    Succeeded(String),
    /// It ended badly; exit code and reason.
    Failed(i32, String),
}

impl LaneState {
    /// Word for tables.
    pub(crate) const fn as_str(&self) -> &'static str {
        match self {
            Self::Waiting(_) => "waiting",
            Self::Pulling => "pulling",
            Self::BackOff(_) => "back-off",
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Ready => "ready",
            Self::Stopping => "stopping",
            Self::Succeeded(_) | Self::Failed(..) => "exited",
        }
    }

    /// What there is to say beyond the word.
    pub(crate) fn detail(&self) -> String {
        match self {
            Self::Waiting(reason) | Self::BackOff(reason) => reason.clone(),
            Self::Succeeded(reason) => format!("0 {reason}"),
            Self::Failed(code, reason) => format!("{code} {reason}"),
            Self::Pulling | Self::Starting | Self::Running | Self::Ready | Self::Stopping => String::new(),
        }
    }
}

/// What a probe said, and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Probed {
    /// When.
    pub(crate) at: Instant,
    /// Which.
    pub(crate) kind: ProbeKind,
    /// Well?
    pub(crate) ok: bool,
}

/// The end of an instance.
#[derive(Clone, Debug)]
pub(crate) struct Exit {
    /// When.
    pub(crate) at: Instant,
    /// Its exit code.
    pub(crate) code: i32,
    /// As in `OOMKilled`.
    pub(crate) reason: String,
}

impl Timeline {
    /// Spans between changes: from, to, what.
    pub(crate) fn spans<'a, T>(&self, changes: &'a [(Instant, T)]) -> Vec<(Instant, Instant, &'a T)> {
        let ends = changes.iter().skip(1).map(|(at, _)| *at).chain([self.end]);
        changes.iter().zip(ends).map(|((from, what), to)| (*from, to, what)).collect()
    }

    /// Time from the beginning to the end.
    pub(crate) fn duration(&self) -> Duration {
        self.over.unwrap_or(self.end).since_epoch()
    }

    /// The phase when the picture ends.
    pub(crate) fn last_phase(&self) -> Phase {
        self.phases.last().map_or(Phase::Pending, |(_, phase)| *phase)
    }
}

/// Watches a simulation and writes its timeline.
struct Recorder {
    timeline: Timeline,
    /// Orders that are out and say more than the status does.
    pulling: BTreeSet<String>,
    starting: BTreeSet<String>,
    stopping: BTreeSet<String>,
    conditions: BTreeMap<String, ConditionStatus>,
    last: PodStatus,
}

impl Recorder {
    /// For one pod.
    fn new(meta: &PodMeta, spec: &PodSpec) -> Self {
        let lanes = spec.all_containers().map(|(kind, container)| Lane {
            name: container.name.clone(),
            role: match kind {
                ContainerKind::Init if container.is_sidecar() => Role::Sidecar,
                ContainerKind::Init => Role::Init,
                ContainerKind::App => Role::App,
                ContainerKind::Ephemeral => Role::Ephemeral,
            },
            probe_kinds: PROBES.into_iter().filter(|kind| container.probe(*kind).is_some()).collect(),
            states: Vec::new(),
            probes: Vec::new(),
            exits: Vec::new(),
            restarts: 0,
        });
        let namespace = if meta.namespace.is_empty() { "default" } else { &meta.namespace };
        let timeline =
            Timeline { pod: format!("{namespace}/{}", meta.name), lanes: lanes.collect(), ..Timeline::default() };
        Self {
            timeline,
            pulling: BTreeSet::new(),
            starting: BTreeSet::new(),
            stopping: BTreeSet::new(),
            conditions: BTreeMap::new(),
            last: PodStatus::default(),
        }
    }

    /// The picture ends here.
    fn cut(mut self, end: Instant) -> Timeline {
        self.timeline.end = end;
        self.timeline
    }

    /// It is over. The picture goes on a little, so that it shows where it all led to.
    fn over(mut self, now: Instant) -> Timeline {
        self.timeline.end = now + (now.since_epoch() / 25).max(Duration::from_millis(200));
        self.timeline.over = Some(now);
        self.timeline
    }

    fn state_of(&self, container: &ContainerStatus) -> LaneState {
        match &container.state {
            ContainerState::Waiting { reason, .. } if reason.ends_with("BackOff") || reason.starts_with("Err") => {
                LaneState::BackOff(reason.to_string())
            }
            ContainerState::Waiting { .. } if self.pulling.contains(&container.name) => LaneState::Pulling,
            ContainerState::Waiting { .. } if self.starting.contains(&container.name) => LaneState::Starting,
            ContainerState::Waiting { reason, .. } => LaneState::Waiting(reason.to_string()),
            ContainerState::Running { .. } if self.stopping.contains(&container.name) => LaneState::Stopping,
            ContainerState::Running { .. } if container.ready => LaneState::Ready,
            ContainerState::Running { .. } => LaneState::Running,
            ContainerState::Terminated(end) if end.exit_code == 0 => LaneState::Succeeded(end.reason.to_string()),
            ContainerState::Terminated(end) => LaneState::Failed(end.exit_code, end.reason.to_string()),
        }
    }

    fn lane(&mut self, name: &str) -> Option<&mut Lane> {
        self.timeline.lanes.iter_mut().find(|lane| lane.name == name)
    }
}

/// One for each pod.
pub(super) struct Recorders(Vec<(PodUid, Recorder)>);

impl Recorders {
    /// For the pods of a simulation.
    pub(super) fn new(subjects: &[Subject]) -> Self {
        let recorder =
            |subject: &Subject| (PodUid::from(subject.id.as_str()), Recorder::new(&subject.meta, &subject.spec));
        Self(subjects.iter().map(recorder).collect())
    }

    /// What they wrote.
    pub(super) fn timelines(self, end: End) -> Vec<Timeline> {
        let written = self.0.into_iter().map(|(_, recorder)| match end {
            End::Over(at) => recorder.over(at),
            End::Cut(at) => recorder.cut(at),
        });
        written.collect()
    }
}

impl Watch for Recorders {
    fn input(&mut self, now: Instant, input: &Input) {
        let about = input.pod();
        for (_, recorder) in self.0.iter_mut().filter(|(pod, _)| about.as_ref() == Some(pod)) {
            recorder.input(now, input);
        }
    }

    fn action(&mut self, now: Instant, action: &Action) {
        for (_, recorder) in self.0.iter_mut().filter(|(pod, _)| action.pod() == pod) {
            recorder.action(now, action);
        }
    }

    fn settled(&mut self, now: Instant, node: &Node) {
        for (pod, recorder) in &mut self.0 {
            recorder.settled(now, node.status(pod));
        }
    }
}

impl Recorder {
    /// Something happened.
    fn input(&mut self, now: Instant, input: &Input) {
        match input {
            Input::ImageReady { instance, .. } | Input::ImageFailed { instance, .. } => {
                self.pulling.remove(&*instance.container);
            }
            Input::StartFailed { instance, .. } => {
                self.starting.remove(&*instance.container);
            }
            Input::Exited { instance, .. } => {
                self.starting.remove(&*instance.container);
                self.stopping.remove(&*instance.container);
            }
            Input::ProbeResult { instance, kind, result, .. } => {
                let ok = matches!(result, ProbeOutcome::Success | ProbeOutcome::Warning);
                if let Some(lane) = self.lane(&instance.container) {
                    lane.probes.push(Probed { at: now, kind: *kind, ok });
                }
            }
            Input::DeleteRequested { .. } => self.timeline.deleted.push(now),
            _ => {}
        }
    }

    /// Something was ordered.
    fn action(&mut self, now: Instant, action: &Action) {
        match action {
            Action::PullImage { instance } => {
                self.pulling.insert(instance.container.to_string());
            }
            Action::Start { instance } => {
                self.starting.insert(instance.container.to_string());
            }
            Action::Signal { instance, .. } | Action::Kill { instance } => {
                self.stopping.insert(instance.container.to_string());
            }
            Action::Record { event } => {
                let mark = mark(now, event);
                // Stopping begins here: preStop comes before the signal, and `sleep` hooks are no order.
                if mark.reason == "Killing" {
                    self.stopping.extend(mark.container.clone());
                }
                self.timeline.events.push(mark);
            }
            Action::Gone { .. } => self.timeline.gone = Some(now),
            _ => {}
        }
    }

    /// All orders of an instant are out and this is the status.
    fn settled(&mut self, now: Instant, status: Option<&PodStatus>) {
        if let Some(status) = status {
            self.last = status.clone();
        }
        let status = std::mem::take(&mut self.last);
        push_change(&mut self.timeline.phases, now, status.phase);
        for condition in &status.conditions {
            let kind = condition.kind.to_string();
            if self.conditions.insert(kind.clone(), condition.status) != Some(condition.status) {
                self.timeline.conditions.push(ConditionChange {
                    at: now,
                    kind,
                    status: condition.status,
                    reason: condition.reason.to_string(),
                    message: condition.message.clone(),
                });
            }
        }
        let lists = [&status.init_container_statuses, &status.container_statuses, &status.ephemeral_container_statuses];
        for container in lists.into_iter().flatten() {
            if matches!(container.state, ContainerState::Running { .. }) {
                self.starting.remove(&container.name);
            }
            let state = self.state_of(container);
            if let Some(lane) = self.lane(&container.name) {
                push_change(&mut lane.states, now, state);
                lane.restarts = container.restart_count;
                note_exit(lane, now, container);
            }
        }
        self.last = status;
    }
}

/// The newest end of a container is in its state or its last state; each is noted once.
fn note_exit(lane: &mut Lane, now: Instant, container: &ContainerStatus) {
    let end: Option<&Terminated> = match &container.state {
        ContainerState::Terminated(end) => Some(end),
        _ => container.last_state.as_ref(),
    };
    let Some(end) = end else { return };
    let at = end.finished_at.unwrap_or(now);
    if lane.exits.last().is_none_or(|last| last.at < at) {
        lane.exits.push(Exit { at, code: end.exit_code, reason: end.reason.to_string() });
    }
}

fn push_change<T: PartialEq>(changes: &mut Vec<(Instant, T)>, now: Instant, what: T) {
    match changes.last_mut() {
        Some((_, last)) if *last == what => {}
        // Within one instant only the last word counts.
        Some((at, last)) if *at == now => {
            *last = what;
            if changes.len() > 1 && changes[changes.len() - 2].1 == changes[changes.len() - 1].1 {
                changes.pop();
            }
        }
        _ => changes.push((now, what)),
    }
}

fn mark(now: Instant, event: &Event) -> Mark {
    Mark {
        at: now,
        container: event.container().map(str::to_owned),
        warning: event.kind == EventKind::Warning,
        reason: event.reason.to_string(),
        message: event.message.clone(),
        count: event.count,
    }
}
