//! What the referee knows of a pod, from facts and orders alone.

use std::sync::Arc;
use std::time::Duration;

use husk_core::deletion::Deletion;
use husk_core::io::{Hook, Input, InstanceRef, PodUid, ProbeOutcome};
use husk_core::qos::QosClass;
use husk_core::reasons;
use husk_core::record::Interruption;
use husk_core::spec::{
    ContainerKind, ContainerSpec, PodSpec, ProbeKind, ResizeRestartPolicy, Resources, RestartPolicy,
};
use husk_core::status::{ConditionStatus, Phase, Word};
use husk_core::{Instant, Node};

use crate::broken::{Broken, rule};
use crate::scenario::Subject;

/// Beside the grace of its pod a container has this, and so has the pod.
const EACH: Duration = Duration::from_secs(2);

/// Exit code of what was made and could not be started.
const START_ERROR_CODE: i32 = 128;

/// A pod.
#[derive(Debug)]
pub(super) struct PodSeen {
    pub(super) uid: PodUid,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) policy: RestartPolicy,
    pub(super) is_static: bool,
    pub(super) deadline: bool,
    pub(super) generation: i64,
    pub(super) containers: Vec<ContainerSeen>,
    pub(super) sandbox: Sandbox,
    /// It ended, and its sandbox is removed for good.
    pub(super) torn_down: bool,
    /// Created, and not forgotten.
    pub(super) known: bool,
    pub(super) forgotten: bool,
    pub(super) gone: bool,
    /// Its end was asked for by deletion.
    pub(super) asked_to_go: bool,
    /// The node ended it, or may have.
    pub(super) verdict: bool,
    pub(super) deletion: Option<Deletion>,
    /// It ended by itself before anybody asked: its sidecars have until then.
    pub(super) ends_by: Option<Instant>,
    /// When it has to be gone.
    pub(super) limit: Option<Instant>,
    /// RestartAllContainers is under way.
    pub(super) restart_all: bool,
    /// It was, in this step.
    pub(super) restarted_all: bool,
    /// When that began, or was over, the last time.
    pub(super) restart_all_since: Option<Instant>,
    pub(super) phase: Phase,
    pub(super) scheduled: bool,
    pub(super) conditions: Vec<(Word, ConditionStatus, Option<Instant>)>,
    pub(super) start_time: Option<Instant>,
    pub(super) qos: Option<QosClass>,
    /// Something of it was begun.
    pub(super) began: bool,
    /// When it was created, in order.
    pub(super) accepted: u64,
    /// It begins anew, after a reboot or because all containers restart, and no app has started since.
    pub(super) anew: bool,
    pub(super) revision: Option<u32>,
}

/// The pod's address and volumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sandbox {
    None,
    Ordered,
    Failed,
    Ready,
    Ending,
}

/// What a container is in its pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Init,
    Sidecar,
    App,
    Ephemeral,
}

/// A container.
#[derive(Debug)]
pub(super) struct ContainerSeen {
    pub(super) name: Arc<str>,
    pub(super) role: Role,
    pub(super) policy: Option<RestartPolicy>,
    pub(super) rules: usize,
    pub(super) hash: u64,
    pub(super) has_startup: bool,
    /// After so many failures in a row a probe has failed.
    failure_thresholds: [u32; 3],
    /// Failures in a row; another instance goes on counting, as upstream has it.
    failures: [u32; 3],
    /// Resources that have it restarted when they change.
    restarts_for: Vec<String>,
    /// What its instance was started with or given.
    pub(super) has: Option<Resources>,
    /// What it is being given, by number of the order.
    pub(super) gets: Option<(u32, Resources)>,
    /// The instance that was ordered to start and has not ended.
    pub(super) alive: Option<u32>,
    pub(super) started: bool,
    pub(super) signalled: Option<Instant>,
    pub(super) killed: bool,
    /// Something may have made the core want to stop this instance.
    pub(super) cause: bool,
    pub(super) pulling: Option<u32>,
    pub(super) pulled: Option<u32>,
    pub(super) last_attempt: Option<u32>,
    /// How the last instance ended; none if there was none, or what it did is lost.
    pub(super) ended: Option<i32>,
    /// It may run again whatever its policy.
    pub(super) excused: bool,
    pub(super) ever_started: bool,
    /// It ran when the agent ended, and comes back before what it serves.
    pub(super) lost: bool,
    pub(super) restarts: u32,
    pub(super) open_probes: [Option<u32>; 3],
    pub(super) hooks: [HookSeen; 2],
}

