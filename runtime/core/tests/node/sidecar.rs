use husk_core::io::{Hook, Outcome, ProbeOutcome};
use husk_core::spec::RestartPolicy::{Always, Never, OnFailure};
use husk_core::spec::{ContainerSpec, Handler, ProbeKind};
use husk_core::status::{ConditionStatus, Phase};

use crate::world::{OnSignal, Script, World, container, exits, lives, pod, probe, secs, sidecar};

fn ends_after(seconds: u64) -> Script {
    Script { on_signal: OnSignal::Ends(secs(seconds), Outcome::Code(0)), ..Script::default() }
}

fn stubborn() -> Script {
    Script { on_signal: OnSignal::Ignores, ..Script::default() }
}

fn fails(kind: ProbeKind, from: u64, to: u64) -> Script {
    Script { probes: vec![(kind, secs(from), secs(to), ProbeOutcome::Failure)], ..Script::default() }
}

// spec: SIDE-01
#[test]
fn it_starts_in_its_place_and_the_next_one_as_soon_as_it_runs() {
    let init = vec![container("i0"), sidecar("s0"), container("i1"), sidecar("s1")];
    let slow = Script { start_delay: secs(4), ..Script::default() };
    let spec = pod(Always, init, vec![container("a0")]);
    let mut world = World::with(spec, &[("i0", exits(2, 0)), ("s0", slow), ("i1", exits(3, 0))]);
    world.run_until(60.0);
    assert_eq!(world.starts("i0"), [0.0]);
    assert_eq!(world.starts("s0"), [2.0]);
    assert_eq!(world.starts("i1"), [6.0], "s0 runs from 6 on");
    assert_eq!(world.starts("s1"), [9.0]);
    assert_eq!(world.starts("a0"), [9.0]);
    assert!(world.is_running("s0") && world.is_running("s1"));
}

// spec: SIDE-01
#[test]
fn one_with_a_startup_probe_holds_back_the_next_until_that_succeeds() {
    let s0 = ContainerSpec { startup_probe: Some(probe(Handler::Exec)), ..sidecar("s0") };
    let spec = pod(Always, vec![s0, container("i0")], vec![container("a0")]);
    let mut world = World::with(spec, &[("s0", fails(ProbeKind::Startup, 0, 15)), ("i0", exits(1, 0))]);
    world.run_until(19.9);
    assert!(world.is_running("s0") && !world.container("s0").started);
    assert!(world.starts("i0").is_empty());
    assert_eq!(world.condition("Initialized").message, "containers with incomplete status: [s0 i0]");
    world.run_until(30.0);
    assert_eq!(world.starts("i0"), [20.0]);
    assert_eq!(world.starts("a0"), [21.0]);
    assert!(world.container("s0").started);
}

// spec: SIDE-01
#[test]
fn one_with_a_post_start_hook_holds_back_the_next_until_that_is_over() {
    let s0 = ContainerSpec { post_start: Some(Handler::Exec), ..sidecar("s0") };
    let script = Script { hooks: [(Hook::PostStart, (secs(6), Ok(())))].into(), ..Script::default() };
    let mut world = World::with(pod(Always, vec![s0], vec![container("a0")]), &[("s0", script)]);
    world.run_until(10.0);
    assert_eq!(world.starts("a0"), [6.0]);
}

// spec: SIDE-02
#[test]
fn it_is_always_restarted_and_nobody_else_with_it() {
    for policy in [Always, OnFailure, Never] {
        for code in [0, 1] {
            let spec = pod(policy, vec![sidecar("s0"), sidecar("s1")], vec![container("a0")]);
            let mut world = World::with(spec, &[("s0", exits(5, code))]);
            world.run_until(100.0);
            assert_eq!(world.starts("s0"), [0.0, 5.0, 20.0, 45.0, 90.0], "{policy:?}, exit {code}");
            assert_eq!((world.starts("s1"), world.starts("a0")), (vec![0.0], vec![0.0]));
            assert_eq!(world.phase(), Phase::Running);
        }
    }
}

// spec: SIDE-02
#[test]
fn it_is_restarted_while_init_goes_on_too() {
    let spec = pod(Never, vec![sidecar("s0"), container("i0")], vec![container("a0")]);
    let mut world = World::with(spec, &[("s0", lives(&[(3, 1), (3, 0), (100, 0)])), ("i0", exits(30, 0))]);
    world.run_until(29.0);
    assert_eq!(world.starts("s0"), [0.0, 3.0, 16.0]);
    assert_eq!(world.starts("i0"), [0.0]);
    world.run_until(30.0);
    assert_eq!(world.starts("a0"), [30.0]);
}

