//! One container of a pod: which instance it has, what it waits for, what it is held back by.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::probing::ProbeTask;
use crate::backoff::Backoff;
use crate::runtime::StopReason;
use crate::spec::ContainerKind;
use crate::status::Word;
use crate::time::Instant;

/// One container of a pod.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Slot {
    pub(super) kind: ContainerKind,
    /// Place in the list of its kind.
    pub(super) index: usize,
    pub(super) name: Arc<str>,
    pub(super) state: SlotState,
    /// Why it isn't started (again), and when it may be.
    pub(super) hold: Option<Hold>,
    /// Restart count of the next instance.
    pub(super) restarts: u32,
    /// Definition that the newest instance was started with.
    pub(super) started_hash: Option<u64>,
    /// When the newest instance ended, if its end counts for the back-off.
    pub(super) last_exit: Option<Instant>,
    pub(super) backoff: Backoff,
    pub(super) image_backoff: Backoff,
    pub(super) probes: Vec<ProbeTask>,
    /// When the startup probe of the current instance succeeded.
    pub(super) started_up: Option<Instant>,
    next_attempt: u32,
}

/// What a container's current order or instance is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) enum SlotState {
    /// Nothing is ordered, nothing runs.
    #[default]
    Idle,
    /// Its image is being looked for, since then.
    Pulling { attempt: u32, since: Instant },
    /// It is being started, by the definition of that hash; `unwanted` once it was ordered to be killed before it had started.
    Starting { attempt: u32, image_id: String, hash: u64, unwanted: Option<StopReason> },
    /// It runs.
    Live(Live),
}

/// A running instance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Live {
    pub(super) attempt: u32,
    pub(super) post_start: HookRun,
    pub(super) stop: Option<Stop>,
}

/// How far a hook is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum HookRun {
    /// There is none, or it is over.
    Over,
    /// A `sleep`, which the core times itself.
    Sleeping { until: Instant },
    /// The shell runs it.
    Running,
}

/// An instance that is being stopped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Stop {
    pub(super) reason: StopReason,
    /// End of its grace period.
    pub(super) deadline: Instant,
    pub(super) pre_stop: HookRun,
    /// Slots that have to be down before it gets its signal.
    pub(super) waits_for: Vec<usize>,
    pub(super) step: StopStep,
}

/// How far a stop is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum StopStep {
    /// preStop is under way.
    PreStop,
    /// It waits for others to end.
    Turn,
    /// It has its stop signal; KILL follows.
    Signalled { kill_at: Instant },
    /// KILL is ordered.
    Killed,
}

/// Why a container isn't started (again).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Hold {
    pub(super) reason: Word,
    pub(super) message: String,
    /// When it is tried again.
    pub(super) retry_at: Option<Instant>,
    /// What the reason turns into, and when.
    pub(super) then: Option<(Instant, Word, String)>,
}

impl Slot {
    pub(super) fn new(kind: ContainerKind, index: usize, name: &str) -> Self {
        Self {
            kind,
            index,
            name: name.into(),
            state: SlotState::Idle,
            hold: None,
            restarts: 0,
            started_hash: None,
            last_exit: None,
            backoff: Backoff::default(),
            image_backoff: Backoff::default(),
            probes: Vec::new(),
            started_up: None,
            next_attempt: 0,
        }
    }

    pub(super) fn take_attempt(&mut self) -> u32 {
        let attempt = self.next_attempt;
        self.next_attempt = self.next_attempt.wrapping_add(1);
        attempt
    }

    pub(super) fn live(&self) -> Option<&Live> {
        match &self.state {
            SlotState::Live(live) => Some(live),
            _ => None,
        }
    }

    pub(super) fn live_mut(&mut self) -> Option<&mut Live> {
        match &mut self.state {
            SlotState::Live(live) => Some(live),
            _ => None,
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        matches!(self.state, SlotState::Idle)
    }

    pub(super) fn is_live(&self) -> bool {
        self.live().is_some()
    }

    /// The running instance of that attempt; none if the attempt is stale.
    pub(super) fn current(&mut self, attempt: u32) -> Option<&mut Live> {
        self.live_mut().filter(|live| live.attempt == attempt)
    }

    /// A new definition starts with a clean slate: its back-off is another one.
    pub(super) fn forget_failures(&mut self) {
        self.hold = None;
        self.last_exit = None;
        self.backoff.reset();
        self.image_backoff.reset();
    }

    /// As in `spec.containers{app}`.
    pub(super) fn field_path(&self) -> String {
        let list = match self.kind {
            ContainerKind::Init => "initContainers",
            ContainerKind::App => "containers",
            ContainerKind::Ephemeral => "ephemeralContainers",
        };
        format!("spec.{list}{{{}}}", self.name)
    }
}

impl Live {
    /// When something of it is due. One that `waits` for others to end can't go on before they have, or its grace is spent.
    pub(super) fn next_wake(&self, waits: bool) -> Option<Instant> {
        let hook = self.post_start.wake();
        let stop = self.stop.as_ref().and_then(|stop| match stop.step {
            StopStep::PreStop if !waits => {
                Some(stop.pre_stop.wake().map_or(stop.deadline, |until| until.min(stop.deadline)))
            }
            StopStep::PreStop | StopStep::Turn => Some(stop.deadline),
            StopStep::Signalled { kill_at } => Some(kill_at),
            StopStep::Killed => None,
        });
        match (hook, stop) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }
}

impl Stop {
    /// A stop without any grace whose KILL is ordered.
    pub(super) fn killed(reason: StopReason, now: Instant) -> Self {
        Self { reason, deadline: now, pre_stop: HookRun::Over, waits_for: Vec::new(), step: StopStep::Killed }
    }
}

impl HookRun {
    pub(super) fn wake(self) -> Option<Instant> {
        match self {
            Self::Sleeping { until } => Some(until),
            Self::Over | Self::Running => None,
        }
    }
}
