use husk_core::backoff::BackoffConfig;
use husk_core::event::EventKind;
use husk_core::io::{Outcome, ProbeOutcome};
use husk_core::node::NodeConfig;
use husk_core::spec::RestartPolicy::{self, Always, Never, OnFailure};
use husk_core::spec::{ContainerSpec, ExitCodeOperator, Handler, ProbeKind, RestartAction, RestartRule};
use husk_core::status::Phase;
use husk_core::time::{Duration, Instant};

use crate::world::{Life, OnSignal, Script, World, container, exits, lives, pod, probe, secs, sidecar};

fn restart_on(operator: ExitCodeOperator, values: &[i32]) -> RestartRule {
    RestartRule { action: RestartAction::Restart, operator, values: values.to_vec() }
}

fn own_policy(name: &str, policy: RestartPolicy) -> ContainerSpec {
    ContainerSpec { restart_policy: Some(policy), ..container(name) }
}

fn with_rules(name: &str, policy: RestartPolicy, rules: &[RestartRule]) -> ContainerSpec {
    ContainerSpec { restart_policy_rules: rules.to_vec(), ..own_policy(name, policy) }
}

/// How often a container that exits like that is started within an hour.
fn starts_of(policy: RestartPolicy, container: ContainerSpec, code: i32) -> usize {
    let name = container.name.clone();
    let mut world = World::with(pod(policy, vec![], vec![container]), &[(name.as_str(), exits(1, code))]);
    world.run_until(3600.0);
    world.starts(&name).len()
}

// spec: RESTART-01
#[test]
fn app_containers_follow_the_pods_policy() {
    for (policy, code, again) in [
        (Always, 0, true),
        (Always, 1, true),
        (OnFailure, 0, false),
        (OnFailure, 1, true),
        (Never, 0, false),
        (Never, 1, false),
    ] {
        assert_eq!(starts_of(policy, container("a0"), code) > 1, again, "{policy:?}, exit {code}");
    }
}

// spec: RESTART-01
#[test]
fn for_init_containers_always_means_on_failure() {
    for policy in [Always, OnFailure] {
        let spec = pod(policy, vec![container("i0")], vec![container("a0")]);
        let mut world = World::with(spec, &[("i0", lives(&[(1, 1), (1, 0)]))]);
        world.run_until(3600.0);
        assert_eq!(world.starts("i0"), [0.0, 1.0], "{policy:?}: done once it exited with 0");
        assert_eq!(world.starts("a0"), [2.0]);
    }
}

// spec: RESTART-02
#[test]
fn delays_double_from_10_s_to_300_s_and_count_from_the_end() {
    for code in [0, 1] {
        let mut world = World::with(pod(Always, vec![], vec![container("a0")]), &[("a0", exits(5, code))]);
        world.run_until(1300.0);
        // Ends 5 s after each start; then 0, 10, 20, 40, 80, 160, 300, 300 s.
        let expected = [0.0, 5.0, 20.0, 45.0, 90.0, 175.0, 340.0, 645.0, 950.0, 1255.0];
        assert_eq!(world.starts("a0"), expected, "exit {code}");
    }
}

// spec: RESTART-02
#[test]
fn each_container_has_its_own_back_off() {
    let spec = pod(Always, vec![], vec![container("a0"), container("a1")]);
    let mut world = World::with(spec, &[("a0", exits(0, 1)), ("a1", lives(&[(60, 1), (60, 1), (600, 1)]))]);
    world.run_until(131.0);
    assert_eq!(world.starts("a0"), [0.0, 0.0, 10.0, 30.0, 70.0]);
    assert_eq!(world.starts("a1"), [0.0, 60.0, 130.0], "at once, then after 10 s");
}

