use husk_core::spec::RestartPolicy::{self, Always, Never, OnFailure};
use husk_core::status::{ConditionStatus, ContainerState, Phase};

use crate::world::{Script, World, container, exits, lives, pod, secs, sidecar};

// spec: INIT-01
#[test]
fn they_run_one_after_the_other_and_then_the_apps_start_together() {
    let init = vec![container("i0"), container("i1"), container("i2")];
    let spec = pod(Always, init, vec![container("a0"), container("a1"), container("a2")]);
    let mut world = World::with(spec, &[("i0", exits(3, 0)), ("i1", exits(0, 0)), ("i2", exits(5, 0))]);
    world.run_until(100.0);
    assert_eq!((world.starts("i0"), world.starts("i1"), world.starts("i2")), (vec![0.0], vec![3.0], vec![3.0]));
    for name in ["a0", "a1", "a2"] {
        assert_eq!(world.starts(name), [8.0], "{name}");
    }
}

// spec: INIT-01
#[test]
fn the_next_one_waits_for_exit_0() {
    let spec = pod(OnFailure, vec![container("i0"), container("i1")], vec![container("a0")]);
    let mut world = World::with(spec, &[("i0", lives(&[(1, 1), (1, 2), (1, 0)])), ("i1", exits(1, 0))]);
    world.run_until(100.0);
    // Ends at 1, 2 and (10 s later) at 13.
    assert_eq!(world.starts("i0"), [0.0, 1.0, 12.0]);
    assert_eq!(world.starts("i1"), [13.0]);
    assert_eq!(world.starts("a0"), [14.0]);
}

// spec: INIT-01
#[test]
fn they_do_not_run_again_when_an_app_crashes() {
    let spec = pod(Always, vec![container("i0")], vec![container("a0")]);
    let mut world = World::with(spec, &[("i0", exits(1, 0)), ("a0", exits(1, 1))]);
    world.run_until(1000.0);
    assert!(world.starts("a0").len() > 5);
    assert_eq!(world.starts("i0"), [0.0]);
}

// spec: INIT-02
#[test]
fn a_failing_one_is_retried_with_back_off() {
    for policy in [Always, OnFailure] {
        let spec = pod(policy, vec![container("i0")], vec![container("a0")]);
        let mut world = World::with(spec, &[("i0", exits(1, 1))]);
        world.run_until(2.0);
        let message = "back-off 10s restarting failed container=i0 pod=p_d(u1)";
        assert_eq!(world.waiting("i0"), ("CrashLoopBackOff".into(), message.into()));
        world.run_until(200.0);
        assert_eq!(world.starts("i0"), [0.0, 1.0, 12.0, 33.0, 74.0, 155.0], "{policy:?}");
        assert!(world.starts("a0").is_empty());
        assert_eq!(world.phase(), Phase::Pending);
        assert_eq!(world.container("i0").restart_count, 5);
    }
}

// spec: INIT-02
#[test]
fn under_never_the_pod_fails() {
    let spec = pod(Never, vec![container("i0"), container("i1")], vec![container("a0")]);
    let mut world = World::with(spec, &[("i0", exits(2, 9))]);
    world.run_until(2.0);
    assert_eq!(world.phase(), Phase::Failed);
    assert_eq!((world.terminated("i0").exit_code, world.starts("i0")), (9, vec![0.0]));
    assert_eq!(world.condition("Initialized").status, ConditionStatus::False);
    world.run_until(600.0);
    assert!(world.starts("i1").is_empty() && world.starts("a0").is_empty());
    for name in ["i1", "a0"] {
        assert_eq!(world.waiting(name).0, "PodInitializing", "{name} had no turn");
    }
}

/// Reason and message of Initialized, and whether it holds.
fn initialized(world: &World) -> (bool, String, String) {
    let condition = world.condition("Initialized");
    (condition.status == ConditionStatus::True, condition.reason.to_string(), condition.message)
}

// spec: INIT-04
#[test]
fn until_all_succeeded_the_pod_says_which_are_missing() {
    let missing =
        |names| (false, "ContainersNotInitialized".to_owned(), format!("containers with incomplete status: [{names}]"));
    let spec = pod(Always, vec![container("i0"), container("i1")], vec![container("a0")]);
    let mut world = World::with(spec, &[("i0", exits(2, 0)), ("i1", exits(2, 0))]);
    for (at, expected) in [(1.0, missing("i0 i1")), (3.0, missing("i1"))] {
        world.run_until(at);
        assert_eq!(initialized(&world), expected, "at {at}");
        assert_eq!(world.phase(), Phase::Pending);
        assert_eq!(world.waiting("a0"), ("PodInitializing".into(), String::new()));
    }
    assert_eq!(world.terminated("i0").reason, "Completed");
    assert!(world.container("i0").ready, "a finished init container counts as ready");
    world.run_until(4.0);
    assert_eq!(initialized(&world), (true, String::new(), String::new()));
    assert_eq!(world.phase(), Phase::Running);
}

// spec: INIT-04
#[test]
fn a_failed_one_shows_its_error_and_then_its_back_off() {
    let slow = Script { pull_delay: secs(1), ..exits(1, 7) };
    let spec = pod(Always, vec![container("i0"), container("i1")], vec![container("a0")]);
    let mut world = World::with(spec, &[("i0", slow)]);
    // The image takes 1 s; it ends at 2, is tried again at once and ends at 4.
    world.run_until(2.5);
    assert_eq!(world.terminated("i0").exit_code, 7, "Init:Error");
    world.run_until(4.5);
    assert_eq!(world.waiting("i0").0, "CrashLoopBackOff", "Init:CrashLoopBackOff");
    assert_eq!(world.waiting("i1").0, "PodInitializing");
    assert_eq!(initialized(&world).2, "containers with incomplete status: [i0 i1]");
}

// spec: INIT-04
#[test]
fn an_init_containers_image_that_is_missing_keeps_the_pod_pending() {
    let missing = Script { image_failures: 2, ..exits(1, 0) };
    let spec = pod(Never, vec![container("i0")], vec![container("a0")]);
    let mut world = World::with(spec, &[("i0", missing)]);
    world.run_until(5.0);
    assert_eq!(world.waiting("i0").0, "ImagePullBackOff");
    assert_eq!(world.phase(), Phase::Pending);
    world.run_until(31.0);
    assert_eq!(world.starts("i0"), [30.0]);
    assert_eq!(world.phase(), Phase::Running);
}

// spec: INIT-05
#[test]
fn their_statuses_are_in_spec_order() {
    let init = vec![container("z"), sidecar("m"), container("b")];
    let spec = pod(Always, init, vec![container("y"), container("c")]);
    let mut world = World::with(spec, &[("z", exits(1, 0)), ("b", exits(1, 0)), ("m", exits(10, 1))]);
    world.run_until(60.0);
    for (at, status) in &world.statuses {
        let names: Vec<_> = status.init_container_statuses.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(names, ["z", "m", "b"], "at {at:?}");
    }
    assert!(world.statuses.len() > 5);
}

#[test]
fn a_running_one_is_not_disturbed_by_anything() {
    for policy in [RestartPolicy::Always, OnFailure, Never] {
        let spec = pod(policy, vec![sidecar("s0"), container("i0")], vec![container("a0")]);
        let mut world = World::with(spec, &[("s0", exits(7, 1)), ("i0", exits(300, 0))]);
        world.run_until(299.0);
        assert!(world.starts("s0").len() > 3);
        assert!(matches!(world.container("i0").state, ContainerState::Running { .. }));
        assert_eq!(world.starts("i0"), [0.0]);
    }
}