// spec: SIDE-03
#[test]
fn its_readiness_counts_for_the_pod() {
    let s0 = ContainerSpec { readiness_probe: Some(probe(Handler::HttpGet)), ..sidecar("s0") };
    let script = fails(ProbeKind::Readiness, 0, 5);
    let mut world = World::with(pod(Always, vec![s0], vec![container("a0")]), &[("s0", script)]);
    world.run_until(9.0);
    assert_eq!(world.phase(), Phase::Running);
    let ready = world.condition("Ready");
    assert_eq!((ready.status, &*ready.message), (ConditionStatus::False, "containers with unready status: [s0]"));
    world.run_until(10.0);
    assert_eq!(world.condition("Ready").status, ConditionStatus::True);
}

// spec: SIDE-03
#[test]
fn its_liveness_and_startup_probes_restart_it() {
    for (kind, killed) in [(ProbeKind::Liveness, 40.0), (ProbeKind::Startup, 20.0)] {
        let mut s0 = sidecar("s0");
        let (from, word) = match kind {
            ProbeKind::Startup => (0, "startup"),
            _ => (15, "liveness"),
        };
        match kind {
            ProbeKind::Startup => s0.startup_probe = Some(probe(Handler::Exec)),
            _ => s0.liveness_probe = Some(probe(Handler::Exec)),
        }
        let mut world = World::with(pod(Never, vec![s0], vec![container("a0")]), &[("s0", fails(kind, from, 1000))]);
        world.run_until(killed + 1.0);
        assert_eq!(world.signals("s0"), [killed], "{kind:?}");
        assert_eq!(world.starts("s0"), [0.0, killed], "{kind:?}");
        assert_eq!(world.events("Killing"), [format!("Init container s0 failed {word} probe")]);
    }
}

// spec: SIDE-03
#[test]
fn its_hooks_run() {
    let s0 = ContainerSpec { post_start: Some(Handler::Exec), pre_stop: Some(Handler::HttpGet), ..sidecar("s0") };
    let hooks = [(Hook::PostStart, (secs(1), Ok(()))), (Hook::PreStop, (secs(2), Ok(())))].into();
    let spec = pod(Always, vec![s0], vec![container("a0")]);
    let mut world = World::with(spec, &[("s0", Script { hooks, ..Script::default() })]);
    world.run_until(10.0);
    world.delete(None);
    world.run_until(20.0);
    assert_eq!(world.hooks("s0", Hook::PostStart), [0.0]);
    assert_eq!(world.hooks("s0", Hook::PreStop), [10.0]);
    assert_eq!(world.signals("s0"), [12.0]);
    assert!(world.is_gone());
}

fn three_sidecars(scripts: &[(&str, Script)]) -> World {
    let init = vec![sidecar("s0"), sidecar("s1"), sidecar("s2")];
    World::with(pod(Always, init, vec![container("a0"), container("a1")]), scripts)
}

// spec: SIDE-04, TERM-02
#[test]
fn they_stop_after_the_last_app_in_reverse_order() {
    let mut world = three_sidecars(&[
        ("a0", ends_after(2)),
        ("a1", ends_after(5)),
        ("s2", ends_after(3)),
        ("s1", ends_after(4)),
        ("s0", ends_after(1)),
    ]);
    world.run_until(10.0);
    world.delete(None);
    world.run_until(60.0);
    assert_eq!((world.signals("a0"), world.signals("a1")), (vec![10.0], vec![10.0]));
    assert_eq!(world.signals("s2"), [15.0]);
    assert_eq!(world.signals("s1"), [18.0]);
    assert_eq!(world.signals("s0"), [22.0]);
    assert_eq!(world.ordered(|a| matches!(a, husk_core::Action::Gone { .. })), [23.0]);
    assert!(world.ordered(|a| matches!(a, husk_core::Action::Kill { .. })).is_empty());
}

// spec: SIDE-04, TERM-02
#[test]
fn when_the_grace_is_used_up_all_that_remain_are_stopped_together_with_2_s_each() {
    let mut world = three_sidecars(&[
        ("a0", stubborn()),
        ("a1", ends_after(1)),
        ("s2", stubborn()),
        ("s1", ends_after(1)),
        ("s0", stubborn()),
    ]);
    world.run_until(10.0);
    world.delete(Some(20));
    world.run_until(60.0);
    assert_eq!(world.kills("a0"), [30.0]);
    for name in ["s2", "s1", "s0"] {
        assert_eq!(world.signals(name), [30.0], "{name}");
    }
    assert_eq!((world.kills("s2"), world.kills("s1"), world.kills("s0")), (vec![32.0], vec![], vec![32.0]));
    assert_eq!(world.ordered(|a| matches!(a, husk_core::Action::Gone { .. })), [32.0]);
}

// spec: SIDE-04
#[test]
fn a_slow_sidecar_makes_those_before_it_share_what_is_left() {
    let mut world = three_sidecars(&[("a0", ends_after(4)), ("s2", stubborn()), ("s1", stubborn())]);
    world.run_until(10.0);
    world.delete(Some(10));
    world.run_until(60.0);
    assert_eq!(world.signals("s2"), [14.0]);
    assert_eq!(world.kills("s2"), [20.0], "at the end of grace");
    assert_eq!((world.signals("s1"), world.kills("s1")), (vec![20.0], vec![22.0]));
    assert_eq!(world.signals("s0"), [20.0]);
}