// spec: RESTART-03
#[test]
fn more_than_ten_minutes_of_running_reset_the_back_off() {
    for (healthy, next) in [(600, 40.0), (601, 0.0)] {
        let script = lives(&[(0, 1), (0, 1), (0, 1), (healthy, 1), (0, 1)]);
        let mut world = World::with(pod(Always, vec![], vec![container("a0")]), &[("a0", script)]);
        world.run_until(700.0);
        let ended = 30.0 + healthy as f64;
        let mut expected = vec![0.0, 0.0, 10.0, 30.0, ended + next];
        if next == 0.0 {
            // It begins anew: at once, then 10 s, 20 s.
            expected.extend([ended + 10.0, ended + 30.0]);
        }
        assert_eq!(world.starts("a0"), expected, "{healthy} s");
    }
}

// spec: RESTART-04
#[test]
fn while_it_waits_the_status_says_for_how_long_and_why() {
    let mut world = World::with(pod(Always, vec![], vec![container("a0")]), &[("a0", exits(1, 3))]);
    world.run_until(5.0);
    let says = |delay| format!("back-off {delay} restarting failed container=a0 pod=p_d(u1)");
    assert_eq!(world.waiting("a0"), ("CrashLoopBackOff".into(), says("10s")));
    let last = world.container("a0").last_state.expect("it ended before");
    assert_eq!((last.exit_code, &*last.reason), (3, "Error"));
    assert_eq!(last.finished_at, Some(Instant::from_secs(1002)));
    assert_eq!(world.node.retry_at(&world.uid, "a0"), Some(Instant::from_secs(1012)));
    assert!(!world.container("a0").ready);

    for (at, delay) in [(15.0, "20s"), (40.0, "40s"), (80.0, "1m20s"), (170.0, "2m40s"), (400.0, "5m0s")] {
        world.run_until(at);
        assert_eq!(world.waiting("a0").1, says(delay), "at {at}");
    }
    world.run_until(635.0);
    let backed_off: Vec<_> = world.events.iter().filter(|e| e.reason == "BackOff").collect();
    assert_eq!(backed_off.len(), 7, "once per wait");
    assert!(backed_off.iter().all(|e| e.kind == EventKind::Warning && e.field_path == "spec.containers{a0}"));
    assert_eq!(backed_off[6].message, "Back-off restarting failed container a0 in pod p_d(u1)");
    assert_eq!(backed_off[6].count, 7);
}

// spec: RESTART-05
#[test]
fn the_nodes_maximum_caps_every_delay_the_first_too() {
    for (max, expected) in [
        (1, [0.0, 0.0, 1.0, 2.0, 3.0]),
        (5, [0.0, 0.0, 5.0, 10.0, 15.0]),
        (15, [0.0, 0.0, 10.0, 25.0, 40.0]),
        (300, [0.0, 0.0, 10.0, 30.0, 70.0]),
    ] {
        let config = NodeConfig { crash_loop: BackoffConfig::standard(Some(secs(max))), ..NodeConfig::default() };
        let spec = pod(Always, vec![], vec![container("a0")]);
        let mut world = World::configured(config, spec, &[("a0", exits(0, 1))]);
        world.run_until(75.0);
        assert_eq!(world.starts("a0")[..5], expected, "{max} s");
    }
}

// spec: RESTART-07
#[test]
fn a_containers_own_policy_overrides_the_pods() {
    for (pods, own, code, again) in [
        (Always, Never, 1, false),
        (Always, OnFailure, 0, false),
        (Never, Always, 0, true),
        (Never, OnFailure, 1, true),
        (OnFailure, Never, 1, false),
        (OnFailure, Always, 0, true),
    ] {
        assert_eq!(starts_of(pods, own_policy("a0", own), code) > 1, again, "{own:?} in a pod with {pods:?}, {code}");
    }
}

