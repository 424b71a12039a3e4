use std::collections::BTreeMap;

use husk_core::io::{Hook, Outcome};
use husk_core::spec::RestartPolicy::{Always, Never, OnFailure};
use husk_core::spec::{ContainerSpec, Handler, PodSpec};
use husk_core::status::{ConditionStatus, Phase};

use crate::world::{OnSignal, Script, World, container, exits, pod, secs};

fn with_debugger(spec: PodSpec) -> PodSpec {
    PodSpec { ephemeral_containers: vec![container("e0")], ..spec }
}

// spec: EPH-02
#[test]
fn it_runs_before_init_is_complete_and_beside_whatever_fails() {
    let spec = with_debugger(pod(Always, vec![container("i0")], vec![container("a0")]));
    let mut world = World::with(spec, &[("i0", exits(1, 1))]);
    world.run_until(200.0);
    assert!(world.starts("i0").len() > 3, "init is tried again and again");
    assert_eq!((world.starts("e0"), world.is_running("e0")), (vec![0.0], true));
    assert_eq!((world.phase(), world.starts("a0")), (Phase::Pending, vec![]));
}

// spec: EPH-02
#[test]
fn it_is_started_once_under_every_policy_however_it_ends() {
    for policy in [Always, OnFailure, Never] {
        for code in [0, 1, 137] {
            let spec = with_debugger(pod(policy, vec![], vec![container("a0")]));
            let mut world = World::with(spec, &[("e0", exits(5, code))]);
            world.run_until(5000.0);
            assert_eq!(world.starts("e0"), [0.0], "{policy:?}, {code}");
            assert_eq!(world.terminated("e0").exit_code, code);
            assert_eq!(world.status().ephemeral_container_statuses.len(), 1);
        }
    }
}

// spec: EPH-02
#[test]
fn neither_its_run_nor_its_end_changes_phase_or_readiness() {
    for script in [exits(5, 1), Script::default(), Script { image_failures: 1000, ..Script::default() }] {
        let seen = |spec: PodSpec| {
            let mut world = World::with(spec, &[("a0", exits(60, 0)), ("e0", script.clone())]);
            let at = [1.0, 10.0, 59.0, 100.0].map(|at| {
                world.run_until(at);
                (world.phase(), world.condition("Ready").status, world.condition("ContainersReady").message)
            });
            (at, world.starts("a0"))
        };
        let spec = pod(OnFailure, vec![], vec![container("a0")]);
        assert_eq!(seen(with_debugger(spec.clone())), seen(spec));
    }
}

// spec: EPH-02, SIDE-06
#[test]
fn it_keeps_no_finished_pod_alive_and_does_not_fail_it() {
    let spec = with_debugger(pod(Never, vec![], vec![container("a0")]));
    let failing = Script { on_signal: OnSignal::Ends(secs(2), Outcome::Code(9)), ..Script::default() };
    let mut world = World::with(spec, &[("a0", exits(10, 0)), ("e0", failing)]);
    world.run_until(60.0);
    assert_eq!(world.terminated("e0").exit_code, 9);
    assert_eq!(world.phase(), Phase::Succeeded);
    assert_eq!(world.condition("Ready").status, ConditionStatus::False);
}

// spec: EPH-02, TERM-08
#[test]
fn it_ends_with_its_pod() {
    let hooked = ContainerSpec { pre_stop: Some(Handler::Exec), ..container("a0") };
    let spec = with_debugger(pod(Always, vec![], vec![hooked]));
    let stops = Script { hooks: BTreeMap::from([(Hook::PreStop, (secs(3), Ok(())))]), ..Script::default() };
    let mut world = World::with(spec, &[("a0", stops)]);
    world.run_until(10.0);
    world.delete(None);
    world.run_until(60.0);
    assert!(world.is_gone());
    assert_eq!(world.signals("e0"), [10.0], "it has no hook to wait for");
    assert_eq!(world.signals("a0"), [13.0]);
}
