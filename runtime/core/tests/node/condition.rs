use husk_core::Input;
use husk_core::io::ProbeOutcome;
use husk_core::spec::RestartPolicy::{Always, Never, OnFailure};
use husk_core::spec::{ContainerSpec, Handler, PodSpec, Probe, ProbeKind};
use husk_core::status::{Condition, ConditionStatus, Phase};
use husk_core::time::Instant;

use crate::world::{Script, World, container, exits, lives, pod, probe, secs, sidecar};

/// Status, reason and message of a condition.
fn says(world: &World, kind: &str) -> (ConditionStatus, String, String) {
    let condition = world.condition(kind);
    (condition.status, condition.reason.to_string(), condition.message)
}

fn yes() -> (ConditionStatus, String, String) {
    (ConditionStatus::True, String::new(), String::new())
}

fn no(reason: &str, message: &str) -> (ConditionStatus, String, String) {
    (ConditionStatus::False, reason.into(), message.into())
}

/// When a condition's status last changed, in seconds after the pod was applied.
fn since(world: &World, kind: &str) -> f64 {
    World::seconds(world.condition(kind).last_transition_time.expect("every condition says since when"))
}

/// Sandbox after 2 s, init for 3 s, ready 5 s after the start of the app.
fn slow_pod() -> World {
    let late = Probe { initial_delay_seconds: 5, ..probe(Handler::Exec) };
    let a0 = ContainerSpec { readiness_probe: Some(late), ..container("a0") };
    let mut world = World::empty(Default::default(), &[("i0", exits(3, 0))]);
    world.sandbox_delay = secs(2);
    world.apply("p", "u1", pod(Always, vec![container("i0")], vec![a0]));
    world
}

// spec: COND-01
#[test]
fn conditions_come_true_one_after_the_other_and_at_their_time() {
    let mut world = slow_pod();
    let order = ["PodScheduled", "PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready"];
    for (at, reached) in [(0.0, 1), (1.9, 1), (2.0, 2), (4.9, 2), (5.0, 3), (9.9, 3), (10.0, 5)] {
        world.run_until(at);
        for (place, kind) in order.into_iter().enumerate() {
            assert_eq!(world.condition(kind).status, (place < reached).into(), "{kind} at {at}");
        }
    }
    let times = order.map(|kind| since(&world, kind));
    assert_eq!(times, [0.0, 2.0, 5.0, 10.0, 10.0]);
}

// spec: COND-01
#[test]
fn a_condition_has_all_its_fields_and_its_place() {
    let mut world = slow_pod();
    world.run_until(1.0);
    let conditions = world.status().conditions;
    let kinds: Vec<_> = conditions.iter().map(|c| &*c.kind).collect();
    let upstreams = ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"];
    assert_eq!(kinds, upstreams);
    assert!(conditions.iter().all(|c| c.observed_generation == 1 && c.last_transition_time.is_some()));
    assert_eq!(world.status().observed_generation, 1);
}

// spec: COND-02
#[test]
fn the_transition_time_moves_with_the_status_and_with_nothing_else() {
    let mut world = World::with(
        pod(Always, vec![], vec![container("a0"), container("a1")]),
        &[("a0", lives(&[(10, 1), (5, 1), (1000, 0)])), ("a1", lives(&[(12, 1), (1000, 0)]))],
    );
    world.run_until(9.0);
    assert_eq!((since(&world, "Ready"), since(&world, "PodScheduled")), (0.0, 0.0));
    // a0 runs again at once; it ends at 15 and waits until 25.
    world.run_until(16.0);
    assert_eq!(says(&world, "Ready"), no("ContainersNotReady", "containers with unready status: [a0]"));
    assert_eq!(since(&world, "Ready"), 15.0);
    world.run_until(24.9);
    assert_eq!(since(&world, "Ready"), 15.0);
    world.run_until(26.0);
    assert_eq!(says(&world, "Ready"), yes());
    assert_eq!(since(&world, "Ready"), 25.0);
    for kind in ["PodScheduled", "PodReadyToStartContainers", "Initialized"] {
        assert_eq!(since(&world, kind), 0.0, "{kind}");
    }
}

// spec: COND-02
#[test]
fn another_message_does_not_move_the_transition_time() {
    let slow = |seconds| Script { start_delay: secs(seconds), ..Script::default() };
    let spec = pod(Always, vec![], vec![container("a0"), container("a1")]);
    let mut world = World::with(spec, &[("a0", slow(5)), ("a1", slow(9))]);
    world.run_until(4.0);
    assert_eq!(says(&world, "Ready").2, "containers with unready status: [a0 a1]");
    world.run_until(6.0);
    assert_eq!(says(&world, "Ready").2, "containers with unready status: [a1]");
    assert_eq!(since(&world, "Ready"), 0.0);
    world.run_until(9.0);
    assert_eq!(since(&world, "Ready"), 9.0);
}

