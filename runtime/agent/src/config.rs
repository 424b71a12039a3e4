//! The configuration file of the agent: KubeletConfiguration with its own names where it has them, what is Husk's under `husk`.

mod check;
mod eviction;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use husk_api::{Gate, Gates};
use husk_core::backoff::BackoffConfig;
use husk_core::eviction::Left;
use husk_core::memory::ReservationPolicy;
use husk_core::quantity::Quantity;
use husk_core::spec::ResourceList;
use husk_engine::{Compiler, EngineConfig};
use jiff::SignedDuration;
use serde::de::{Deserializer, Error};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::images::{ImageSource, ImagesConfig};
use crate::local::NodeLimits;
use crate::machine;
use crate::shares::MemoryQos;
use crate::users::IDS_PER_POD;

/// A big module takes a minute here, and several on a small core.
const COMPILE_TIME: Duration = Duration::from_secs(300);
const COMPILE_MEMORY: u64 = 1 << 30;

/// A larger file is none that anybody wrote.
const MOST_BYTES: u64 = 1 << 20;
/// Pods that have ended: upstream keeps 12,500 of a whole cluster, a device has a store of flash.
const TERMINATED_PODS: usize = 500;
/// Fields of which a new value takes effect while the agent runs, with `HUP`.
const AT_RUN_TIME: [&str; 17] = [
    "evictionHard",
    "evictionMaxPodGracePeriod",
    "evictionMinimumReclaim",
    "evictionPressureTransitionPeriod",
    "evictionSoft",
    "evictionSoftGracePeriod",
    "imageGCHighThresholdPercent",
    "imageGCLowThresholdPercent",
    "imageMaximumGCAge",
    "imageMinimumGCAge",
    "kubeReserved",
    "maxPods",
    "shutdownGracePeriod",
    "shutdownGracePeriodCriticalPods",
    "systemReserved",
    "husk.imageSources",
    "husk.images",
];

/// What can be configured. Everything has a default; what isn't known is an error.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct AgentConfiguration {
    /// `kubelet.config.k8s.io/v1beta1`.
    pub api_version: Option<String>,
    /// `KubeletConfiguration`.
    pub kind: Option<String>,
    /// A folder with manifests of static pods.
    pub static_pod_path: Option<PathBuf>,
    /// How often that is looked at without a hint (20s).
    pub file_check_frequency: Option<Span>,
    /// How long pods have to end when the agent is told to (30s). With 0 they go on when it starts again.
    pub shutdown_grace_period: Option<Span>,
    /// The part of it that critical pods have for themselves (10s).
    pub shutdown_grace_period_critical_pods: Option<Span>,
    /// How many pods there may be (1000).
    pub max_pods: Option<u32>,
    /// What the system needs, by resource, as in `memory: 64Mi`.
    pub system_reserved: BTreeMap<String, String>,
    /// What the agent needs.
    pub kube_reserved: BTreeMap<String, String>,
    /// What has to be left, or pods go at once, as in `memory.available: 100Mi` or `nodefs.available: 10%` (`memory.available`: 100Mi,
    /// or 5% where that is less). Whoever writes it gives all of it.
    pub eviction_hard: Option<BTreeMap<String, String>>,
    /// The same, when it has been so for a while.
    pub eviction_soft: BTreeMap<String, String>,
    /// How long, for each of them.
    pub eviction_soft_grace_period: BTreeMap<String, Span>,
    /// How much more than that has to be left before it is enough again.
    pub eviction_minimum_reclaim: BTreeMap<String, String>,
    /// The most grace, in seconds, of a pod that goes for one of `evictionSoft` (0).
    pub eviction_max_pod_grace_period: Option<i64>,
    /// For how long the node is said to be short after it was (5m).
    pub eviction_pressure_transition_period: Option<Span>,
    /// The back-off of containers that crash.
    pub crash_loop_back_off: CrashLoopBackOff,
    /// Images are removed when more of the disk is used (85).
    #[serde(rename = "imageGCHighThresholdPercent")]
    pub image_gc_high_threshold_percent: Option<u8>,
    /// So many are removed that no more of it is used (80).
    #[serde(rename = "imageGCLowThresholdPercent")]
    pub image_gc_low_threshold_percent: Option<u8>,
    /// What came later than this ago stays (2m).
    #[serde(rename = "imageMinimumGCAge")]
    pub image_minimum_gc_age: Option<Span>,
    /// What was unused for so long goes even though there is room; 0 is never (0).
    #[serde(rename = "imageMaximumGCAge")]
    pub image_maximum_gc_age: Option<Span>,
    /// Users that are pods' own.
    pub user_namespaces: UserNamespaces,
    /// How much of what lies between its request and its limit a container may use before it is slowed down, more than 0 and up to 1.
    pub memory_throttling_factor: Option<f64>,
    /// What of containers' memory is kept for them (None).
    pub memory_reservation_policy: Option<MemoryReservationPolicy>,
    /// Features that are turned on or off (NODE-06).
    pub feature_gates: BTreeMap<String, bool>,
    /// What no KubeletConfiguration has.
    pub husk: HuskConfiguration,
}

