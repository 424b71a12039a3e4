//! A pod's whole life in virtual time: phases, init containers, restarts.

mod world;

use husk_core::io::Outcome;
use husk_core::spec::RestartPolicy;
use husk_core::status::Phase;
use world::{Life, OnSignal, Script, World, container, exits, lives, pod, secs, sidecar};

#[test]
fn smoke() {
    let spec = pod(RestartPolicy::Never, vec![container("i0"), sidecar("s0")], vec![container("a0")]);
    let mut world = World::with(spec, &[("i0", exits(2, 0)), ("a0", exits(5, 0))]);
    world.run_until(1.0);
    assert_eq!(world.phase(), Phase::Pending);
    world.run_until(3.0);
    assert!(world.is_running("s0") && world.is_running("a0"));
    assert_eq!(world.phase(), Phase::Running);
    world.run_until(60.0);
    assert_eq!(world.phase(), Phase::Succeeded);
    assert_eq!(world.starts("s0"), [2.0]);
    assert_eq!(world.signals("s0"), [7.0]);
    let _ = (OnSignal::Ignores, Script::default(), lives(&[]), secs(1), Life::Forever, Outcome::Code(0));
}

#[test]
fn crash_loop() {
    let spec = pod(RestartPolicy::Always, vec![], vec![container("a0")]);
    let mut world = World::with(spec, &[("a0", exits(0, 1))]);
    world.run_until(700.0);
    assert_eq!(world.starts("a0"), [0.0, 0.0, 10.0, 30.0, 70.0, 150.0, 310.0, 610.0]);
    world.delete(None);
    world.run_for(0.0);
    assert!(world.is_gone());
}
