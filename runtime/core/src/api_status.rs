//! A pod's whole status, from what the runtime reports and what the status said before (STATE-01 to STATE-05).

use alloc::borrow::{Cow, ToOwned};
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::actions;
use crate::conditions::{self, ConditionInput};
use crate::phase::{self, PhaseInput};
use crate::reasons;
use crate::restart;
use crate::runtime::{Instance, InstanceState, RuntimeStatus, Verdict};
use crate::spec::{ContainerKind, ContainerSpec, PodMeta, PodSpec};
use crate::status::{Condition, ConditionStatus, ContainerState, ContainerStatus, Phase, PodStatus, Terminated, Word};
use crate::statuses::Statuses;
use crate::time::Instant;

/// What a status is made from.
#[derive(Clone, Copy, Debug)]
pub struct StatusInput<'a> {
    /// Who the pod is.
    pub meta: &'a PodMeta,
    /// What it is asked to be.
    pub spec: &'a PodSpec,
    /// What the runtime reports.
    pub runtime: &'a RuntimeStatus,
    /// The status so far.
    pub old: &'a PodStatus,
    /// Somebody asked for the pod's end.
    pub deleting: bool,
    /// The pod can no longer run.
    pub terminal: bool,
    /// Containers that would run, and why they don't.
    pub start_failures: &'a [StartFailure],
    /// The node ends the pod, as for its deadline or under pressure: phase Failed, with this reason and message.
    pub failed_by_node: Option<(&'a Word, &'a str)>,
    /// When the node took the pod, for a status that does not say so yet.
    pub now: Instant,
}

/// Why a container's start was held back, or failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartFailure {
    /// Name of the container.
    pub container: String,
    /// Reason of state waiting, as in `CrashLoopBackOff` (STATE-02).
    pub reason: Word,
    /// For people.
    pub message: String,
}

/// The status.
///
/// A status that is to be published goes through [`crate::status_manager::merge`] afterwards.
pub fn generate(input: StatusInput<'_>) -> PodStatus {
    let StatusInput { meta, spec, runtime, old, .. } = input;
    // In a pod that is over nothing restarts any more, whatever exit codes say.
    let restarting_all = !input.terminal && actions::restart_all_wanted(spec, runtime, old);
    let generator = Generator { input, restarting_all };
    let mut status = PodStatus {
        observed_generation: meta.generation,
        // A pod that has ended goes on showing where it was.
        pod_ips: if runtime.ips.is_empty() { old.pod_ips.clone() } else { runtime.ips.clone() },
        start_time: old.start_time.or(Some(input.now)),
        init_container_statuses: generator.statuses(
            ContainerKind::Init,
            &spec.init_containers,
            &old.init_container_statuses,
        ),
        container_statuses: generator.statuses(ContainerKind::App, &spec.containers, &old.container_statuses),
        ephemeral_container_statuses: generator.statuses(
            ContainerKind::Ephemeral,
            &spec.ephemeral_containers,
            &old.ephemeral_container_statuses,
        ),
        ..PodStatus::default()
    };
    // As upstream, the probes are asked after the phase is found, so that a sidecar that has just started up does not count
    // for it yet.
    set_phase(&mut status, input);
    set_probed(&mut status, input);
    status.conditions = conditions_of(&status, input);
    status
}

/// Does an app container of the current sandbox exist?
pub fn has_initialized(spec: &PodSpec, runtime: &RuntimeStatus) -> bool {
    runtime.sandboxes.first().is_some_and(|sandbox| sandbox.ready)
        && spec.containers.iter().any(|c| runtime.newest(&c.name).is_some())
}

