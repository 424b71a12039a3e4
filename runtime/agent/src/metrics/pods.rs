//! Figures of pods, from what is told of them.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use husk_core::Instant;
use husk_core::event::Event;
use husk_core::eviction::Signal;
use husk_core::io::{InstanceRef, PodUid, ProbeOutcome};
use husk_core::spec::ProbeKind;
use husk_core::status::{ContainerState, ContainerStatus, Phase, PodStatus};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry};

use crate::notice::Notice;

/// In seconds: upstream's, and below them what a Wasm module takes.
const START_TIMES: [f64; 29] = [
    0.005, 0.02, 0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 20.0, 30.0, 45.0, 60.0, 120.0, 180.0, 240.0,
    300.0, 360.0, 480.0, 600.0, 900.0, 1200.0, 1800.0, 2700.0, 3600.0,
];
/// In seconds, as all clients of Prometheus have them by default.
const PROBE_TIMES: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
/// What a container waits for if it couldn't be started.
const START_ERRORS: [&str; 8] = [
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
    "StartError",
    "ErrImagePull",
    "ErrImageNeverPull",
    "InvalidImageName",
    "PostStartHookError",
];

/// How a probe ended.
const SUCCESSFUL: &str = "successful";
const FAILED: &str = "failed";
const UNKNOWN: &str = "unknown";

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct NodeLabels {
    node: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct StateLabels {
    container_state: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct SignalLabels {
    eviction_signal: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct KindLabels {
    container_type: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ErrorLabels {
    container_type: &'static str,
    code: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ContainerLabels {
    container: String,
    pod: String,
    namespace: String,
}

/// Without a uid, as upstream has them for durations.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ProbeLabels {
    probe_type: &'static str,
    container: String,
    pod: String,
    namespace: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ResultLabels {
    probe_type: &'static str,
    result: &'static str,
    container: String,
    pod: String,
    namespace: String,
    pod_uid: String,
}

/// Everything about pods that is counted.
pub(super) struct Pods {
    epoch: SystemTime,
    known: HashMap<PodUid, Known>,
    running_pods: Gauge,
    running_containers: Family<StateLabels, Gauge>,
    started_pods: Counter,
    started_pods_errors: Counter,
    started_pods_with_users: Counter,
    started_pods_with_users_errors: Counter,
    started_containers: Family<KindLabels, Counter>,
    started_containers_errors: Family<ErrorLabels, Counter>,
    start_durations: Histogram,
    start_times: Family<ContainerLabels, Gauge<f64, AtomicU64>>,
    fallbacks: Counter,
    /// It counts, but upstream's name of it doesn't say so.
    evictions: Family<SignalLabels, Gauge>,
    probes: Family<ResultLabels, Counter>,
    probe_durations: Family<ProbeLabels, Histogram, fn() -> Histogram>,
}

/// A pod as it was last seen.
#[derive(Default)]
struct Known {
    namespace: String,
    name: String,
    /// It wants users of its own.
    has_users: bool,
    /// It was pending when it was last seen, and ever before.
    starts: bool,
    now: Counts,
    /// What those wait for that couldn't be started, by their names.
    errors: Vec<(String, String)>,
    containers: Vec<ContainerLabels>,
    probes: Vec<ProbeLabels>,
}

/// What of a pod is part of a sum.
#[derive(Clone, Copy, Default)]
struct Counts {
    sandboxes: i64,
    running: i64,
    exited: i64,
}

impl Pods {
    pub(super) fn new(registry: &mut Registry, node_name: &str, epoch: SystemTime) -> Self {
        let node = Family::<NodeLabels, Gauge>::default();
        node.get_or_create(&NodeLabels { node: node_name.to_owned() }).set(1);
        add(registry, "kubelet_node_name", "The node's name. The count is always 1", node);
        // The `_total` of a counter is added when it is written.
        Self {
            epoch,
            known: HashMap::new(),
            running_pods: add(
                registry,
                "kubelet_running_pods",
                "Number of pods that have a running pod sandbox",
                Gauge::default(),
            ),
            running_containers: add(
                registry,
                "kubelet_running_containers",
                "Number of containers by their state",
                Family::default(),
            ),
            started_pods: add(
                registry,
                "kubelet_started_pods",
                "Cumulative number of pods started",
                Counter::default(),
            ),
            started_pods_errors: add(
                registry,
                "kubelet_started_pods_errors",
                "Cumulative number of errors when starting pods",
                Counter::default(),
            ),
            started_pods_with_users: add(
                registry,
                "kubelet_started_user_namespaced_pods",
                "Cumulative number of pods with user namespaces started",
                Counter::default(),
            ),
            started_pods_with_users_errors: add(
                registry,
                "kubelet_started_user_namespaced_pods_errors",
                "Cumulative number of errors when starting pods with user namespaces",
                Counter::default(),
            ),
            started_containers: add(
                registry,
                "kubelet_started_containers",
                "Cumulative number of containers started",
                Family::default(),
            ),
            started_containers_errors: add(
                registry,
                "kubelet_started_containers_errors",
                "Cumulative number of errors when starting containers",
                Family::default(),
            ),
            start_durations: add(
                registry,
                "kubelet_pod_start_duration_seconds",
                "Duration in seconds from seeing a pod for the first time to the pod starting to run",
                Histogram::new(START_TIMES),
            ),
            start_times: add(
                registry,
                "container_start_time_seconds",
                "Start time of the container since unix epoch in seconds",
                Family::default(),
            ),
            fallbacks: add(
                registry,
                "kubelet_lifecycle_handler_http_fallbacks",
                "The number of times lifecycle handlers successfully fell back to http from https",
                Counter::default(),
            ),
            evictions: add(
                registry,
                "kubelet_evictions",
                "Cumulative number of pod evictions by eviction signal",
                Family::default(),
            ),
            probes: add(
                registry,
                "prober_probe",
                "Cumulative number of a liveness, readiness or startup probe for a container by result",
                Family::default(),
            ),
            probe_durations: add(
                registry,
                "prober_probe_duration_seconds",
                "Duration in seconds for a probe response",
                Family::new_with_constructor(|| Histogram::new(PROBE_TIMES)),
            ),
        }
    }

    pub(super) fn observe(&mut self, notice: &Notice) {
        match notice {
            Notice::Event { event, .. } => self.count(event),
            Notice::Status { at, pod, status, .. } => self.see(*at, pod, status),
            Notice::Forgotten { pod, .. } => self.forget(pod),
            _ => {}
        }
    }

    /// There is a pod of that name.
    pub(super) fn take(&mut self, uid: PodUid, namespace: String, name: String, has_users: bool) {
        let new = || Known { namespace, name, has_users, starts: true, ..Known::default() };
        self.known.entry(uid).or_insert_with(new);
    }

    pub(super) fn probed(&mut self, instance: &InstanceRef, kind: ProbeKind, outcome: ProbeOutcome, took: Duration) {
        // What comes after its pod is gone would stay for ever.
        let Some(known) = self.known.get_mut(&instance.pod) else { return };
        let (container, probe_type) = (&*instance.container, kind.as_str());
        let is_it = |labels: &ProbeLabels| *labels.container == *container && labels.probe_type == probe_type;
        let place = known.probes.iter().position(is_it).unwrap_or_else(|| {
            known.probes.push(ProbeLabels {
                probe_type,
                container: container.to_owned(),
                pod: known.name.clone(),
                namespace: known.namespace.clone(),
            });
            known.probes.len() - 1
        });
        let labels = &known.probes[place];
        let result = match outcome {
            ProbeOutcome::Success | ProbeOutcome::Warning => SUCCESSFUL,
            ProbeOutcome::Failure => FAILED,
            ProbeOutcome::Unknown | ProbeOutcome::Error => UNKNOWN,
        };
        self.probes.get_or_create(&labels.with(result, &instance.pod)).inc();
        self.probe_durations.get_or_create(labels).observe(took.as_secs_f64());
    }

    pub(super) fn evicted(&mut self, signal: Signal) {
        self.evictions.get_or_create(&SignalLabels { eviction_signal: signal.as_str() }).inc();
    }

    fn count(&mut self, event: &Event) {
        match &*event.reason {
            "Started" => {
                let container_type = container_type(&event.field_path);
                self.started_containers.get_or_create(&KindLabels { container_type }).inc();
            }
            "FailedCreatePodSandBox" => {
                self.started_pods_errors.inc();
                if self.known.get(&event.pod).is_some_and(|known| known.has_users) {
                    self.started_pods_with_users_errors.inc();
                }
            }
            "LifecycleHTTPFallback" => drop(self.fallbacks.inc()),
            _ => {}
        }
    }

    fn see(&mut self, at: Instant, uid: &PodUid, status: &PodStatus) {
        let Some(known) = self.known.get_mut(uid) else { return };
        let before = known.now;
        let has_sandbox = !status.pod_ips.is_empty() && !status.phase.is_terminal();
        let mut now = Counts { sandboxes: i64::from(has_sandbox), ..Counts::default() };
        if now.sandboxes > before.sandboxes {
            self.started_pods.inc();
            if known.has_users {
                self.started_pods_with_users.inc();
            }
        }
        if status.phase == Phase::Running && known.starts {
            let took = status.start_time.map(|since| at.saturating_since(since)).unwrap_or_default();
            self.start_durations.observe(took.as_secs_f64());
        }
        known.starts &= status.phase == Phase::Pending;
        let mut errors = Vec::new();
        for (container_type, container) in containers(status) {
            match &container.state {
                ContainerState::Running { started_at } => {
                    now.running += 1;
                    let labels = ContainerLabels {
                        container: container.name.clone(),
                        pod: known.name.clone(),
                        namespace: known.namespace.clone(),
                    };
                    let time = (self.epoch + started_at.since_epoch()).duration_since(UNIX_EPOCH).unwrap_or_default();
                    self.start_times.get_or_create(&labels).set(time.as_secs_f64());
                    if !known.containers.contains(&labels) {
                        known.containers.push(labels);
                    }
                }
                ContainerState::Terminated(_) => now.exited += 1,
                ContainerState::Waiting { reason, .. } => {
                    now.exited += i64::from(container.last_state.is_some());
                    if START_ERRORS.contains(&&**reason) {
                        let error = (container.name.clone(), reason.to_string());
                        if !known.errors.contains(&error) {
                            let labels = ErrorLabels { container_type, code: error.1.clone() };
                            self.started_containers_errors.get_or_create(&labels).inc();
                        }
                        errors.push(error);
                    }
                }
            }
        }
        known.errors = errors;
        known.now = now;
        self.sum_up(before, now);
    }

    fn forget(&mut self, pod: &PodUid) {
        let Some(known) = self.known.remove(pod) else { return };
        // What has no uid may be another's by now, who has the same name.
        let has_heir = self.known.values().any(|heir| heir.name == known.name && heir.namespace == known.namespace);
        for labels in &known.probes {
            for result in [SUCCESSFUL, FAILED, UNKNOWN] {
                self.probes.remove(&labels.with(result, pod));
            }
            if !has_heir {
                self.probe_durations.remove(labels);
            }
        }
        for labels in known.containers.iter().filter(|_| !has_heir) {
            self.start_times.remove(labels);
        }
        self.sum_up(known.now, Counts::default());
    }

    fn sum_up(&self, before: Counts, now: Counts) {
        self.running_pods.inc_by(now.sandboxes - before.sandboxes);
        for (container_state, change) in
            [("running", now.running - before.running), ("exited", now.exited - before.exited)]
        {
            self.running_containers.get_or_create(&StateLabels { container_state }).inc_by(change);
        }
    }
}

impl ProbeLabels {
    fn with(&self, result: &'static str, pod_uid: &PodUid) -> ResultLabels {
        let Self { probe_type, container, pod, namespace } = self.clone();
        ResultLabels { probe_type, result, container, pod, namespace, pod_uid: pod_uid.to_string() }
    }
}

/// A counter or the like, as it is known and as it is kept.
fn add<M: Metric + Clone>(registry: &mut Registry, name: &str, help: &str, metric: M) -> M {
    registry.register(name, help, metric.clone());
    metric
}

/// All containers, with how upstream calls their kind.
fn containers(status: &PodStatus) -> impl Iterator<Item = (&'static str, &ContainerStatus)> {
    let init = status.init_container_statuses.iter().map(|container| ("init_container", container));
    let apps = status.container_statuses.iter().map(|container| ("container", container));
    let ephemeral = status.ephemeral_container_statuses.iter().map(|container| ("ephemeral_container", container));
    init.chain(apps).chain(ephemeral)
}

/// Of the container that an event is about.
fn container_type(field_path: &str) -> &'static str {
    match field_path.split('{').next() {
        Some("spec.initContainers") => "init_container",
        Some("spec.ephemeralContainers") => "ephemeral_container",
        _ => "container",
    }
}
