//! Quality of service: who is spared longest when a node runs short (RES-07).

use serde::{Deserialize, Serialize};

use crate::quantity::Quantity;
use crate::resources::is_pod_level;
use crate::spec::{ContainerSpec, PodSpec, ResourceList, Resources};

/// `status.qosClass`; the first is evicted first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum QosClass {
    /// Asks for nothing.
    BestEffort,
    /// Asks for something.
    Burstable,
    /// Asks for exactly what it is limited to.
    Guaranteed,
}

impl QosClass {
    /// As written in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::BestEffort => "BestEffort",
            Self::Burstable => "Burstable",
            Self::Guaranteed => "Guaranteed",
        }
    }
}

/// Only these decide.
const COMPUTE: [&str; 2] = ["cpu", "memory"];

/// The class of a pod: by what it says as a whole if it says that, or else by all its containers, init included.
pub fn qos_class(pod: &PodSpec) -> QosClass {
    match pod.resources.as_ref().filter(|resources| says_something(resources)) {
        Some(resources) => class_of([resources].into_iter()),
        None => class_of(pod.init_containers.iter().chain(&pod.containers).map(|c: &ContainerSpec| &c.resources)),
    }
}

fn class_of<'a>(all: impl Iterator<Item = &'a Resources> + Clone) -> QosClass {
    let asks = |list: &ResourceList| COMPUTE.iter().any(|name| amount(list, name).is_some());
    if !all.clone().any(|resources| asks(&resources.requests) || asks(&resources.limits)) {
        return QosClass::BestEffort;
    }
    let every_limit_set = all.clone().all(|r| COMPUTE.iter().all(|name| amount(&r.limits, name).is_some()));
    let sum = |name, list: fn(&Resources) -> &ResourceList| {
        all.clone().filter_map(|resources| amount(list(resources), name)).fold(Quantity::ZERO, |mut sum, amount| {
            sum.add_saturating(amount);
            sum
        })
    };
    let equal = COMPUTE.iter().all(|name| sum(name, |r| &r.requests) == sum(name, |r| &r.limits));
    if every_limit_set && equal { QosClass::Guaranteed } else { QosClass::Burstable }
}

fn amount<'a>(list: &'a ResourceList, name: &str) -> Option<&'a Quantity> {
    list.get(name).filter(|amount| !amount.is_zero() && !amount.is_negative())
}

fn says_something(resources: &Resources) -> bool {
    resources.requests.keys().chain(resources.limits.keys()).any(|name| is_pod_level(name))
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec;

    use super::*;

    fn list(amounts: &[(&str, &str)]) -> ResourceList {
        amounts.iter().map(|(name, amount)| (name.to_string(), Quantity::parse(amount).unwrap())).collect()
    }

    fn pod(requests: &[(&str, &str)], limits: &[(&str, &str)]) -> PodSpec {
        let resources = Resources { requests: list(requests), limits: list(limits) };
        PodSpec { containers: vec![ContainerSpec { resources, ..ContainerSpec::default() }], ..PodSpec::default() }
    }

    #[test]
    fn the_three_classes() {
        let all = [("cpu", "100m"), ("memory", "64Mi")];
        assert_eq!(qos_class(&pod(&all, &all)), QosClass::Guaranteed);
        assert_eq!(qos_class(&pod(&all[..1], &[])), QosClass::Burstable);
        assert_eq!(qos_class(&pod(&[], &[])), QosClass::BestEffort);
        assert_eq!(qos_class(&pod(&[("ephemeral-storage", "1Gi")], &[])), QosClass::BestEffort);
    }

    #[test]
    fn what_the_pod_says_as_a_whole_decides() {
        let both = list(&[("cpu", "1"), ("memory", "1Gi")]);
        let resources = Resources { requests: both.clone(), limits: both };
        let pod = PodSpec { resources: Some(resources), ..pod(&[("cpu", "100m")], &[]) };
        assert_eq!(qos_class(&pod), QosClass::Guaranteed);
    }
}
