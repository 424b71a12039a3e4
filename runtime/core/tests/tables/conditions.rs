//! Initialized, ContainersReady and Ready, with their reasons and messages.

use husk_core::conditions::{ConditionInput, containers_ready, initialized, ready, ready_to_start_containers};
use husk_core::runtime::{RuntimeStatus, Sandbox};
use husk_core::spec::PodSpec;
use husk_core::status::{Condition, ConditionStatus, ContainerState, ContainerStatus, Phase, PodStatus, Terminated};
use husk_core::statuses::Statuses;
use husk_core::time::Instant;

use super::{container, sidecar};

const PHASES: [Phase; 5] = [Phase::Pending, Phase::Running, Phase::Succeeded, Phase::Failed, Phase::Unknown];

/// What is known of a container: nothing, that it is not as it should be, that it is.
const KNOWN: [Option<bool>; 3] = [None, Some(false), Some(true)];

/// What a condition says: status, reason, message.
type Says = (bool, &'static str, String);

fn says(condition: &Condition) -> (bool, &str, String) {
    (condition.status == ConditionStatus::True, &condition.reason, condition.message.clone())
}

/// "Conditions: reasons and messages".
fn list(what: &str, names: &[&str]) -> Option<String> {
    (!names.is_empty()).then(|| format!("containers with {what} status: [{}]", names.join(" ")))
}

/// The message about containers of which nothing is known, and those that lack something.
fn complaint(containers: &[(&'static str, Option<bool>)], lacking: &str) -> Option<String> {
    let those = |known| containers.iter().filter(|(_, is)| *is == known).map(|(name, _)| *name).collect::<Vec<_>>();
    let both = [list("unknown", &those(None)), list(lacking, &those(Some(false)))];
    let both: Vec<String> = both.into_iter().flatten().collect();
    (!both.is_empty()).then(|| both.join(", "))
}

fn status(name: &str, fine: bool) -> ContainerStatus {
    ContainerStatus { name: name.into(), ready: fine, started: fine, ..ContainerStatus::default() }
}

/// ContainersReady: all app containers and sidecars are ready (SIDE-03); False in a terminal phase, whatever they are.
fn containers_ready_says(phase: Phase, all: &[(&'static str, Option<bool>)]) -> Says {
    let nothing_unknown = all.iter().all(|(_, known)| known.is_some());
    match (phase, complaint(all, "unready")) {
        (Phase::Failed, _) => (false, "PodFailed", String::new()),
        (Phase::Succeeded, _) if nothing_unknown => (false, "PodCompleted", String::new()),
        (_, None) => (true, "", String::new()),
        (_, Some(message)) => (false, "ContainersNotReady", message),
    }
}

// spec: COND-01, COND-03, SIDE-03, PHASE-07
#[test]
fn containers_ready_goes_by_apps_and_sidecars_and_not_by_init_containers() {
    let spec = PodSpec {
        init_containers: vec![container("i", None), sidecar("s")],
        containers: vec![container("a", None), container("b", None)],
        ..PodSpec::default()
    };
    let all = KNOWN.map(|i| KNOWN.map(|s| KNOWN.map(|a| KNOWN.map(|b| (i, s, a, b)))));
    for (i, s, a, b) in all.as_flattened().as_flattened().as_flattened() {
        let of = |pairs: &[(&str, Option<bool>)]| -> Vec<ContainerStatus> {
            pairs.iter().filter_map(|(name, known)| Some(status(name, (*known)?))).collect()
        };
        let (init, app) = (of(&[("i", *i), ("s", *s)]), of(&[("a", *a), ("b", *b)]));
        for phase in PHASES {
            let old = PodStatus::default();
            let statuses = Some(Statuses { init: &init, app: &app });
            let input = ConditionInput { spec: &spec, generation: 3, phase, statuses, old: &old };
            let condition = containers_ready(input);
            let expected = containers_ready_says(phase, &[("s", *s), ("a", *a), ("b", *b)]);
            assert_eq!(says(&condition), expected, "{phase:?} {i:?} {s:?} {a:?} {b:?}");
            assert_eq!((&*condition.kind, condition.observed_generation), ("ContainersReady", 3));
        }
    }
}

/// Readiness gates: status of the gate's condition, and what Ready says of it.
const GATES: [(Option<ConditionStatus>, Option<&str>); 4] = [
    (None, Some("corresponding condition of pod readiness gate \"g/NAME\" does not exist.")),
    (Some(ConditionStatus::True), None),
    (Some(ConditionStatus::False), Some("the status of pod readiness gate \"g/NAME\" is not \"True\", but False")),
    (Some(ConditionStatus::Unknown), Some("the status of pod readiness gate \"g/NAME\" is not \"True\", but Unknown")),
];

// spec: COND-03, COND-04
#[test]
fn ready_needs_every_gate_beside_ready_containers() {
    let spec = PodSpec {
        containers: vec![container("a", None)],
        readiness_gates: vec!["g/x".into(), "g/y".into()],
        ..PodSpec::default()
    };
    let old = PodStatus::default();
    for ((phase, app), (x, y)) in PHASES
        .iter()
        .flat_map(|phase| [true, false].map(|app| (*phase, app)))
        .flat_map(|case| GATES.iter().flat_map(move |x| GATES.iter().map(move |y| (case, (x, y)))))
    {
        let apps = [status("a", app)];
        let input = ConditionInput {
            spec: &spec,
            generation: 1,
            phase,
            statuses: Some(Statuses { init: &[], app: &apps }),
            old: &old,
        };
        let custom = |kind: &'static str, status| Condition {
            kind: kind.into(),
            status,
            reason: "".into(),
            message: String::new(),
            last_transition_time: None,
            observed_generation: 0,
        };
        let present: Vec<_> = [("g/x", x.0), ("g/y", y.0)].iter().filter_map(|(k, s)| Some(custom(k, (*s)?))).collect();
        let containers = containers_ready(input);
        let complaints: Vec<_> = [("x", x.1), ("y", y.1)]
            .iter()
            .filter_map(|(name, says)| Some(says.as_ref()?.replace("NAME", name)))
            .collect();
        let expected = match says(&containers) {
            // It says why the containers are not ready, word for word.
            (false, reason, message) => (false, reason.to_owned(), message),
            _ if complaints.is_empty() => (true, String::new(), String::new()),
            _ => (false, "ReadinessGatesNotReady".to_owned(), complaints.join(", ")),
        };
        let ready = ready(input, &containers, &present);
        let (holds, reason, message) = says(&ready);
        assert_eq!((holds, reason.to_owned(), message), expected, "{phase:?} {app} {x:?} {y:?}");
    }
}

/// How an app container is, and whether it counts as started: "Initialized stays True once any app container started".
fn app_states() -> [(ContainerState, bool); 3] {
    [
        (ContainerState::default(), false),
        (ContainerState::Running { started_at: Instant::ZERO }, true),
        (ContainerState::Terminated(Terminated::default()), true),
    ]
}

// spec: COND-01, COND-03, COND-08, INIT-04
#[test]
fn initialized_goes_by_init_containers_until_an_app_has_started() {
    let spec = PodSpec {
        init_containers: vec![container("i", None), sidecar("s"), container("j", None)],
        containers: vec![container("a", None)],
        ..PodSpec::default()
    };
    let all = KNOWN.map(|i| KNOWN.map(|s| KNOWN.map(|j| (i, s, j))));
    for ((i, s, j), (state, started)) in
        all.as_flattened().as_flattened().iter().flat_map(|case| app_states().map(|app| (*case, app)))
    {
        let known = [("i", i), ("s", s), ("j", j)];
        // A sidecar is done when it has started, ready or not.
        let of = |(name, fine): (&str, bool)| ContainerStatus { ready: fine && name != "s", ..status(name, fine) };
        let init: Vec<_> = known.iter().filter_map(|(name, known)| Some(of((name, (*known)?)))).collect();
        let app = [ContainerStatus { name: "a".into(), state, ..ContainerStatus::default() }];
        for (phase, was) in PHASES.iter().flat_map(|phase| [false, true].map(|was| (*phase, was))) {
            let mut old = PodStatus::default();
            old.conditions.push(Condition {
                kind: "Initialized".into(),
                status: was.into(),
                reason: "".into(),
                message: String::new(),
                last_transition_time: None,
                observed_generation: 1,
            });
            let statuses = Some(Statuses { init: &init, app: &app });
            let input = ConditionInput { spec: &spec, generation: 1, phase, statuses, old: &old };
            let expected = match complaint(&known, "incomplete") {
                _ if phase == Phase::Succeeded && known.iter().all(|(_, known)| known.is_some()) => {
                    (true, "PodCompleted", String::new())
                }
                Some(message) if !started && !was => (false, "ContainersNotInitialized", message),
                _ => (true, "", String::new()),
            };
            assert_eq!(says(&initialized(input)), expected, "{phase:?}, was {was}, {known:?}, app started: {started}");
        }
    }
}

// spec: COND-03, COND-08
#[test]
fn without_any_statuses_only_a_pod_without_init_containers_is_initialized() {
    let old = PodStatus::default();
    let plain = PodSpec { containers: vec![container("a", None)], ..PodSpec::default() };
    let with_init = PodSpec { init_containers: vec![container("i", None)], ..plain.clone() };
    for (spec, expected) in
        [(&plain, (true, "", String::new())), (&with_init, (false, "UnknownContainerStatuses", String::new()))]
    {
        let input = ConditionInput { spec, generation: 1, phase: Phase::Pending, statuses: None, old: &old };
        assert_eq!(says(&initialized(input)), expected);
        assert_eq!(says(&containers_ready(input)), (false, "UnknownContainerStatuses", String::new()));
    }
}

/// "Pod conditions", PodReadyToStartContainers: the pod sandbox has been created and networking configured. "Deciding what to do",
/// 1: a sandbox that isn't the newest, or one of several, is not the pod's any more; with `hostNetwork` it needs no address.
fn can_take_containers(sandboxes: &[Sandbox], host_network: bool) -> bool {
    let ready = sandboxes.iter().filter(|sandbox| sandbox.ready).count();
    let newest_will_do = sandboxes
        .first()
        .is_some_and(|newest| newest.ready && newest.host_network == host_network && (host_network || newest.has_ip));
    ready == 1 && newest_will_do
}

// spec: COND-01
#[test]
fn ready_to_start_containers_goes_by_the_newest_sandbox() {
    let bits = [false, true];
    let each = bits.map(|ready| bits.map(|has_ip| bits.map(|host_network| (ready, has_ip, host_network))));
    let each: Vec<Sandbox> = each
        .as_flattened()
        .as_flattened()
        .iter()
        .map(|&(ready, has_ip, host_network)| Sandbox { ready, attempt: 0, has_ip, host_network })
        .collect();
    let one = each.iter().map(|only| vec![only.clone()]);
    let two = each.iter().flat_map(|newer| each.iter().map(|older| vec![newer.clone(), older.clone()]));
    for sandboxes in std::iter::once(vec![]).chain(one).chain(two) {
        for (host_network, phase) in bits.iter().flat_map(|bit| PHASES.map(|phase| (*bit, phase))) {
            let spec = PodSpec { host_network, containers: vec![container("a", None)], ..PodSpec::default() };
            let runtime = RuntimeStatus { sandboxes: sandboxes.clone(), ..RuntimeStatus::default() };
            let old = PodStatus::default();
            let input = ConditionInput { spec: &spec, generation: 3, phase, statuses: None, old: &old };
            let condition = ready_to_start_containers(input, &runtime);
            let expected = (can_take_containers(&sandboxes, host_network), "", String::new());
            assert_eq!(says(&condition), expected, "{sandboxes:?}, hostNetwork {host_network}");
        }
    }
}
