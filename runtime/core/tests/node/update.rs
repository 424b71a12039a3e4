//! Changed definitions of a pod that is known (POD-08), as far as the core is concerned.

use husk_core::Action;
use husk_core::io::Outcome;
use husk_core::spec::RestartPolicy::{Always, Never};
use husk_core::spec::{ContainerSpec, PodSpec};

use crate::world::{Life, OnSignal, Script, World, container, exits, pod, secs, sidecar};

/// The same pod with another definition of that container.
fn changed(mut spec: PodSpec, name: &str) -> PodSpec {
    let all = spec.init_containers.iter_mut().chain(&mut spec.containers);
    let container = all.into_iter().find(|c| c.name == name).expect("it has one of that name");
    (container.hash, container.image) = (container.hash + 1, "j".into());
    spec
}

fn stubborn() -> Script {
    Script { on_signal: OnSignal::Ignores, ..Script::default() }
}

// spec: POD-08
#[test]
fn a_changed_container_is_restarted_alone_whatever_its_policy() {
    for policy in [Always, Never] {
        let spec = pod(policy, vec![sidecar("s0")], vec![container("a0"), container("a1")]);
        let mut world = World::with(spec.clone(), &[("a0", stubborn())]);
        world.run_until(10.0);
        world.apply("p", "u1", changed(spec, "a0"));
        world.run_until(100.0);
        assert_eq!(world.events("Killing"), ["Container a0 definition changed, will be restarted"]);
        assert_eq!((world.signals("a0"), world.kills("a0")), (vec![10.0], vec![40.0]), "with its grace");
        assert_eq!(world.starts("a0"), [0.0, 40.0], "{policy:?}: at once, it did not crash");
        assert_eq!(world.container("a0").image, "j");
        assert_eq!(world.container("a0").restart_count, 1);
        assert_eq!((world.starts("a1"), world.starts("s0")), (vec![0.0], vec![0.0]));
    }
}

#[test]
fn a_spec_with_other_containers_is_none_of_this_pod() {
    let with = |init: Vec<ContainerSpec>, apps: Vec<ContainerSpec>| pod(Always, init, apps);
    let ephemeral = |spec: PodSpec, names: &[&str]| PodSpec {
        ephemeral_containers: names.iter().map(|name| container(name)).collect(),
        ..spec
    };
    let spec = ephemeral(with(vec![sidecar("s0")], vec![container("a0"), container("a1")]), &["e0"]);
    for other in [
        with(vec![], vec![container("a0"), container("a1")]),
        ephemeral(with(vec![], vec![container("a0"), container("a1")]), &["e0"]),
        ephemeral(with(vec![sidecar("s0")], vec![container("a1"), container("a0")]), &["e0"]),
        ephemeral(with(vec![sidecar("s0")], vec![container("a0")]), &["e0", "e1"]),
        ephemeral(spec.clone(), &[]),
        ephemeral(spec.clone(), &["e1"]),
        ephemeral(changed(with(vec![container("a0")], vec![container("s0"), container("a1")]), "a0"), &["e0"]),
    ] {
        let mut world = World::with(spec.clone(), &[]);
        world.run_until(10.0);
        let before = world.orders.len();
        world.apply("p", "u1", other);
        world.apply("another-name", "u1", changed(spec.clone(), "a0"));
        world.run_until(100.0);
        assert_eq!(world.orders[before..], [], "nothing of it changed");
        world.apply("p", "u1", ephemeral(changed(spec.clone(), "a0"), &["e0", "e1"]));
        world.run_until(110.0);
        assert_eq!((world.starts("e1"), world.starts("a0")[1..].len()), (vec![100.0], 1), "what may change does");
    }
}

// spec: POD-08
#[test]
fn what_a_container_did_by_its_old_definition_does_not_hold_back_the_new_one() {
    let crash = Life::Exit(secs(0), Outcome::Code(1));
    let script = Script { lives: vec![crash, crash, crash, Life::Forever], ..Script::default() };
    let spec = pod(Always, vec![], vec![container("a0")]);
    let mut world = World::with(spec.clone(), &[("a0", script)]);
    world.run_until(40.0);
    assert_eq!(world.starts("a0"), [0.0, 0.0, 10.0, 30.0]);
    world.apply("p", "u1", changed(spec, "a0"));
    world.run_until(41.0);
    assert_eq!(world.starts("a0")[4..], [40.0], "at once, and not 40 s later");
}