// spec: RESTART-07
#[test]
fn the_phase_goes_by_the_containers_own_policies() {
    let spec = pod(Always, vec![], vec![own_policy("a0", Never), own_policy("a1", OnFailure)]);
    let mut world = World::with(spec, &[("a0", exits(2, 0)), ("a1", exits(4, 0))]);
    world.run_until(4.0);
    assert_eq!(world.phase(), Phase::Succeeded);

    let spec = pod(Never, vec![own_policy("i0", OnFailure)], vec![container("a0")]);
    let mut world = World::with(spec, &[("i0", lives(&[(1, 1), (1, 0)]))]);
    world.run_until(10.0);
    assert_eq!(world.starts("i0"), [0.0, 1.0]);
    assert_eq!(world.phase(), Phase::Running);
}

// spec: RESTART-08
#[test]
fn the_first_rule_that_matches_decides_and_else_the_policy() {
    use ExitCodeOperator::{In, NotIn};
    let container = |policy, rules: &[RestartRule]| with_rules("a0", policy, rules);
    let retriable = [restart_on(In, &[42, 43])];
    assert!(starts_of(Never, container(Never, &retriable), 42) > 1);
    assert_eq!(starts_of(Never, container(Never, &retriable), 1), 1, "no match: Never");
    assert_eq!(starts_of(Always, container(Never, &retriable), 0), 1, "no match: its own policy, not the pod's");
    assert!(starts_of(Never, container(OnFailure, &retriable), 1) > 1, "no match: OnFailure");
    let all_but = [restart_on(NotIn, &[0, 7])];
    assert!(starts_of(Never, container(Never, &all_but), 1) > 1);
    assert_eq!(starts_of(Never, container(Never, &all_but), 7), 1);
    let several = [restart_on(In, &[1]), restart_on(In, &[2])];
    assert!(starts_of(Never, container(Never, &several), 2) > 1);
}

// spec: RESTART-08
#[test]
fn rules_without_a_policy_of_the_container_do_not_count() {
    let rules = vec![restart_on(ExitCodeOperator::In, &[1])];
    let bare = ContainerSpec { restart_policy_rules: rules, ..container("a0") };
    assert_eq!(starts_of(Never, bare, 1), 1);
}

// spec: RESTART-08, RESTART-02
#[test]
fn a_restart_by_a_rule_backs_off_and_keeps_the_pod_running() {
    let spec = pod(Never, vec![], vec![with_rules("a0", Never, &[restart_on(ExitCodeOperator::In, &[42])])]);
    let script = lives(&[(1, 42), (1, 42), (1, 42), (1, 0)]);
    let mut world = World::with(spec, &[("a0", script)]);
    world.run_until(11.0);
    assert_eq!(world.waiting("a0").0, "CrashLoopBackOff");
    assert_eq!(world.phase(), Phase::Running);
    world.run_until(60.0);
    assert_eq!(world.starts("a0"), [0.0, 1.0, 12.0, 33.0]);
    assert_eq!(world.phase(), Phase::Succeeded);
}

// spec: RESTART-08
#[test]
fn rules_hold_for_init_containers_too() {
    let init = with_rules("i0", Never, &[restart_on(ExitCodeOperator::In, &[42])]);
    for (code, starts, phase) in [(42, 2, Phase::Running), (1, 1, Phase::Failed)] {
        let spec = pod(Never, vec![init.clone()], vec![container("a0")]);
        let mut world = World::with(spec, &[("i0", lives(&[(1, code), (1, 0)]))]);
        world.run_until(60.0);
        assert_eq!((world.starts("i0").len(), world.phase()), (starts, phase), "exit {code}");
    }
}

/// A pod whose container fails that probe for good after 15 s, and exits on TERM as told.
fn probed(policy: RestartPolicy, kind: ProbeKind, code: i32) -> World {
    let mut a0 = container("a0");
    match kind {
        ProbeKind::Startup => a0.startup_probe = Some(probe(Handler::Exec)),
        _ => a0.liveness_probe = Some(probe(Handler::Exec)),
    }
    let from = if kind == ProbeKind::Startup { 0 } else { 15 };
    let script = Script {
        probes: vec![(kind, secs(from), secs(100_000), ProbeOutcome::Failure)],
        on_signal: OnSignal::Ends(secs(1), Outcome::Code(code)),
        ..Script::default()
    };
    World::with(pod(policy, vec![], vec![a0]), &[("a0", script)])
}

