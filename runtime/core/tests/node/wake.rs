//! When the node wants to be woken up: neither late nor for nothing. The world checks that at every step of every test, here and
//! for random operations (`tests/property.rs`).

use husk_core::io::{Hook, Input, ProbeOutcome};
use husk_core::spec::RestartPolicy::{Always, Never};
use husk_core::spec::{ContainerSpec, Handler, Probe, ProbeKind};
use husk_core::time::Instant;

use crate::world::{Life, OnSignal, Script, World, container, exits, pod, probe, secs, sidecar};

#[test]
fn pods_for_which_nothing_is_due_cost_no_wake_up() {
    let mut world = World::empty(Default::default(), &[("done", exits(1, 0))]);
    for n in 0..30 {
        let name = if n % 2 == 0 { "a0" } else { "done" };
        let uid = format!("u{n}");
        world.apply(&uid, &uid, pod(Never, vec![], vec![container(name)]));
    }
    world.run_until(100.0);
    assert_eq!(world.node.pods().count(), 30);
    assert_eq!(world.node.next_wake(), None);
}

#[test]
fn a_wake_up_is_never_for_nothing() {
    let stubborn = || Script { on_signal: OnSignal::Ignores, ..Script::default() };
    let late = Probe { initial_delay_seconds: 7, period_seconds: 9, ..probe(Handler::Exec) };
    let probed = ContainerSpec {
        liveness_probe: Some(late.clone()),
        readiness_probe: Some(probe(Handler::Exec)),
        startup_probe: Some(late),
        post_start: Some(Handler::Sleep(3)),
        pre_stop: Some(Handler::Sleep(5)),
        ..container("a0")
    };
    let failing = Script {
        probes: vec![
            (ProbeKind::Liveness, secs(100), secs(9000), ProbeOutcome::Failure),
            (ProbeKind::Readiness, secs(50), secs(9000), ProbeOutcome::Error),
        ],
        hooks: [(Hook::PreStop, (secs(4), Ok(())))].into(),
        ..stubborn()
    };
    let fails = Life::StartFails("RunContainerError", "why");
    let images = Script { image_failures: 3, lives: vec![fails, Life::Forever], ..Script::default() };
    let mut deadline = pod(Never, vec![sidecar("s0")], vec![container("a0"), container("a1")]);
    deadline.active_deadline_seconds = Some(300);
    let worlds = [
        World::with(pod(Always, vec![], vec![container("a0")]), &[("a0", exits(3, 1))]),
        World::with(pod(Always, vec![], vec![probed]), &[("a0", failing)]),
        World::with(pod(Always, vec![], vec![container("a0")]), &[("a0", images.clone())]),
        World::with(deadline, &[("a0", images), ("s0", stubborn())]),
        World::with(
            pod(Never, vec![sidecar("s0")], vec![container("a0")]),
            &[("a0", exits(9, 1)), ("s0", exits(2, 1))],
        ),
    ];
    for (nth, mut world) in worlds.into_iter().enumerate() {
        world.run_until(500.0);
        world.delete(None);
        world.run_until(1000.0);
        assert!(world.is_gone());
        assert_eq!(world.node.next_wake(), None, "world {nth}");
    }
}

#[test]
fn a_pod_that_ends_wants_no_wake_up_for_a_probe_that_will_not_run_any_more() {
    let late = Probe { initial_delay_seconds: 20, ..probe(Handler::Exec) };
    let a0 = ContainerSpec { liveness_probe: Some(late), ..container("a0") };
    let stubborn = Script { on_signal: OnSignal::Ignores, ..Script::default() };
    let mut world = World::with(pod(Always, vec![], vec![a0]), &[("a0", stubborn)]);
    world.run_until(5.0);
    assert_eq!(world.node.next_wake(), Some(Instant::from_secs(1020)));
    world.delete(Some(60));
    assert_eq!(world.node.next_wake(), Some(Instant::from_secs(1065)));
}

#[test]
fn the_next_wake_up_is_the_earliest_of_all_pods() {
    let mut world = World::empty(Default::default(), &[("a0", exits(1, 1)), ("b0", exits(4, 1))]);
    world.apply("p", "u1", pod(Always, vec![], vec![container("a0")]));
    world.apply("q", "u2", pod(Always, vec![], vec![container("b0")]));
    world.run_until(9.0);
    // a0 ended at 1 and 2 and waits until 12, b0 at 4 and 8 and waits until 18.
    assert_eq!(world.node.next_wake(), Some(Instant::from_secs(1012)));
    world.run_until(17.0);
    assert_eq!(world.node.next_wake(), Some(Instant::from_secs(1018)));
    world.delete(Some(0));
    world.run_until(17.5);
    assert_eq!(world.node.next_wake(), Some(Instant::from_secs(1018)));
}

/// A container that is probed beside one that crashes.
fn probed_beside_crashing(after: u64) -> World {
    let a0 = ContainerSpec { liveness_probe: Some(probe(Handler::Exec)), ..container("a0") };
    let slow = Script { probe_delay: secs(3), ..Script::default() };
    World::with(pod(Always, vec![], vec![a0, container("a1")]), &[("a0", slow), ("a1", exits(after, 1))])
}

#[test]
fn what_is_due_together_with_a_probe_is_done_with_it() {
    let mut world = probed_beside_crashing(0);
    world.run_until(29.0);
    assert_eq!(world.probes("a0", ProbeKind::Liveness), [0.0, 10.0, 20.0]);
    assert_eq!(world.starts("a1"), [0.0, 0.0, 10.0]);
}

#[test]
fn an_answer_of_a_probe_that_comes_late_hides_nothing_that_is_due_meanwhile() {
    let mut world = probed_beside_crashing(1);
    world.run_until(11.0);
    let instance = world.runs("a0", 0);
    // Nobody looked at 12, when the back-off was over.
    world.now = Instant::from_secs(1015);
    let (kind, result, message) = (ProbeKind::Liveness, ProbeOutcome::Success, String::new());
    world.input(Input::ProbeResult { instance, kind, run: 1, result, message });
    world.run_for(0.0);
    assert_eq!(world.starts("a1"), [0.0, 1.0, 15.0]);
}

#[test]
fn a_probe_that_is_under_way_when_the_pod_ends_is_not_the_first_of_others() {
    let slow = Script { probe_delay: secs(3), on_signal: OnSignal::Ignores, ..Script::default() };
    let a0 = ContainerSpec { liveness_probe: Some(probe(Handler::Exec)), ..container("a0") };
    let mut world = World::with(pod(Always, vec![], vec![a0]), &[("a0", slow)]);
    world.run_until(21.0);
    world.delete(None);
    world.run_until(24.0);
    assert_eq!(world.node.next_wake(), Some(Instant::from_secs(1051)), "KILL, and nothing before");
    // Of one that is gone nobody asks anything any more, however long its end takes.
    world.delete(Some(0));
    assert_eq!(world.node.next_wake(), None);
}
