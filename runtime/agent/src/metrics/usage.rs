//! What pods use of processors and memory, under the names of cAdvisor and of the kubelet's `/metrics/resource`.

use std::fmt;

use husk_core::cpu::Usage;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::measures::{ContainerUse, Measured, Measures, PodUse};

/// What was measured last.
#[derive(Debug)]
pub(super) struct WhatPodsUse(pub(super) Measures);

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfContainer {
    container: String,
    pod: String,
    namespace: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfPod {
    pod: String,
    namespace: String,
}

/// A figure: its name, its explanation, and where it is.
type Figure<T, N> = (&'static str, &'static str, fn(&T) -> N);

/// `_total` is added when they are written.
const SECONDS_OF_CONTAINERS: [Figure<ContainerUse, f64>; 2] = [
    ("container_cpu_usage_seconds", "Cumulative cpu time consumed by the container in core-seconds", |container| {
        container.cpu.cpu.as_secs_f64()
    }),
    ("container_cpu_cfs_throttled_seconds", "Total time duration the container has been throttled", |container| {
        container.cpu.quota.throttled.as_secs_f64()
    }),
];

const COUNTS_OF_CONTAINERS: [Figure<ContainerUse, u64>; 2] = [
    ("container_cpu_cfs_periods", "Number of elapsed enforcement period intervals", |container| {
        container.cpu.quota.periods
    }),
    ("container_cpu_cfs_throttled_periods", "Number of throttled period intervals", |container| {
        container.cpu.quota.throttled_periods
    }),
];

/// What is read as it is: the first one counts, but cAdvisor's name of it doesn't say so.
const GAUGES_OF_CONTAINERS: [Figure<ContainerUse, u64>; 4] = [
    ("container_memory_failcnt", "Number of memory usage hits limits", |container| container.memory.refused),
    ("container_memory_working_set_bytes", "Current working set of the container in bytes", |container| {
        container.memory.used
    }),
    ("container_memory_max_usage_bytes", "Maximum memory usage recorded in bytes", |container| container.memory.peak),
    ("container_spec_memory_limit_bytes", "Memory limit for the container, 0 without one", |container| {
        container.memory.limit.unwrap_or(0)
    }),
];

impl Collector for WhatPodsUse {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let Some(measured) = self.0.last() else { return Ok(()) };
        for (name, help, figure) in SECONDS_OF_CONTAINERS {
            of_containers(&mut encoder, &measured, name, help, |container| ConstCounter::new(figure(container)))?;
        }
        for (name, help, figure) in COUNTS_OF_CONTAINERS {
            of_containers(&mut encoder, &measured, name, help, |container| ConstCounter::new(figure(container)))?;
        }
        for (name, help, figure) in GAUGES_OF_CONTAINERS {
            of_containers(&mut encoder, &measured, name, help, |container| ConstGauge::new(whole(figure(container))))?;
        }
        let help = "Cumulative cpu time consumed by the pod in core-seconds";
        of_pods(&mut encoder, &measured, "pod_cpu_usage_seconds", help, |pod| {
            let Usage { cpu, .. } = pod.cpu;
            ConstCounter::new(cpu.as_secs_f64())
        })?;
        let help = "Current working set of the pod in bytes";
        of_pods(&mut encoder, &measured, "pod_memory_working_set_bytes", help, |pod| {
            ConstGauge::new(whole(pod.memory()))
        })?;
        let Some(machine) = measured.machine else { return Ok(()) };
        let cpu = ConstCounter::new(machine.cpu.as_secs_f64());
        let help = "Cumulative cpu time consumed by the node in core-seconds";
        cpu.encode(encoder.encode_descriptor("node_cpu_usage_seconds", help, None, cpu.metric_type())?)?;
        let memory = ConstGauge::new(whole(machine.memory));
        let help = "Current working set of the node in bytes";
        memory.encode(encoder.encode_descriptor("node_memory_working_set_bytes", help, None, memory.metric_type())?)
    }
}

fn of_containers<M: EncodeMetric + Kind>(
    encoder: &mut DescriptorEncoder<'_>,
    measured: &Measured,
    name: &str,
    help: &str,
    metric: impl Fn(&ContainerUse) -> M,
) -> Result<(), fmt::Error> {
    let mut family = encoder.encode_descriptor(name, help, None, M::KIND)?;
    for pod in measured.pods.values() {
        let OfPod { pod: name, namespace } = labels(pod);
        for container in &pod.containers {
            let labels =
                OfContainer { container: container.name.clone(), pod: name.clone(), namespace: namespace.clone() };
            metric(container).encode(family.encode_family(&labels)?)?;
        }
    }
    Ok(())
}

fn of_pods<M: EncodeMetric + Kind>(
    encoder: &mut DescriptorEncoder<'_>,
    measured: &Measured,
    name: &str,
    help: &str,
    metric: impl Fn(&PodUse) -> M,
) -> Result<(), fmt::Error> {
    let mut family = encoder.encode_descriptor(name, help, None, M::KIND)?;
    for pod in measured.pods.values() {
        metric(pod).encode(family.encode_family(&labels(pod))?)?;
    }
    Ok(())
}

/// What is said of a family before there is any metric of it.
trait Kind {
    const KIND: MetricType;
}

impl<N> Kind for ConstCounter<N> {
    const KIND: MetricType = MetricType::Counter;
}

impl<N> Kind for ConstGauge<N> {
    const KIND: MetricType = MetricType::Gauge;
}

fn labels(pod: &PodUse) -> OfPod {
    let of = |field: &Option<String>| field.clone().unwrap_or_default();
    OfPod { pod: of(&pod.pod.metadata.name), namespace: of(&pod.pod.metadata.namespace) }
}

fn whole(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
