use std::collections::BTreeSet;

use husk_core::event::EventKind;
use husk_core::io::{Outcome, Trap};
use husk_core::spec::RestartPolicy::{self, Always, Never, OnFailure};
use husk_core::status::{ContainerState, Phase};

use crate::world::{Life, OnSignal, Script, World, container, exits, lives, pod, secs, sidecar};

const POLICIES: [RestartPolicy; 3] = [Always, OnFailure, Never];

/// The phases that were published, without repetitions.
fn phases(world: &World) -> Vec<Phase> {
    let mut phases: Vec<_> = world.statuses.iter().map(|(_, status)| status.phase).collect();
    phases.dedup();
    phases
}

// spec: PHASE-01
#[test]
fn a_pod_that_lives_and_dies_in_any_way_has_one_of_four_phases() {
    let mut seen = BTreeSet::new();
    for policy in POLICIES {
        for code in [0, 1] {
            let spec = pod(policy, vec![container("i0"), sidecar("s0")], vec![container("a0")]);
            let mut world = World::with(spec, &[("i0", exits(1, 0)), ("a0", exits(1, code)), ("s0", exits(3, 1))]);
            world.run_until(100.0);
            world.delete(None);
            world.run_for(60.0);
            assert!(world.is_gone());
            seen.extend(phases(&world).iter().map(|phase| phase.as_str()));
        }
    }
    assert_eq!(Vec::from_iter(seen), ["Failed", "Pending", "Running", "Succeeded"]);
}

// spec: PHASE-02
#[test]
fn pending_while_the_sandbox_the_images_and_init_are_under_way() {
    let slow = Script { pull_delay: secs(4), start_delay: secs(2), ..Script::default() };
    let mut world = World::empty(Default::default(), &[("i0", exits(3, 0)), ("a0", slow), ("a1", Script::default())]);
    world.sandbox_delay = secs(5);
    world.apply("p", "u1", pod(Always, vec![container("i0")], vec![container("a0"), container("a1")]));
    let mut last = 0.0;
    for second in [0.0, 4.9, 5.0, 7.9, 8.0, 11.9, 12.0, 13.9] {
        world.run_until(second);
        assert_eq!(world.phase(), Phase::Pending, "at {second}");
        last = second;
    }
    assert!(world.is_running("a1"), "at {last} one of two app containers runs");
    world.run_until(14.0);
    assert_eq!(world.phase(), Phase::Running);
    assert_eq!(phases(&world), [Phase::Pending, Phase::Running]);
}

// spec: PHASE-02
#[test]
fn pending_while_the_image_cannot_be_had() {
    let script = Script { image_failures: 3, ..Script::default() };
    let mut world = World::with(pod(Never, vec![], vec![container("a0")]), &[("a0", script)]);
    world.run_until(69.9);
    assert_eq!(world.phase(), Phase::Pending);
    world.run_until(70.0);
    assert_eq!(world.phase(), Phase::Running);
}

// spec: PHASE-03
#[test]
fn running_through_every_crash_and_back_off() {
    for (policy, code) in [(Always, 1), (Always, 0), (OnFailure, 1)] {
        let mut world = World::with(pod(policy, vec![], vec![container("a0")]), &[("a0", exits(2, code))]);
        world.run_until(2000.0);
        assert!(world.starts("a0").len() > 8, "it did crash");
        assert_eq!(phases(&world), [Phase::Pending, Phase::Running], "{policy:?}, exit {code}");
    }
}

// spec: PHASE-04
#[test]
fn succeeded_once_the_last_app_container_ended_with_0() {
    for policy in [OnFailure, Never] {
        let spec = pod(policy, vec![], vec![container("a0"), container("a1")]);
        let mut world = World::with(spec, &[("a0", exits(3, 0)), ("a1", exits(7, 0))]);
        world.run_until(6.9);
        assert_eq!(world.phase(), Phase::Running);
        world.run_until(7.0);
        assert_eq!(world.phase(), Phase::Succeeded);
    }
}

// spec: PHASE-04
#[test]
fn succeeded_after_a_failure_that_was_made_good() {
    let spec = pod(OnFailure, vec![], vec![container("a0")]);
    let mut world = World::with(spec, &[("a0", lives(&[(1, 9), (1, 0)]))]);
    world.run_until(5.0);
    assert_eq!(phases(&world), [Phase::Pending, Phase::Running, Phase::Succeeded]);
    assert_eq!(world.container("a0").restart_count, 1);
}

