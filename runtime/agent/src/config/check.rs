//! What is wrong with a configuration that can be read.

use std::time::Duration;

use husk_api::{Gate, Gates};
use husk_core::quantity::Quantity;

use super::AgentConfiguration;
use crate::users::IDS_PER_POD;

const API_VERSION: &str = "kubelet.config.k8s.io/v1beta1";
const KIND: &str = "KubeletConfiguration";

/// Bytes that a compiler takes for the least of modules.
const LEAST_COMPILE_MEMORY: i64 = 16 << 20;

impl AgentConfiguration {
    /// Checks what a type can't say.
    pub(super) fn check(&self) -> Result<(), String> {
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
        let (gates, _) = Gates::configured(&self.feature_gates)?;
        if period.is_some() && !gates.has(Gate::KubeletCrashLoopBackOffMax) {
            return Err(
                "crashLoopBackOff.maxContainerRestartPeriod: the feature gate KubeletCrashLoopBackOffMax is off: \
                        turn it on, or leave this out"
                    .into(),
            );
        }
        if self.user_namespaces.ids_per_pod.is_some_and(|ids| ids == 0 || ids % IDS_PER_POD != 0) {
            return Err(format!("userNamespaces.idsPerPod: must be a multiple of {IDS_PER_POD}"));
        }
        self.evictions()?;
        if self.max_pods == Some(0) {
            return Err("maxPods: must be at least 1".into());
        }
        // A number that is none isn't in the range either.
        if let Some(factor) = self.memory_throttling_factor.filter(|factor| !(*factor > 0.0 && *factor <= 1.0)) {
            return Err(format!(
                "memoryThrottlingFactor: {factor} must be greater than 0 and less than or equal to 1.0"
            ));
        }
        if let Some(problem) = self.images().problems().into_iter().next() {
            return Err(problem);
        }
        for (field, text) in [
            ("husk.compiledCodeLimit", &self.husk.compiled_code_limit),
            ("husk.compileMemory", &self.husk.compile_memory),
        ] {
            let amount =
                text.as_deref().map(Quantity::parse).transpose().map_err(|error| format!("{field}: {error}"))?;
            if amount.is_some_and(|amount| amount < Quantity::ZERO) {
                return Err(format!("{field}: must not be negative"));
            }
        }
        let memory = self.husk.compile_memory.as_deref().and_then(|text| Quantity::parse(text).ok());
        if memory.is_some_and(|memory| memory.value() < LEAST_COMPILE_MEMORY) {
            return Err("husk.compileMemory: must be at least 16Mi".into());
        }
        if self.husk.compile_timeout.is_some_and(|span| span.0 < Duration::from_secs(1)) {
            return Err("husk.compileTimeout: must be at least 1s".into());
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
