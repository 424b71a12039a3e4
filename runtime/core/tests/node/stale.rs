//! Answers that come twice or too late change nothing: every order carries its attempt number.

use husk_core::io::{Hook, Input, InstanceRef, Outcome, ProbeOutcome};
use husk_core::spec::RestartPolicy::{Always, OnFailure};
use husk_core::spec::{ContainerSpec, Handler, ProbeKind};

use crate::world::{Script, World, container, exits, lives, pod, probe, secs, sidecar};

/// Everything that was answered so far is answered again.
fn repeat_all(world: &mut World) {
    let (status, wake) = (world.status(), world.node.next_wake());
    for said in world.said.clone() {
        world.node.handle(world.now, said.clone());
        assert_eq!(world.node.poll_action(), None, "after {said:?} was said again");
    }
    assert_eq!((world.status(), world.node.next_wake()), (status, wake));
}

#[test]
fn what_was_said_already_is_not_heard_again() {
    let a0 = ContainerSpec {
        liveness_probe: Some(probe(Handler::Exec)),
        readiness_probe: Some(probe(Handler::Exec)),
        startup_probe: Some(probe(Handler::Exec)),
        post_start: Some(Handler::Exec),
        pre_stop: Some(Handler::Exec),
        ..container("a0")
    };
    let script = Script {
        probes: vec![(ProbeKind::Liveness, secs(25), secs(1000), ProbeOutcome::Failure)],
        hooks: [(Hook::PostStart, (secs(2), Ok(()))), (Hook::PreStop, (secs(3), Ok(())))].into(),
        image_failures: 2,
        ..Script::default()
    };
    let spec = pod(OnFailure, vec![sidecar("s0"), container("i0")], vec![a0, container("a1")]);
    let scripts = [("s0", exits(30, 1)), ("i0", lives(&[(1, 1), (1, 0)])), ("a0", script), ("a1", exits(7, 3))];
    let mut world = World::with(spec, &scripts);
    for step in 0..150 {
        world.run_until(f64::from(step) * 1.7);
        repeat_all(&mut world);
    }
    assert!(world.said.len() > 60, "enough happened");
    world.delete(None);
    for _ in 0..20 {
        repeat_all(&mut world);
        world.run_for(0.5);
    }
    assert!(world.is_gone());
    let orders = world.orders.len();
    for said in world.said.clone() {
        world.input(said);
    }
    assert_eq!(world.orders.len(), orders);
}

#[test]
fn an_answer_with_another_attempt_number_is_not_heard() {
    let slow = Script { pull_delay: secs(10), start_delay: secs(10), ..Script::default() };
    let mut world = World::with(pod(Always, vec![], vec![container("a0")]), &[("a0", slow)]);
    for at in [5.0, 15.0, 25.0] {
        world.run_until(at);
        let (orders, status) = (world.orders.len(), world.status());
        for attempt in [1, 7, u32::MAX] {
            let instance = || InstanceRef { pod: "u1".into(), container: "a0".into(), attempt };
            let none = String::new;
            world.input(Input::ImageReady { instance: instance(), image_id: none(), pulled: None });
            world.input(Input::ImageFailed { instance: instance(), reason: "ErrImagePull".into(), message: none() });
            world.input(Input::Started { instance: instance(), id: "other".into() });
            world.input(Input::StartFailed {
                instance: instance(),
                reason: "RunContainerError".into(),
                message: none(),
            });
            world.input(Input::Exited { instance: instance(), outcome: Outcome::Code(1), message: none() });
            world.input(Input::HookDone { instance: instance(), hook: Hook::PostStart, result: Err(none()) });
            world.input(Input::SandboxReady { pod: "u1".into(), attempt, ips: vec!["127.9.9.9".into()] });
        }
        // And what nobody knows.
        let instance = InstanceRef { pod: "u1".into(), container: "nobody".into(), attempt: 0 };
        world.input(Input::Started { instance, id: "x".into() });
        let instance = InstanceRef { pod: "nowhere".into(), container: "a0".into(), attempt: 0 };
        world.input(Input::Exited { instance, outcome: Outcome::Code(1), message: String::new() });
        assert_eq!((world.orders.len(), world.status()), (orders, status), "at {at}");
    }
    assert!(world.is_running("a0"));
}
