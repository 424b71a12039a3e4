//! QoS classes.

use husk_core::qos::{QosClass, qos_class};
use husk_core::quantity::Quantity;
use husk_core::spec::{ContainerSpec, PodSpec, Resources};

/// What a container, or the pod, says about one resource: request and limit. The amounts as written, to be compared by value.
const SAYS: [(Option<&str>, Option<&str>); 7] = [
    (None, None),
    (Some("0"), Some("0")),
    (Some("1"), None),
    (None, Some("1")),
    (Some("1"), Some("2")),
    (Some("1000m"), Some("1")),
    (Some("2"), Some("2")),
];

/// cpu and memory.
type Says = (usize, usize);

/// "Pod QoS classes", criteria of the three classes, for containers.
fn expected(containers: &[Says]) -> QosClass {
    let all = || containers.iter().flat_map(|(cpu, memory)| [SAYS[*cpu], SAYS[*memory]]);
    let positive = |amount: Option<&str>| amount.is_some_and(|amount| amount != "0");
    // "… must have a limit and a request, both greater than zero", "… the limit must equal the request"
    if all().all(|(request, limit)| positive(request) && positive(limit) && millis(request) == millis(limit)) {
        return QosClass::Guaranteed;
    }
    // "at least one container has a memory or CPU request or limit"
    if all().any(|(request, limit)| positive(request) || positive(limit)) {
        return QosClass::Burstable;
    }
    QosClass::BestEffort
}

fn millis(amount: Option<&str>) -> i64 {
    match amount {
        Some("1" | "1000m") => 1000,
        Some("2") => 2000,
        _ => 0,
    }
}

fn resources((cpu, memory): Says) -> Resources {
    let mut resources = Resources::default();
    for (name, (request, limit)) in [("cpu", SAYS[cpu]), ("memory", SAYS[memory])] {
        for (list, amount) in [(&mut resources.requests, request), (&mut resources.limits, limit)] {
            list.extend(amount.map(|amount| (name.to_owned(), Quantity::parse(amount).unwrap())));
        }
    }
    resources
}

fn container(says: Says) -> ContainerSpec {
    ContainerSpec { resources: resources(says), ..ContainerSpec::default() }
}

fn every() -> Vec<Says> {
    (0..SAYS.len()).flat_map(|cpu| (0..SAYS.len()).map(move |memory| (cpu, memory))).collect()
}

// spec: RES-07
#[test]
fn one_container() {
    for says in every() {
        let pod = PodSpec { containers: vec![container(says)], ..PodSpec::default() };
        assert_eq!(qos_class(&pod), expected(&[says]), "{:?}", resources(says));
    }
}

// spec: RES-07
#[test]
fn two_containers_whether_init_or_app() {
    for (a, b) in every().into_iter().flat_map(|a| every().into_iter().map(move |b| (a, b))) {
        let apps = PodSpec { containers: vec![container(a), container(b)], ..PodSpec::default() };
        let init =
            PodSpec { init_containers: vec![container(a)], containers: vec![container(b)], ..PodSpec::default() };
        let documents = expected(&[a, b]);
        // Upstream adds up requests and limits before it compares them: two that make up for each other pass.
        let sums_up = sums_up(&[a, b]);
        let expected = if sums_up { QosClass::Guaranteed } else { documents };
        assert_eq!((qos_class(&apps), qos_class(&init)), (expected, expected), "{:?} {:?}", resources(a), resources(b));
    }
}

/// All limits are set, and the sums are equal, be it that those of some container are not.
fn sums_up(containers: &[Says]) -> bool {
    let columns: [Vec<_>; 2] =
        [containers.iter().map(|says| SAYS[says.0]).collect(), containers.iter().map(|says| SAYS[says.1]).collect()];
    columns.iter().all(|column| {
        let requests: i64 = column.iter().map(|(request, _)| millis(*request)).sum();
        let limits: i64 = column.iter().map(|(_, limit)| millis(*limit)).sum();
        column.iter().all(|(_, limit)| millis(*limit) > 0) && requests == limits
    })
}

// spec: RES-07
#[test]
fn what_the_pod_says_as_a_whole_decides_alone() {
    for (pods, containers) in every().into_iter().flat_map(|a| every().into_iter().map(move |b| (a, b))) {
        let says = |says: usize| SAYS[says] != (None, None);
        let whole = resources(pods);
        let pod = PodSpec { resources: Some(whole), containers: vec![container(containers)], ..PodSpec::default() };
        let decides = if says(pods.0) || says(pods.1) { pods } else { containers };
        assert_eq!(qos_class(&pod), expected(&[decides]), "{:?}, {:?}", pod.resources, resources(containers));
    }
}
