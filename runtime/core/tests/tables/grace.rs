//! How long a container has to stop, and how long a pod.

use husk_core::grace::{container_grace_seconds, pod_grace, stop_timeout_seconds};
use husk_core::runtime::StopReason;
use husk_core::spec::{ContainerSpec, Handler, PodSpec, Probe};

use super::{holds, rows};

/// "Probe-level terminationGracePeriodSeconds"; "Stopping a container, in order", 1 and 3: the deletion's grace, else the
/// spec's; a liveness or startup kill uses that probe's own; an override (eviction) replaces them all.
///
/// `-`: not set. Seconds everywhere.
const CONTAINER: &str = "
override | deletion | cause    | liveness | startup | pod | grace
-        | -        | other    | -        | -       | 30  | 30
-        | -        | other    | 5        | 7       | 30  | 30
-        | -        | liveness | 5        | 7       | 30  | 5
-        | -        | startup  | 5        | 7       | 30  | 7
-        | -        | liveness | -        | 7       | 30  | 30
-        | -        | startup  | 5        | -       | 30  | 30
-        | -        | liveness | 90       | -       | 30  | 90
-        | 10       | other    | 5        | 7       | 30  | 10
-        | 10       | liveness | 5        | 7       | 30  | 10
-        | 60       | startup  | 5        | 7       | 30  | 60
-        | 0        | other    | -        | -       | 30  | 0
3        | -        | other    | -        | -       | 30  | 3
3        | 10       | liveness | 5        | 7       | 30  | 3
0        | 10       | other    | -        | -       | 30  | 0
-        | -        | other    | -        | -       | 0   | 0
-        | -        | other    | -        | -       | -   | 2
";

// spec: PROBE-04
#[test]
fn a_containers_grace() {
    for (cells, line) in rows(CONTAINER) {
        let seconds = |cell: usize| cells[cell].parse::<i64>().ok();
        let container = container_with(seconds(3), seconds(4));
        let pod = PodSpec { termination_grace_period_seconds: seconds(5), ..PodSpec::default() };
        let reason = match cells[2] {
            "liveness" => Some(StopReason::LivenessProbe),
            "startup" => Some(StopReason::StartupProbe),
            _ => None,
        };
        let grace = container_grace_seconds(&pod, &container, seconds(1), reason, seconds(0));
        assert_eq!(Some(grace), seconds(6), "{line}");
    }
}

/// The same sentences as rules: the first row that holds decides, over the whole domain. That a deletion's grace wins over a
/// probe's is upstream's answer (family `kill_grace`), as is that a probe's counts only in a pod that has one.
const RULES: &str = "
override | deletion | probe | pod | grace is
set      | *        | *     | *   | override
-        | set      | *     | *   | deletion
-        | -        | set   | set | probe
-        | -        | *     | set | pod
-        | -        | *     | -   | two
";

// spec: PROBE-04
#[test]
fn a_containers_grace_whatever_is_set_and_whatever_it_is_stopped_for() {
    let amounts = [None, Some(0), Some(1), Some(2), Some(30), Some(3600)];
    let rules = rows(RULES);
    let word = |amount: Option<i64>| if amount.is_some() { "set" } else { "-" };
    let quadruples = amounts.map(|a| amounts.map(|b| amounts.map(|c| amounts.map(|d| (a, b, c, d)))));
    for (instead, deletion, own, pod) in quadruples.as_flattened().as_flattened().as_flattened() {
        for reason in STOPS {
            // The probe that has a grace of its own: the one that stops it, then the other one.
            for (liveness, startup) in [(*own, Some(77)), (Some(77), *own)] {
                let applies = match reason {
                    Some(StopReason::LivenessProbe) => liveness,
                    Some(StopReason::StartupProbe) => startup,
                    _ => None,
                };
                let words = [word(*instead), word(*deletion), word(applies), word(*pod)];
                let (cells, line) = rules
                    .iter()
                    .find(|(cells, _)| cells.iter().zip(words).all(|(cell, word)| holds(cell, word)))
                    .expect("a row for each case");
                let expected = match cells[4] {
                    "override" => *instead,
                    "deletion" => *deletion,
                    "probe" => applies,
                    "pod" => *pod,
                    _ => Some(2),
                };
                let spec = PodSpec { termination_grace_period_seconds: *pod, ..PodSpec::default() };
                let container = container_with(liveness, startup);
                let grace = container_grace_seconds(&spec, &container, *deletion, reason, *instead);
                assert_eq!(Some(grace), expected, "{line}: {reason:?} {liveness:?} {startup:?}");
            }
        }
    }
}

