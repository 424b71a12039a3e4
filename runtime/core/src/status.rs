//! What a pod is: the part of the Kubernetes `PodStatus` that the core owns (STATE-01, COND-01).

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::qos::QosClass;
use crate::spec::{ResourceList, Resources};
use crate::time::Instant;

/// A reason, condition type or other CamelCase word: mostly constants.
pub type Word = Cow<'static, str>;

/// `status` of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodStatus {
    /// `observedGeneration`; 0 means not set.
    pub observed_generation: i64,
    /// `phase`.
    pub phase: Phase,
    /// `conditions`, in order.
    pub conditions: Vec<Condition>,
    /// `message`.
    pub message: String,
    /// `reason`, as in `Evicted` or `DeadlineExceeded`.
    pub reason: Word,
    /// `podIPs`; the first is `podIP`.
    pub pod_ips: Vec<String>,
    /// `startTime`: when the node took the pod.
    pub start_time: Option<Instant>,
    /// `initContainerStatuses`, in spec order (INIT-05).
    pub init_container_statuses: Vec<ContainerStatus>,
    /// `containerStatuses`, sorted by name as upstream does.
    pub container_statuses: Vec<ContainerStatus>,
    /// `ephemeralContainerStatuses`.
    pub ephemeral_container_statuses: Vec<ContainerStatus>,
    /// `qosClass`, as it was when the pod was created (RES-07).
    pub qos_class: Option<QosClass>,
}

/// `phase` (PHASE-01).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Phase {
    /// Accepted, not everything is created.
    #[default]
    Pending,
    /// Everything is created, something runs or will run again.
    Running,
    /// All app containers ended with 0, none will restart.
    Succeeded,
    /// All app containers ended, at least one failed, none will restart.
    Failed,
    /// The node can't tell.
    Unknown,
}

impl Phase {
    /// Succeeded or Failed: never left again (PHASE-08).
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }

    /// As written in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Running => "Running",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
            Self::Unknown => "Unknown",
        }
    }
}

/// One of `status.conditions`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    /// `type`, as in `Ready`.
    pub kind: Word,
    /// `status`.
    pub status: ConditionStatus,
    /// `reason`.
    pub reason: Word,
    /// `message`.
    pub message: String,
    /// `lastTransitionTime`: when `status` last changed (COND-02).
    pub last_transition_time: Option<Instant>,
    /// `observedGeneration`; 0 means not set.
    pub observed_generation: i64,
}

/// `status` of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ConditionStatus {
    /// `True`.
    True,
    /// `False`.
    False,
    /// `Unknown`.
    Unknown,
}

impl From<bool> for ConditionStatus {
    fn from(value: bool) -> Self {
        if value { Self::True } else { Self::False }
    }
}

/// Status of one container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerStatus {
    /// `name`.
    pub name: String,
    /// `state`.
    pub state: ContainerState,
    /// `lastState` (only `terminated` is ever used) (STATE-04).
    pub last_state: Option<Terminated>,
    /// `ready`.
    pub ready: bool,
    /// `started`: running, and its startup probe (if any) succeeded.
    pub started: bool,
    /// `restartCount`.
    pub restart_count: u32,
    /// `image`.
    pub image: String,
    /// `imageID`.
    pub image_id: String,
    /// `containerID`.
    pub container_id: String,
    /// `resources`: what the running container really has (RES-11).
    pub resources: Option<Resources>,
    /// `allocatedResources`: the requests that the node has granted.
    pub allocated_resources: ResourceList,
}

/// `state` of a container: exactly one of three (STATE-01).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ContainerState {
    /// Not running yet, or not running again yet.
    Waiting {
        /// As in `CrashLoopBackOff` (STATE-02).
        reason: Word,
        /// For people.
        message: String,
    },
    /// Running.
    Running {
        /// When it started.
        started_at: Instant,
    },
    /// Ended.
    Terminated(Terminated),
}

impl Default for ContainerState {
    fn default() -> Self {
        Self::Waiting { reason: Word::Borrowed(""), message: String::new() }
    }
}

/// How a container ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terminated {
    /// `exitCode` (STATE-07).
    pub exit_code: i32,
    /// `signal`, 0 if none.
    pub signal: i32,
    /// As in `Completed`, `Error`, `OOMKilled` (STATE-03).
    pub reason: Word,
    /// Termination message.
    pub message: String,
    /// When it started.
    pub started_at: Option<Instant>,
    /// When it ended.
    pub finished_at: Option<Instant>,
    /// `containerID`.
    pub container_id: String,
}
