//! Why somebody else than the pod itself ends it: condition DisruptionTarget (COND-06).

use serde::{Deserialize, Serialize};

/// Reason of the condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Disruption {
    /// A pod of a higher priority needs the room.
    PreemptionByScheduler,
    /// A `NoExecute` taint of the node that it does not tolerate.
    DeletionByTaintManager,
    /// Somebody asked for its eviction.
    EvictionByEvictionApi,
    /// Nobody owns it any more.
    DeletionByPodGc,
    /// The node needs room, or shuts down.
    TerminationByKubelet,
}

impl Disruption {
    /// As written in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PreemptionByScheduler => "PreemptionByScheduler",
            Self::DeletionByTaintManager => "DeletionByTaintManager",
            Self::EvictionByEvictionApi => "EvictionByEvictionAPI",
            Self::DeletionByPodGc => "DeletionByPodGC",
            Self::TerminationByKubelet => "TerminationByKubelet",
        }
    }

    /// For people.
    pub const fn message(self) -> &'static str {
        match self {
            Self::PreemptionByScheduler => "default-scheduler: preempting to accommodate a higher priority pod",
            Self::DeletionByTaintManager => "Taint manager: deleting due to NoExecute taint",
            Self::EvictionByEvictionApi => "Eviction API: evicting",
            Self::DeletionByPodGc => "PodGC: node no longer exists",
            Self::TerminationByKubelet => "Pod was terminated by the node",
        }
    }
}