/// Everything that a container may be stopped for.
const STOPS: [Option<StopReason>; 9] = [
    None,
    Some(StopReason::LivenessProbe),
    Some(StopReason::StartupProbe),
    Some(StopReason::PostStartHook),
    Some(StopReason::Changed),
    Some(StopReason::Resize),
    Some(StopReason::RestartAllContainers),
    Some(StopReason::PodEnds),
    Some(StopReason::Unknown),
];

fn container_with(liveness: Option<i64>, startup: Option<i64>) -> ContainerSpec {
    let probe = |seconds| Probe {
        handler: Handler::Exec,
        initial_delay_seconds: 0,
        period_seconds: 10,
        timeout_seconds: 1,
        success_threshold: 1,
        failure_threshold: 3,
        termination_grace_period_seconds: seconds,
    };
    ContainerSpec {
        liveness_probe: Some(probe(liveness)),
        startup_probe: Some(probe(startup)),
        ..ContainerSpec::default()
    }
}

/// TERM-05: grace only ever shrinks; a pod has at least one second ("Constants"); the request wins over the spec.
const POD: &str = "
in force | deletion | asked | spec | grace | shortened
-        | -        | -     | 30   | 30    | no
-        | 30       | -     | 60   | 30    | no
-        | 90       | -     | 60   | 90    | no
-        | 30       | 10    | 60   | 10    | no
-        | -        | -     | 0    | 1     | no
-        | 0        | -     | 30   | 1     | no
30       | 30       | -     | 60   | 30    | no
30       | 45       | -     | 60   | 30    | no
30       | 5        | -     | 60   | 5     | yes
30       | 30       | 5     | 60   | 5     | yes
30       | 5        | 45    | 60   | 5     | yes
30       | 0        | -     | 60   | 1     | yes
30       | 30       | 0     | 60   | 1     | yes
1        | 30       | 30    | 60   | 1     | no
";

// spec: TERM-05
#[test]
fn a_pods_grace() {
    for (cells, line) in rows(POD) {
        let seconds = |cell: usize| cells[cell].parse::<i64>().ok();
        let grace = pod_grace(seconds(0), seconds(1), seconds(2), seconds(3));
        assert_eq!(Some(grace.seconds), seconds(4), "{line}");
        assert_eq!(grace.shortened, cells[5] == "yes", "{line}");
    }
}

// spec: TERM-05
#[test]
fn a_grace_in_force_never_grows_whoever_asks() {
    let some = [None, Some(0), Some(1), Some(2), Some(29), Some(30), Some(31), Some(3600)];
    let all = some.map(|deletion| some.map(|asked| some.map(|spec| (deletion, asked, spec))));
    for in_force in 1..=31 {
        for (deletion, asked, spec) in all.as_flattened().as_flattened() {
            // A deletion with 0 counts as none beside another request, as in upstream's own record (family effective_grace).
            if *deletion == Some(0) && asked.is_some() {
                continue;
            }
            let grace = pod_grace(Some(in_force), *deletion, *asked, *spec).seconds;
            assert!((1..=in_force).contains(&grace), "{in_force}, {deletion:?}, {asked:?}, {spec:?}: {grace}");
        }
    }
}

// spec: SIDE-04
#[test]
fn whatever_hooks_and_waiting_took_two_seconds_remain() {
    for left in -100..=100 {
        assert_eq!(stop_timeout_seconds(left), if left < 2 { 2 } else { left });
    }
}
