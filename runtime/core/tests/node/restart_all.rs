use husk_core::Action;
use husk_core::io::{Hook, Input, InstanceRef, Outcome, ProbeOutcome};
use husk_core::spec::RestartPolicy::{self, Always, Never, OnFailure};
use husk_core::spec::{
    ContainerSpec, ExitCodeOperator, Handler, PodSpec, Probe, ProbeKind, RestartAction, RestartRule,
};
use husk_core::status::{ConditionStatus, Phase};
use husk_core::time::Instant;

use crate::world::{Life, OnSignal, Script, World, container, exits, lives, pod, probe, secs, sidecar};

/// A container whose exit with 88 restarts the whole pod.
fn asking(name: &str) -> ContainerSpec {
    let values = vec![88];
    let rule = RestartRule { action: RestartAction::RestartAllContainers, operator: ExitCodeOperator::In, values };
    ContainerSpec { restart_policy: Some(Never), restart_policy_rules: vec![rule], ..container(name) }
}

fn whole_pod(policy: RestartPolicy) -> PodSpec {
    let hooked = |c: ContainerSpec| ContainerSpec { pre_stop: Some(Handler::Exec), ..c };
    let init = vec![container("i0"), hooked(sidecar("s0"))];
    pod(policy, init, vec![asking("a0"), hooked(container("a1")), container("a2")])
}

fn stubborn() -> Script {
    Script { on_signal: OnSignal::Ignores, ..Script::default() }
}

/// i0 takes 2 s, a2 3 s; a0 asks for the restart after 10 s, once.
fn whole_world(policy: RestartPolicy) -> World {
    let a0 = Script { lives: vec![Life::Exit(secs(10), Outcome::Code(88)), Life::Forever], ..Script::default() };
    let scripts = [("i0", exits(2, 0)), ("s0", stubborn()), ("a0", a0), ("a1", stubborn()), ("a2", exits(3, 0))];
    World::with(whole_pod(policy), &scripts)
}

// spec: RESTART-09
#[test]
fn every_container_is_killed_at_once_and_begins_anew_init_first() {
    for policy in [Never, OnFailure] {
        let mut world = whole_world(policy);
        world.run_until(60.0);
        assert_eq!((world.kills("s0"), world.kills("a1")), (vec![12.0], vec![12.0]), "no grace");
        assert!(world.ordered(|a| matches!(a, Action::Signal { .. })).is_empty(), "no TERM");
        assert!(world.hooks("s0", Hook::PreStop).is_empty() && world.hooks("a1", Hook::PreStop).is_empty());
        assert_eq!(world.starts("i0"), [0.0, 12.0]);
        let killed = ["s0", "a1"].map(|name| format!("Container {name} is restarted with all containers"));
        assert_eq!(world.events("Killing"), killed);
        for name in ["s0", "a0", "a1", "a2"] {
            assert_eq!(world.starts(name), [2.0, 14.0], "{name}, {policy:?}: a2 was done, and runs again");
        }
        assert_eq!(world.phase(), Phase::Running);
    }
}

// spec: RESTART-09
#[test]
fn restart_counts_rise_for_all() {
    let mut world = whole_world(Never);
    world.run_until(14.0);
    for name in ["i0", "s0", "a0", "a1", "a2"] {
        assert_eq!(world.container(name).restart_count, 1, "{name}");
        assert_eq!(world.container(name).last_state.map(|end| end.exit_code), Some(137), "{name}");
    }
}

// spec: RESTART-09
#[test]
fn the_sandbox_the_uid_and_the_address_stay() {
    let mut world = whole_world(Never);
    world.run_until(10.0);
    let (ips, start) = (world.status().pod_ips, world.status().start_time);
    world.run_until(60.0);
    assert_eq!(world.ordered(|a| matches!(a, Action::SetUp { .. })), [0.0]);
    assert!(world.ordered(|a| matches!(a, Action::Teardown { .. } | Action::Gone { .. })).is_empty());
    assert_eq!((world.status().pod_ips, world.status().start_time), (ips, start));
    assert!(world.statuses.iter().skip(2).all(|(_, status)| status.pod_ips == ["127.1.2.3"]));
}

