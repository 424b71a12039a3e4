use husk_core::io::{Outcome, Trap};
use husk_core::spec::RestartPolicy::{Always, Never};
use husk_core::status::{ContainerState, Phase};
use husk_core::time::Instant;

use crate::world::{Life, Script, World, container, exits, lives, pod, secs};

// spec: STATE-01
#[test]
fn a_state_has_what_belongs_to_it() {
    let slow = Script { start_delay: secs(2), ..lives(&[(5, 3)]) };
    let mut world = World::with(pod(Never, vec![], vec![container("a0")]), &[("a0", slow)]);
    world.run_until(1.0);
    assert_eq!(
        world.container("a0").state,
        ContainerState::Waiting { reason: "ContainerCreating".into(), message: String::new() }
    );
    world.run_until(3.0);
    let started_at = Instant::from_secs(1002);
    assert_eq!(world.container("a0").state, ContainerState::Running { started_at });
    world.run_until(10.0);
    let end = world.terminated("a0");
    assert_eq!((end.exit_code, end.signal, &*end.reason), (3, 0, "Error"));
    assert_eq!((end.started_at, end.finished_at), (Some(started_at), Some(Instant::from_secs(1007))));
    assert_eq!(end.container_id, "husk://a0-0");
    assert_eq!(world.container("a0").container_id, "husk://a0-0");
    assert_eq!(world.container("a0").image_id, "sha256:1");
}

// spec: STATE-01
#[test]
fn a_signal_that_ended_it_is_told_and_so_is_its_last_message() {
    let mut world = World::with(pod(Never, vec![], vec![container("a0")]), &[]);
    world.run_until(1.0);
    let instance = husk_core::io::InstanceRef { pod: world.uid.clone(), container: "a0".into(), attempt: 0 };
    let message = "out of paper".into();
    world.input(husk_core::Input::Exited { instance, outcome: Outcome::Signal(9), message });
    let end = world.terminated("a0");
    assert_eq!((end.exit_code, end.signal, &*end.reason, &*end.message), (137, 9, "Error", "out of paper"));
}

/// Why a container waits that can't be started.
fn waits_for(script: Script) -> (World, String) {
    let mut world = World::with(pod(Always, vec![], vec![container("a0")]), &[("a0", script)]);
    world.run_until(0.5);
    let reason = world.waiting("a0").0;
    (world, reason)
}

// spec: STATE-02
#[test]
fn before_its_first_start_it_waits_to_be_created_or_for_init() {
    let slow = Script { pull_delay: secs(5), ..Script::default() };
    assert_eq!(waits_for(slow).1, "ContainerCreating");

    let spec = pod(Always, vec![container("i0"), container("i1")], vec![container("a0")]);
    let mut world = World::with(spec, &[("i0", exits(5, 0)), ("i1", exits(5, 0))]);
    world.run_until(7.0);
    assert_eq!(world.waiting("a0"), ("PodInitializing".into(), String::new()));
    assert!(world.is_running("i1"));
}

// spec: STATE-02
#[test]
fn an_image_that_can_not_be_pulled_backs_off() {
    let script = Script { image_failures: 4, ..Script::default() };
    let (mut world, reason) = waits_for(script);
    assert_eq!(reason, "ErrImagePull");
    assert_eq!(world.waiting("a0").1, "not there");
    world.run_until(1.0);
    let backing_off = "Back-off pulling image \"i\": ErrImagePull: not there";
    assert_eq!(world.waiting("a0"), ("ImagePullBackOff".into(), backing_off.into()));
    world.run_until(10.0);
    assert_eq!(world.waiting("a0").0, "ErrImagePull", "tried again");
    world.run_until(11.0);
    assert_eq!(world.waiting("a0").0, "ImagePullBackOff");
    world.run_until(1000.0);
    let pulls = world.ordered(|action| matches!(action, husk_core::Action::PullImage { .. }));
    assert_eq!(pulls, [0.0, 10.0, 30.0, 70.0, 150.0]);
    assert!(world.is_running("a0"));
    assert_eq!(world.container("a0").restart_count, 0, "it never ran before");
}

// spec: STATE-02
#[test]
fn an_image_that_was_had_meanwhile_backs_off_from_the_beginning() {
    let script = Script { image_failures: 2, failing_pulls: vec![4], ..exits(5, 1) };
    let mut world = World::with(pod(Always, vec![], vec![container("a0")]), &[("a0", script)]);
    world.run_until(50.0);
    // Fails at 0 and 10, runs from 30 to 35, fails again and is tried 10 s later.
    let pulls = world.ordered(|action| matches!(action, husk_core::Action::PullImage { .. }));
    assert_eq!(pulls, [0.0, 10.0, 30.0, 35.0, 45.0]);
    assert_eq!(world.starts("a0"), [30.0, 45.0]);
}