fn set_phase(status: &mut PodStatus, input: StatusInput<'_>) {
    let old = input.old;
    status.phase = phase::phase(PhaseInput {
        spec: input.spec,
        statuses: Statuses::from(&*status),
        is_static: input.meta.is_static,
        terminal: input.terminal,
        initialized: has_initialized(input.spec, input.runtime),
    });
    // One that was stopped for a failure comes back, even if it said that all was well (RESTART-10).
    if status.phase.is_terminal() && !input.terminal && comes_back(input) {
        status.phase = Phase::Running;
    }
    // A terminal phase is never left (PHASE-08). Its reason goes when the containers say another terminal phase, as upstream
    // has it.
    if old.phase.is_terminal() && !status.phase.is_terminal() {
        status.phase = old.phase;
    }
    if status.phase == old.phase {
        status.reason = old.reason.clone();
        status.message = old.message.clone();
    }
    match input.failed_by_node {
        _ if old.phase.is_terminal() => status.phase = old.phase,
        Some((reason, message)) => {
            status.phase = Phase::Failed;
            status.reason = reason.clone();
            status.message = message.to_owned();
        }
        None => {}
    }
}

/// Will an app container that was stopped by the node be restarted?
fn comes_back(input: StatusInput<'_>) -> bool {
    input.spec.containers.iter().any(|container| {
        let stopped = input.runtime.newest(&container.name).filter(|instance| instance.stopped_for.is_some());
        stopped.is_some_and(|instance| {
            restart::should_start(container, input.spec.restart_policy, input.deleting, Some(instance))
        })
    })
}

/// `started` and `ready`, by the verdicts of the probes.
fn set_probed(status: &mut PodStatus, input: StatusInput<'_>) {
    let PodStatus { init_container_statuses, container_statuses, ephemeral_container_statuses, .. } = status;
    let PodSpec { init_containers, containers, ephemeral_containers, .. } = input.spec;
    for (init, statuses, specs) in [
        (true, init_container_statuses, init_containers),
        (false, container_statuses, containers),
        (false, ephemeral_container_statuses, ephemeral_containers),
    ] {
        for status in statuses {
            let Some(spec) = specs.iter().find(|spec| spec.name == status.name) else { continue };
            let verdicts = input.runtime.newest(&spec.name).map(|i| i.verdicts).unwrap_or_default();
            status.started = is_started(spec, status, verdicts.startup);
            status.ready = match &status.state {
                ContainerState::Terminated(end) => init && !spec.is_sidecar() && end.exit_code == 0,
                _ if init && !spec.is_sidecar() => false,
                _ => status.started && is_well(verdicts.readiness, spec.readiness_probe.is_some()),
            };
        }
    }
}

fn is_started(spec: &ContainerSpec, status: &ContainerStatus, startup: Option<Verdict>) -> bool {
    match (&status.state, startup) {
        (ContainerState::Running { .. }, Some(verdict)) => verdict == Verdict::Success,
        // A probe that has published nothing yet, as after a restart of the agent, leaves it as it was.
        (ContainerState::Running { .. }, None) => status.started || spec.startup_probe.is_none(),
        (ContainerState::Waiting { .. } | ContainerState::Terminated(_), _) => false,
    }
}

/// No probe counts as success (PROBE-08).
fn is_well(verdict: Option<Verdict>, has_probe: bool) -> bool {
    verdict.map_or(!has_probe, |verdict| verdict == Verdict::Success)
}

fn conditions_of(status: &PodStatus, input: StatusInput<'_>) -> Vec<Condition> {
    let StatusInput { meta, spec, runtime, old, .. } = input;
    let facts = ConditionInput {
        spec,
        generation: meta.generation,
        phase: status.phase,
        statuses: Some(Statuses::from(status)),
        old,
    };
    let mut all = Vec::with_capacity(old.conditions.len() + 6);
    all.extend(old.conditions.iter().filter(|c| !reasons::is_owned_by_node(&c.kind)).cloned());

    let containers_ready = conditions::containers_ready(facts);
    let ready = conditions::ready(facts, &containers_ready, &all);
    all.extend([
        conditions::ready_to_start_containers(facts, runtime),
        conditions::initialized(facts),
        ready,
        containers_ready,
        Condition {
            kind: Cow::Borrowed(reasons::POD_SCHEDULED),
            status: ConditionStatus::True,
            reason: Cow::Borrowed(""),
            message: String::new(),
            last_transition_time: None,
            observed_generation: meta.generation,
        },
    ]);
    if conditions::has_restart_all_rule(spec) {
        all.push(conditions::all_containers_restarting(facts, runtime));
    }
    all
}