// spec: RESTART-09
#[test]
fn a_condition_under_two_names_tells_it() {
    let mut world = whole_world(Never);
    world.run_until(60.0);
    for kind in ["AllContainersRestarting", "PodRestartInPlace"] {
        let mut seen: Vec<_> = world
            .statuses
            .iter()
            .filter_map(|(at, status)| Some((World::seconds(*at), status.conditions.iter().find(|c| c.kind == kind)?)))
            .map(|(at, condition)| (at, condition.status))
            .collect();
        seen.dedup_by_key(|(_, status)| *status);
        let (yes, no) = (ConditionStatus::True, ConditionStatus::False);
        assert_eq!(seen, [(0.0, no), (12.0, yes), (12.0, no)], "{kind}");
        assert_eq!(world.status().conditions.iter().filter(|c| c.kind == kind).count(), 1);
    }
    assert_eq!(world.condition("Initialized").status, ConditionStatus::True);
}

// spec: RESTART-09
#[test]
fn the_pod_is_pending_meanwhile() {
    let mut world = whole_world(Never);
    world.run_until(13.0);
    assert_eq!(world.phase(), Phase::Pending);
    assert!(world.is_running("i0"));
    for name in ["a0", "a1", "a2"] {
        assert_eq!(world.waiting(name).0, "PodInitializing", "{name}");
        let last = world.container(name).last_state.expect("it ran before");
        assert_eq!((&*last.reason, last.exit_code), ("RestartingAllContainers", 137), "{name}");
    }
    world.run_until(14.0);
    assert_eq!(world.phase(), Phase::Running);
}

// spec: RESTART-09
#[test]
fn ephemeral_containers_stay() {
    let mut spec = whole_pod(Never);
    spec.ephemeral_containers = vec![container("e0")];
    let a0 = Script { lives: vec![Life::Exit(secs(10), Outcome::Code(88)), Life::Forever], ..Script::default() };
    let mut world = World::with(spec, &[("i0", exits(2, 0)), ("a0", a0)]);
    world.run_until(60.0);
    assert_eq!(world.starts("a0"), [2.0, 14.0]);
    assert_eq!((world.starts("e0"), world.kills("e0")), (vec![0.0], vec![]));
    assert!(world.is_running("e0"));
    assert_eq!(world.condition("AllContainersRestarting").status, ConditionStatus::False);
}

// spec: RESTART-09
#[test]
fn a_pod_of_one_container_restarts_in_place_too() {
    let script = lives(&[(5, 88), (1000, 0)]);
    let mut world = World::with(pod(Never, vec![], vec![asking("a0")]), &[("a0", script)]);
    world.run_until(10.0);
    assert_eq!(world.starts("a0"), [0.0, 5.0]);
    let status = world.container("a0");
    assert_eq!(status.restart_count, 1);
    assert_eq!(status.last_state.map(|end| end.reason), Some("RestartingAllContainers".into()));
    // There was nothing to kill, so it was True for no time at all.
    let since = world.condition("PodRestartInPlace").last_transition_time;
    assert_eq!(since, Some(Instant::from_secs(1005)));
}

// spec: RESTART-09
#[test]
fn an_init_container_can_ask_for_it() {
    let spec = pod(Never, vec![container("i0"), asking("i1")], vec![container("a0")]);
    let mut world = World::with(spec, &[("i0", exits(2, 0)), ("i1", lives(&[(3, 88), (1, 0)]))]);
    world.run_until(60.0);
    assert_eq!((world.starts("i0"), world.starts("i1")), (vec![0.0, 5.0], vec![2.0, 7.0]));
    assert_eq!(world.starts("a0"), [8.0]);
}

// spec: RESTART-09, RESTART-02
#[test]
fn it_can_not_loop_without_back_off_and_the_innocent_do_not_wait() {
    let spec = pod(Never, vec![container("i0")], vec![asking("a0"), container("a1")]);
    let mut world = World::with(spec, &[("i0", exits(0, 0)), ("a0", exits(0, 88))]);
    world.run_until(200.0);
    assert_eq!(world.starts("a0"), [0.0, 0.0, 10.0, 30.0, 70.0, 150.0]);
    assert_eq!(world.waiting("a0").0, "CrashLoopBackOff");
    // Each time all begin anew at once, and only who asked for it has to wait.
    assert_eq!(world.starts("a1"), [0.0, 0.0, 0.0, 10.0, 30.0, 70.0, 150.0]);
    assert_eq!(world.starts("i0"), [0.0, 0.0, 0.0, 10.0, 30.0, 70.0, 150.0]);
    assert!(world.is_running("a1"));
}

