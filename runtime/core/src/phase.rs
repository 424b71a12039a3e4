//! The pod's phase, from the statuses of its containers (PHASE-01 to PHASE-07).

use crate::reasons;
use crate::restart;
use crate::spec::{ContainerSpec, PodSpec, RestartPolicy};
use crate::status::{ContainerState, Phase, Terminated};
use crate::statuses::Statuses;

/// What a phase depends on.
#[derive(Clone, Copy, Debug)]
pub struct PhaseInput<'a> {
    /// What the pod is asked to be.
    pub spec: &'a PodSpec,
    /// How its containers are.
    pub statuses: Statuses<'a>,
    /// It comes from a file on the node.
    pub is_static: bool,
    /// It can no longer run: it ends, or has ended.
    pub terminal: bool,
    /// An app container of the current sandbox exists. Restarting sidecars don't take such a pod back to Pending.
    pub initialized: bool,
}

/// The phase.
pub fn phase(input: PhaseInput<'_>) -> Phase {
    let init = Init::count(input);
    let containers = Containers::count(input);

    if init.failed {
        return Phase::Failed;
    }
    let initializing = init.pending || (containers.sidecars_starting && !input.initialized);
    if initializing || containers.waiting {
        return Phase::Pending;
    }
    match containers {
        Containers { unknown: true, .. } => Phase::Pending,
        Containers { running: true, .. } => Phase::Running,
        Containers { stopped: false, .. } => Phase::Pending,
        // Who still may restart does not matter any more: nobody will restart it.
        Containers { failed, .. } if input.terminal && !input.is_static => ended(failed),
        Containers { restartable: true, .. } => Phase::Running,
        Containers { failed, .. } => ended(failed),
    }
}

fn ended(failed: bool) -> Phase {
    if failed { Phase::Failed } else { Phase::Succeeded }
}

/// Sums up the regular init containers.
#[derive(Default)]
struct Init {
    /// Some has not ended yet, not even once.
    pending: bool,
    /// Some failed and will not be tried again.
    failed: bool,
}

impl Init {
    fn count(input: PhaseInput<'_>) -> Self {
        let mut init = Self::default();
        for container in input.spec.init_containers.iter().filter(|c| !c.is_sidecar()) {
            match Stage::of(container, input.statuses) {
                Stage::Unknown | Stage::Waiting | Stage::Running { .. } => init.pending = true,
                Stage::Ended(last) | Stage::WaitingAgain(last) => {
                    init.failed |= last.exit_code != 0 && !may_restart(container, input.spec.restart_policy, last);
                }
            }
        }
        init
    }
}

/// Sums up the sidecars and app containers.
#[derive(Default)]
struct Containers {
    /// Nothing is known of some.
    unknown: bool,
    /// Some waits for its first start.
    waiting: bool,
    /// Some runs.
    running: bool,
    /// Some sidecar has not started up yet.
    sidecars_starting: bool,
    /// Some app container has ended.
    stopped: bool,
    /// Some app container has ended otherwise than with 0, or waits after having ended.
    failed: bool,
    /// Some app container that has ended may run again.
    restartable: bool,
}

impl Containers {
    fn count(input: PhaseInput<'_>) -> Self {
        let mut all = Self::default();
        for sidecar in input.spec.init_containers.iter().filter(|c| c.is_sidecar()) {
            match Stage::of(sidecar, input.statuses) {
                Stage::Unknown => all.unknown = true,
                Stage::Waiting => {
                    all.waiting = true;
                    all.sidecars_starting = true;
                }
                Stage::Running { started } => {
                    all.running = true;
                    all.sidecars_starting |= !started;
                }
                // PHASE-07: one that has ended decides nothing.
                Stage::Ended(_) | Stage::WaitingAgain(_) => {}
            }
        }
        for app in &input.spec.containers {
            let stage = Stage::of(app, input.statuses);
            match stage {
                Stage::Unknown => all.unknown = true,
                Stage::Waiting => all.waiting = true,
                Stage::Running { .. } => all.running = true,
                Stage::Ended(last) | Stage::WaitingAgain(last) => {
                    all.stopped = true;
                    all.failed |= last.exit_code != 0 || matches!(stage, Stage::WaitingAgain(_));
                    all.restartable |= may_restart(app, input.spec.restart_policy, last);
                }
            }
        }
        all
    }
}

/// Where a container is in its life, as far as the phase is concerned.
#[derive(Clone, Copy)]
enum Stage<'a> {
    Unknown,
    Waiting,
    Running { started: bool },
    Ended(&'a Terminated),
    WaitingAgain(&'a Terminated),
}

impl<'a> Stage<'a> {
    fn of(container: &ContainerSpec, statuses: Statuses<'a>) -> Self {
        let Some(status) = statuses.find(&container.name) else { return Self::Unknown };
        match (&status.state, &status.last_state) {
            (ContainerState::Running { .. }, _) => Self::Running { started: status.started },
            (ContainerState::Terminated(end), _) => Self::Ended(end),
            (ContainerState::Waiting { .. }, Some(last)) => Self::WaitingAgain(last),
            (ContainerState::Waiting { .. }, None) => Self::Waiting,
        }
    }
}

/// A container that was removed because all restart, or ended with the agent or the board, runs again whatever its policy.
fn may_restart(container: &ContainerSpec, pod: RestartPolicy, last: &Terminated) -> bool {
    matches!(&*last.reason, reasons::RESTARTING_ALL_CONTAINERS | reasons::AGENT_RESTARTED | reasons::NODE_REBOOTED)
        || restart::should_restart_after_exit(container, pod, last.exit_code)
}