/// A hook of an instance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum HookSeen {
    #[default]
    Not,
    Runs,
    Over,
}

impl PodSeen {
    pub(super) fn new(subject: &Subject) -> Self {
        let mut seen = Self {
            uid: PodUid::from(subject.id.as_str()),
            namespace: subject.meta.namespace.clone(),
            name: subject.meta.name.clone(),
            policy: subject.spec.restart_policy,
            is_static: subject.meta.is_static,
            deadline: false,
            generation: 0,
            containers: Vec::new(),
            sandbox: Sandbox::None,
            torn_down: false,
            known: false,
            forgotten: false,
            gone: false,
            asked_to_go: false,
            verdict: false,
            deletion: None,
            ends_by: None,
            limit: None,
            restart_all: false,
            restarted_all: false,
            restart_all_since: None,
            phase: Phase::Pending,
            scheduled: false,
            conditions: Vec::new(),
            start_time: None,
            qos: None,
            began: false,
            accepted: 0,
            anew: false,
            revision: None,
        };
        seen.take(&subject.spec);
        seen
    }

    /// Something of it is on the node.
    pub(super) fn exists(&self) -> bool {
        self.known && !self.forgotten
    }

    pub(super) fn holds_place(&self) -> bool {
        // A static pod that ended need not have a terminal phase.
        let ended = self.is_static && (self.verdict || self.asked_to_go);
        let over = self.gone || self.torn_down || self.phase.is_terminal() || ended;
        self.exists() && self.scheduled && (!over || !matches!(self.sandbox, Sandbox::None | Sandbox::Failed))
    }

    fn take(&mut self, spec: &PodSpec) {
        self.deadline = spec.active_deadline_seconds.is_some();
        for (n, (kind, container)) in spec.all_containers().enumerate() {
            // An ephemeral container comes last, so places stay.
            match self.containers.get_mut(n) {
                None => self.containers.push(ContainerSeen::new(kind, container)),
                Some(known) if known.hash != container.hash => {
                    known.hash = container.hash;
                    (known.cause, known.excused) = (true, true);
                }
                Some(_) => {}
            }
        }
    }

    pub(super) fn container(&mut self, name: &str) -> Option<&mut ContainerSeen> {
        self.containers.iter_mut().find(|container| &*container.name == name)
    }

    /// A container and its instance that still runs or is being started.
    fn instance(&mut self, at: &InstanceRef) -> Option<&mut ContainerSeen> {
        self.container(&at.container).filter(|container| container.alive == Some(at.attempt))
    }

    /// What the core is about to be told of it.
    pub(super) fn input(&mut self, input: &Input) {
        match input {
            Input::Applied { meta, spec } => {
                self.known = true;
                self.generation = meta.generation;
                self.take(spec);
            }
            Input::SandboxReady { .. } if self.sandbox == Sandbox::Ordered => self.sandbox = Sandbox::Ready,
            Input::SandboxFailed { .. } if self.sandbox == Sandbox::Ordered => self.sandbox = Sandbox::Failed,
            Input::TornDown { .. } if self.sandbox == Sandbox::Ending => {
                (self.sandbox, self.torn_down) = (Sandbox::None, true);
            }
            Input::ImageReady { instance, .. } => {
                if let Some(container) = self.container(&instance.container)
                    && container.pulling == Some(instance.attempt)
                {
                    (container.pulling, container.pulled) = (None, Some(instance.attempt));
                }
            }
            Input::ImageFailed { instance, .. } => {
                if let Some(container) = self.container(&instance.container)
                    && container.pulling == Some(instance.attempt)
                {
                    container.pulling = None;
                    container.lost = false;
                }
            }
            Input::Started { instance, .. } => {
                if let Some(container) = self.instance(instance) {
                    (container.started, container.ever_started, container.lost) = (true, true, false);
                    self.anew &= container.role != Role::App;
                }
            }
            Input::StartFailed { instance, reason, .. } => {
                if let Some(container) = self.instance(instance) {
                    // One that could not even be made is tried again whatever its policy.
                    container.excused |= reason != reasons::RUN_CONTAINER_ERROR;
                    container.end(START_ERROR_CODE);
                }
            }
            Input::Exited { instance, outcome, .. } => {
                if let Some(container) = self.instance(instance) {
                    container.end(outcome.exit_code());
                }
            }
            Input::ProbeResult { instance, kind, run, result, .. } => {
                if let Some(container) = self.instance(instance)
                    && container.open_probes[*kind as usize] == Some(*run)
                {
                    container.open_probes[*kind as usize] = None;
                    container.probed(*kind, *result);
                }
            }
            Input::HookDone { instance, hook, result } => {
                if let Some(container) = self.instance(instance)
                    && container.hooks[*hook as usize] == HookSeen::Runs
                {
                    container.hooks[*hook as usize] = HookSeen::Over;
                    if *hook == Hook::PostStart {
                        container.cause |= result.is_err();
                        container.excused |= result.is_err();
                    }
                }
            }
            Input::ResourcesUpdated { instance, revision } => {
                if let Some(container) = self.instance(instance)
                    && let Some((_, resources)) = container.gets.take_if(|(last, _)| last == revision)
                {
                    container.has = Some(resources);
                }
            }
            _ => {}
        }
    }