// spec: RESTART-09, RESTART-02
#[test]
fn those_who_ask_in_turns_are_each_held_back() {
    let spec = pod(Never, vec![], vec![asking("a0"), asking("a1"), container("a2")]);
    let mut world = World::with(spec, &[("a0", exits(1, 88)), ("a1", exits(2, 88))]);
    world.run_until(100.0);
    // Each waits for itself: 0 s, 10 s, 20 s, 40 s after it ended, whatever the other one asks for meanwhile.
    assert_eq!(world.starts("a0"), [0.0, 1.0, 12.0, 33.0, 74.0]);
    assert_eq!(world.starts("a1"), [0.0, 1.0, 2.0, 4.0, 16.0, 38.0, 80.0]);
    assert_eq!(world.waiting("a0").0, "CrashLoopBackOff");
    // With each restart of all.
    assert_eq!(world.starts("a2"), [0.0, 1.0, 2.0, 4.0, 6.0, 13.0, 18.0, 34.0, 40.0, 75.0, 82.0]);
}

// spec: RESTART-09
#[test]
fn other_exit_codes_ask_for_nothing() {
    let spec = pod(Always, vec![], vec![asking("a0"), container("a1")]);
    let mut world = World::with(spec, &[("a0", exits(5, 1))]);
    world.run_until(60.0);
    assert_eq!((world.starts("a0"), world.starts("a1")), (vec![0.0], vec![0.0]));
    assert_eq!(world.terminated("a0").exit_code, 1);
}

// spec: RESTART-09
#[test]
fn it_takes_along_what_is_being_stopped_started_or_held_back() {
    let slow_start = Script { start_delay: secs(30), ..Script::default() };
    let slow_pull = Script { pull_delay: secs(30), ..Script::default() };
    for (what, script) in [("starting", slow_start), ("pulling", slow_pull), ("back-off", exits(1, 1))] {
        let spec = pod(OnFailure, vec![container("i0")], vec![asking("a0"), container("a1")]);
        let a0 = lives(&[(10, 88), (1000, 0)]);
        let mut world = World::with(spec, &[("i0", exits(2, 0)), ("a0", a0), ("a1", script)]);
        world.run_until(15.0);
        assert_eq!(world.starts("i0"), [0.0, 12.0], "{what}");
        assert_eq!(world.starts("a0"), [2.0, 14.0], "{what}");
        world.run_until(60.0);
        assert!(world.running_of("u1") <= 2, "{what}");
    }
}

// spec: RESTART-09, TERM-08
#[test]
fn a_deletion_half_way_wins() {
    let mut world = whole_world(Never);
    world.run_until(11.0);
    let instance = InstanceRef { pod: world.uid.clone(), container: "a0".into(), attempt: 0 };
    world.input(Input::Exited { instance, outcome: Outcome::Code(88), message: String::new() });
    assert_eq!((world.kills("s0"), world.kills("a1")), (vec![11.0], vec![11.0]), "ordered, not answered yet");
    world.delete(None);
    world.run_until(60.0);
    assert!(world.is_gone());
    assert_eq!(world.starts("i0"), [0.0]);
    assert_eq!(world.kills("a1"), [11.0], "once");
    assert_eq!(world.phase(), Phase::Failed);
}

// spec: RESTART-09
#[test]
fn an_end_by_the_liveness_probe_that_asks_for_it_backs_off_as_well() {
    let quick = Probe { period_seconds: 1, failure_threshold: 1, ..probe(Handler::Exec) };
    let watched = ContainerSpec { liveness_probe: Some(quick), ..asking("a0") };
    let failing = Script {
        probes: vec![(ProbeKind::Liveness, secs(0), secs(100_000), ProbeOutcome::Failure)],
        on_signal: OnSignal::Ends(secs(0), Outcome::Code(88)),
        ..Script::default()
    };
    let mut world = World::with(
        pod(Never, vec![container("i0")], vec![watched, container("a1")]),
        &[("i0", exits(0, 0)), ("a0", failing)],
    );
    world.run_until(1000.0);
    assert!(world.starts("a0").len() < 12, "{:?}", world.starts("a0"));
}

// spec: STATE-04
#[test]
fn in_a_pod_that_the_node_ends_nothing_counts_as_restarted() {
    // It ends by its stop signal with the code that would restart all, when a1 hasn't started yet.
    let a0 = Script { on_signal: OnSignal::Ends(secs(1), Outcome::Code(88)), ..Script::default() };
    let a1 = Script { pull_delay: secs(100), ..Script::default() };
    let spec = pod(Always, vec![], vec![asking("a0"), container("a1")]);
    let mut world = World::with(spec, &[("a0", a0), ("a1", a1)]);
    world.run_until(5.0);
    world.input(Input::LimitExceeded { pod: world.uid.clone(), message: "too much".into() });
    world.run_until(20.0);
    assert_eq!(world.phase(), Phase::Failed);
    assert_eq!(world.container("a1").restart_count, 0);
    assert_eq!(world.container("a0").restart_count, 0);
}