// spec: PHASE-05
#[test]
fn failed_if_one_of_them_failed_and_none_will_restart() {
    for bad in [Outcome::Code(3), Outcome::Trap(Trap::OutOfMemory), Outcome::Signal(9)] {
        let spec = pod(Never, vec![], vec![container("a0"), container("a1")]);
        let failing = Script { lives: vec![Life::Exit(secs(2), bad)], ..Script::default() };
        let mut world = World::with(spec, &[("a0", failing), ("a1", exits(5, 0))]);
        world.run_until(4.9);
        assert_eq!(world.phase(), Phase::Running, "{bad:?}: the other one still runs");
        world.run_until(5.0);
        assert_eq!(world.phase(), Phase::Failed, "{bad:?}");
    }
}

/// How one container of the table ends, after so many seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Well,
    Badly,
    OutOfMemory,
}

impl End {
    fn script(self, after: u64) -> Script {
        let outcome = match self {
            Self::Well => Outcome::Code(0),
            Self::Badly => Outcome::Code(1),
            Self::OutOfMemory => Outcome::Trap(Trap::OutOfMemory),
        };
        // It runs on if it is restarted.
        Script { lives: vec![Life::Exit(secs(after), outcome), Life::Forever], ..Script::default() }
    }

    fn restarts(self, policy: RestartPolicy) -> bool {
        policy == Always || policy == OnFailure && self != Self::Well
    }
}

// spec: PHASE-06
#[test]
fn the_table_of_one_container() {
    use Phase::{Failed, Running, Succeeded};
    for (end, expected) in [
        (End::Well, [Running, Succeeded, Succeeded]),
        (End::Badly, [Running, Running, Failed]),
        (End::OutOfMemory, [Running, Running, Failed]),
    ] {
        for (policy, expected) in POLICIES.into_iter().zip(expected) {
            let mut world = World::with(pod(policy, vec![], vec![container("c1")]), &[("c1", end.script(5))]);
            world.run_until(4.9);
            assert_eq!(world.phase(), Running);
            world.run_until(5.0);
            assert_eq!(world.phase(), expected, "{end:?} under {policy:?}");
            let starts: &[f64] = if end.restarts(policy) { &[0.0, 5.0] } else { &[0.0] };
            assert_eq!(world.starts("c1"), starts, "{end:?} under {policy:?}");
            check_end_events(&world, "c1", end);
        }
    }
}

// spec: PHASE-06
#[test]
fn the_table_of_two_containers() {
    use Phase::{Failed, Running, Succeeded};
    let ends = [End::Well, End::Badly, End::OutOfMemory];
    for (first, second) in ends.iter().flat_map(|first| ends.map(|second| (*first, second))) {
        for policy in POLICIES {
            let spec = pod(policy, vec![], vec![container("c1"), container("c2")]);
            let mut world = World::with(spec, &[("c1", first.script(5)), ("c2", second.script(9))]);
            world.run_until(5.0);
            assert_eq!(world.phase(), Running, "c1 ended ({first:?}), c2 runs, {policy:?}");
            assert!(world.is_running("c2"));
            check_end_events(&world, "c1", first);
            world.run_until(9.0);
            let expected = match (first.restarts(policy), second.restarts(policy)) {
                (false, false) if (first, second) == (End::Well, End::Well) => Succeeded,
                (false, false) => Failed,
                _ => Running,
            };
            assert_eq!(world.phase(), expected, "{first:?}, then {second:?}, {policy:?}");
            check_end_events(&world, "c2", second);
            world.run_until(60.0);
            assert_eq!(world.phase(), expected, "and it stays so");
        }
    }
}

/// The events that the table names: completion, failure, out of memory.
fn check_end_events(world: &World, name: &str, end: End) {
    let path = format!("spec.containers{{{name}}}");
    let told: Vec<_> = world
        .events
        .iter()
        .filter(|e| e.field_path == path && ["Completed", "Failed", "OOMKilling"].contains(&&*e.reason))
        .map(|e| (e.kind, &*e.reason, e.message.as_str()))
        .collect();
    let completed = format!("Container {name} completed");
    let failed = format!("Container {name} failed with exit code 1 (Error)");
    let out_of_memory = format!("Container {name} crossed its memory limit and was ended");
    let killed = format!("Container {name} failed with exit code 137 (OOMKilled)");
    let expected = match end {
        End::Well => vec![(EventKind::Normal, "Completed", &*completed)],
        End::Badly => vec![(EventKind::Warning, "Failed", &*failed)],
        End::OutOfMemory => {
            vec![(EventKind::Warning, "OOMKilling", &*out_of_memory), (EventKind::Warning, "Failed", &*killed)]
        }
    };
    assert_eq!(told, expected);
}

