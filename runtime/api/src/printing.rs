//! The columns that `kubectl get pods` shows: Kubernetes' server-side table.

use jiff::Timestamp;
use k8s_openapi::api::core::v1 as k8s;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::age::age;

/// What an empty cell shows.
const NONE: &str = "<none>";
/// What a time that isn't known shows.
const UNKNOWN: &str = "<unknown>";

/// One row of the table of pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodRow {
    /// `Name`.
    pub name: String,
    /// `Ready`: ready ones of the containers that are to stay, as in `1/2`.
    pub ready: String,
    /// `Status`, as in `Init:1/2`, `CrashLoopBackOff`, `Running`.
    pub status: String,
    /// `Restarts`, as in `3 (20s ago)`.
    pub restarts: String,
    /// `Age`.
    pub age: String,
    /// `IP` (wide).
    pub ip: String,
    /// `Node` (wide).
    pub node: String,
    /// `Nominated Node` (wide).
    pub nominated_node: String,
    /// `Readiness Gates` (wide): how many are True, as in `1/2`.
    pub readiness_gates: String,
}

impl PodRow {
    /// Names of the columns; those after the first [`PodRow::NARROW`] are for a wide table only.
    pub const COLUMNS: [&str; 9] =
        ["Name", "Ready", "Status", "Restarts", "Age", "IP", "Node", "Nominated Node", "Readiness Gates"];

    /// How many columns a table has that isn't wide.
    pub const NARROW: usize = 5;

    /// The row of a pod, as it is at `now`.
    pub fn of(pod: &k8s::Pod, now: Timestamp) -> Self {
        let (spec, status) = (pod.spec.clone().unwrap_or_default(), pod.status.clone().unwrap_or_default());
        let or_none = |text: Option<String>| text.filter(|text| !text.is_empty()).unwrap_or_else(|| NONE.into());
        let containers = Containers::read(&spec, &status);
        let created = pod.metadata.creation_timestamp.as_ref();
        Self {
            name: pod.metadata.name.clone().unwrap_or_default(),
            ready: format!("{}/{}", containers.ready, containers.total),
            status: deleting(pod, &status).unwrap_or(&containers.status).into(),
            restarts: match containers.restarts {
                Restarts { count, last: Some(at) } if count > 0 => format!("{count} ({} ago)", age(at.0, now)),
                Restarts { count, .. } => count.to_string(),
            },
            age: created.map_or_else(|| UNKNOWN.into(), |created| age(created.0, now)),
            ip: or_none(status.pod_ips.iter().flatten().next().map(|ip| ip.ip.clone())),
            node: or_none(spec.node_name.clone()),
            nominated_node: or_none(status.nominated_node_name.clone()),
            readiness_gates: readiness_gates(&spec, &status),
        }
    }

    /// The cells, in the order of [`PodRow::COLUMNS`].
    pub fn cells(&self) -> [&str; 9] {
        let Self { name, ready, status, restarts, age, ip, node, nominated_node, readiness_gates } = self;
        [name, ready, status, restarts, age, ip, node, nominated_node, readiness_gates]
    }
}

/// What the containers say, one after the other: the last word counts.
#[derive(Default)]
struct Containers {
    ready: usize,
    total: usize,
    status: String,
    restarts: Restarts,
    /// Of the sidecars that were looked at.
    sidecar_restarts: Restarts,
}

impl Containers {
    fn read(spec: &k8s::PodSpec, status: &k8s::PodStatus) -> Self {
        let sidecars = spec.init_containers.iter().flatten().filter(|c| is_sidecar(c)).count();
        let mut all = Self { total: spec.containers.len() + sidecars, status: pod_word(status), ..Self::default() };
        let initializing = all.read_init(spec, status);
        if !initializing || has_true(status, "Initialized") {
            all.read_apps(status);
        }
        all
    }

