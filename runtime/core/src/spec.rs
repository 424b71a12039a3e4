//! What a pod is asked to be: the part of the Kubernetes `PodSpec` that decisions depend on.
//!
//! Commands, volumes and environment are not here: the engine reads those from the object by container name. A container's
//! [`ContainerSpec::hash`] stands for them, so that the core sees that a definition changed.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::placement::Placement;
use crate::quantity::Quantity;
use crate::selector::Labels;

/// Resource name (`cpu`, `memory`, `ephemeral-storage`, `gpio.husk.dev/relay-1`, …) → amount.
pub type ResourceList = BTreeMap<String, Quantity>;

/// Priority of `system-cluster-critical`; nothing else has that much.
pub const SYSTEM_CRITICAL_PRIORITY: i32 = 2_000_000_000;

/// Who a pod is: the part of `ObjectMeta` that decisions depend on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodMeta {
    /// `metadata.namespace`.
    pub namespace: String,
    /// `metadata.name`.
    pub name: String,
    /// `metadata.uid`; new for every created pod (POD-04).
    pub uid: String,
    /// `metadata.generation`; 0 means not set.
    pub generation: i64,
    /// Comes from a file on the node, not from the API (META-12).
    pub is_static: bool,
    /// `metadata.labels`.
    pub labels: Labels,
}

/// What a pod is asked to be.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PodSpec {
    /// `restartPolicy` of the pod.
    pub restart_policy: RestartPolicy,
    /// Init containers and sidecars, in order.
    pub init_containers: Vec<ContainerSpec>,
    /// App containers, in order.
    pub containers: Vec<ContainerSpec>,
    /// Ephemeral containers, in order of their addition.
    pub ephemeral_containers: Vec<ContainerSpec>,
    /// `terminationGracePeriodSeconds`.
    pub termination_grace_period_seconds: Option<i64>,
    /// `activeDeadlineSeconds`, from the start of the pod, init included (POD-09).
    pub active_deadline_seconds: Option<i64>,
    /// `readinessGates[*].conditionType` (COND-04).
    pub readiness_gates: Vec<String>,
    /// `priority`, if resolved.
    pub priority: Option<i32>,
    /// Pod-level `resources` (RES-12).
    pub resources: Option<Resources>,
    /// `overhead` of the runtime class.
    pub overhead: ResourceList,
    /// `hostNetwork`.
    pub host_network: bool,
    /// `os.name`, if given (POD-10).
    pub os: Option<String>,
    /// What it wants of its place (META-10, META-11, DISR-05).
    pub placement: Placement,
}

/// `restartPolicy`, of a pod or of a container.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum RestartPolicy {
    /// Restart whatever the exit code.
    #[default]
    Always,
    /// Restart on a non-zero exit code.
    OnFailure,
    /// Never restart.
    Never,
}

/// What a container is asked to be.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ContainerSpec {
    /// Name, unique in the pod.
    pub name: String,
    /// `image` as written.
    pub image: String,
    /// `imagePullPolicy`.
    pub image_pull_policy: PullPolicy,
    /// Hash of everything that makes a running instance out of date when it changes.
    pub hash: u64,
    /// Container-level `restartPolicy` (RESTART-07); `Always` on an init container makes it a sidecar (SIDE-01).
    pub restart_policy: Option<RestartPolicy>,
    /// `restartPolicyRules`, in order (RESTART-08).
    pub restart_policy_rules: Vec<RestartRule>,
    /// `livenessProbe`.
    pub liveness_probe: Option<Probe>,
    /// `readinessProbe`.
    pub readiness_probe: Option<Probe>,
    /// `startupProbe`.
    pub startup_probe: Option<Probe>,
    /// `lifecycle.postStart`.
    pub post_start: Option<Handler>,
    /// `lifecycle.preStop`.
    pub pre_stop: Option<Handler>,
    /// `lifecycle.stopSignal`, as in `SIGUSR1`; TERM if not given.
    pub stop_signal: Option<String>,
    /// `resources`.
    pub resources: Resources,
    /// `resizePolicy`: resource name → must the container restart?
    pub resize_policy: BTreeMap<String, ResizeRestartPolicy>,
    /// `targetContainerName` of an ephemeral container.
    pub target_container_name: Option<String>,
}

impl ContainerSpec {
    /// An init container that runs as long as the pod does. Only meaningful for init containers.
    pub fn is_sidecar(&self) -> bool {
        self.restart_policy == Some(RestartPolicy::Always)
    }