// spec: COND-03
#[test]
fn what_is_not_ready_is_named() {
    let a0 = ContainerSpec { readiness_probe: Some(probe(Handler::Exec)), ..container("a0") };
    let s0 = ContainerSpec { readiness_probe: Some(probe(Handler::Exec)), ..sidecar("s0") };
    let not_before = |seconds| Script {
        probes: vec![(ProbeKind::Readiness, secs(0), secs(seconds), ProbeOutcome::Failure)],
        ..Script::default()
    };
    let spec = pod(Always, vec![s0, container("i0")], vec![container("b0"), a0]);
    let scripts = [("s0", not_before(35)), ("a0", not_before(25)), ("i0", exits(5, 0))];
    let mut world = World::with(spec, &scripts);
    for (at, names) in [(1.0, "s0 b0 a0"), (6.0, "s0 a0"), (36.0, "s0")] {
        world.run_until(at);
        let message = format!("containers with unready status: [{names}]");
        assert_eq!(says(&world, "ContainersReady"), no("ContainersNotReady", &message), "at {at}");
        assert_eq!(says(&world, "Ready"), no("ContainersNotReady", &message), "at {at}");
    }
    world.run_until(41.0);
    assert_eq!((says(&world, "ContainersReady"), says(&world, "Ready")), (yes(), yes()));
}

// spec: COND-03
#[test]
fn a_pod_that_is_over_is_not_ready_because_of_that() {
    for (policy, code, phase, reason) in [
        (Never, 0, Phase::Succeeded, "PodCompleted"),
        (OnFailure, 0, Phase::Succeeded, "PodCompleted"),
        (Never, 1, Phase::Failed, "PodFailed"),
    ] {
        let spec = pod(policy, vec![container("i0")], vec![container("a0")]);
        let mut world = World::with(spec, &[("i0", exits(1, 0)), ("a0", exits(5, code))]);
        world.run_until(10.0);
        assert_eq!(world.phase(), phase);
        assert_eq!(says(&world, "Ready"), no(reason, ""));
        assert_eq!(says(&world, "ContainersReady"), no(reason, ""));
        let initialized = says(&world, "Initialized");
        assert_eq!(initialized.0, ConditionStatus::True);
        assert_eq!(initialized.1, if code == 0 { "PodCompleted" } else { "" });
        assert_eq!(says(&world, "PodReadyToStartContainers").0, ConditionStatus::False, "its sandbox is gone");
        assert_eq!(since(&world, "Ready"), 6.0);
    }
}

// spec: COND-03
#[test]
fn readiness_gates_hold_back_ready_alone() {
    let mut spec = pod(Always, vec![], vec![container("a0")]);
    spec.readiness_gates = vec!["example.com/gate".into()];
    let mut world = World::with(spec, &[]);
    let set = |world: &mut World, status| {
        let condition = Condition {
            kind: "example.com/gate".into(),
            status,
            reason: "ByHand".into(),
            message: String::new(),
            // When it changed is for the node to say.
            last_transition_time: Some(Instant::ZERO),
            observed_generation: 0,
        };
        world.input(Input::ConditionSet { pod: "u1".into(), condition });
    };
    world.run_until(1.0);
    let missing = "corresponding condition of pod readiness gate \"example.com/gate\" does not exist.";
    assert_eq!(says(&world, "Ready"), no("ReadinessGatesNotReady", missing));
    assert_eq!(says(&world, "ContainersReady"), yes());
    set(&mut world, ConditionStatus::False);
    assert_eq!(since(&world, "example.com/gate"), 1.0);
    let is_false = "the status of pod readiness gate \"example.com/gate\" is not \"True\", but False";
    assert_eq!(says(&world, "Ready"), no("ReadinessGatesNotReady", is_false));
    world.run_until(5.0);
    set(&mut world, ConditionStatus::True);
    assert_eq!(says(&world, "Ready"), yes());
    assert_eq!(since(&world, "Ready"), 5.0);
    assert_eq!(since(&world, "example.com/gate"), 5.0);
    world.run_until(9.0);
    set(&mut world, ConditionStatus::True);
    assert_eq!(since(&world, "example.com/gate"), 5.0);
}

