//! The configuration file of the agent: KubeletConfiguration with its own names where it has them, what is Husk's under `husk`.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use husk_core::quantity::Quantity;
use husk_core::spec::ResourceList;
use jiff::SignedDuration;
use serde::Deserialize;
use serde::de::{Deserializer, Error};

use crate::images::{ImageSource, ImagesConfig};

const API_VERSION: &str = "kubelet.config.k8s.io/v1beta1";
const KIND: &str = "KubeletConfiguration";
/// A larger file is none that anybody wrote.
const MOST_BYTES: u64 = 1 << 20;

/// What can be configured. Everything has a default; what isn't known is an error.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
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
    /// What no KubeletConfiguration has.
    pub husk: HuskConfiguration,
}

/// The back-off of containers that crash.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct CrashLoopBackOff {
    /// The longest delay before a container is restarted, 1s to 300s (300s).
    pub max_container_restart_period: Option<Span>,
}

/// What no KubeletConfiguration has.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
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
    /// Bytes of compiled code that are kept, as in `256Mi` (256Mi).
    pub compiled_code_limit: Option<String>,
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

    fn check(&self) -> Result<(), String> {
        for (field, known, expected) in [("apiVersion", &self.api_version, API_VERSION), ("kind", &self.kind, KIND)] {
            if let Some(known) = known.as_ref().filter(|known| *known != expected) {
                return Err(format!("{field}: `{known}` is not supported: write {expected}, or leave it out"));
            }
        }
        let period = self.crash_loop_back_off.max_container_restart_period.map(|span| span.0);
        if period.is_some_and(|period| !(Duration::from_secs(1)..=Duration::from_secs(300)).contains(&period)) {
            return Err("crashLoopBackOff.maxContainerRestartPeriod: must be from 1s to 300s".into());
        }
        if let (Some(all), Some(critical)) = (self.shutdown_grace_period, self.shutdown_grace_period_critical_pods)
            && critical.0 > all.0
        {
            return Err("shutdownGracePeriodCriticalPods: must not be longer than shutdownGracePeriod".into());
        }
        if self.max_pods == Some(0) {
            return Err("maxPods: must be at least 1".into());
        }
        if let Some(problem) = self.images().problems().into_iter().next() {
            return Err(problem);
        }
        let limit = self.husk.compiled_code_limit.as_deref().map(Quantity::parse).transpose();
        if limit
            .map_err(|error| format!("husk.compiledCodeLimit: {error}"))?
            .is_some_and(|limit| limit < Quantity::ZERO)
        {
            return Err("husk.compiledCodeLimit: must not be negative".into());
        }
        let reserves = [("systemReserved", &self.system_reserved), ("kubeReserved", &self.kube_reserved)];
        for (field, list) in reserves {
            for (name, text) in list {
                let amount = Quantity::parse(text).map_err(|error| format!("{field}.{name}: {error}"))?;
                if amount < Quantity::ZERO {
                    return Err(format!("{field}.{name}: must not be negative"));
                }
            }
        }
        if let Some(listen) = self.husk.listen.filter(|listen| !listen.ip().is_loopback()) {
            return Err(format!(
                "husk.listen: {listen} is not a loopback address, and the API has no authentication there"
            ));
        }
        let name = self.husk.node_name.as_deref();
        if let Some(name) = name.filter(|name| !husk_core::names::is_dns_subdomain(name)) {
            return Err(format!("husk.nodeName: `{name}` must be lower case letters, digits, `-` and `.`"));
        }
        Ok(())
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
    fn mistakes_are_named() {
        for (text, said) in [
            ("staticPodPaths: /x", "staticPodPaths"),
            ("kind: Kubelet", "kind: `Kubelet` is not supported"),
            ("shutdownGracePeriod: soon", "`soon` is no time"),
            ("shutdownGracePeriod: -1s", "must not be negative"),
            ("{shutdownGracePeriod: 1s, shutdownGracePeriodCriticalPods: 2s}", "must not be longer"),
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
        ] {
            let error = AgentConfiguration::parse(text).expect_err(text);
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
