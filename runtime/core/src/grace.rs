//! How long something may take to stop (TERM-05, PROBE-04).

use crate::runtime::StopReason;
use crate::spec::{ContainerSpec, PodSpec, ProbeKind};

/// `terminationGracePeriodSeconds` where none is given.
pub const DEFAULT_GRACE_SECONDS: i64 = 30;
/// A container is never given less, so that a stop isn't a kill by accident.
pub const MINIMUM_CONTAINER_GRACE_SECONDS: i64 = 2;
/// A pod is never given less.
const MINIMUM_POD_GRACE_SECONDS: i64 = 1;

/// Seconds a container has to stop, before its preStop hook takes its share.
///
/// A deletion's grace holds for every container. Otherwise a container that its liveness or startup probe stops may have a
/// grace of that probe's own, if the pod has a grace at all. An override (eviction and the like) wins over both.
pub fn container_grace_seconds(
    pod: &PodSpec,
    container: &ContainerSpec,
    deletion_grace_seconds: Option<i64>,
    reason: Option<StopReason>,
    override_seconds: Option<i64>,
) -> i64 {
    let own = || {
        let probe = match reason {
            Some(StopReason::LivenessProbe) => container.probe(ProbeKind::Liveness),
            Some(StopReason::StartupProbe) => container.probe(ProbeKind::Startup),
            _ => None,
        };
        let pod_grace = pod.termination_grace_period_seconds?;
        Some(probe.and_then(|probe| probe.termination_grace_period_seconds).unwrap_or(pod_grace))
    };
    override_seconds.or(deletion_grace_seconds).or_else(own).unwrap_or(MINIMUM_CONTAINER_GRACE_SECONDS)
}

/// Seconds from the stop signal to KILL: what hooks and waiting left of the grace, but never too little to stop at all.
pub fn stop_timeout_seconds(grace_left: i64) -> i64 {
    grace_left.max(MINIMUM_CONTAINER_GRACE_SECONDS)
}

/// The grace of a terminating pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PodGrace {
    /// Seconds from now on.
    pub seconds: i64,
    /// A grace was in force and this is another one.
    pub shortened: bool,
}

/// The grace of a pod that terminates, given what is in force and who asks for less. It only ever shrinks.
pub fn pod_grace(current: Option<i64>, deletion: Option<i64>, requested: Option<i64>, spec: Option<i64>) -> PodGrace {
    // Zero means "none in force", here as in upstream's own record.
    let in_force = current.unwrap_or(0);
    let (mut seconds, mut asked_for) = (in_force, in_force != 0);
    for asked in [deletion, requested].into_iter().flatten() {
        seconds = if seconds == 0 { asked } else { seconds.min(asked) };
        asked_for = true;
    }
    if !asked_for {
        seconds = spec.unwrap_or(0);
    }
    let seconds = seconds.max(MINIMUM_POD_GRACE_SECONDS);
    PodGrace { seconds, shortened: in_force != 0 && in_force != seconds }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Handler, Probe};

    fn pod(grace: Option<i64>) -> PodSpec {
        PodSpec { termination_grace_period_seconds: grace, ..PodSpec::default() }
    }

    fn container(liveness_grace: Option<i64>) -> ContainerSpec {
        let probe = Probe {
            handler: Handler::Exec,
            initial_delay_seconds: 0,
            period_seconds: 10,
            timeout_seconds: 1,
            success_threshold: 1,
            failure_threshold: 3,
            termination_grace_period_seconds: liveness_grace,
        };
        ContainerSpec { liveness_probe: Some(probe), ..ContainerSpec::default() }
    }

    #[test]
    fn a_probes_own_grace_holds_only_for_its_kill() {
        let (pod, container) = (pod(Some(30)), container(Some(5)));
        let grace = |reason| container_grace_seconds(&pod, &container, None, reason, None);
        assert_eq!(grace(Some(StopReason::LivenessProbe)), 5);
        assert_eq!(grace(Some(StopReason::StartupProbe)), 30);
        assert_eq!(grace(None), 30);
    }

    #[test]
    fn a_deletion_wins_over_the_probe_and_an_override_over_both() {
        let (pod, container, why) = (pod(Some(30)), container(Some(5)), Some(StopReason::LivenessProbe));
        assert_eq!(container_grace_seconds(&pod, &container, Some(60), why, None), 60);
        assert_eq!(container_grace_seconds(&pod, &container, Some(60), why, Some(7)), 7);
    }

    #[test]
    fn a_pods_grace_never_grows() {
        let first = pod_grace(None, Some(30), None, Some(60));
        assert_eq!(first, PodGrace { seconds: 30, shortened: false });
        assert_eq!(pod_grace(Some(30), Some(45), None, Some(60)), PodGrace { seconds: 30, shortened: false });
        assert_eq!(pod_grace(Some(30), Some(5), None, Some(60)), PodGrace { seconds: 5, shortened: true });
        assert_eq!(pod_grace(Some(30), Some(30), Some(0), None).seconds, 1, "at least a second");
    }
}