// spec: RESTART-10, PROBE-04
#[test]
fn a_container_that_a_probe_killed_follows_its_policy_and_under_on_failure_comes_back_even_with_exit_0() {
    for kind in [ProbeKind::Liveness, ProbeKind::Startup] {
        // Probes at 0, 10, 20, …: the third failure is at 40 (liveness) or 20 (startup).
        let killed = if kind == ProbeKind::Startup { 20.0 } else { 40.0 };
        for (policy, code, again) in [
            (Always, 0, true),
            (Always, 1, true),
            (OnFailure, 0, true),
            (OnFailure, 1, true),
            (Never, 0, false),
            (Never, 1, false),
        ] {
            let mut world = probed(policy, kind, code);
            world.run_until(killed + 5.0);
            assert_eq!(world.signals("a0"), [killed], "{kind:?} {policy:?} {code}");
            let starts: &[f64] = if again { &[0.0, killed + 1.0] } else { &[0.0] };
            assert_eq!(world.starts("a0"), starts, "{kind:?} {policy:?} {code}");
            let phase = match (again, code) {
                (true, _) => Phase::Running,
                (false, 0) => Phase::Succeeded,
                (false, _) => Phase::Failed,
            };
            assert_eq!(world.phase(), phase, "{kind:?} {policy:?} {code}");
        }
    }
}

// spec: RESTART-10
#[test]
fn in_the_back_off_after_a_probes_kill_the_pod_is_not_over() {
    let mut world = probed(OnFailure, ProbeKind::Startup, 0);
    // Killed at 20, 41 (from 21), …; the second time it has to wait for 10 s.
    world.run_until(45.0);
    assert_eq!(world.waiting("a0").0, "CrashLoopBackOff");
    assert_eq!(world.phase(), Phase::Running);
    assert_eq!(world.condition("Ready").reason, "ContainersNotReady");
    world.run_until(52.0);
    assert_eq!(world.starts("a0"), [0.0, 21.0, 52.0]);
}

// spec: RESTART-11
#[test]
fn it_never_gives_up() {
    let spec = pod(Always, vec![sidecar("s0")], vec![container("a0")]);
    let mut world = World::with(spec, &[("s0", exits(0, 1)), ("a0", exits(0, 1))]);
    let days = 3.0 * 24.0 * 3600.0;
    world.run_until(days);
    for name in ["s0", "a0"] {
        let starts = world.starts(name);
        assert!(starts.len() > 800, "{name} was started {} times", starts.len());
        assert!(starts.last().is_some_and(|last| days - last <= 300.0));
        assert_eq!(world.container(name).restart_count as usize, starts.len() - 1);
    }
}

// spec: RESTART-12
#[test]
fn time_that_is_handed_in_too_early_stands_still_and_changes_no_delay() {
    let mut world = World::with(pod(Always, vec![], vec![container("a0")]), &[("a0", exits(1, 1))]);
    world.run_until(5.0);
    let (wake, status) = (world.node.next_wake(), world.status());
    assert_eq!(wake, Some(Instant::from_secs(1012)));
    // A clock that was set back by a day, as far as anybody can hand that in.
    for now in [Instant::ZERO, Instant::from_secs(900)] {
        world.node.advance(now);
        assert_eq!(world.node.poll_action(), None);
        assert_eq!(world.node.next_wake(), wake);
    }
    assert_eq!(world.status(), status);
    world.run_until(12.0);
    assert_eq!(world.starts("a0"), [0.0, 1.0, 12.0]);
    assert_eq!(Instant::ZERO.saturating_since(world.now), Duration::ZERO, "no age is negative");
}

