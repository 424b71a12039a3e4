//! What pods and their containers may use of processors and memory, from what is granted to them.

use husk_core::admission::FUEL;
use husk_core::cpu::CpuShare;
use husk_core::memory::{self, Reservation, ReservationPolicy, Throttle};
use husk_core::qos::qos_class;
use husk_core::resources::{pod_limits, pod_requests};
use husk_core::spec::{PodSpec, ResourceList, Resources};

/// What a container may use of the processors (RES-02, RES-03).
pub(crate) fn of_container(resources: &Resources) -> CpuShare {
    CpuShare { request: millis(&resources.requests), limit: Some(millis(&resources.limits)).filter(|limit| *limit > 0) }
}

/// What a pod's containers may use together of the processors (RES-12): what they request competes with other pods, and there is a limit
/// if the pod has one or each of them has.
pub(crate) fn of_pod(spec: &PodSpec) -> CpuShare {
    let limits = |resources: &Resources| millis(&resources.limits) > 0;
    let of_pod = spec.resources.as_ref().is_some_and(limits);
    let mut containers = spec.containers.iter().chain(&spec.init_containers);
    let is_limited = of_pod || containers.all(|container| limits(&container.resources));
    CpuShare {
        request: millis(&pod_requests(spec)),
        limit: is_limited.then(|| millis(&pod_limits(spec))).filter(|limit| *limit > 0),
    }
}

/// Bytes of memory that a pod's containers may have together (RES-12), if it says so itself: where each of them has a limit, they can't
/// have more than the sum of those anyway.
pub(crate) fn memory_of_pod(spec: &PodSpec) -> Option<u64> {
    spec.resources.as_ref().and_then(memory_limit)
}

/// Bytes of memory that a container may have. As everywhere in Kubernetes, 0 is no limit.
pub(crate) fn memory_limit(resources: &Resources) -> Option<u64> {
    bytes(&resources.limits)
}

/// What is done about memory before limits are met (RES-10).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MemoryQos {
    /// `memoryThrottlingFactor`: where between its request and its limit a container begins to grow slowly; nowhere if none.
    pub throttling_factor: Option<f64>,
    /// `memoryReservationPolicy`.
    pub reservation: ReservationPolicy,
}

impl MemoryQos {
    /// What slows the growth of a container that was granted this, on a node that has so much for pods.
    pub(crate) fn throttle(self, pod: &PodSpec, container: &Resources, allocatable: u64) -> Option<Throttle> {
        let (request, limit) = (bytes(&container.requests).unwrap_or(0), bytes(&container.limits));
        memory::throttle(qos_class(pod), request, limit, allocatable, self.throttling_factor?, PAGE)
    }

    /// What is kept for a pod.
    pub(crate) fn reservation(self, pod: &PodSpec) -> Reservation {
        memory::reservation(self.reservation, qos_class(pod), bytes(&pod_requests(pod)).unwrap_or(0))
    }
}

/// Fuel that each instance of a container may burn in its life (RES-05).
pub(crate) fn fuel_budget(resources: &Resources) -> Option<u64> {
    u64::try_from(resources.limits.get(FUEL)?.value()).ok()
}

fn bytes(list: &ResourceList) -> Option<u64> {
    u64::try_from(list.get("memory")?.value()).ok().filter(|bytes| *bytes > 0)
}

fn millis(list: &ResourceList) -> u64 {
    list.get("cpu").and_then(|amount| u64::try_from(amount.milli_value()).ok()).unwrap_or(0)
}

/// Of WebAssembly.
const PAGE: u64 = 64 << 10;

#[cfg(test)]
mod tests {
    use husk_core::quantity::Quantity;
    use husk_core::spec::ContainerSpec;

    use super::*;

    fn list(resource: &str, amount: &str) -> ResourceList {
        if amount.is_empty() {
            return ResourceList::new();
        }
        [(resource.to_owned(), Quantity::parse(amount).expect("a quantity"))].into()
    }

    fn cpu(request: &str, limit: &str) -> Resources {
        Resources { requests: list("cpu", request), limits: list("cpu", limit) }
    }

    fn pod(own: Option<Resources>, containers: &[(&str, &str)]) -> PodSpec {
        let container = |(request, limit): &(&str, &str)| ContainerSpec {
            resources: cpu(request, limit),
            ..ContainerSpec::default()
        };
        PodSpec { resources: own, containers: containers.iter().map(container).collect(), ..PodSpec::default() }
    }

    #[test]
    fn no_limit_is_none_or_zero() {
        let limited =
            |amount: &str| memory_limit(&Resources { limits: list("memory", amount), ..Resources::default() });
        assert_eq!(limited("64Mi"), Some(64 << 20));
        assert_eq!(limited("0"), None);
        assert_eq!(memory_limit(&Resources::default()), None);
        assert_eq!(of_container(&cpu("100m", "1")), CpuShare { request: 100, limit: Some(1000) });
        assert_eq!(of_container(&cpu("0.5", "0")), CpuShare { request: 500, limit: None });
        assert_eq!(of_container(&Resources::default()), CpuShare::default());
    }

    // spec: RES-12
    #[test]
    fn a_pod_is_limited_if_it_says_so_or_all_its_containers_do() {
        let share = |request, limit| CpuShare { request, limit };
        let of = |own, containers: &[_]| of_pod(&pod(own, containers));
        assert_eq!(of(None, &[("100m", "200m"), ("50m", "100m")]), share(150, Some(300)));
        assert_eq!(of(None, &[("100m", "200m"), ("50m", "")]), share(150, None));
        assert_eq!(of(None, &[("", "")]), share(0, None));
        assert_eq!(of(Some(cpu("1", "2")), &[("100m", ""), ("", "")]), share(1000, Some(2000)));
        assert_eq!(of(Some(cpu("1", "")), &[("100m", "200m"), ("", "100m")]), share(1000, Some(300)));
        assert_eq!(of(Some(cpu("1", "")), &[("100m", "200m"), ("", "")]), share(1000, None));
        let memory = |own: &str, containers: &[&str]| {
            let limited = |amount: &&str| Resources { limits: list("memory", amount), ..Resources::default() };
            let container = |amount: &&str| ContainerSpec { resources: limited(amount), ..ContainerSpec::default() };
            let containers = containers.iter().map(container).collect();
            memory_of_pod(&PodSpec { resources: Some(limited(&own)), containers, ..PodSpec::default() })
        };
        assert_eq!(memory("1Mi", &["", "2Mi"]), Some(1 << 20));
        assert_eq!(memory("", &["1Mi", "2Mi"]), None);
    }
}