// spec: STATE-02
#[test]
fn an_image_that_no_trying_will_bring_keeps_its_reason() {
    for (reason, said) in [
        ("InvalidImageName", "Failed to apply default image tag \"i\": not there"),
        ("ErrImageNeverPull", "Container image \"i\" is not present with pull policy of Never"),
        ("ImageInspectError", "Failed to inspect image \"i\": not there"),
    ] {
        let script = Script { image_failures: 1000, image_reason: reason, ..Script::default() };
        let (mut world, first) = waits_for(script);
        assert_eq!(first, reason);
        world.run_until(100.0);
        let (waits, message) = world.waiting("a0");
        assert_eq!((&*waits, &*message), (reason, said));
        assert_eq!(world.phase(), Phase::Pending);
    }
}

// spec: STATE-02
#[test]
fn a_container_that_can_not_be_made_says_why_and_is_tried_again_after_10_s() {
    for reason in ["CreateContainerConfigError", "CreateContainerError", "RunContainerError"] {
        let fails = Life::StartFails(reason, "configmap \"m\" not found");
        let script = Script { lives: vec![fails, fails, Life::Forever], ..Script::default() };
        let (mut world, first) = waits_for(script);
        assert_eq!(first, reason);
        assert_eq!(world.waiting("a0").1, "configmap \"m\" not found");
        world.run_until(19.9);
        assert_eq!(world.waiting("a0").0, reason);
        world.run_until(30.0);
        assert!(world.is_running("a0"), "{reason}");
        assert_eq!(world.starts("a0"), [0.0, 10.0, 20.0]);
    }
}

// spec: STATE-02
#[test]
fn what_waits_for_an_object_is_tried_at_once_when_there_are_others() {
    let again = |world: &World| husk_core::Input::TryAgain { pod: world.uid.clone() };
    for (reason, starts) in [("CreateContainerConfigError", vec![4.0, 4.5]), ("CreateContainerError", vec![4.0, 14.0])]
    {
        let fails = Life::StartFails(reason, "configmap \"m\" not found");
        let script = Script { lives: vec![fails, Life::Forever], ..Script::default() };
        let mut world = World::empty(Default::default(), &[("a0", script)]);
        world.sandbox_failures = 2;
        world.apply("p", "u1", pod(Always, vec![], vec![container("a0")]));
        // A sandbox that failed, too.
        for seconds in [2.0, 4.0, 4.5] {
            world.run_until(seconds);
            let input = again(&world);
            world.input(input);
        }
        world.run_until(20.0);
        assert_eq!(world.starts("a0"), starts, "{reason}");
        // What runs is left alone.
        let input = again(&world);
        world.input(input);
        world.run_until(30.0);
        assert!(world.is_running("a0") && world.starts("a0").len() == 2, "{reason}");
    }
}

// spec: STATE-02
#[test]
fn a_crashing_container_waits_in_crash_loop_back_off() {
    let (world, reason) = waits_for(exits(0, 1));
    assert_eq!(reason, "CrashLoopBackOff");
    assert_eq!(world.container("a0").restart_count, 1);
}

// spec: STATE-03
#[test]
fn reasons_of_an_end() {
    for (outcome, reason) in [
        (Outcome::Code(0), "Completed"),
        (Outcome::Code(1), "Error"),
        (Outcome::Signal(9), "Error"),
        (Outcome::Trap(Trap::Unreachable), "Error"),
        (Outcome::Trap(Trap::OutOfMemory), "OOMKilled"),
    ] {
        let script = Script { lives: vec![Life::Exit(secs(1), outcome)], ..Script::default() };
        let mut world = World::with(pod(Never, vec![], vec![container("a0")]), &[("a0", script)]);
        world.run_until(2.0);
        assert_eq!(world.terminated("a0").reason, reason, "{outcome:?}");
    }
}

// spec: STATE-03
#[test]
fn one_that_could_not_be_started_ended_with_start_error() {
    let script = Script { lives: vec![Life::StartFails("RunContainerError", "not a module")], ..Script::default() };
    let mut world = World::with(pod(Never, vec![], vec![container("a0")]), &[("a0", script)]);
    world.run_until(1.0);
    let end = world.terminated("a0");
    assert_eq!((end.exit_code, &*end.reason, &*end.message), (128, "StartError", "not a module"));
    assert_eq!((&*end.container_id, end.finished_at), ("u1-a0-0", Some(Instant::from_secs(1000))));
    assert_eq!(world.container("a0").image_id, "sha256:1");
    assert_eq!(world.phase(), Phase::Failed);
}

// spec: STATE-03
#[test]
fn each_start_that_failed_counts_as_a_restart_as_any_end_does() {
    let script = Script { lives: vec![Life::StartFails("RunContainerError", "not a module")], ..Script::default() };
    let mut world = World::with(pod(Always, vec![], vec![container("a0")]), &[("a0", script)]);
    world.run_until(60.0);
    let starts = world.starts("a0").len();
    assert!(starts > 2);
    assert_eq!(world.container("a0").restart_count as usize, starts - 1);
}

