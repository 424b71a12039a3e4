use husk_core::event::{Event, EventKind};
use husk_core::io::ProbeOutcome;
use husk_core::spec::RestartPolicy::{Always, Never};
use husk_core::spec::{ContainerSpec, Handler, ProbeKind, PullPolicy};
use husk_core::time::Instant;

use crate::world::{Life, Script, World, container, exits, pod, probe, secs};

fn told(world: &World) -> Vec<(EventKind, &str, &str, &str)> {
    world.events.iter().map(|e| (e.kind, &*e.reason, e.message.as_str(), e.field_path.as_str())).collect()
}

const A0: &str = "spec.containers{a0}";

// spec: NODE-02
#[test]
fn the_plain_life_of_a_pod() {
    use EventKind::Normal;
    let spec = pod(Always, vec![container("i0")], vec![container("a0")]);
    let mut world = World::with(spec, &[("i0", exits(2, 0))]);
    world.run_until(10.0);
    world.delete(None);
    world.run_until(20.0);
    let present = "Container image \"i\" already present on machine and can be accessed by the pod";
    let i0 = "spec.initContainers{i0}";
    assert_eq!(
        told(&world),
        [
            (Normal, "Scheduled", "Successfully assigned d/p to husk", ""),
            (Normal, "Pulled", present, i0),
            (Normal, "Created", "Container created", i0),
            (Normal, "Started", "Container started", i0),
            (Normal, "Completed", "Container i0 completed", i0),
            (Normal, "Pulled", present, A0),
            (Normal, "Created", "Container created", A0),
            (Normal, "Started", "Container started", A0),
            (Normal, "Killing", "Stopping container a0", A0),
        ]
    );
    assert!(world.events.iter().all(|e| e.pod == world.uid));
}

// spec: NODE-02
#[test]
fn fetching_an_image() {
    let script = Script { image_present: false, pull_delay: secs(3), ..Script::default() };
    let pulled = "Successfully pulled image \"i\" in 3s (3s including waiting). Image size: 4096 bytes.";
    for policy in [PullPolicy::IfNotPresent, PullPolicy::Always] {
        let a0 = ContainerSpec { image_pull_policy: policy, ..container("a0") };
        let mut world = World::with(pod(Always, vec![], vec![a0]), &[("a0", script.clone())]);
        world.run_until(1.0);
        let early = world.events("Pulling").len();
        // With IfNotPresent nobody knows before the answer that there is something to fetch.
        assert_eq!(early, usize::from(policy == PullPolicy::Always));
        world.run_until(5.0);
        assert_eq!(
            told(&world)[1..3],
            [(EventKind::Normal, "Pulling", "Pulling image \"i\"", A0), (EventKind::Normal, "Pulled", pulled, A0),]
        );
    }
}

// spec: NODE-02
#[test]
fn an_image_that_can_not_be_had() {
    let script = Script { image_failures: 1, ..Script::default() };
    let mut world = World::with(pod(Always, vec![], vec![container("a0")]), &[("a0", script)]);
    world.run_until(5.0);
    assert_eq!(
        told(&world)[1..],
        [
            (EventKind::Normal, "Pulling", "Pulling image \"i\"", A0),
            (EventKind::Warning, "Failed", "Failed to pull image \"i\": not there", A0),
            (EventKind::Warning, "Failed", "Error: ErrImagePull", A0),
            (EventKind::Normal, "BackOff", "Back-off pulling image \"i\"", A0),
            (EventKind::Warning, "Failed", "Error: ImagePullBackOff", A0),
        ]
    );
    assert_eq!(world.events[4].first_seen, Instant::from_secs(1001));

    let never = Script { image_failures: 1, image_reason: "ErrImageNeverPull", ..Script::default() };
    let a0 = ContainerSpec { image_pull_policy: PullPolicy::Never, ..container("a0") };
    let mut world = World::with(pod(Always, vec![], vec![a0]), &[("a0", never)]);
    world.run_until(5.0);
    let message = "Container image \"i\" is not present with pull policy of Never";
    assert_eq!(
        told(&world)[1..],
        [
            (EventKind::Warning, "ErrImageNeverPull", message, A0),
            (EventKind::Warning, "Failed", "Error: ErrImageNeverPull", A0),
        ]
    );

    for (reason, message) in [
        ("InvalidImageName", "Failed to apply default image tag \"i\": not there"),
        ("ImageInspectError", "Failed to inspect image \"i\": not there"),
    ] {
        let fails = Script { image_failures: 1, image_reason: reason, ..Script::default() };
        let mut world = World::with(pod(Always, vec![], vec![container("a0")]), &[("a0", fails)]);
        world.run_until(5.0);
        let error = format!("Error: {reason}");
        assert_eq!(
            told(&world)[1..],
            [(EventKind::Warning, "InspectFailed", message, A0), (EventKind::Warning, "Failed", &*error, A0),]
        );
    }
}

