//! Facts that come in and orders that go out.
//!
//! Every order about an instance carries the attempt number of that instance and the answering fact repeats it. A fact with
//! another attempt number than the current one is stale and changes nothing.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use crate::admission::NodeState;
use crate::disruption::Disruption;
use crate::event::Event;
use crate::eviction::{Pressure, Shortage};
use crate::group::{Group, GroupName};
use crate::record::{Interruption, PodRecord};
use crate::spec::{PodMeta, PodSpec, ProbeKind, Resources};
use crate::status::Word;

/// A pod of the node, by `metadata.uid`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct PodUid(pub alloc::sync::Arc<str>);

impl core::fmt::Display for PodUid {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&str> for PodUid {
    fn from(uid: &str) -> Self {
        Self(uid.into())
    }
}

/// One instance of a container: pod, container name and attempt.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstanceRef {
    /// The pod.
    pub pod: PodUid,
    /// Name of the container.
    pub container: alloc::sync::Arc<str>,
    /// 0 for the first instance of this container in this pod, one more for each that followed.
    pub attempt: u32,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// A pod was created or its spec changed. Must be valid; a known `meta.uid` is an update. One that names other containers (but
    /// for more ephemeral ones), or the pod otherwise, changes nothing.
    Applied {
        /// Who.
        meta: PodMeta,
        /// What.
        spec: Box<PodSpec>,
    },
    /// The node takes a pod again that was on record. A pod that it knows already stays as it is.
    ///
    /// Records are handed in before any other fact, those of pods that were accepted first before the others
    /// ([`PodRecord::accepted`]), at times that go on from [`PodRecord::saved_at`]. Who had a place on the node has it again without
    /// being asked; who waits for one is looked at once [`Input::NodeChanged`] says what the node has.
    Restored {
        /// What was persisted.
        record: Box<PodRecord>,
        /// What happened to the instances since.
        after: Interruption,
    },
    /// Somebody asked for the pod's end (TERM-01, TERM-05).
    DeleteRequested {
        /// The pod.
        pod: PodUid,
        /// Grace asked for, in seconds; none means the pod's own. 0 is a forced deletion (TERM-06).
        grace_seconds: Option<i64>,
    },
    /// The pod's address, volumes and devices are there.
    SandboxReady {
        /// The pod.
        pod: PodUid,
        /// Of the order.
        attempt: u32,
        /// `podIPs`.
        ips: Vec<String>,
    },
    /// They could not be made; the core tries again.
    SandboxFailed {
        /// The pod.
        pod: PodUid,
        /// Of the order.
        attempt: u32,
        /// Event reason, as in `FailedCreatePodSandBox` or `FailedMount`.
        reason: Word,
        /// For people.
        message: String,
    },
    /// What the pod refers to is another now: what could not be made or configured is tried at once, not only when its time has come.
    TryAgain {
        /// The pod.
        pod: PodUid,
    },
    /// Answer to [`Action::PullImage`].
    ImageReady {
        /// For which instance.
        instance: InstanceRef,
        /// Digest of the image (`imageID`).
        image_id: String,
        /// Bytes of it, zero if nobody knows, if it had to be fetched; none if it was on the node already.
        pulled: Option<u64>,
    },
    /// Answer to [`Action::PullImage`].
    ImageFailed {
        /// For which instance.
        instance: InstanceRef,
        /// `ErrImagePull`, `InvalidImageName`, `ErrImageNeverPull` or `ImageInspectError`.
        reason: Word,
        /// For people.
        message: String,
    },
    /// Answer to [`Action::Start`]: the guest's first instruction is about to run.
    Started {
        /// Which instance.
        instance: InstanceRef,
        /// `containerID`.
        id: String,
    },
    /// Answer to [`Action::Start`]: it could not be started.
    StartFailed {
        /// Which instance.
        instance: InstanceRef,
        /// `CreateContainerConfigError`, `CreateContainerError` or `RunContainerError`.
        reason: Word,
        /// For people.
        message: String,
    },
    /// A started instance ended, by itself or after [`Action::Signal`] or [`Action::Kill`].
    Exited {
        /// Which instance.
        instance: InstanceRef,
        /// How.
        outcome: Outcome,
        /// Termination message, already cut to size (STATE-06).
        message: String,
    },
    /// Answer to [`Action::RunProbe`].
    ProbeResult {
        /// Which instance.
        instance: InstanceRef,
        /// Which probe.
        kind: ProbeKind,
        /// Of the order.
        run: u32,
        /// What it said.
        result: ProbeOutcome,
        /// Its output, for the event.
        message: String,
    },
    /// Answer to [`Action::RunHook`].
    HookDone {
        /// Which instance.
        instance: InstanceRef,
        /// Which hook.
        hook: Hook,
        /// What went wrong, if anything.
        result: Result<(), String>,
    },
    /// Something that people should know about an instance, and that changes nothing: recorded as an event of type Warning.
    Remark {
        /// About which.
        instance: InstanceRef,
        /// Of the event.
        reason: Word,
        /// For people.
        message: String,
    },
    /// A client set a condition that isn't built in (COND-05).
    ConditionSet {
        /// The pod.
        pod: PodUid,
        /// The condition; its transition time is ignored.
        condition: crate::status::Condition,
    },
    /// Answer to [`Action::Teardown`]: nothing is left of the pod.
    TornDown {
        /// The pod.
        pod: PodUid,
        /// Of the order.
        attempt: u32,
    },
    /// Answer to [`Action::UpdateResources`]: the instance has them.
    ResourcesUpdated {
        /// Which instance.
        instance: InstanceRef,
        /// Of the order.
        revision: u32,
    },
    /// Answer to [`Action::UpdateResources`]: it can't have them now; the core tries again.
    ResourcesFailed {
        /// Which instance.
        instance: InstanceRef,
        /// Of the order.
        revision: u32,
        /// For people.
        message: String,
    },
    /// Somebody ends the pod for a reason that isn't its own: deletion with its own grace, or the one given (DISR-04, COND-06).
    Evict {
        /// The pod.
        pod: PodUid,
        /// Who.
        disruption: Disruption,
        /// Grace asked for, in seconds; none means the pod's own.
        grace_seconds: Option<i64>,
    },
    /// The pod used more of something than it may, as of a volume: it is evicted, which is no disruption (RES-06).
    LimitExceeded {
        /// The pod.
        pod: PodUid,
        /// For people, with figures.
        message: String,
    },
    /// What the node has and is changed.
    NodeChanged {
        /// From now on.
        state: Box<NodeState>,
    },
    /// The node was looked at: it is short of something, or no longer (RES-09).
    Pressure {
        /// Of what.
        resource: Pressure,
        /// How short; none once the shortage is over.
        shortage: Option<Box<Shortage>>,
    },
    /// The node shuts down: pods end by priority, critical ones last (TERM-10).
    Shutdown {
        /// `shutdownGracePeriod`: for all.
        grace: Duration,
        /// `shutdownGracePeriodCriticalPods`: the part of it that critical pods have for themselves.
        critical: Duration,
    },
    /// A group of pods or of groups was created or changed (META-11).
    GroupApplied {
        /// The group.
        group: Group,
    },
    /// A group was deleted. Who has its place keeps it.
    GroupRemoved {
        /// Its name.
        name: GroupName,
    },
}

