use husk_core::Action;
use husk_core::event::EventKind;
use husk_core::io::{Hook, Input, InstanceRef, Outcome, ProbeOutcome};
use husk_core::spec::RestartPolicy::{self, Always, Never, OnFailure};
use husk_core::spec::{ContainerSpec, Handler, ProbeKind};
use husk_core::status::{ContainerState, Phase};
use husk_core::time::Instant;

use crate::world::{OnSignal, Script, World, container, exits, pod, probe, secs};

fn post_start(handler: Handler) -> ContainerSpec {
    ContainerSpec { post_start: Some(handler), ..container("a0") }
}

fn pre_stop(handler: Handler) -> ContainerSpec {
    ContainerSpec { pre_stop: Some(handler), ..container("a0") }
}

/// The hook takes so long and succeeds.
fn takes(hook: Hook, seconds: u64) -> Script {
    Script { hooks: [(hook, (secs(seconds), Ok(())))].into(), ..Script::default() }
}

fn fails(hook: Hook, seconds: u64) -> Script {
    Script { hooks: [(hook, (secs(seconds), Err("no such file: /secret".into())))].into(), ..Script::default() }
}

fn world(policy: RestartPolicy, a0: ContainerSpec, script: Script) -> World {
    World::with(pod(policy, vec![], vec![a0]), &[("a0", script)])
}

fn cancelled(world: &World, which: Hook) -> Vec<f64> {
    world.ordered(|action| matches!(action, Action::CancelHook { hook, .. } if *hook == which))
}

// spec: HOOK-01
#[test]
fn post_start_runs_right_after_the_start_and_the_container_is_running_once_it_is_over() {
    for handler in [Handler::Exec, Handler::HttpGet, Handler::Sleep(6)] {
        let script = Script { start_delay: secs(2), ..takes(Hook::PostStart, 6) };
        let mut world = world(Always, post_start(handler), script);
        world.run_until(7.9);
        assert_eq!(world.waiting("a0"), ("ContainerCreating".into(), String::new()), "{handler:?}");
        assert_eq!(world.phase(), Phase::Pending);
        assert!(!world.container("a0").started && !world.container("a0").ready);
        world.run_until(8.0);
        assert_eq!(world.container("a0").state, ContainerState::Running { started_at: Instant::from_secs(1002) });
        assert_eq!(world.phase(), Phase::Running);
        // A sleep is no order: the core times it.
        let orders: &[f64] = if handler == Handler::Sleep(6) { &[] } else { &[2.0] };
        assert_eq!(world.hooks("a0", Hook::PostStart), orders);
    }
}

#[test]
fn a_container_that_has_to_be_killed_as_soon_as_it_started_gets_no_post_start() {
    let mut world = world(Always, post_start(Handler::Exec), Script { start_delay: secs(5), ..Script::default() });
    world.run_until(1.0);
    world.delete(None);
    assert_eq!(world.kills("a0"), [1.0]);
    // It has started before KILL reached it.
    let instance = InstanceRef { pod: world.uid.clone(), container: "a0".into(), attempt: 0 };
    world.input(Input::Started { instance, id: "husk://a0-0".into() });
    world.run_until(10.0);
    assert!(world.hooks("a0", Hook::PostStart).is_empty());
    assert!(world.is_gone());
}

// spec: HOOK-01
#[test]
fn no_probe_runs_before_post_start_is_over() {
    let mut a0 = post_start(Handler::Exec);
    a0.readiness_probe = Some(probe(Handler::Exec));
    let mut world = world(Always, a0, takes(Hook::PostStart, 6));
    world.run_until(10.0);
    assert_eq!(world.probes("a0", ProbeKind::Readiness), [6.0]);
}

// spec: HOOK-01
#[test]
fn a_failing_post_start_kills_the_container_and_its_policy_applies() {
    for (policy, code, again, phase) in [
        (Always, 0, true, Phase::Running),
        (OnFailure, 0, true, Phase::Running),
        (OnFailure, 1, true, Phase::Running),
        (Never, 1, false, Phase::Failed),
        (Never, 0, false, Phase::Succeeded),
    ] {
        let on_signal = OnSignal::Ends(secs(3), Outcome::Code(code));
        let script = Script { on_signal, ..fails(Hook::PostStart, 1) };
        let mut world = world(policy, post_start(Handler::Exec), script);
        world.run_until(1.0);
        assert_eq!(world.signals("a0"), [1.0]);
        assert_eq!(world.waiting("a0"), ("PostStartHookError".into(), "no such file: /secret".into()));
        let events: Vec<_> = world.events.iter().rev().take(2).map(|e| (e.kind, &*e.reason, &*e.message)).collect();
        assert_eq!(
            events,
            [
                (EventKind::Normal, "Killing", "FailedPostStartHook"),
                (EventKind::Warning, "FailedPostStartHook", "PostStartHook failed"),
            ]
        );
        world.run_until(8.5);
        // Ends at 4; a second instance fails its hook at 5 and ends at 8.
        let starts: &[f64] = if again { &[0.0, 4.0] } else { &[0.0] };
        assert_eq!(world.starts("a0"), starts, "{policy:?}, exit {code}");
        assert_eq!(world.phase(), phase, "{policy:?}, exit {code}");
        if again {
            assert_eq!(world.waiting("a0").0, "CrashLoopBackOff");
        }
    }
}

// spec: HOOK-01
#[test]
fn a_container_that_ends_during_its_post_start_ended() {
    let mut world = world(Never, post_start(Handler::Exec), Script { hooks: Default::default(), ..exits(5, 4) });
    world.run_until(6.0);
    assert_eq!(world.terminated("a0").exit_code, 4);
    assert_eq!(cancelled(&world, Hook::PostStart), [5.0]);
    assert_eq!(world.phase(), Phase::Failed);
}