// spec: SIDE-04
#[test]
fn one_that_does_not_run_has_had_its_turn() {
    // s1 is in its back-off when the pod ends.
    let mut world = three_sidecars(&[("a0", ends_after(4)), ("s1", exits(1, 1)), ("s2", ends_after(3))]);
    world.run_until(5.0);
    assert_eq!(world.waiting("s1").0, "CrashLoopBackOff");
    world.delete(None);
    world.run_until(60.0);
    assert_eq!((world.signals("s0"), world.signals("s2")), (vec![9.0], vec![9.0]), "neighbours of neighbours");
    assert!(world.signals("s1").is_empty());
    assert_eq!(world.starts("s1"), [0.0, 1.0], "and it is not started again");
    assert!(world.is_gone());
}

// spec: SIDE-04
#[test]
fn one_that_ends_before_its_turn_is_not_waited_for() {
    let mut world = three_sidecars(&[("a0", ends_after(6)), ("s2", exits(12, 0)), ("s1", ends_after(1))]);
    world.run_until(10.0);
    world.delete(None);
    world.run_until(60.0);
    assert!(world.signals("s2").is_empty(), "it ended by itself at 12");
    assert_eq!(world.signals("s1"), [16.0]);
    assert_eq!(world.signals("s0"), [17.0]);
}

// spec: SIDE-05
#[test]
fn all_pre_stop_hooks_start_at_once_and_only_the_signal_waits() {
    let hooked = |c: ContainerSpec| ContainerSpec { pre_stop: Some(Handler::Exec), ..c };
    let spec = pod(Always, vec![hooked(sidecar("s0")), hooked(sidecar("s1"))], vec![hooked(container("a0"))]);
    let script = |hook, end| Script { hooks: [(Hook::PreStop, (secs(hook), Ok(())))].into(), ..ends_after(end) };
    let mut world = World::with(spec, &[("s0", script(1, 1)), ("s1", script(9, 1)), ("a0", script(2, 3))]);
    world.run_until(10.0);
    world.delete(None);
    world.run_until(60.0);
    for name in ["s0", "s1", "a0"] {
        assert_eq!(world.hooks(name, Hook::PreStop), [10.0], "{name}");
    }
    assert_eq!(world.signals("a0"), [12.0]);
    assert_eq!(world.signals("s1"), [19.0], "apps were down at 15, its own hook at 19");
    assert_eq!(world.signals("s0"), [20.0]);
}

// spec: SIDE-06
#[test]
fn a_finished_pod_is_not_kept_alive() {
    for (policy, code, phase) in
        [(Never, 0, Phase::Succeeded), (Never, 1, Phase::Failed), (OnFailure, 0, Phase::Succeeded)]
    {
        let failing = Script { on_signal: OnSignal::Ends(secs(3), Outcome::Code(5)), ..Script::default() };
        let spec = pod(policy, vec![sidecar("s0"), sidecar("s1")], vec![container("a0")]);
        let mut world = World::with(spec, &[("a0", exits(7, code)), ("s0", failing.clone()), ("s1", failing)]);
        world.run_until(60.0);
        assert_eq!((world.signals("s1"), world.signals("s0")), (vec![7.0], vec![10.0]));
        assert_eq!(world.phase(), phase, "{policy:?}, exit {code}");
        assert_eq!((world.terminated("s0").exit_code, world.terminated("s1").exit_code), (5, 5));
        assert_eq!((world.starts("s0"), world.starts("s1")), (vec![0.0], vec![0.0]), "and they stay down");
        assert!(!world.is_gone(), "until somebody deletes it");
    }
}

// spec: SIDE-06
#[test]
fn not_even_by_a_sidecar_that_crashes_or_has_just_been_asked_for() {
    // a0 ends while s0 is in its back-off; while s0 is being started; while its image is being looked for.
    let slow_start = Script { start_delay: secs(8), ..exits(1, 1) };
    let slow_pull = Script { pull_delay: secs(4), ..exits(1, 1) };
    for (script, ends) in [(exits(0, 1), 5), (slow_start, 12), (slow_pull, 7)] {
        let spec = pod(Never, vec![sidecar("s0")], vec![container("a0")]);
        let mut world = World::with(spec, &[("s0", script.clone()), ("a0", exits(ends, 0))]);
        world.run_until(40.0);
        assert_eq!(world.phase(), Phase::Succeeded, "{script:?}");
        let over = World::seconds(world.terminated("a0").finished_at.expect("it has ended"));
        world.run_until(400.0);
        assert!(world.starts("s0").iter().all(|started| *started <= over), "{script:?}");
    }
}