// spec: PHASE-07
#[test]
fn how_a_sidecar_ended_does_not_decide_the_phase() {
    for (code, expected) in [(0, Phase::Succeeded), (1, Phase::Failed)] {
        let spec = pod(Never, vec![sidecar("s0")], vec![container("a0")]);
        let signal = OnSignal::Ends(secs(1), Outcome::Code(1 - code));
        let side = Script { on_signal: signal, ..Script::default() };
        let mut world = World::with(spec, &[("s0", side), ("a0", exits(5, code))]);
        world.run_until(5.5);
        assert_eq!(world.phase(), Phase::Running, "a started sidecar counts as running");
        world.run_until(6.0);
        assert_eq!(world.phase(), expected);
        assert_eq!(world.terminated("s0").exit_code, 1 - code);
    }
}

// spec: PHASE-07
#[test]
fn a_sidecar_that_crashes_leaves_the_pod_running() {
    let spec = pod(Never, vec![sidecar("s0")], vec![container("a0")]);
    let mut world = World::with(spec, &[("s0", exits(4, 1))]);
    world.run_until(100.0);
    assert_eq!(world.waiting("s0").0, "CrashLoopBackOff");
    assert_eq!(phases(&world), [Phase::Pending, Phase::Running]);
}

// spec: PHASE-07
#[test]
fn an_init_container_that_failed_for_good_fails_the_pod() {
    for (policy, own) in [(Never, None), (Always, Some(Never)), (OnFailure, Some(Never))] {
        let mut init = container("i0");
        init.restart_policy = own;
        let spec = pod(policy, vec![sidecar("s0"), init], vec![container("a0")]);
        let mut world = World::with(spec, &[("i0", exits(3, 7))]);
        world.run_until(100.0);
        assert_eq!(world.phase(), Phase::Failed, "{policy:?} {own:?}");
        assert_eq!(world.starts("i0"), [0.0]);
        assert!(world.starts("a0").is_empty());
        assert_eq!(world.signals("s0"), [3.0], "what ran beside it is stopped");
    }
}

// spec: PHASE-08
#[test]
fn a_terminal_phase_is_never_left_and_comes_when_nothing_runs() {
    let spec = || pod(Never, vec![sidecar("s0")], vec![container("a0")]);
    let stubborn = Script { on_signal: OnSignal::Ignores, ..Script::default() };
    let mut world = World::with(spec(), &[("s0", stubborn), ("a0", exits(5, 1))]);
    world.run_until(34.9);
    assert_eq!(world.phase(), Phase::Running, "the sidecar has until 35");
    world.run_until(35.0);
    assert_eq!(world.phase(), Phase::Failed);
    for (_, status) in &world.statuses {
        let mut all = status.container_statuses.iter().chain(&status.init_container_statuses);
        let runs = all.any(|c| matches!(c.state, ContainerState::Running { .. }));
        assert!(!(status.phase.is_terminal() && runs), "{status:?}");
    }
    // Neither another definition nor a deletion changes it.
    let mut changed = spec();
    changed.containers[0].hash = 2;
    world.apply("p", "u1", changed);
    world.run_for(60.0);
    assert_eq!(world.phase(), Phase::Failed);
    assert_eq!(world.starts("a0"), [0.0]);
    world.delete(None);
    world.run_for(60.0);
    assert!(world.is_gone());
    assert_eq!(phases(&world), [Phase::Pending, Phase::Running, Phase::Failed]);
}

// spec: PHASE-09
#[test]
fn a_deleted_pod_shows_how_it_ended_before_it_disappears() {
    for (outcome, phase, code) in [
        (Outcome::Code(0), Phase::Succeeded, 0),
        (Outcome::Code(3), Phase::Failed, 3),
        (Outcome::Signal(15), Phase::Failed, 143),
    ] {
        let script = Script { on_signal: OnSignal::Ends(secs(4), outcome), ..Script::default() };
        let mut world = World::with(pod(Always, vec![], vec![container("a0")]), &[("a0", script)]);
        world.run_until(10.0);
        world.delete(None);
        world.run_until(13.9);
        assert_eq!(world.phase(), Phase::Running);
        assert!(!world.is_gone());
        world.run_until(14.0);
        assert!(world.is_gone());
        assert_eq!((world.phase(), world.terminated("a0").exit_code), (phase, code), "{outcome:?}");
    }
}

// spec: PHASE-09
#[test]
fn a_pod_that_is_deleted_before_it_ran_has_failed() {
    let mut world = World::empty(Default::default(), &[]);
    world.sandbox_delay = secs(5);
    world.apply("p", "u1", pod(Always, vec![container("i0")], vec![container("a0")]));
    world.run_until(1.0);
    world.delete(None);
    world.run_until(10.0);
    assert!(world.is_gone());
    assert_eq!(world.phase(), Phase::Failed);
    assert!(world.starts("i0").is_empty());
}