// spec: RESTART-02
#[test]
fn a_node_that_slept_through_the_end_of_a_back_off_starts_the_container_when_it_wakes() {
    let mut world = World::with(pod(Always, vec![], vec![container("a0")]), &[("a0", exits(1, 1))]);
    world.run_until(5.0);
    world.oversleep(4000.0);
    world.run_for(0.0);
    assert_eq!(world.starts("a0"), [0.0, 1.0, 4000.0]);
}

#[test]
fn a_container_that_can_not_be_started_is_tried_again_under_its_policy() {
    let fails = Life::StartFails("RunContainerError", "no entry point");
    let script = Script { lives: vec![fails, Life::Forever], ..Script::default() };
    let mut world = World::with(pod(Always, vec![], vec![container("a0")]), &[("a0", script.clone())]);
    world.run_until(9.0);
    assert_eq!(world.waiting("a0"), ("RunContainerError".into(), "no entry point".into()));
    world.run_until(10.0);
    assert!(world.is_running("a0"));
    assert_eq!(world.container("a0").restart_count, 1);

    // Under Never that was its end, and another container goes on.
    let spec = pod(Never, vec![], vec![container("a0"), container("a1")]);
    let mut world = World::with(spec, &[("a0", script), ("a1", exits(60, 0))]);
    world.run_until(30.0);
    assert_eq!((world.terminated("a0").exit_code, &*world.terminated("a0").reason), (128, "StartError"));
    assert_eq!(world.starts("a0"), [0.0]);
    world.run_until(60.0);
    assert_eq!(world.phase(), Phase::Failed);
}

// spec: RESTART-06
#[test]
fn in_reduced_mode_delays_go_from_one_second_to_sixty_and_the_nodes_maximum_wins() {
    let starts = |max: Option<u64>, until| {
        let config = NodeConfig { crash_loop: BackoffConfig::reduced(max.map(secs)), ..NodeConfig::default() };
        let mut world = World::configured(config, pod(Always, vec![], vec![container("a0")]), &[("a0", exits(0, 1))]);
        world.run_until(until);
        world.starts("a0")
    };
    assert_eq!(starts(None, 190.0), [0.0, 0.0, 1.0, 3.0, 7.0, 15.0, 31.0, 63.0, 123.0, 183.0]);
    assert_eq!(starts(Some(3), 12.0), [0.0, 0.0, 1.0, 3.0, 6.0, 9.0, 12.0]);
    assert_eq!(starts(Some(300), 260.0)[8..], [127.0, 255.0], "above 60 s if the node says so");
}

// spec: RESTART-08
#[test]
fn a_rule_holds_for_an_end_by_the_liveness_probe_too() {
    let world = |apps: &[&str], signal| {
        let watched = ContainerSpec {
            liveness_probe: Some(probe(Handler::Exec)),
            ..with_rules("a0", Never, &[restart_on(ExitCodeOperator::In, &[143])])
        };
        let failing = Script {
            probes: vec![(ProbeKind::Liveness, secs(0), secs(1000), ProbeOutcome::Failure)],
            on_signal: OnSignal::Ends(secs(1), signal),
            ..Script::default()
        };
        let others = apps.iter().map(|name| container(name));
        let spec = pod(Never, vec![sidecar("s0")], std::iter::once(watched).chain(others).collect());
        let mut world = World::with(spec, &[("a0", failing)]);
        world.run_until(100.0);
        world
    };
    for apps in [&["a1"][..], &[]] {
        let world = world(apps, Outcome::Signal(15));
        assert_eq!(world.starts("a0")[..3], [0.0, 21.0, 52.0], "beside {apps:?}");
        assert_eq!((world.phase(), world.starts("s0")), (Phase::Running, vec![0.0]), "beside {apps:?}");
    }
    let ends_otherwise = world(&[], Outcome::Code(3));
    assert_eq!(ends_otherwise.starts("a0"), [0.0]);
    assert_eq!((ends_otherwise.phase(), ends_otherwise.signals("s0")), (Phase::Failed, vec![21.0]));
}