    /// The probe of a kind.
    pub fn probe(&self, kind: ProbeKind) -> Option<&Probe> {
        match kind {
            ProbeKind::Liveness => self.liveness_probe.as_ref(),
            ProbeKind::Readiness => self.readiness_probe.as_ref(),
            ProbeKind::Startup => self.startup_probe.as_ref(),
        }
    }
}

/// `imagePullPolicy`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PullPolicy {
    /// Look for a newer image at each start.
    Always,
    /// Fetch only if the image is not on the node.
    #[default]
    IfNotPresent,
    /// Never fetch.
    Never,
}

/// One of `restartPolicyRules`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestartRule {
    /// What to do if the exit code matches.
    pub action: RestartAction,
    /// `exitCodes.operator`.
    pub operator: ExitCodeOperator,
    /// `exitCodes.values`.
    pub values: Vec<i32>,
}

/// `restartPolicyRules[*].action`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RestartAction {
    /// Restart this container.
    Restart,
    /// Restart every container of the pod in place (RESTART-09).
    RestartAllContainers,
}

/// `restartPolicyRules[*].exitCodes.operator`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ExitCodeOperator {
    /// The exit code is one of the values.
    In,
    /// The exit code is none of the values.
    NotIn,
}

/// The three kinds of probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ProbeKind {
    /// Failing restarts the container.
    Liveness,
    /// Failing takes the container out of service.
    Readiness,
    /// Gates the other two until it succeeds once.
    Startup,
}

impl ProbeKind {
    /// All kinds, in a fixed order.
    pub const ALL: [Self; 3] = [Self::Liveness, Self::Readiness, Self::Startup];

    /// As in the message of event `Unhealthy`: `Liveness`, `Readiness`, `Startup`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Liveness => "Liveness",
            Self::Readiness => "Readiness",
            Self::Startup => "Startup",
        }
    }
}

/// The timing of a probe, with defaults applied (PROBE-02). How it is carried out is the shell's business.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// Kind of handler, for messages.
    pub handler: Handler,
    /// Seconds from the container's start to the first probe.
    pub initial_delay_seconds: u32,
    /// Seconds from probe to probe.
    pub period_seconds: u32,
    /// Seconds after which a probe has failed.
    pub timeout_seconds: u32,
    /// Successes in a row that make a success.
    pub success_threshold: u32,
    /// Failures in a row that make a failure.
    pub failure_threshold: u32,
    /// Overrides the pod's grace when this probe kills (PROBE-04), in seconds.
    pub termination_grace_period_seconds: Option<i64>,
}

/// How a probe or hook acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Handler {
    /// Runs a module in the container's context.
    Exec,
    /// HTTP GET.
    HttpGet,
    /// TCP connect.
    TcpSocket,
    /// gRPC health service.
    Grpc,
    /// Waits so many seconds; hooks only. The core times it itself.
    Sleep(u32),
}

/// `resources` of a container or pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resources {
    /// `requests`.
    pub requests: ResourceList,
    /// `limits`.
    pub limits: ResourceList,
}

/// `resizePolicy[*].restartPolicy`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ResizeRestartPolicy {
    /// Resize in place.
    #[default]
    NotRequired,
    /// Restart the container to resize it.
    RestartContainer,
}

/// The three lists a container can stand in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ContainerKind {
    /// `initContainers` (sidecars too).
    Init,
    /// `containers`.
    App,
    /// `ephemeralContainers`.
    Ephemeral,
}

impl PodSpec {
    /// All containers with their kind: init, app, ephemeral, each in order.
    pub fn all_containers(&self) -> impl Iterator<Item = (ContainerKind, &ContainerSpec)> {
        let init = self.init_containers.iter().map(|c| (ContainerKind::Init, c));
        let app = self.containers.iter().map(|c| (ContainerKind::App, c));
        let ephemeral = self.ephemeral_containers.iter().map(|c| (ContainerKind::Ephemeral, c));
        init.chain(app).chain(ephemeral)
    }

    /// A pod the node can't do without: from a file on it, or of a `system-` priority (RES-09).
    pub fn is_critical(&self, meta: &PodMeta) -> bool {
        meta.is_static || self.has_critical_priority()
    }

    /// Its priority is one of the `system-` ones.
    pub fn has_critical_priority(&self) -> bool {
        self.priority() >= SYSTEM_CRITICAL_PRIORITY
    }

    /// `priority`, 0 if none.
    pub fn priority(&self) -> i32 {
        self.priority.unwrap_or(0)
    }

    /// The container of that name.
    pub fn container(&self, name: &str) -> Option<(ContainerKind, &ContainerSpec)> {
        self.all_containers().find(|(_, c)| c.name == name)
    }
}