    /// Up to the first init container that isn't done; is there one?
    fn read_init(&mut self, spec: &k8s::PodSpec, status: &k8s::PodStatus) -> bool {
        let count = spec.init_containers.as_ref().map_or(0, Vec::len);
        for (index, container) in status.init_container_statuses.iter().flatten().enumerate() {
            self.restarts.count(container);
            let is_sidecar = is_named_sidecar(spec, &container.name);
            if is_sidecar {
                self.sidecar_restarts.count(container);
            }
            let state = container.state.clone().unwrap_or_default();
            if state.terminated.as_ref().is_some_and(|end| end.exit_code == 0) {
                continue;
            }
            if container.started == Some(true) && is_sidecar {
                self.ready += usize::from(container.ready);
                continue;
            }
            let waiting = state.waiting.and_then(|waiting| waiting.reason).unwrap_or_default();
            self.status = match state.terminated {
                Some(end) => format!("Init:{}", end_word(&end)),
                None if !waiting.is_empty() && waiting != "PodInitializing" => format!("Init:{waiting}"),
                None => format!("Init:{index}/{count}"),
            };
            return true;
        }
        false
    }

    /// The first app container that has something to say comes last.
    fn read_apps(&mut self, status: &k8s::PodStatus) {
        // From here on only what stays counts.
        self.restarts = self.sidecar_restarts.clone();
        let (mut any_runs, mut any_failed) = (false, false);
        for container in status.container_statuses.iter().flatten().rev() {
            self.restarts.count(container);
            let state = container.state.clone().unwrap_or_default();
            match (state.waiting.and_then(|w| w.reason).filter(|reason| !reason.is_empty()), state.terminated) {
                (Some(reason), _) => self.status = reason,
                (None, Some(end)) => {
                    // One that has ended well doesn't hide that another failed.
                    let word = end_word(&end);
                    if word != "Completed" || !any_failed {
                        self.status = word;
                    }
                    any_failed |= end.exit_code != 0;
                }
                (None, None) if container.ready && state.running.is_some() => {
                    any_runs = true;
                    self.ready += 1;
                }
                (None, None) => {}
            }
        }
        // Nor does it speak for the others that still run.
        if self.status == "Completed" && any_runs {
            self.status = if has_true(status, "Ready") { "Running" } else { "NotReady" }.into();
        }
    }
}

#[derive(Clone, Default)]
struct Restarts {
    count: i32,
    last: Option<Time>,
}

impl Restarts {
    fn count(&mut self, container: &k8s::ContainerStatus) {
        self.count += container.restart_count;
        let end = container.last_state.as_ref().and_then(|state| state.terminated.as_ref());
        self.last = self.last.take().max(end.and_then(|end| end.finished_at.clone()));
    }
}

/// What the status is called as long as no container has a say.
fn pod_word(status: &k8s::PodStatus) -> String {
    let mut conditions = status.conditions.iter().flatten();
    if conditions.any(|c| c.type_ == "PodScheduled" && c.reason.as_deref() == Some("SchedulingGated")) {
        return "SchedulingGated".into();
    }
    let reason = status.reason.clone().filter(|reason| !reason.is_empty());
    reason.or_else(|| status.phase.clone()).unwrap_or_default()
}

fn deleting(pod: &k8s::Pod, status: &k8s::PodStatus) -> Option<&'static str> {
    pod.metadata.deletion_timestamp.as_ref()?;
    if status.reason.as_deref() == Some("NodeLost") {
        return Some("Unknown");
    }
    let ended = matches!(status.phase.as_deref(), Some("Succeeded" | "Failed"));
    (!ended).then_some("Terminating")
}

fn end_word(end: &k8s::ContainerStateTerminated) -> String {
    match (end.reason.as_deref().unwrap_or_default(), end.signal.unwrap_or_default()) {
        ("", 0) => format!("ExitCode:{}", end.exit_code),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.into(),
    }
}

fn readiness_gates(spec: &k8s::PodSpec, status: &k8s::PodStatus) -> String {
    match spec.readiness_gates.as_deref().unwrap_or_default() {
        [] => NONE.into(),
        gates => {
            let open = gates.iter().filter(|gate| has_true(status, &gate.condition_type)).count();
            format!("{open}/{}", gates.len())
        }
    }
}

fn has_true(status: &k8s::PodStatus, condition: &str) -> bool {
    status.conditions.iter().flatten().find(|c| c.type_ == condition).is_some_and(|c| c.status == "True")
}

fn is_sidecar(container: &k8s::Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}

fn is_named_sidecar(spec: &k8s::PodSpec, name: &str) -> bool {
    spec.init_containers.iter().flatten().any(|container| container.name == name && is_sidecar(container))
}
