//! What happens to pods and to the node at a given time.

use std::collections::BTreeMap;

use husk_core::disruption::Disruption;
use husk_core::eviction::Pressure;
use husk_core::io::Outcome;
use husk_core::quantity::{Quantity, QuantityError};
use husk_core::record::Interruption;
use husk_core::spec::ResourceList;
use serde::{Deserialize, Serialize};

use super::is_default;
use super::script::TrapName;
use crate::span::Span;

/// Something that happens, and when. Pods are named by `metadata.name`; the second of a name is `NAME#2`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Fact {
    /// When.
    pub at: Span,
    /// What.
    pub what: What,
}

/// What happens.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum What {
    /// Somebody deletes a pod.
    Delete {
        /// Which.
        pod: String,
        /// Grace asked for; the pod's own if not given.
        #[serde(default, skip_serializing_if = "is_default")]
        grace_period_seconds: Option<i64>,
    },
    /// Somebody evicts a pod.
    Evict {
        /// Which.
        pod: String,
        /// Who does.
        by: Disruption,
        /// Grace asked for; the pod's own if not given.
        #[serde(default, skip_serializing_if = "is_default")]
        grace_period_seconds: Option<i64>,
    },
    /// A pod used more of something than it may.
    LimitExceeded {
        /// Which.
        pod: String,
    },
    /// A client sets a condition of a pod.
    SetCondition {
        /// Which pod.
        pod: String,
        /// `type` of the condition.
        condition: String,
        /// Its status.
        status: bool,
    },
    /// The spec of a pod changes.
    Update {
        /// Which.
        pod: String,
        /// To what.
        change: Change,
    },
    /// An instance ends by itself, if it runs.
    Exit {
        /// Of which pod.
        pod: String,
        /// Of which container.
        container: String,
        /// With this exit code.
        #[serde(default, skip_serializing_if = "is_default")]
        exit: i32,
        /// It traps instead.
        #[serde(default, skip_serializing_if = "is_default")]
        trap: Option<TrapName>,
    },
    /// What the node has and is changes.
    Node(NodeScript),
    /// The node is short of something.
    Pressure {
        /// Of what.
        resource: Pressure,
        /// Longest grace for who has to go.
        #[serde(default, skip_serializing_if = "is_default")]
        grace_seconds: i64,
        /// What pods use of it, in bytes.
        #[serde(default, skip_serializing_if = "is_default")]
        usage: BTreeMap<String, i64>,
    },
    /// The node is no longer short of it.
    Relief {
        /// Of what.
        resource: Pressure,
    },
    /// The node shuts down.
    ShutDown {
        /// For all.
        grace: Span,
        /// The part of it that critical pods have for themselves.
        critical: Span,
    },
    /// A PodGroup is made or changes.
    Group {
        /// Its name.
        name: String,
        /// So many have to be placed together.
        #[serde(default, skip_serializing_if = "is_default")]
        gang: Option<usize>,
    },
    /// A PodGroup is deleted.
    NoGroup {
        /// Its name.
        name: String,
    },
    /// The agent ends and begins again.
    Restart {
        /// With the board, or alone.
        after: Cause,
        /// How long it takes until it is back.
        takes: Span,
    },
    /// Nothing is done for so long: the board is suspended.
    Sleep {
        /// How long.
        takes: Span,
    },
}

/// A change of a pod's spec.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Change {
    /// Another image of a container.
    Image {
        /// Which container.
        container: String,
        /// What image.
        image: String,
    },
    /// Other resources of a container.
    Resources {
        /// Which container.
        container: String,
        /// `resources.requests`.
        #[serde(default, skip_serializing_if = "is_default")]
        requests: Amounts,
        /// `resources.limits`.
        #[serde(default, skip_serializing_if = "is_default")]
        limits: Amounts,
    },
    /// `activeDeadlineSeconds`.
    ActiveDeadline {
        /// So many seconds.
        seconds: i64,
    },
    /// All `schedulingGates` are removed.
    Ungate {},
    /// An ephemeral container is added.
    Debug {
        /// Its name.
        container: String,
    },
}

/// What a node has and is.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct NodeScript {
    /// `allocatable`; without limit if not given.
    #[serde(skip_serializing_if = "is_default")]
    pub allocatable: Option<Amounts>,
    /// Keys of taints of effect `NoExecute`.
    #[serde(skip_serializing_if = "is_default")]
    pub taints: Vec<String>,
    /// `spec.unschedulable`.
    #[serde(skip_serializing_if = "is_default")]
    pub cordoned: bool,
}

/// Resource name → amount as written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(transparent)]
pub struct Amounts(pub BTreeMap<String, String>);

impl Amounts {
    /// As the core takes them.
    ///
    /// # Errors
    /// One is no quantity.
    pub fn parse(&self) -> Result<ResourceList, QuantityError> {
        self.0.iter().map(|(name, amount)| Ok((name.clone(), Quantity::parse(amount)?))).collect()
    }
}

/// What the agent ends with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Cause {
    /// A crash of it, or an upgrade.
    AgentRestart,
    /// The board was without power.
    Reboot,
}

impl From<Cause> for Interruption {
    fn from(cause: Cause) -> Self {
        match cause {
            Cause::AgentRestart => Self::AgentRestart,
            Cause::Reboot => Self::Reboot,
        }
    }
}

impl What {
    /// The pod that it is about, if it is about one.
    pub fn pod(&self) -> Option<&str> {
        match self {
            Self::Delete { pod, .. }
            | Self::Evict { pod, .. }
            | Self::LimitExceeded { pod }
            | Self::SetCondition { pod, .. }
            | Self::Update { pod, .. }
            | Self::Exit { pod, .. } => Some(pod),
            Self::Node(_)
            | Self::Pressure { .. }
            | Self::Relief { .. }
            | Self::ShutDown { .. }
            | Self::Group { .. }
            | Self::NoGroup { .. }
            | Self::Restart { .. }
            | Self::Sleep { .. } => None,
        }
    }

    /// The container that it is about, if it is about one that the pod has.
    pub fn container(&self) -> Option<&str> {
        match self {
            Self::Exit { container, .. }
            | Self::Update { change: Change::Image { container, .. } | Change::Resources { container, .. }, .. } => {
                Some(container)
            }
            _ => None,
        }
    }
}

/// How an instance ends by itself.
pub(crate) fn outcome(exit: i32, trap: Option<TrapName>) -> Outcome {
    trap.map_or(Outcome::Code(exit), |trap| Outcome::Trap(trap.into()))
}