    /// The agent ended: nothing of it runs any more.
    pub(super) fn interrupted(&mut self, after: Interruption) {
        if !self.exists() {
            return;
        }
        for container in &mut self.containers {
            let ran = container.started;
            container.reset();
            container.lost = ran && container.role == Role::Sidecar;
            container.excused = true;
            container.failures = [0; 3];
            (container.pulling, container.pulled, container.last_attempt) = (None, None, None);
            if after == Interruption::Reboot {
                container.ended = None;
                container.ever_started = false;
            }
        }
        self.sandbox = match self.sandbox {
            // What was being removed is removed once more.
            Sandbox::Ending => Sandbox::Ready,
            Sandbox::Ready if self.asked_to_go || self.verdict => Sandbox::Ready,
            _ => Sandbox::None,
        };
        (self.gone, self.ends_by) = (false, None);
        self.anew |= after == Interruption::Reboot;
        self.limit = None;
        // Whether the order to restart all was on record isn't known here.
        self.restart_all = false;
    }

    /// A container is up, on its way to it, or has a time for the next try.
    pub(super) fn is_busy(&self, container: &ContainerSeen, node: &Node) -> bool {
        container.alive.is_some() || container.pulling.is_some() || node.retry_at(&self.uid, &container.name).is_some()
    }

    /// All init containers are done, and none of them is to be done again, and all sidecars were up.
    pub(super) fn initialized(&self, node: &Node) -> bool {
        self.containers.iter().all(|container| match container.role {
            Role::Init => container.ended == Some(0) && !self.is_busy(container, node),
            Role::Sidecar => container.ever_started,
            Role::App | Role::Ephemeral => true,
        })
    }

    /// What sidecars serve may have to wait: one of them isn't up.
    pub(super) fn misses_sidecars(&self, node: &Node) -> bool {
        let status = node.status(&self.uid);
        let mut shown = status.into_iter().flat_map(|status| &status.init_container_statuses);
        shown.any(|container| {
            let mut sidecars = self.containers.iter().filter(|seen| seen.role == Role::Sidecar);
            !container.started && sidecars.any(|seen| *seen.name == *container.name)
        })
    }

    /// All apps are down, or about to be.
    pub(super) fn no_app_stays(&self) -> bool {
        self.containers
            .iter()
            .all(|container| container.role != Role::App || container.alive.is_none() || container.cause)
    }