// spec: COND-08
#[test]
fn without_init_containers_initialized_is_true_before_the_sandbox_is_made() {
    let mut world = World::empty(Default::default(), &[]);
    world.sandbox_delay = secs(20);
    world.apply("p", "u1", pod(Always, vec![], vec![container("a0")]));
    world.run_until(1.0);
    assert_eq!(says(&world, "Initialized"), yes());
    assert_eq!(says(&world, "PodReadyToStartContainers").0, ConditionStatus::False);
    assert_eq!(since(&world, "Initialized"), 0.0);
}

// spec: COND-08
#[test]
fn with_them_it_is_true_after_the_last_succeeded_and_stays_so() {
    let spec = pod(Always, vec![container("i0"), sidecar("s0"), container("i1")], vec![container("a0")]);
    let scripts = [("i0", exits(2, 0)), ("s0", exits(20, 1)), ("i1", exits(3, 0)), ("a0", exits(10, 1))];
    let mut world = World::with(spec, &scripts);
    world.run_until(4.9);
    assert_eq!(says(&world, "Initialized"), no("ContainersNotInitialized", "containers with incomplete status: [i1]"));
    world.run_until(5.0);
    assert_eq!(says(&world, "Initialized"), yes());
    world.run_until(300.0);
    assert_eq!(says(&world, "Initialized"), yes(), "while sidecars and apps crash and come back");
    assert_eq!(since(&world, "Initialized"), 5.0);
}

fn set(world: &mut World, kind: &'static str, status: ConditionStatus) {
    let condition = Condition {
        kind: kind.into(),
        status,
        reason: "".into(),
        message: String::new(),
        last_transition_time: None,
        observed_generation: 0,
    };
    let pod = world.uid.clone();
    world.input(Input::ConditionSet { pod, condition });
}

// spec: COND-04, COND-05
#[test]
fn ready_follows_what_clients_say_of_the_gate() {
    let spec = PodSpec { readiness_gates: vec!["example.com/lb".into()], ..pod(Always, vec![], vec![container("a0")]) };
    let mut world = World::with(spec, &[]);
    world.run_until(5.0);
    let ready = |world: &World| {
        let (ready, containers) = (world.condition("Ready"), world.condition("ContainersReady"));
        assert_eq!(containers.status, ConditionStatus::True);
        (ready.status, ready.reason.to_string(), ready.message)
    };
    let held = |message: &str| (ConditionStatus::False, "ReadinessGatesNotReady".to_owned(), message.to_owned());
    let free = (ConditionStatus::True, String::new(), String::new());
    let missing = "corresponding condition of pod readiness gate \"example.com/lb\" does not exist.";
    assert_eq!(ready(&world), held(missing));
    set(&mut world, "example.com/lb", ConditionStatus::True);
    assert_eq!(ready(&world), free);
    world.run_until(20.0);
    set(&mut world, "example.com/lb", ConditionStatus::False);
    let no = "the status of pod readiness gate \"example.com/lb\" is not \"True\", but False";
    assert_eq!(ready(&world), held(no));
    assert_eq!(world.condition("Ready").last_transition_time, Some(Instant::from_secs(1020)));
    set(&mut world, "example.com/lb", ConditionStatus::True);
    assert_eq!(ready(&world), free);
    assert_eq!(world.starts("a0"), [0.0], "a gate restarts nothing");
}

// spec: COND-05
#[test]
fn clients_can_not_overwrite_what_the_node_says() {
    let slow = Script { start_delay: secs(30), ..Script::default() };
    let mut world = World::with(pod(Always, vec![], vec![container("a0")]), &[("a0", slow)]);
    world.run_until(5.0);
    for kind in ["Ready", "ContainersReady", "Initialized", "PodScheduled", "PodReadyToStartContainers"] {
        let before = world.condition(kind);
        let other = if before.status == ConditionStatus::True { ConditionStatus::False } else { ConditionStatus::True };
        set(&mut world, kind, other);
        assert_eq!(world.condition(kind), before);
        assert_eq!(world.status().conditions.iter().filter(|c| c.kind == kind).count(), 1);
    }
    world.run_until(40.0);
    assert_eq!(world.condition("Ready").status, ConditionStatus::True);
}

// spec: COND-04
#[test]
fn what_a_client_says_is_shown_at_once_and_again_only_if_it_says_something_else() {
    let mut world = World::with(pod(Always, vec![], vec![container("a0")]), &[]);
    world.run_until(5.0);
    let shown = world.statuses.len();
    set(&mut world, "example.com/own", ConditionStatus::True);
    assert!(world.statuses.len() > shown);
    assert_eq!(since(&world, "example.com/own"), 5.0);
    let shown = world.statuses.len();
    set(&mut world, "example.com/own", ConditionStatus::True);
    assert_eq!(world.statuses.len(), shown);
}