// spec: STATE-03, POD-09
#[test]
fn one_that_the_deadline_stopped_says_so_unless_it_ended_well() {
    for (outcome, code, reason) in [(Outcome::Signal(15), 143, "DeadlineExceeded"), (Outcome::Code(0), 0, "Completed")]
    {
        let mut spec = pod(Always, vec![], vec![container("a0")]);
        spec.active_deadline_seconds = Some(20);
        let on_signal = crate::world::OnSignal::Ends(secs(2), outcome);
        let mut world = World::with(spec, &[("a0", Script { on_signal, ..Script::default() })]);
        world.run_until(30.0);
        assert_eq!((world.terminated("a0").exit_code, &*world.terminated("a0").reason), (code, reason));
    }
}

// spec: STATE-03
#[test]
fn one_that_never_ran_in_a_pod_that_ended_has_an_unknown_end() {
    let slow = Script { pull_delay: secs(100), ..Script::default() };
    let spec = pod(Always, vec![], vec![container("a0"), container("a1")]);
    let mut world = World::with(spec, &[("a1", slow)]);
    world.run_until(10.0);
    world.delete(None);
    world.run_until(11.0);
    assert!(world.is_gone());
    let end = world.terminated("a1");
    assert_eq!((end.exit_code, &*end.reason), (137, "ContainerStatusUnknown"));
    assert_eq!(end.message, "The container could not be located when the pod was terminated");
    assert_eq!(world.terminated("a0").exit_code, 143);
}

// spec: STATE-04
#[test]
fn the_last_end_is_kept_through_waiting_and_running() {
    let mut world =
        World::with(pod(Always, vec![], vec![container("a0")]), &[("a0", lives(&[(2, 5), (3, 6), (60, 0)]))]);
    let last = |world: &World| world.container("a0").last_state.map(|end| (end.exit_code, end.container_id));
    world.run_until(1.0);
    assert_eq!(last(&world), None);
    world.run_until(3.0);
    assert!(world.is_running("a0"));
    assert_eq!(last(&world), Some((5, "husk://a0-0".into())));
    assert_eq!(world.container("a0").restart_count, 1);
    world.run_until(6.0);
    assert_eq!(world.waiting("a0").0, "CrashLoopBackOff");
    assert_eq!(last(&world), Some((6, "husk://a0-1".into())));
    assert_eq!(world.container("a0").restart_count, 1, "counted when it runs again");
    world.run_until(16.0);
    assert!(world.is_running("a0"));
    assert_eq!(last(&world), Some((6, "husk://a0-1".into())));
    assert_eq!(world.container("a0").restart_count, 2);
}

// spec: STATE-04
#[test]
fn the_restart_count_never_falls() {
    let spec = pod(Always, vec![container("i0")], vec![container("a0")]);
    let script = lives(&[(1, 1), (1, 0), (0, 3), (700, 1)]);
    let mut world = World::with(spec, &[("i0", lives(&[(1, 1), (1, 1), (1, 0)])), ("a0", script)]);
    world.run_until(3000.0);
    world.delete(None);
    world.run_for(60.0);
    for name in ["i0", "a0"] {
        let counts: Vec<_> = world
            .statuses
            .iter()
            .flat_map(|(_, status)| status.init_container_statuses.iter().chain(&status.container_statuses))
            .filter(|status| status.name == name)
            .map(|status| status.restart_count)
            .collect();
        assert!(counts.is_sorted(), "{name}: {counts:?}");
        assert_eq!(counts.last().map(|count| *count as usize), Some(world.starts(name).len() - 1), "{name}");
    }
}

// spec: STATE-07
#[test]
fn exit_codes_reach_the_status_unchanged_and_traps_become_signal_style_codes() {
    for (outcome, code, signal) in [
        (Outcome::Code(0), 0, 0),
        (Outcome::Code(1), 1, 0),
        (Outcome::Code(42), 42, 0),
        (Outcome::Code(255), 255, 0),
        (Outcome::Code(-1), -1, 0),
        (Outcome::Code(i32::MAX), i32::MAX, 0),
        (Outcome::Trap(Trap::Unreachable), 134, 0),
        (Outcome::Trap(Trap::Arithmetic), 136, 0),
        (Outcome::Trap(Trap::Fault), 139, 0),
        (Outcome::Trap(Trap::OutOfMemory), 137, 0),
        (Outcome::Trap(Trap::OutOfFuel), 152, 0),
        (Outcome::Signal(9), 137, 9),
        (Outcome::Signal(15), 143, 15),
    ] {
        let script = Script { lives: vec![Life::Exit(secs(1), outcome)], ..Script::default() };
        let mut world = World::with(pod(Never, vec![], vec![container("a0")]), &[("a0", script)]);
        world.run_until(2.0);
        assert_eq!((world.terminated("a0").exit_code, world.terminated("a0").signal), (code, signal), "{outcome:?}");
        let phase = if code == 0 { Phase::Succeeded } else { Phase::Failed };
        assert_eq!(world.phase(), phase, "{outcome:?}");
    }
}