    /// Its deletion began, or was shortened.
    pub(super) fn mind_deletion(&mut self, now: Instant, node: &Node, slack: Duration) -> Result<(), Broken> {
        let Some(deletion) = node.deletion(&self.uid) else {
            rule!(self.deletion.is_none(), now, "a deletion stands", "that of {} was taken back", self.uid);
            return Ok(());
        };
        if self.deletion == Some(deletion) {
            return Ok(());
        }
        if let Some(before) = self.deletion {
            rule!(
                deletion.timestamp <= before.timestamp && deletion.grace_seconds <= before.grace_seconds
                    || deletion.timestamp <= now,
                now,
                "grace only shrinks",
                "{}: {before:?} became {deletion:?}",
                self.uid
            );
        }
        self.asked_to_go = true;
        self.deletion = Some(deletion);
        let each = EACH * (u32::try_from(self.containers.len()).unwrap_or(u32::MAX) + 1);
        let limit = deletion.timestamp.max(now) + each + slack;
        self.limit = Some(self.limit.map_or(limit, |before| before.min(limit)));
        Ok(())
    }

    pub(super) fn check_limit(&self, now: Instant) -> Result<(), Broken> {
        if let Some(limit) = self.limit.filter(|_| self.exists()) {
            rule!(
                now <= limit,
                now,
                "who is deleted is gone in time",
                "{} is still there, its time was over at {limit:?}",
                self.uid
            );
        }
        Ok(())
    }
}

impl ContainerSeen {
    fn new(kind: ContainerKind, container: &ContainerSpec) -> Self {
        let role = match kind {
            ContainerKind::Init if container.is_sidecar() => Role::Sidecar,
            ContainerKind::Init => Role::Init,
            ContainerKind::App => Role::App,
            ContainerKind::Ephemeral => Role::Ephemeral,
        };
        let mut thresholds = [1; 3];
        for kind in ProbeKind::ALL {
            thresholds[kind as usize] = container.probe(kind).map_or(1, |probe| probe.failure_threshold.max(1));
        }
        let restarts_for =
            container.resize_policy.iter().filter(|(_, policy)| **policy == ResizeRestartPolicy::RestartContainer);
        Self {
            name: container.name.as_str().into(),
            role,
            policy: container.restart_policy,
            rules: container.restart_policy_rules.len(),
            hash: container.hash,
            has_startup: container.startup_probe.is_some(),
            failure_thresholds: thresholds,
            failures: [0; 3],
            restarts_for: restarts_for.map(|(resource, _)| resource.clone()).collect(),
            has: None,
            gets: None,
            alive: None,
            started: false,
            signalled: None,
            killed: false,
            cause: false,
            pulling: None,
            pulled: None,
            last_attempt: None,
            ended: None,
            excused: false,
            ever_started: false,
            lost: false,
            restarts: 0,
            open_probes: [None; 3],
            hooks: [HookSeen::Not; 2],
        }
    }

    /// A probe answered. Its failures stop the instance only once there are enough of them.
    fn probed(&mut self, kind: ProbeKind, result: ProbeOutcome) {
        let place = kind as usize;
        match result {
            // Nobody listens any more.
            _ if self.killed => {}
            ProbeOutcome::Error => {}
            ProbeOutcome::Success | ProbeOutcome::Warning => self.failures[place] = 0,
            ProbeOutcome::Failure | ProbeOutcome::Unknown => self.failures[place] += 1,
        }
        if kind != ProbeKind::Readiness && self.failures[place] >= self.failure_thresholds[place] {
            self.failures[place] = 0;
            (self.cause, self.excused) = (true, true);
        }
    }

    /// Does its instance have to be restarted to get what is granted to it?
    pub(super) fn restarts_for(&self, granted: Option<&Resources>) -> bool {
        let (Some(has), Some(granted)) = (&self.has, granted) else { return false };
        let differs = |resource: &String| {
            has.requests.get(resource) != granted.requests.get(resource)
                || has.limits.get(resource) != granted.limits.get(resource)
        };
        self.alive.is_some() && self.restarts_for.iter().any(differs)
    }

    /// Its instance is no more.
    fn reset(&mut self) {
        (self.alive, self.started, self.signalled) = (None, false, None);
        (self.killed, self.cause) = (false, false);
        (self.has, self.gets) = (None, None);
        (self.open_probes, self.hooks) = ([None; 3], [HookSeen::Not; 2]);
    }

    fn end(&mut self, code: i32) {
        // One that was stopped didn't end by its own doing, nor did one that ended by itself when it was about to get its signal.
        self.excused |= self.killed || self.signalled.is_some() || self.cause;
        self.reset();
        self.ended = Some(code);
        self.lost = false;
    }
}