/// The back-off of containers that crash.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct CrashLoopBackOff {
    /// The longest delay before a container is restarted, 1s to 300s (300s).
    pub max_container_restart_period: Option<Span>,
}

/// Users that are pods' own (`hostUsers: false`).
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct UserNamespaces {
    /// How many ids each such pod has, a multiple of 65536 (65536). Pods that have some already keep them.
    pub ids_per_pod: Option<u32>,
}

/// What of containers' memory is kept for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum MemoryReservationPolicy {
    /// Nothing.
    None,
    /// Requests, by the class of the pod.
    TieredReservation,
}

impl From<MemoryReservationPolicy> for ReservationPolicy {
    fn from(policy: MemoryReservationPolicy) -> Self {
        match policy {
            MemoryReservationPolicy::None => Self::None,
            MemoryReservationPolicy::TieredReservation => Self::TieredReservation,
        }
    }
}

/// How guests that compute are stopped, so that others have their turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Metering {
    /// They count what they do. It costs calls and branches the most.
    Fuel,
    /// They look at a clock. There are no budgets of fuel then.
    Epochs,
}

/// What no KubeletConfiguration has.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct HuskConfiguration {
    /// What outlives the agent.
    pub data_dir: Option<PathBuf>,
    /// Where compiled modules are kept; in the data folder if not given.
    pub cache_dir: Option<PathBuf>,
    /// The Unix socket of the API.
    pub socket: Option<PathBuf>,
    /// A loopback address where the API listens as well, as in `127.0.0.1:8001`. Whoever is on this machine may use it.
    pub listen: Option<SocketAddr>,
    /// Name of the node; the machine's if not given.
    pub node_name: Option<String>,
    /// Folders that images are pulled from, in this order: OCI image layouts, or folders with layouts, tars of them, Wasm files.
    pub image_sources: Vec<PathBuf>,
    /// Threads that guests compute on, at a lower priority than the agent's own (as many as there are processors).
    pub guest_threads: Option<NonZeroU32>,
    /// How guests that compute are stopped (Fuel).
    pub metering: Option<Metering>,
    /// Files, folders, sockets and streams that one instance of a container may hold open at once (4096).
    pub guest_open_files: Option<NonZeroU32>,
    /// Bytes of compiled code that are kept, as in `256Mi` (256Mi).
    pub compiled_code_limit: Option<String>,
    /// Time of a processor that one module may take to compile, as in `5m` (5m).
    pub compile_timeout: Option<Span>,
    /// Memory that one module may take to compile, as in `512Mi` (half of the machine's, shared by all that are compiled at the same time,
    /// 1Gi at most).
    pub compile_memory: Option<String>,
    /// Pods that have ended go beyond this number, the oldest first; 0 for never (500).
    #[serde(rename = "terminatedPodGCThreshold")]
    pub terminated_pod_gc_threshold: Option<usize>,
    /// What images are, as in `redis: /usr/share/husk/redis.wasm`.
    pub images: BTreeMap<String, PathBuf>,
}

