//! What can change in a pod's life.

use husk_core::spec::{ContainerKind, ContainerSpec, ProbeKind};
use husk_core::status::{ConditionStatus, Phase, Word};
use serde::{Deserialize, Serialize};

use crate::words;

/// Something that changed. Containers are numbered in the order of their lanes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Change {
    Phase(Phase),
    Condition {
        #[serde(with = "words")]
        kind: Word,
        status: ConditionStatus,
        #[serde(with = "words")]
        reason: Word,
        message: String,
    },
    State {
        lane: u16,
        state: LaneState,
    },
    Exit {
        lane: u16,
        code: i32,
        #[serde(with = "words")]
        reason: Word,
    },
    /// As often as `count`, evenly within so many microseconds from then on.
    Probes {
        lane: u16,
        kind: ProbeKind,
        ok: bool,
        count: u32,
        micros: u64,
    },
    Event {
        container: Option<String>,
        warning: bool,
        #[serde(with = "words")]
        reason: Word,
        message: String,
        count: u32,
    },
    Deleted,
    Gone,
    Interrupted(Interruption),
}

/// What ended all instances and was no decision about the pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Interruption {
    /// The agent ended and started again.
    AgentRestarted,
    /// The board did.
    NodeRebooted,
}

impl Interruption {
    /// As `lastState` of a container says it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AgentRestarted => "AgentRestarted",
            Self::NodeRebooted => "NodeRebooted",
        }
    }

    /// For people.
    pub const fn words(self) -> &'static str {
        match self {
            Self::AgentRestarted => "agent restarted",
            Self::NodeRebooted => "node rebooted",
        }
    }
}

/// The role of a container in its pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
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
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Init => "init",
            Self::Sidecar => "sidecar",
            Self::App => "app",
            Self::Ephemeral => "ephemeral",
        }
    }

    pub(crate) fn of(kind: ContainerKind, container: &ContainerSpec) -> Self {
        match kind {
            ContainerKind::Init if container.is_sidecar() => Self::Sidecar,
            ContainerKind::Init => Self::Init,
            ContainerKind::App => Self::App,
            ContainerKind::Ephemeral => Self::Ephemeral,
        }
    }
}

/// What a container is doing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LaneState {
    /// Its turn has not come; the reason.
    Waiting(#[serde(with = "words")] Word),
    /// Its image is being fetched.
    Pulling,
    /// It waits before another attempt; the reason.
    BackOff(#[serde(with = "words")] Word),
    /// It is being started, or its postStart hook runs.
    Starting,
    /// It runs and isn't ready.
    Running,
    /// It runs and is ready.
    Ready,
    /// It was asked to stop.
    Stopping,
    /// It ended well; the reason.
    Succeeded(#[serde(with = "words")] Word),
    /// It ended badly; exit code and reason.
    Failed(i32, #[serde(with = "words")] Word),
}

impl LaneState {
    /// Word for tables.
    pub const fn as_str(&self) -> &'static str {
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
    pub fn detail(&self) -> String {
        match self {
            Self::Waiting(reason) | Self::BackOff(reason) => reason.to_string(),
            Self::Succeeded(reason) => format!("0 {reason}"),
            Self::Failed(code, reason) => format!("{code} {reason}"),
            Self::Pulling | Self::Starting | Self::Running | Self::Ready | Self::Stopping => String::new(),
        }
    }

    /// The state of that word and detail.
    pub(crate) fn read(word: &str, detail: &str) -> Option<Self> {
        let reason = || detail.to_owned().into();
        Some(match word {
            "waiting" => Self::Waiting(reason()),
            "pulling" => Self::Pulling,
            "back-off" => Self::BackOff(reason()),
            "starting" => Self::Starting,
            "running" => Self::Running,
            "ready" => Self::Ready,
            "stopping" => Self::Stopping,
            "exited" => {
                let (code, reason) = detail.split_once(' ')?;
                let (code, reason) = (code.parse().ok()?, reason.to_owned().into());
                if code == 0 { Self::Succeeded(reason) } else { Self::Failed(code, reason) }
            }
            _ => return None,
        })
    }
}