/// Makes the container statuses of one pod.
struct Generator<'a> {
    input: StatusInput<'a>,
    /// So says the status so far, or a container that has ended.
    restarting_all: bool,
}

impl Generator<'_> {
    fn statuses(&self, kind: ContainerKind, specs: &[ContainerSpec], old: &[ContainerStatus]) -> Vec<ContainerStatus> {
        let mut all: Vec<_> = specs
            .iter()
            .map(|spec| self.status(kind, spec, old.iter().find(|status| status.name == spec.name)))
            .collect();
        // Init containers have an order that people know them by (INIT-05); the others are sorted as upstream sorts them.
        if kind != ContainerKind::Init {
            all.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        }
        all
    }

    fn status(&self, kind: ContainerKind, spec: &ContainerSpec, old: Option<&ContainerStatus>) -> ContainerStatus {
        let mut instances = self.input.runtime.of(&spec.name);
        let newest = instances.next();
        let mut status = match (newest, old) {
            (Some(instance), _) => self.of_instance(spec, instance, old),
            (None, Some(old)) => self.remembered(spec, old),
            (None, None) => self.to_be_started(spec),
        };
        if let Some(previous) = instances.next() {
            status.last_state = terminated(previous);
        }
        self.hold_back(kind, spec, newest, &mut status);
        status
    }

    fn of_instance(&self, spec: &ContainerSpec, instance: &Instance, old: Option<&ContainerStatus>) -> ContainerStatus {
        let mut status = ContainerStatus {
            name: spec.name.clone(),
            image: spec.image.clone(),
            image_id: instance.image_id.clone(),
            container_id: instance.id.clone(),
            restart_count: instance.restart_count.max(old.map_or(0, |old| old.restart_count)),
            started: old.is_some_and(|old| old.started),
            last_state: old.and_then(|old| last_state(old, instance)),
            ..ContainerStatus::default()
        };
        let was_running = old.is_some_and(|old| matches!(old.state, ContainerState::Running { .. }));
        let had_ended = old.is_some_and(|old| matches!(old.state, ContainerState::Terminated(_)));
        // restartCount never falls, and rises when a container is seen to run again or to have been lost (STATE-04).
        let one_more = old.map_or(0, |old| old.restart_count.saturating_add(1));
        match instance.state {
            InstanceState::Running => {
                status.state = ContainerState::Running { started_at: instance.started_at.unwrap_or_default() };
                if had_ended {
                    status.restart_count = status.restart_count.max(one_more);
                }
            }
            InstanceState::Exited => {
                status.state = terminated(instance).map_or_else(Default::default, ContainerState::Terminated)
            }
            InstanceState::Unknown if was_running => {
                let mut end = lost(reasons::LOST_AT_TERMINATION);
                if self.restarting_all {
                    end.reason = Cow::Borrowed(reasons::RESTARTING_ALL_CONTAINERS);
                }
                status.state = ContainerState::Terminated(end);
                status.restart_count = one_more;
            }
            InstanceState::Created | InstanceState::Unknown => {}
        }
        status
    }

    /// Nothing is left of the container but what the status said of it.
    fn remembered(&self, spec: &ContainerSpec, old: &ContainerStatus) -> ContainerStatus {
        let waiting = ContainerStatus {
            restart_count: old.restart_count,
            last_state: old.last_state.clone(),
            ..self.to_be_started(spec)
        };
        match &old.state {
            ContainerState::Waiting { .. } => waiting,
            ContainerState::Terminated(_) if self.restarting_all => removed_to_restart(old.clone()),
            ContainerState::Running { .. } if self.restarting_all => removed_to_restart(waiting),
            ContainerState::Terminated(_) => old.clone(),
            ContainerState::Running { .. } if old.last_state.is_some() => waiting,
            ContainerState::Running { .. } => ContainerStatus {
                // It will be started again, if the pod lives on.
                restart_count: old.restart_count.saturating_add(u32::from(!self.input.deleting)),
                last_state: Some(lost(reasons::LOST_WHILE_RUNNING)),
                ..waiting
            },
        }
    }

    fn to_be_started(&self, spec: &ContainerSpec) -> ContainerStatus {
        let reason = match self.input.spec.init_containers.is_empty() {
            true => reasons::CONTAINER_CREATING,
            false => reasons::POD_INITIALIZING,
        };
        ContainerStatus {
            name: spec.name.clone(),
            image: spec.image.clone(),
            state: waiting(reason, ""),
            ..ContainerStatus::default()
        }
    }

    /// A container that would run but can't be started is waiting, and says why (STATE-02).
    fn hold_back(
        &self,
        kind: ContainerKind,
        spec: &ContainerSpec,
        newest: Option<&Instance>,
        status: &mut ContainerStatus,
    ) {
        let Some(failure) = self.input.start_failures.iter().find(|f| f.container == spec.name) else { return };
        let done =
            kind == ContainerKind::Init && newest.is_some_and(|i| i.state == InstanceState::Exited && i.exit_code == 0);
        let policy = self.input.spec.restart_policy;
        if done || !restart::should_start(spec, policy, self.input.deleting, newest) {
            return;
        }
        let waiting = ContainerState::Waiting { reason: failure.reason.clone(), message: failure.message.clone() };
        if let ContainerState::Terminated(end) = core::mem::replace(&mut status.state, waiting) {
            status.last_state = Some(end);
        }
    }
}

