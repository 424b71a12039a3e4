use husk_core::event::EventKind;
use husk_core::io::{Hook, Outcome};
use husk_core::spec::RestartPolicy::{Always, Never};
use husk_core::spec::{ContainerSpec, Handler, PodSpec};
use husk_core::status::{ConditionStatus, ContainerState, Phase};

use crate::world::{OnSignal, Script, World, container, exits, pod, secs, sidecar};

fn within(seconds: i64, spec: PodSpec) -> PodSpec {
    PodSpec { active_deadline_seconds: Some(seconds), ..spec }
}

fn plain() -> PodSpec {
    pod(Always, vec![], vec![container("a0")])
}

/// Phase and reason, by which the end is told.
fn end(world: &World) -> (Phase, String, String) {
    let status = world.status();
    (status.phase, status.reason.to_string(), status.message)
}

fn exceeded() -> (Phase, String, String) {
    let message = "Pod was active on the node longer than the specified deadline";
    (Phase::Failed, "DeadlineExceeded".into(), message.into())
}

// spec: POD-09
#[test]
fn the_deadline_counts_from_the_start_of_the_pod_init_included() {
    let spec = within(10, pod(Always, vec![container("i0")], vec![container("a0")]));
    let mut world = World::empty(Default::default(), &[("i0", exits(6, 0))]);
    world.sandbox_delay = secs(2);
    world.apply("p", "u1", spec);
    world.run_until(9.9);
    assert!(world.is_running("a0"));
    assert!(world.signals("a0").is_empty());
    world.run_until(10.0);
    assert_eq!(world.signals("a0"), [10.0]);
    assert_eq!(end(&world), exceeded());
    assert_eq!(world.terminated("a0").exit_code, 143);
    assert!(!world.is_gone(), "it stays until somebody deletes it");
    let told: Vec<_> = world.events.iter().filter(|e| e.reason == "DeadlineExceeded").collect();
    assert_eq!(told.len(), 1);
    assert_eq!((told[0].kind, &*told[0].message, &*told[0].field_path), (EventKind::Normal, &*exceeded().2, ""));
}

// spec: POD-09
#[test]
fn it_ends_init_too() {
    let spec = within(10, pod(Always, vec![sidecar("s0"), container("i0")], vec![container("a0")]));
    let mut world = World::with(spec, &[("i0", exits(60, 0))]);
    world.run_until(200.0);
    assert_eq!((world.signals("i0"), world.signals("s0")), (vec![10.0], vec![10.0]));
    assert_eq!(end(&world), exceeded());
    assert!(world.starts("a0").is_empty());
    assert_eq!(world.waiting("a0").0, "PodInitializing", "it never had its turn");
    assert_eq!(world.condition("Initialized").status, ConditionStatus::False);
}

// spec: POD-09, PHASE-08
#[test]
fn containers_are_stopped_with_their_grace_and_failed_is_said_when_all_are_down() {
    let hooked = ContainerSpec { pre_stop: Some(Handler::Exec), ..container("a0") };
    let spec = within(10, pod(Never, vec![sidecar("s0")], vec![hooked, container("a1")]));
    let hooks = [(Hook::PreStop, (secs(4), Ok(())))].into();
    let a0 = Script { hooks, on_signal: OnSignal::Ignores, ..Script::default() };
    let well = Script { on_signal: OnSignal::Ends(secs(2), Outcome::Code(0)), ..Script::default() };
    let mut world = World::with(spec, &[("a0", a0), ("a1", well)]);
    world.run_until(100.0);
    assert_eq!((world.signals("a0"), world.kills("a0")), (vec![14.0], vec![40.0]));
    assert_eq!(world.signals("a1"), [10.0]);
    assert_eq!(world.signals("s0"), [40.0]);
    assert_eq!(end(&world), exceeded());
    for (at, status) in &world.statuses {
        let all = || status.init_container_statuses.iter().chain(&status.container_statuses);
        if status.phase == Phase::Failed {
            assert!(World::seconds(*at) >= 40.0);
            assert!(all().all(|c| matches!(c.state, ContainerState::Terminated(_))), "{status:?}");
        } else {
            assert_eq!(status.reason, "", "not before it is over");
        }
    }
    assert_eq!(world.terminated("a1").exit_code, 0, "a good end doesn't make the pod succeed");
}

// spec: POD-09
#[test]
fn it_ends_pods_that_wait_for_anything() {
    let fails = crate::world::Life::StartFails("CreateContainerConfigError", "no such secret");
    for (what, script) in [
        ("image", Script { image_failures: 1000, ..Script::default() }),
        ("pull", Script { pull_delay: secs(1000), ..Script::default() }),
        ("start", Script { start_delay: secs(1000), ..Script::default() }),
        ("configuration", Script { lives: vec![fails], ..Script::default() }),
        ("back-off", exits(1, 7)),
    ] {
        let mut world = World::with(within(25, plain()), &[("a0", script)]);
        world.run_until(25.0);
        assert_eq!(end(&world), exceeded(), "{what}");
        let orders = world.orders.len();
        world.run_until(5000.0);
        assert_eq!(world.orders.len(), orders, "{what}: nothing more is tried");
        if what == "back-off" {
            assert_eq!(world.terminated("a0").exit_code, 7, "how it ended stays known");
            assert_eq!(world.container("a0").restart_count, 2);
        }
    }
}

// spec: POD-09
#[test]
fn a_pod_that_was_done_in_time_is_left_alone() {
    for (code, phase) in [(0, Phase::Succeeded), (1, Phase::Failed)] {
        let spec = within(10, pod(Never, vec![], vec![container("a0")]));
        let mut world = World::with(spec, &[("a0", exits(9, code))]);
        world.run_until(100.0);
        assert_eq!(end(&world), (phase, String::new(), String::new()));
        assert_eq!(world.node.next_wake(), None);
    }
}

// spec: POD-09
#[test]
fn it_can_be_set_and_lowered_later() {
    let mut world = World::with(plain(), &[]);
    world.run_until(20.0);
    world.apply("p", "u1", within(100, plain()));
    world.run_until(30.0);
    world.apply("p", "u1", within(40, plain()));
    world.run_until(39.9);
    assert_eq!(world.phase(), Phase::Running);
    world.run_until(40.0);
    assert_eq!(end(&world), exceeded());
    // One that is over already ends it at once.
    let mut world = World::with(plain(), &[]);
    world.run_until(20.0);
    world.apply("p", "u1", within(5, plain()));
    world.run_until(20.0);
    assert_eq!(end(&world), exceeded());
}

// spec: POD-09
#[test]
fn a_deletion_before_or_after_it_ends_the_pod_once() {
    let stubborn = Script { on_signal: OnSignal::Ignores, ..Script::default() };
    // Deleted first: its own end.
    let mut world = World::with(within(20, plain()), &[("a0", stubborn.clone())]);
    world.run_until(10.0);
    world.delete(None);
    world.run_until(100.0);
    assert!(world.is_gone());
    assert_eq!(world.signals("a0"), [10.0]);
    assert_eq!(world.status().reason, "");
    // Deleted while it stops for the deadline: with less grace, and the reason stays.
    let mut world = World::with(within(20, plain()), &[("a0", stubborn)]);
    world.run_until(25.0);
    world.delete(Some(5));
    world.run_until(100.0);
    assert_eq!((world.signals("a0"), world.kills("a0")), (vec![20.0], vec![30.0]));
    assert!(world.is_gone());
    assert_eq!(end(&world), exceeded());
}
