//! What pods may have on the disk: `limits.ephemeral-storage` (RES-06).

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;

use crate::quantity::Quantity;
use crate::resources::pod_limits;
use crate::spec::{PodSpec, ResourceList};

const STORAGE: &str = "ephemeral-storage";

/// How much a pod and each of its containers may have on the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageLimits {
    /// Root directories of containers and volumes together.
    pod: Quantity,
    /// The root directory of each that is limited.
    containers: BTreeMap<String, Quantity>,
}

impl StorageLimits {
    /// None if nobody is limited. As upstream, the pod's is the sum of what its containers are limited to, whether all of them are or not.
    pub fn of(spec: &PodSpec) -> Option<Self> {
        let limit = |list: &ResourceList| list.get(STORAGE).filter(|limit| **limit > Quantity::ZERO).cloned();
        let containers = spec
            .all_containers()
            .filter_map(|(_, container)| Some((container.name.clone(), limit(&container.resources.limits)?)));
        Some(Self { pod: limit(&pod_limits(spec))?, containers: containers.collect() })
    }

    /// What is to be said if they have more, in upstream's words: bytes of the pod, and of its containers' root directories.
    pub fn exceeded<'a>(&self, pod: u64, containers: impl IntoIterator<Item = (&'a str, u64)>) -> Option<String> {
        let is_over = |used: u64, limit: &Quantity| i128::from(used) > i128::from(limit.value());
        if is_over(pod, &self.pod) {
            return Some(format!(
                "Pod ephemeral local storage usage exceeds the total limit of containers {}. ",
                self.pod
            ));
        }
        let over =
            |(name, used)| self.containers.get(name).filter(|limit| is_over(used, limit)).map(|limit| (name, limit));
        let (name, limit) = containers.into_iter().find_map(over)?;
        Some(format!("Container {name} exceeded its local ephemeral storage limit \"{limit}\". "))
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::spec::{ContainerSpec, Resources};

    // spec: RES-06
    #[test]
    fn pods_have_what_their_containers_may_have_together() {
        let limits = |amounts: &[&str]| {
            let container = |(n, amount): (usize, &&str)| {
                let limit = Quantity::parse(amount).expect("a quantity");
                let limits: ResourceList = [(STORAGE.into(), limit)].into();
                ContainerSpec {
                    name: format!("c{n}"),
                    resources: Resources { limits, ..Resources::default() },
                    ..ContainerSpec::default()
                }
            };
            let containers: Vec<_> = amounts.iter().enumerate().map(container).collect();
            StorageLimits::of(&PodSpec { containers, ..PodSpec::default() })
        };
        assert_eq!(limits(&["0"]), None);
        let two = limits(&["1Mi", "2Mi"]).expect("limits");
        let exceeded = |pod: u64, of: [u64; 2]| two.exceeded(pod << 10, [("c0", of[0] << 10), ("c1", of[1] << 10)]);
        assert_eq!(exceeded(3072, [1024, 2048]), None);
        let message = "Pod ephemeral local storage usage exceeds the total limit of containers 3Mi. ";
        assert_eq!(exceeded(3073, [1024, 2048]).as_deref(), Some(message));
        let message = "Container c0 exceeded its local ephemeral storage limit \"1Mi\". ";
        assert_eq!(exceeded(2000, [1025, 10]).as_deref(), Some(message));
        let one = limits(&["1Mi", "0"]).expect("limits");
        assert!(one.exceeded(1025 << 10, [("c1", 1025 << 10)]).is_some(), "the pod has no more than what is limited");
    }
}