/// The previous termination, as far as the status so far knows it.
fn last_state(old: &ContainerStatus, instance: &Instance) -> Option<Terminated> {
    match &old.state {
        ContainerState::Terminated(end) if old.container_id != instance.id => Some(end.clone()),
        _ => old.last_state.clone(),
    }
}

fn terminated(instance: &Instance) -> Option<Terminated> {
    (instance.state == InstanceState::Exited).then(|| Terminated {
        exit_code: instance.exit_code,
        signal: instance.signal,
        reason: instance.reason.clone(),
        message: instance.message.clone(),
        started_at: instance.started_at,
        finished_at: instance.finished_at,
        container_id: instance.id.clone(),
    })
}

fn removed_to_restart(status: ContainerStatus) -> ContainerStatus {
    ContainerStatus {
        state: waiting(reasons::RESTARTING_ALL_CONTAINERS, reasons::REMOVED_TO_RESTART_ALL),
        last_state: Some(Terminated {
            exit_code: reasons::EXIT_CODE_UNKNOWN,
            reason: Cow::Borrowed(reasons::RESTARTING_ALL_CONTAINERS),
            message: reasons::REMOVED_TO_RESTART_ALL.to_string(),
            ..Terminated::default()
        }),
        restart_count: status.restart_count.saturating_add(1),
        ..status
    }
}

/// How a container ended of which nobody knows how it ended.
pub(crate) fn lost(message: &str) -> Terminated {
    Terminated {
        exit_code: reasons::EXIT_CODE_UNKNOWN,
        reason: Cow::Borrowed(reasons::CONTAINER_STATUS_UNKNOWN),
        message: message.to_string(),
        ..Terminated::default()
    }
}

fn waiting(reason: &'static str, message: &str) -> ContainerState {
    ContainerState::Waiting { reason: Cow::Borrowed(reason), message: message.to_string() }
}
