//! What the runtime reports: sandboxes and container instances, the input of all decisions.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::status::Word;
use crate::time::Instant;

/// The instances of a pod, as the runtime knows them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RuntimeStatus {
    /// `podIPs` of the newest ready sandbox.
    pub ips: Vec<String>,
    /// Sandboxes, newest first.
    pub sandboxes: Vec<Sandbox>,
    /// Container instances; those of one container newest first. Instances of all sandboxes.
    pub instances: Vec<Instance>,
}

/// A pod's shared context: its address, volumes and devices.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sandbox {
    /// Can take containers.
    pub ready: bool,
    /// 0 for the first, one more for each that followed.
    pub attempt: u32,
    /// Has an address.
    pub has_ip: bool,
    /// Uses the node's network: must be what `hostNetwork` of the pod says.
    pub host_network: bool,
}

/// One instance of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instance {
    /// Name of the container.
    pub name: String,
    /// Unique id of the instance (`containerID`).
    pub id: String,
    /// What it does.
    pub state: InstanceState,
    /// The container's definition is another one than it was started with.
    pub changed: bool,
    /// Restarts of the container before this instance.
    pub restart_count: u32,
    /// When it was created.
    pub created_at: Option<Instant>,
    /// When it started running.
    pub started_at: Option<Instant>,
    /// When it ended.
    pub finished_at: Option<Instant>,
    /// Exit code, if exited.
    pub exit_code: i32,
    /// Signal that ended it, 0 if none.
    pub signal: i32,
    /// Why it ended, if exited.
    pub reason: Word,
    /// Termination message.
    pub message: String,
    /// `imageID`.
    pub image_id: String,
    /// Why the node stopped it, if it did.
    pub stopped_for: Option<StopReason>,
    /// What its probes last published.
    pub verdicts: Verdicts,
}

/// Last published results of an instance's probes; none as long as a probe has published nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdicts {
    /// Of the liveness probe.
    pub liveness: Option<Verdict>,
    /// Of the readiness probe.
    pub readiness: Option<Verdict>,
    /// Of the startup probe.
    pub startup: Option<Verdict>,
}

/// A published probe result, after thresholds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// Well.
    Success,
    /// Not well.
    Failure,
    /// Not known yet.
    Unknown,
}

/// State of an instance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum InstanceState {
    /// Made, not started.
    #[default]
    Created,
    /// Running.
    Running,
    /// Ended.
    Exited,
    /// The runtime can't tell.
    Unknown,
}

/// Why the node stops an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StopReason {
    /// Its liveness probe failed.
    LivenessProbe,
    /// Its startup probe failed.
    StartupProbe,
    /// Its postStart hook failed.
    PostStartHook,
    /// Its definition changed.
    Changed,
    /// A resize needs a restart.
    Resize,
    /// Every container of the pod restarts in place.
    RestartAllContainers,
    /// The pod ends.
    PodEnds,
    /// The runtime lost track of it.
    Unknown,
    /// Nobody wanted its end: the agent ended under it, or the board (TERM-11).
    Interrupted,
}

impl RuntimeStatus {
    /// The instances of a container, newest first.
    pub fn of<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Instance> {
        self.instances.iter().filter(move |i| i.name == name)
    }

    /// The newest instance of a container.
    pub fn newest(&self, name: &str) -> Option<&Instance> {
        self.instances.iter().find(|i| i.name == name)
    }
}