// spec: HOOK-02
#[test]
fn pre_stop_runs_before_the_signal_and_its_time_counts() {
    for handler in [Handler::Exec, Handler::HttpGet, Handler::Sleep(12)] {
        let script = Script { on_signal: OnSignal::Ignores, ..takes(Hook::PreStop, 12) };
        let mut world = world(Always, pre_stop(handler), script);
        world.run_until(10.0);
        world.delete(None);
        world.run_until(60.0);
        let orders: &[f64] = if handler == Handler::Sleep(12) { &[] } else { &[10.0] };
        assert_eq!(world.hooks("a0", Hook::PreStop), orders, "{handler:?}");
        assert_eq!((world.signals("a0"), world.kills("a0")), (vec![22.0], vec![40.0]), "{handler:?}");
        assert!(world.is_gone());
    }
}

// spec: HOOK-02
#[test]
fn one_that_still_runs_at_the_end_of_grace_gets_the_container_2_s_more() {
    for handler in [Handler::Exec, Handler::Sleep(3600)] {
        let script = Script { on_signal: OnSignal::Ignores, ..Script::default() };
        let mut world = world(Always, pre_stop(handler), script);
        world.run_until(10.0);
        world.delete(Some(20));
        world.run_until(60.0);
        assert_eq!((world.signals("a0"), world.kills("a0")), (vec![30.0], vec![32.0]), "{handler:?}");
        assert!(world.is_gone());
        let ends: &[f64] = if handler == Handler::Exec { &[32.0] } else { &[] };
        assert_eq!(cancelled(&world, Hook::PreStop), ends);
    }
}

// spec: HOOK-02
#[test]
fn one_that_ends_just_before_the_end_of_grace_leaves_at_least_2_s() {
    let script = Script { on_signal: OnSignal::Ignores, ..takes(Hook::PreStop, 19) };
    let mut world = world(Always, pre_stop(Handler::Exec), script);
    world.run_until(10.0);
    world.delete(Some(20));
    world.run_until(60.0);
    assert_eq!((world.signals("a0"), world.kills("a0")), (vec![29.0], vec![31.0]));
}

// spec: HOOK-02
#[test]
fn a_failing_pre_stop_is_told_and_the_stop_goes_on() {
    let mut world = world(Always, pre_stop(Handler::Exec), fails(Hook::PreStop, 2));
    world.run_until(10.0);
    world.delete(None);
    world.run_until(60.0);
    assert_eq!(world.events("FailedPreStopHook"), ["PreStopHook failed"]);
    assert_eq!(world.signals("a0"), [12.0]);
    assert!(world.is_gone());
}

// spec: HOOK-02
#[test]
fn pre_stop_runs_when_a_probe_kills_too() {
    let mut a0 = pre_stop(Handler::Exec);
    a0.liveness_probe = Some(probe(Handler::Exec));
    let script = Script {
        probes: vec![(ProbeKind::Liveness, secs(15), secs(1000), ProbeOutcome::Failure)],
        ..takes(Hook::PreStop, 3)
    };
    let mut world = world(Always, a0, script);
    world.run_until(50.0);
    assert_eq!((world.hooks("a0", Hook::PreStop), world.signals("a0")), (vec![40.0], vec![43.0]));
}

// spec: HOOK-02
#[test]
fn pre_stop_does_not_run_without_grace() {
    let mut world = world(Always, pre_stop(Handler::Exec), takes(Hook::PreStop, 1));
    world.run_until(10.0);
    world.delete(Some(0));
    world.run_until(60.0);
    assert!(world.hooks("a0", Hook::PreStop).is_empty());
    assert_eq!(world.kills("a0"), [10.0]);
}

// spec: HOOK-02
#[test]
fn pre_stop_does_not_run_when_the_container_has_ended() {
    // In its back-off, and one that ended for good.
    for (policy, script) in [(Always, exits(1, 1)), (Never, exits(5, 0))] {
        let hooks = takes(Hook::PreStop, 1).hooks;
        let spec = pod(policy, vec![], vec![pre_stop(Handler::Exec), container("a1")]);
        let mut world = World::with(spec, &[("a0", Script { hooks, ..script })]);
        world.run_until(10.0);
        world.delete(None);
        world.run_until(60.0);
        assert!(world.hooks("a0", Hook::PreStop).is_empty());
        assert!(world.is_gone());
    }
}

// spec: HOOK-02
#[test]
fn a_container_that_ends_during_its_pre_stop_is_done_with() {
    let mut world = world(Always, pre_stop(Handler::Exec), Script { hooks: Default::default(), ..exits(15, 0) });
    world.run_until(10.0);
    world.delete(None);
    world.run_until(60.0);
    assert_eq!(cancelled(&world, Hook::PreStop), [15.0]);
    assert!(world.signals("a0").is_empty() && world.kills("a0").is_empty());
    assert_eq!(world.ordered(|a| matches!(a, Action::Gone { .. })), [15.0]);
    assert_eq!(world.phase(), Phase::Succeeded);
}

#[test]
fn the_answer_of_a_hook_that_is_not_waited_for_changes_nothing() {
    // It says that it failed at 12, when the deletion had let go of it at 5.
    let script = Script { on_signal: OnSignal::Ends(secs(20), Outcome::Code(0)), ..fails(Hook::PostStart, 12) };
    let mut world = world(Always, post_start(Handler::Exec), script);
    world.run_until(5.0);
    world.delete(None);
    world.run_until(60.0);
    assert!(world.events("FailedPostStartHook").is_empty());
    assert_eq!(world.signals("a0"), [5.0]);
    assert_eq!(world.phase(), Phase::Succeeded);
}
