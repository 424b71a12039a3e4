//! What an agent tells those who watch it.

use std::sync::Arc;

use husk_core::Instant;
use husk_core::deletion::Deletion;
use husk_core::event::{Event, EventKind};
use husk_core::io::PodUid;
use husk_core::status::PodStatus;

use crate::view::ContainerView;

/// Something that happened, mostly to a pod.
#[derive(Clone, Debug)]
pub enum Notice {
    /// An event was recorded.
    Event {
        /// When.
        at: Instant,
        /// What.
        event: Arc<Event>,
    },
    /// The status changed.
    Status {
        /// When.
        at: Instant,
        /// Which pod.
        pod: PodUid,
        /// Its status now.
        status: Arc<PodStatus>,
        /// Its deletion, if it is being deleted.
        deletion: Option<Deletion>,
        /// What the status doesn't say, by container.
        views: Arc<[ContainerView]>,
    },
    /// The pod is from a file that is called otherwise now.
    Moved {
        /// When.
        at: Instant,
        /// Which pod.
        pod: PodUid,
        /// The name of the file.
        file: String,
    },
    /// The pod object is gone. Something of the pod may still run.
    Gone {
        /// When.
        at: Instant,
        /// Which pod.
        pod: PodUid,
    },
    /// Nothing is left of the pod: its uid may be used again.
    Forgotten {
        /// When.
        at: Instant,
        /// Which pod.
        pod: PodUid,
    },
    /// Something about the node itself.
    Node {
        /// When.
        at: Instant,
        /// For information, or to look at.
        kind: EventKind,
        /// As upstream has it, as in `FreeDiskSpaceFailed`.
        reason: &'static str,
        /// For people.
        message: String,
    },
    /// The node was asked to shut down, and all its pods have ended or had their time.
    ShutDown {
        /// When.
        at: Instant,
    },
}