/// A time as Go writes it, as in `1m30s`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span(pub Duration);

/// Why a configuration can't be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigurationError {
    /// The file can't be read.
    #[error("{path}: {error}")]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why not.
        error: std::io::Error,
    },
    /// There is a mistake in it.
    #[error("{path}: {message}")]
    Wrong {
        /// Which.
        path: PathBuf,
        /// Field, mistake and remedy.
        message: String,
    },
}

impl AgentConfiguration {
    /// Reads a file.
    ///
    /// # Errors
    /// It can't be read, or something in it is wrong; the message names the line or the field.
    pub fn read(path: &Path) -> Result<Self, ConfigurationError> {
        let unreadable = |error| ConfigurationError::Unreadable { path: path.to_owned(), error };
        let size = std::fs::metadata(path).map_err(unreadable)?.len();
        if size > MOST_BYTES {
            return Err(unreadable(std::io::Error::other(format!("{size} bytes are too many for a configuration"))));
        }
        let text = std::fs::read_to_string(path).map_err(unreadable)?;
        Self::parse(&text).map_err(|message| ConfigurationError::Wrong { path: path.to_owned(), message })
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// What is wrong in it, and where.
    pub fn parse(text: &str) -> Result<Self, String> {
        let is_empty = text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#'));
        let read: Self = match is_empty {
            true => Self::default(),
            false => serde_saphyr::from_str(text).map_err(|error| error.to_string())?,
        };
        read.check()?;
        Ok(read)
    }

    /// Features that are on, and what there is to say about wishes that change nothing.
    pub fn gates(&self) -> (Gates, Vec<String>) {
        // They were looked at when it was read.
        Gates::configured(&self.feature_gates).unwrap_or_default()
    }

    /// What is to be done about memory before limits are met.
    fn memory_qos(&self) -> MemoryQos {
        let is_on = self.gates().0.has(Gate::MemoryQoS);
        let policy = self.memory_reservation_policy.filter(|_| is_on);
        MemoryQos {
            throttling_factor: self.memory_throttling_factor.filter(|_| is_on),
            reservation: policy.map_or(ReservationPolicy::None, ReservationPolicy::from),
        }
    }

    /// What pods may do.
    pub fn limits(&self) -> NodeLimits {
        let longest = self.crash_loop_back_off.max_container_restart_period.map(|span| span.0);
        let crash_loop = match self.gates().0.has(Gate::ReduceDefaultCrashLoopBackOffDecay) {
            true => BackoffConfig::reduced(longest),
            false => BackoffConfig::standard(longest),
        };
        let terminated_pods = self.husk.terminated_pod_gc_threshold.unwrap_or(TERMINATED_PODS);
        let ids_per_pod = self.user_namespaces.ids_per_pod.unwrap_or(IDS_PER_POD);
        NodeLimits {
            crash_loop,
            terminated_pods,
            reserved: self.reserved(),
            ids_per_pod,
            memory_qos: self.memory_qos(),
            // It was looked at when it was read.
            evictions: self.evictions().unwrap_or_default(),
            guest_threads: self.husk.guest_threads,
            guest_open_files: self.husk.guest_open_files,
            metering: match self.husk.metering {
                None | Some(Metering::Fuel) => husk_engine::Metering::Fuel,
                Some(Metering::Epochs) => husk_engine::Metering::Epochs,
            },
        }
    }

    /// Fields in which another configuration differs, as they are written, and whether that takes effect while the agent runs.
    pub fn differences(&self, other: &Self) -> Vec<(String, bool)> {
        let fields = |of: &Self| serde_json::to_value(of).unwrap_or_default();
        let (mut before, mut after) = (fields(self), fields(other));
        let own = (before["husk"].take(), after["husk"].take());
        let differing = |prefix: &str, before: &Value, after: &Value| {
            let names =
                after.as_object().into_iter().flatten().filter(|(name, value)| before[name.as_str()] != **value);
            names.map(|(name, _)| format!("{prefix}{name}")).collect::<Vec<_>>()
        };
        let mut names = differing("", &before, &after);
        names.extend(differing("husk.", &own.0, &own.1));
        names
            .into_iter()
            .map(|name| (AT_RUN_TIME.contains(&name.as_str()), name))
            .map(|(now, name)| (name, now))
            .collect()
    }

    /// Takes from another configuration what takes effect while the agent runs; the rest still differs.
    pub fn take_what_takes_effect(&mut self, other: &Self) {
        let other = other.clone();
        self.eviction_hard = other.eviction_hard;
        self.eviction_max_pod_grace_period = other.eviction_max_pod_grace_period;
        self.eviction_minimum_reclaim = other.eviction_minimum_reclaim;
        self.eviction_pressure_transition_period = other.eviction_pressure_transition_period;
        (self.eviction_soft, self.eviction_soft_grace_period) = (other.eviction_soft, other.eviction_soft_grace_period);
        self.image_gc_high_threshold_percent = other.image_gc_high_threshold_percent;
        self.image_gc_low_threshold_percent = other.image_gc_low_threshold_percent;
        self.image_maximum_gc_age = other.image_maximum_gc_age;
        self.image_minimum_gc_age = other.image_minimum_gc_age;
        (self.kube_reserved, self.system_reserved) = (other.kube_reserved, other.system_reserved);
        self.max_pods = other.max_pods;
        self.shutdown_grace_period = other.shutdown_grace_period;
        self.shutdown_grace_period_critical_pods = other.shutdown_grace_period_critical_pods;
        (self.husk.image_sources, self.husk.images) = (other.husk.image_sources, other.husk.images);
    }

    /// `systemReserved` and `kubeReserved` together.
    pub fn reserved(&self) -> ResourceList {
        let mut sum = ResourceList::new();
        let lists = self.system_reserved.iter().chain(&self.kube_reserved);
        for (name, amount) in lists.filter_map(|(name, text)| Some((name, Quantity::parse(text).ok()?))) {
            let before = sum.remove(name).unwrap_or_default();
            sum.insert(name.clone(), before.checked_add(&amount).unwrap_or(amount));
        }
        sum
    }

    /// What compiles modules, within which bounds.
    pub fn compiler(&self, program: PathBuf, arguments: Vec<OsString>) -> Compiler {
        let configured = self.husk.compile_memory.as_deref().and_then(|text| Quantity::parse(text).ok());
        // All that may be compiled at the same time takes half of the machine's memory.
        let part = |memory: Left| memory.capacity / 2 / EngineConfig::default().compilers.max(1) as u64;
        let own = || machine::memory().map_or(COMPILE_MEMORY, |memory| part(memory).min(COMPILE_MEMORY));
        Compiler {
            program,
            arguments,
            memory: configured.and_then(|bytes| u64::try_from(bytes.value()).ok()).unwrap_or_else(own),
            time: self.husk.compile_timeout.map_or(COMPILE_TIME, |span| span.0),
        }
    }

    /// How images are kept.
    pub fn images(&self) -> ImagesConfig {
        let own = ImagesConfig::default();
        let limit = self.husk.compiled_code_limit.as_deref().and_then(|text| Quantity::parse(text).ok());
        ImagesConfig {
            sources: self.husk.image_sources.iter().cloned().map(ImageSource::Folder).collect(),
            high_threshold_percent: self.image_gc_high_threshold_percent.unwrap_or(own.high_threshold_percent),
            low_threshold_percent: self.image_gc_low_threshold_percent.unwrap_or(own.low_threshold_percent),
            minimum_age: self.image_minimum_gc_age.map_or(own.minimum_age, |span| span.0),
            maximum_age: self.image_maximum_gc_age.map_or(own.maximum_age, |span| span.0),
            compiled_code_limit: limit
                .and_then(|limit| u64::try_from(limit.value()).ok())
                .unwrap_or(own.compiled_code_limit),
            ..own
        }
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:?}", self.0))
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text == "0" {
            return Ok(Self::default());
        }
        let span: SignedDuration =
            text.parse().map_err(|_| D::Error::custom(format!("`{text}` is no time: write it as in 1m30s")))?;
        Duration::try_from(span).map(Self).map_err(|_| D::Error::custom(format!("`{text}` must not be negative")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_configuration_is_read() {
        let read = AgentConfiguration::parse(
            "apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
staticPodPath: /etc/husk/pods
fileCheckFrequency: 5s
shutdownGracePeriod: 1m30s
shutdownGracePeriodCriticalPods: 10s
maxPods: 20
systemReserved: {memory: 64Mi, cpu: 100m}
kubeReserved: {memory: 32Mi}
crashLoopBackOff: {maxContainerRestartPeriod: 30s}
husk:
  dataDir: /data
  nodeName: gateway-7
  listen: 127.0.0.1:8001
  images: {redis: /usr/share/redis.wasm}
",
        )
        .expect("valid");
        assert_eq!(read.shutdown_grace_period, Some(Span(Duration::from_secs(90))));
        assert_eq!(read.reserved()["memory"], Quantity::parse("96Mi").expect("a quantity"));
        assert_eq!(read.husk.node_name.as_deref(), Some("gateway-7"));
        assert_eq!(AgentConfiguration::parse("# nothing\n").expect("valid"), AgentConfiguration::default());
    }

    #[test]
    fn the_samples_of_the_seed_documents_are_taken() {
        for text in [
            include_str!("../tests/seeds/ids-per-pod.yaml"),
            include_str!("../tests/seeds/memory-qos.yaml"),
            include_str!("../tests/seeds/restart-delay-100s.yaml"),
            include_str!("../tests/seeds/restart-delay-2s.yaml"),
        ] {
            let read = AgentConfiguration::parse(text).expect(text);
            assert_ne!(read, AgentConfiguration::parse("kind: KubeletConfiguration").expect("valid"), "{text}");
        }
    }

    #[test]
    fn memory_is_looked_after_if_that_is_configured_and_not_gated_off() {
        let of = |text: &str| AgentConfiguration::parse(text).expect("valid").limits().memory_qos;
        let wanted = include_str!("../tests/seeds/memory-qos.yaml");
        let is = MemoryQos { throttling_factor: Some(0.9), reservation: ReservationPolicy::TieredReservation };
        assert_eq!(of(wanted), is);
        assert_eq!(of("maxPods: 5"), MemoryQos::default());
        assert_eq!(of(&format!("{wanted}\nfeatureGates: {{MemoryQoS: false}}")), MemoryQos::default());
    }

    #[test]
    fn what_differs_is_named_with_what_becomes_of_it() {
        let of = |text: &str| AgentConfiguration::parse(text).expect("valid");
        let before = of("{maxPods: 5, staticPodPath: /a, husk: {nodeName: a, images: {x: /x.wasm}}}");
        let after = of("{maxPods: 6, shutdownGracePeriod: 1m, husk: {nodeName: b, images: {x: /y.wasm}}}");
        let named = |list: &[(&str, bool)]| -> Vec<_> { list.iter().map(|(n, now)| ((*n).to_owned(), *now)).collect() };
        let mut differences = before.differences(&after);
        differences.sort();
        let expected = [
            ("husk.images", true),
            ("husk.nodeName", false),
            ("maxPods", true),
            ("shutdownGracePeriod", true),
            ("staticPodPath", false),
        ];
        assert_eq!(differences, named(&expected));
        assert_eq!(before.differences(&before), []);
        let mut now = before.clone();
        now.take_what_takes_effect(&after);
        let still: Vec<_> = differences.into_iter().filter(|(_, takes_effect)| !takes_effect).collect();
        let mut left = now.differences(&after);
        left.sort();
        assert_eq!(left, still);
    }

    /// A field that was renamed would never be said to take effect.
    #[test]
    fn fields_that_take_effect_are_fields() {
        let fields = serde_json::to_value(AgentConfiguration::default()).expect("JSON");
        for name in AT_RUN_TIME {
            let known = match name.strip_prefix("husk.") {
                Some(own) => fields["husk"].get(own),
                None => fields.get(name),
            };
            assert!(known.is_some(), "{name}");
        }
    }

    #[test]
    fn the_gate_of_the_reduced_back_off_reduces_it() {
        let of = |text: &str| AgentConfiguration::parse(text).expect("valid").limits().crash_loop;
        assert_eq!(of("featureGates: {ReduceDefaultCrashLoopBackOffDecay: true}"), BackoffConfig::reduced(None));
        assert_eq!(of("featureGates: {}"), BackoffConfig::standard(None));
    }

    #[test]
    fn mistakes_are_named() {
        for (text, said) in [
            ("staticPodPaths: /x", "staticPodPaths"),
            ("kind: Kubelet", "kind: `Kubelet` is not supported"),
            ("shutdownGracePeriod: soon", "`soon` is no time"),
            ("shutdownGracePeriod: -1s", "must not be negative"),
            ("{shutdownGracePeriod: 1s, shutdownGracePeriodCriticalPods: 2s}", "must not be longer"),
            ("featureGates: {EnvFile: true}", "featureGates.EnvFile: unknown feature gate; did you mean `EnvFiles`?"),
            ("featureGates: {EnvFiles: maybe}", "featureGates"),
            (
                "{featureGates: {KubeletCrashLoopBackOffMax: false}, crashLoopBackOff: {maxContainerRestartPeriod: 2s}}",
                "the feature gate KubeletCrashLoopBackOffMax is off",
            ),
            ("maxPods: 0", "maxPods: must be at least 1"),
            ("systemReserved: {memory: lots}", "systemReserved.memory"),
            ("systemReserved: {cpu: -1}", "systemReserved.cpu: must not be negative"),
            ("crashLoopBackOff: {maxContainerRestartPeriod: 1h}", "from 1s to 300s"),
            ("husk: {listen: '0.0.0.0:80'}", "not a loopback address"),
            ("husk: {nodeName: Edge_7}", "husk.nodeName"),
            ("husk: {dataDirs: x}", "dataDirs"),
            ("imageGCLowThresholdPercent: 90", "imageGCLowThresholdPercent: 90 must be less than"),
            ("imageMaximumGCAge: 1m", "imageMaximumGCAge"),
            ("husk: {compiledCodeLimit: much}", "husk.compiledCodeLimit"),
            (
                "memoryThrottlingFactor: 0",
                "memoryThrottlingFactor: 0 must be greater than 0 and less than or equal to 1.0",
            ),
            ("memoryThrottlingFactor: 1.1", "memoryThrottlingFactor: 1.1 must be greater than 0"),
            ("memoryThrottlingFactor: .nan", "memoryThrottlingFactor: NaN must be greater than 0"),
            ("memoryReservationPolicy: Some", "memoryReservationPolicy"),
            ("husk: {guestThreads: 0}", "guestThreads"),
            ("husk: {guestOpenFiles: 0}", "guestOpenFiles"),
            ("husk: {compileMemory: 0}", "husk.compileMemory: must be at least 16Mi"),
            ("husk: {compileTimeout: 1ms}", "husk.compileTimeout: must be at least 1s"),
        ] {
            let error = AgentConfiguration::parse(text).expect_err(text);
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
