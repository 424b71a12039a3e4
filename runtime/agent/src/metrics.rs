//! Figures for Prometheus, under the kubelet's names where it has them. What is about a pod goes with the pod.

mod machine;
mod pods;
mod usage;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use husk_core::eviction::Signal;
use husk_core::io::{InstanceRef, PodUid, ProbeOutcome};
use husk_core::spec::ProbeKind;
use k8s_openapi::api::core::v1::Pod;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

use self::machine::ThisProcess;
use self::pods::Pods;
use self::usage::WhatPodsUse;
use crate::measures::Measures;
use crate::notice::Notice;

/// The figures of a node.
#[derive(Clone, Debug)]
pub struct Metrics(Arc<Inner>);

struct Inner {
    registry: Registry,
    pods: Mutex<Pods>,
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Metrics {
    /// The `Content-Type` of [`text`](Self::text).
    pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

    /// Of a node whose time is counted from `epoch`, with what its pods use.
    pub(crate) fn new(node_name: &str, epoch: SystemTime, measures: Measures) -> Self {
        let mut registry = Registry::default();
        let pods = Pods::new(&mut registry, node_name, epoch);
        registry.register_collector(Box::new(ThisProcess::new()));
        registry.register_collector(Box::new(WhatPodsUse(measures)));
        Self(Arc::new(Inner { registry, pods: Mutex::new(pods) }))
    }

    /// All of them, as Prometheus reads them.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // A string takes everything.
        let _ = encode(&mut text, &self.0.registry);
        text
    }

    /// Something happened to a pod.
    pub(crate) fn observe(&self, notice: &Notice) {
        self.pods(|pods| pods.observe(notice));
    }

    /// There is a pod, with users of its own or with the machine's.
    pub(crate) fn take(&self, pod: &Pod, has_users: bool) {
        let of = |field: &Option<String>| field.clone().unwrap_or_default();
        let meta = &pod.metadata;
        self.pods(|pods| pods.take(PodUid::from(&*of(&meta.uid)), of(&meta.namespace), of(&meta.name), has_users));
    }

    /// A probe was made.
    pub(crate) fn probed(&self, instance: &InstanceRef, kind: ProbeKind, outcome: ProbeOutcome, took: Duration) {
        self.pods(|pods| pods.probed(instance, kind, outcome, took));
    }

    /// A pod had to go because the node is short of something.
    pub(crate) fn evicted(&self, signal: Signal) {
        self.pods(|pods| pods.evicted(signal));
    }

    fn pods(&self, change: impl FnOnce(&mut Pods)) {
        change(&mut self.0.pods.lock().unwrap_or_else(PoisonError::into_inner));
    }
}
