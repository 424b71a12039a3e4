//! What a pod asks for altogether (INIT-07, RES-12).

use alloc::collections::btree_map::Entry;

use crate::quantity::Quantity;
use crate::spec::{ContainerSpec, PodSpec, ResourceList, Resources};

/// Effective requests of a pod: apps and sidecars together, or what init needs at its worst moment if that is more; what the
/// pod itself says instead, where it does; and the overhead of its runtime class.
pub fn pod_requests(pod: &PodSpec) -> ResourceList {
    let mut total = over_containers(pod, |resources| &resources.requests);
    set_pod_level(&mut total, pod, |resources| &resources.requests);
    add(&mut total, &pod.overhead);
    total
}

/// Effective limits of a pod, by the same rules. Overhead is added only where there is a limit.
pub fn pod_limits(pod: &PodSpec) -> ResourceList {
    let mut total = over_containers(pod, |resources| &resources.limits);
    set_pod_level(&mut total, pod, |resources| &resources.limits);
    for (name, overhead) in &pod.overhead {
        if let Some(limit) = total.get_mut(name).filter(|limit| !limit.is_zero()) {
            limit.add_saturating(overhead);
        }
    }
    total
}

/// Can a pod bound this resource as a whole?
pub fn is_pod_level(resource: &str) -> bool {
    matches!(resource, "cpu" | "memory") || resource.starts_with("hugepages-")
}

fn over_containers(pod: &PodSpec, list: impl Fn(&Resources) -> &ResourceList) -> ResourceList {
    let of = |container: &ContainerSpec| list(&container.resources).clone();
    let mut at_work = ResourceList::new();
    for container in &pod.containers {
        add(&mut at_work, &of(container));
    }
    // A plain init container runs beside the sidecars that started before it.
    let (mut sidecars, mut worst_init) = (ResourceList::new(), ResourceList::new());
    for container in &pod.init_containers {
        let mut at_once = of(container);
        if container.is_sidecar() {
            add(&mut at_work, &at_once);
            add(&mut sidecars, &at_once);
            at_once.clone_from(&sidecars);
        } else {
            add(&mut at_once, &sidecars);
        }
        raise(&mut worst_init, &at_once);
    }
    raise(&mut at_work, &worst_init);
    at_work
}

fn set_pod_level(total: &mut ResourceList, pod: &PodSpec, list: impl Fn(&Resources) -> &ResourceList) {
    let Some(resources) = &pod.resources else { return };
    let bounded = list(resources).iter().filter(|(name, _)| is_pod_level(name));
    total.extend(bounded.map(|(name, amount)| (name.clone(), amount.clone())));
}

fn add(total: &mut ResourceList, more: &ResourceList) {
    merge(total, more, |sum, amount| sum.add_saturating(amount));
}

fn raise(total: &mut ResourceList, at_least: &ResourceList) {
    merge(total, at_least, |most, amount| {
        if amount > most {
            most.clone_from(amount);
        }
    });
}

fn merge(total: &mut ResourceList, other: &ResourceList, combine: impl Fn(&mut Quantity, &Quantity)) {
    for (name, amount) in other {
        match total.entry(name.clone()) {
            Entry::Vacant(free) => {
                free.insert(amount.clone());
            }
            Entry::Occupied(mut present) => combine(present.get_mut(), amount),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec;

    use super::*;
    use crate::spec::RestartPolicy;

    fn container(memory: &str, policy: Option<RestartPolicy>) -> ContainerSpec {
        let requests = ResourceList::from([("memory".to_string(), Quantity::parse(memory).unwrap())]);
        let resources = Resources { requests, ..Resources::default() };
        ContainerSpec { resources, restart_policy: policy, ..ContainerSpec::default() }
    }

    #[test]
    fn a_pod_needs_the_larger_of_init_and_work() {
        let mut pod = PodSpec {
            init_containers: vec![container("10Mi", Some(RestartPolicy::Always)), container("100Mi", None)],
            containers: vec![container("30Mi", None), container("30Mi", None)],
            ..PodSpec::default()
        };
        assert_eq!(pod_requests(&pod)["memory"].to_string(), "110Mi", "init beside the sidecar");
        pod.init_containers.pop();
        assert_eq!(pod_requests(&pod)["memory"].to_string(), "70Mi", "apps and sidecar");
    }

    #[test]
    fn what_the_pod_says_as_a_whole_counts_instead() {
        let resources = container("64Mi", None).resources;
        let overhead = ResourceList::from([("memory".to_string(), Quantity::parse("8Mi").unwrap())]);
        let containers = vec![container("30Mi", None)];
        let pod = PodSpec { containers, resources: Some(resources), overhead, ..PodSpec::default() };
        assert_eq!(pod_requests(&pod)["memory"].to_string(), "72Mi");
    }
}