// spec: NODE-02
#[test]
fn a_sandbox_or_a_container_that_can_not_be_made() {
    let fails = Life::StartFails("CreateContainerConfigError", "secret \"s\" not found");
    let script = Script { lives: vec![fails, Life::Forever], ..Script::default() };
    let mut world = World::empty(Default::default(), &[("a0", script)]);
    world.sandbox_failures = 2;
    world.apply("p", "u1", pod(Always, vec![], vec![container("a0")]));
    world.run_until(60.0);
    let warnings: Vec<_> = world.events.iter().filter(|e| e.kind == EventKind::Warning).collect();
    let told: Vec<_> = warnings.iter().map(|e| (&*e.reason, &*e.message, &*e.field_path, e.count)).collect();
    assert_eq!(
        told,
        [
            ("FailedCreatePodSandBox", "no address is left", "", 1),
            ("FailedCreatePodSandBox", "no address is left", "", 2),
            ("Failed", "Error: secret \"s\" not found", A0, 1),
        ]
    );
    assert_eq!(world.starts("a0"), [20.0, 30.0]);
}

// spec: NODE-02
#[test]
fn a_probe_with_a_remark() {
    let a0 = ContainerSpec { readiness_probe: Some(probe(Handler::HttpGet)), ..container("a0") };
    let probes = vec![(ProbeKind::Readiness, secs(0), secs(15), ProbeOutcome::Warning)];
    let mut world = World::with(pod(Always, vec![], vec![a0]), &[("a0", Script { probes, ..Script::default() })]);
    world.run_until(30.0);
    assert_eq!(world.events("ProbeWarning"), ["Readiness probe warning: as scripted"; 2]);
    assert!(world.container("a0").ready);
}

// spec: NODE-02
#[test]
fn equal_events_are_a_series() {
    let mut world = World::with(pod(Always, vec![], vec![container("a0")]), &[("a0", exits(1, 1))]);
    world.run_until(80.0);
    let started: Vec<_> = world.events.iter().filter(|e| e.reason == "Started").collect();
    let counts: Vec<_> = started.iter().map(|e| e.count).collect();
    assert_eq!(counts, [1, 2, 3, 4, 5]);
    let last = started[4];
    assert_eq!((last.first_seen, last.last_seen), (Instant::from_secs(1000), Instant::from_secs(1074)));
    // Another container's are another series.
    let mut world = World::with(pod(Never, vec![], vec![container("a0"), container("a1")]), &[]);
    world.run_until(1.0);
    assert!(world.events.iter().all(|e: &Event| e.count == 1));
}

// spec: NODE-02
#[test]
fn what_is_remembered_of_them_is_bounded() {
    // A failure with another message each time, and then the first one again.
    let counts = |different: usize| {
        let message = |n: usize| -> &'static str { Box::leak(format!("failure {n}").into_boxed_str()) };
        let mut lives: Vec<_> = (0..different).map(|n| Life::StartFails("CreateContainerError", message(n))).collect();
        lives.extend([Life::StartFails("CreateContainerError", "failure 0"), Life::Forever]);
        let script = Script { lives, ..Script::default() };
        let mut world = World::with(pod(Always, vec![], vec![container("a0")]), &[("a0", script)]);
        world.run_until(10_000.0);
        assert!(world.is_running("a0"));
        let first = world.events.iter().filter(|e| e.message == "Error: failure 0");
        first.map(|e| e.count).collect::<Vec<_>>()
    };
    assert_eq!(counts(10), [1, 2]);
    assert_eq!(counts(100), [1, 1], "forgotten meanwhile");
}