// spec: POD-08
#[test]
fn a_changed_init_container_restarts_nothing_in_a_started_pod() {
    let spec = pod(Always, vec![container("i0")], vec![container("a0")]);
    let mut world = World::with(spec.clone(), &[("i0", exits(2, 0))]);
    world.run_until(10.0);
    world.apply("p", "u1", changed(spec, "i0"));
    world.run_until(100.0);
    assert_eq!((world.starts("i0"), world.starts("a0")), (vec![0.0], vec![2.0]));
    assert!(world.events("Killing").is_empty());
}

// spec: SIDE-07
#[test]
fn a_changed_sidecar_is_restarted_alone() {
    let spec = pod(Never, vec![sidecar("s0"), sidecar("s1")], vec![container("a0")]);
    let mut world = World::with(spec.clone(), &[]);
    world.run_until(10.0);
    world.apply("p", "u1", changed(spec, "s0"));
    world.run_until(100.0);
    assert_eq!((world.starts("s0"), world.starts("s1"), world.starts("a0")), (vec![0.0, 10.0], vec![0.0], vec![0.0]));
    assert_eq!(world.events("Killing"), ["Init container s0 definition changed"]);
}

// spec: POD-08
#[test]
fn the_same_definition_again_changes_nothing() {
    let spec = pod(Always, vec![], vec![container("a0")]);
    let mut world = World::with(spec.clone(), &[]);
    world.run_until(10.0);
    let before = (world.orders.len(), world.events.len(), world.statuses.len());
    world.apply("p", "u1", spec);
    world.run_until(100.0);
    assert_eq!((world.orders.len(), world.events.len(), world.statuses.len()), before);
}

#[test]
fn another_image_is_tried_at_once_after_one_that_could_not_be_had() {
    let spec = pod(Always, vec![], vec![container("a0")]);
    let script = Script { image_failures: 4, ..Script::default() };
    let mut world = World::with(spec.clone(), &[("a0", script)]);
    world.run_until(100.0);
    assert_eq!(world.waiting("a0").0, "ImagePullBackOff");
    world.apply("p", "u1", changed(spec, "a0"));
    world.run_until(101.0);
    assert_eq!(world.starts("a0"), [100.0]);
    assert!(world.is_running("a0"));
}

#[test]
fn a_crashing_container_with_another_definition_starts_at_once_and_with_a_clean_slate() {
    let spec = pod(Always, vec![], vec![container("a0")]);
    let mut world = World::with(spec.clone(), &[("a0", exits(0, 1))]);
    world.run_until(100.0);
    assert_eq!(world.starts("a0"), [0.0, 0.0, 10.0, 30.0, 70.0]);
    world.apply("p", "u1", changed(spec, "a0"));
    world.run_until(135.0);
    assert_eq!(world.starts("a0")[5..], [100.0, 100.0, 110.0, 130.0]);
}

#[test]
fn what_is_being_fetched_or_started_by_the_old_definition_is_replaced() {
    let pulling = Script { pull_delay: secs(5), ..Script::default() };
    let starting = Script { start_delay: secs(5), ..Script::default() };
    for (what, script, starts, pulls) in
        [("pulling", pulling, vec![8.0], vec![0.0, 3.0]), ("starting", starting, vec![0.0, 5.0], vec![0.0, 5.0])]
    {
        let spec = pod(Always, vec![], vec![container("a0")]);
        let mut world = World::with(spec.clone(), &[("a0", script)]);
        world.run_until(3.0);
        world.apply("p", "u1", changed(spec, "a0"));
        world.run_until(60.0);
        assert_eq!(world.starts("a0"), starts, "{what}");
        assert_eq!(world.ordered(|a| matches!(a, Action::PullImage { .. })), pulls, "{what}");
        assert!(world.is_running("a0"));
    }
}

#[test]
fn an_ephemeral_container_that_is_added_runs_at_once_and_never_again() {
    let spec = pod(Always, vec![container("i0")], vec![container("a0")]);
    let debugging =
        PodSpec { ephemeral_containers: vec![ContainerSpec { hash: 9, ..container("e0") }], ..spec.clone() };
    let mut world = World::with(spec, &[("i0", exits(20, 0)), ("e0", exits(3, 1))]);
    world.run_until(5.0);
    world.apply("p", "u1", debugging);
    world.run_until(100.0);
    assert_eq!(world.starts("e0"), [5.0], "init or not");
    assert_eq!(world.terminated("e0").exit_code, 1);
    assert_eq!(world.starts("a0"), [20.0]);
}