impl Input {
    /// The pod it is about, by uid; none if it is about the node.
    pub fn pod(&self) -> Option<PodUid> {
        let pod = match self {
            Self::NodeChanged { .. }
            | Self::Pressure { .. }
            | Self::Shutdown { .. }
            | Self::GroupApplied { .. }
            | Self::GroupRemoved { .. } => return None,
            Self::Applied { meta, .. } => PodUid::from(meta.uid.as_str()),
            Self::Restored { record, .. } => record.uid().clone(),
            Self::DeleteRequested { pod, .. }
            | Self::SandboxReady { pod, .. }
            | Self::SandboxFailed { pod, .. }
            | Self::ConditionSet { pod, .. }
            | Self::Evict { pod, .. }
            | Self::LimitExceeded { pod, .. }
            | Self::TryAgain { pod }
            | Self::TornDown { pod, .. } => pod.clone(),
            Self::ImageReady { instance, .. }
            | Self::ImageFailed { instance, .. }
            | Self::Started { instance, .. }
            | Self::StartFailed { instance, .. }
            | Self::Exited { instance, .. }
            | Self::ProbeResult { instance, .. }
            | Self::ResourcesUpdated { instance, .. }
            | Self::ResourcesFailed { instance, .. }
            | Self::Remark { instance, .. }
            | Self::HookDone { instance, .. } => instance.pod.clone(),
        };
        Some(pod)
    }
}

/// How an instance ended (STATE-07).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum Outcome {
    /// By itself, with an exit code.
    Code(i32),
    /// It trapped.
    Trap(Trap),
    /// By a signal that it had no handler for, or by KILL; the number of the signal.
    Signal(i32),
}

impl Outcome {
    /// Exit code, as a shell would see it.
    pub const fn exit_code(self) -> i32 {
        match self {
            Self::Code(code) => code,
            Self::Trap(Trap::Unreachable) => 134,
            Self::Trap(Trap::Arithmetic) => 136,
            Self::Trap(Trap::Fault) => 139,
            Self::Trap(Trap::OutOfMemory) => 137,
            Self::Trap(Trap::OutOfFuel) => 152,
            Self::Signal(signal) => 128 + signal,
        }
    }

    /// `reason` of the terminated state (STATE-03).
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Trap(Trap::OutOfMemory) => "OOMKilled",
            Self::Code(0) => "Completed",
            _ => "Error",
        }
    }

    /// The signal that ended it, 0 if none did.
    pub const fn signal(self) -> i32 {
        match self {
            Self::Signal(signal) => signal,
            _ => 0,
        }
    }
}

