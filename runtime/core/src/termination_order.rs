//! Who waits for whom when a pod stops (SIDE-04, TERM-02).
//!
//! Sidecars get their stop signal when all app containers ended, in reverse order of the spec. Each waits for its next
//! neighbour only: if a sidecar in the middle doesn't run, those around it stop at the same time. App containers and plain
//! init containers wait for nobody.

use alloc::vec::Vec;

use crate::spec::PodSpec;

/// The containers that must have ended before this one gets its stop signal, in spec order: apps, then the next sidecar.
pub fn waits_for<'a>(spec: &'a PodSpec, name: &str, is_running: impl Fn(&str) -> bool) -> Vec<&'a str> {
    let sidecars = || spec.init_containers.iter().filter(|container| container.is_sidecar());
    let Some(position) = sidecars().position(|sidecar| sidecar.name == name) else { return Vec::new() };
    let next_neighbour = sidecars().nth(position + 1);
    let all = spec.containers.iter().chain(next_neighbour);
    all.map(|container| container.name.as_str()).filter(|name| is_running(name)).collect()
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::spec::{ContainerSpec, RestartPolicy};

    fn spec() -> PodSpec {
        let named = |name: &str| ContainerSpec { name: name.into(), ..ContainerSpec::default() };
        let sidecar = |name| ContainerSpec { restart_policy: Some(RestartPolicy::Always), ..named(name) };
        PodSpec {
            init_containers: vec![sidecar("s0"), named("init"), sidecar("s1"), sidecar("s2")],
            containers: vec![named("a0"), named("a1")],
            ..PodSpec::default()
        }
    }

    #[test]
    fn sidecars_wait_for_apps_and_their_next_neighbour() {
        let waits = |name| {
            waits_for(&spec(), name, |_| true).into_iter().map(Into::into).collect::<Vec<alloc::string::String>>()
        };
        assert_eq!(waits("s0"), ["a0", "a1", "s1"]);
        assert_eq!(waits("s2"), ["a0", "a1"]);
        assert!(waits("a0").is_empty());
        assert!(waits("init").is_empty());
    }

    #[test]
    fn what_does_not_run_is_not_waited_for() {
        let spec = spec();
        assert_eq!(waits_for(&spec, "s0", |name| name == "s2" || name == "a1"), ["a1"]);
    }
}