/// Why a guest trapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum Trap {
    /// `unreachable` or abort: 134.
    Unreachable,
    /// Integer overflow, division by zero, bad conversion: 136.
    Arithmetic,
    /// Memory, table or stack fault: 139.
    Fault,
    /// Its memory limit was crossed: 137, OOMKilled.
    OutOfMemory,
    /// Its fuel budget is used up: 152.
    OutOfFuel,
}

/// What a probe said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum ProbeOutcome {
    /// Well.
    Success,
    /// Well, with a remark (event `ProbeWarning`).
    Warning,
    /// Not well.
    Failure,
    /// Counts as a failure.
    Unknown,
    /// The probe could not be carried out; tried up to three times, then the result is thrown away.
    Error,
}

/// The two container lifecycle hooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub enum Hook {
    /// After start (HOOK-01).
    PostStart,
    /// Before TERM (HOOK-02).
    PreStop,
}

/// Something to carry out.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Make the pod's address, volumes and devices → [`Input::SandboxReady`] or [`Input::SandboxFailed`].
    SetUp {
        /// The pod.
        pod: PodUid,
        /// To be repeated in the answer.
        attempt: u32,
    },
    /// Make sure of the image → [`Input::ImageReady`] or [`Input::ImageFailed`].
    PullImage {
        /// For which instance.
        instance: InstanceRef,
    },
    /// Create and start the instance → [`Input::Started`] (then [`Input::Exited`]) or [`Input::StartFailed`].
    Start {
        /// Which instance.
        instance: InstanceRef,
    },
    /// Deliver the stop signal; a guest without a handler ends by it.
    Signal {
        /// Which instance.
        instance: InstanceRef,
        /// Name, as in `SIGTERM`.
        signal: Word,
    },
    /// End the instance now, whatever it does; also one whose start is not answered yet.
    Kill {
        /// Which instance.
        instance: InstanceRef,
    },
    /// Probe once → [`Input::ProbeResult`].
    RunProbe {
        /// Which instance.
        instance: InstanceRef,
        /// Which probe.
        kind: ProbeKind,
        /// To be repeated in the answer.
        run: u32,
        /// After this it has failed.
        timeout: Duration,
    },
    /// Run a hook that isn't `sleep` → [`Input::HookDone`].
    RunHook {
        /// Which instance.
        instance: InstanceRef,
        /// Which hook.
        hook: Hook,
    },
    /// A hook's answer is no longer waited for: end it.
    CancelHook {
        /// Which instance.
        instance: InstanceRef,
        /// Which hook.
        hook: Hook,
    },
    /// Give a running instance other resources, without a restart → [`Input::ResourcesUpdated`] or [`Input::ResourcesFailed`]
    /// (RES-11). What an instance starts with is what [`crate::Node::allocated`] says.
    UpdateResources {
        /// Which instance.
        instance: InstanceRef,
        /// To be repeated in the answer.
        revision: u32,
        /// From now on.
        resources: Resources,
    },
    /// Remove what is left of the pod: volumes, address, logs → [`Input::TornDown`].
    Teardown {
        /// The pod.
        pod: PodUid,
        /// To be repeated in the answer.
        attempt: u32,
    },
    /// The pod's status changed; read it with `Node::status`.
    StatusChanged {
        /// The pod.
        pod: PodUid,
    },
    /// The pod object is to disappear: deleted and nothing of it is left.
    Gone {
        /// The pod.
        pod: PodUid,
    },
    /// What has to survive of the pod changed: persist `Node::record`, once for any number of these orders.
    Persist {
        /// The pod.
        pod: PodUid,
        /// How soon.
        urgency: Urgency,
    },
    /// Nothing is left of the pod: drop what was persisted of it.
    Forget {
        /// The pod.
        pod: PodUid,
    },
    /// Show this event to people (NODE-02).
    Record {
        /// The event.
        event: Event,
    },
}

/// How soon a pod's record has to be on the disk. The sooner comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// What must not be done twice or forgotten: restarts, ends, completed init containers, what was ordered from outside.
    Soon,
    /// What may be lost, since it is found out again: whether the pod is ready, and since when. It may change with every probe, and a
    /// device's flash wears with every write.
    Calm,
}

impl Action {
    /// The pod it is about.
    pub fn pod(&self) -> &PodUid {
        match self {
            Self::SetUp { pod, .. }
            | Self::Teardown { pod, .. }
            | Self::StatusChanged { pod }
            | Self::Gone { pod }
            | Self::Persist { pod, .. }
            | Self::Forget { pod } => pod,
            Self::PullImage { instance }
            | Self::Start { instance }
            | Self::Signal { instance, .. }
            | Self::Kill { instance }
            | Self::RunProbe { instance, .. }
            | Self::RunHook { instance, .. }
            | Self::CancelHook { instance, .. }
            | Self::UpdateResources { instance, .. } => &instance.pod,
            Self::Record { event } => &event.pod,
        }
    }
}
