use husk_core::Action;
use husk_core::deletion::Deletion;
use husk_core::io::{Hook, Outcome, ProbeOutcome};
use husk_core::spec::RestartPolicy::{Always, Never};
use husk_core::spec::{
    ContainerSpec, ExitCodeOperator, Handler, PodSpec, ProbeKind, RestartAction, RestartPolicy, RestartRule,
};
use husk_core::status::{ConditionStatus, Phase};
use husk_core::time::Instant;

use crate::world::{Life, OnSignal, Script, World, container, exits, lives, pod, probe, secs, sidecar};

fn stubborn() -> Script {
    Script { on_signal: OnSignal::Ignores, ..Script::default() }
}

fn one(script: Script) -> World {
    World::with(pod(Always, vec![], vec![container("a0")]), &[("a0", script)])
}

fn gone_at(world: &World) -> Vec<f64> {
    world.ordered(|action| matches!(action, Action::Gone { .. }))
}

// spec: TERM-01
#[test]
fn deleting_says_when_the_grace_is_over() {
    for (spec_grace, asked, seconds) in [
        (None, None, 30),
        (Some(45), None, 45),
        (Some(45), Some(7), 7),
        (Some(7), Some(45), 45),
        (Some(45), Some(-1), 1),
    ] {
        let mut spec = pod(Always, vec![], vec![container("a0")]);
        spec.termination_grace_period_seconds = spec_grace;
        let mut world = World::with(spec, &[("a0", stubborn())]);
        world.run_until(10.0);
        assert_eq!(world.node.deletion(&world.uid), None);
        let published = world.statuses.len();
        world.delete(asked);
        let timestamp = Instant::from_secs(1010 + seconds);
        let expected = Deletion { grace_seconds: seconds as i64, timestamp };
        assert_eq!(world.node.deletion(&world.uid), Some(expected), "{spec_grace:?} {asked:?}");
        assert!(world.statuses.len() > published, "people are shown that it ends");
        world.run_for(100.0);
        assert_eq!(gone_at(&world), [10.0 + seconds.max(2) as f64]);
    }
}

// spec: TERM-01
#[test]
fn nothing_is_started_again_once_a_pod_is_deleted() {
    let spec = pod(Always, vec![sidecar("s0")], vec![container("a0"), container("a1")]);
    let mut world = World::with(spec, &[("s0", exits(15, 1)), ("a0", exits(12, 1)), ("a1", stubborn())]);
    world.run_until(10.0);
    world.delete(None);
    world.run_until(39.0);
    assert_eq!((world.starts("a0"), world.starts("s0")), (vec![0.0], vec![0.0]));
    assert_eq!(world.condition("Ready").status, ConditionStatus::False);
    world.run_until(60.0);
    assert_eq!(gone_at(&world), [40.0]);
}

// spec: TERM-02
#[test]
fn pre_stop_of_all_then_term_to_the_apps_then_to_sidecars_and_kill_at_the_end() {
    let hooked = |c: ContainerSpec| ContainerSpec { pre_stop: Some(Handler::Exec), ..c };
    let spec = pod(Always, vec![hooked(sidecar("s0")), hooked(sidecar("s1"))], vec![hooked(container("a0"))]);
    let hooks = |seconds| Script { hooks: [(Hook::PreStop, (secs(seconds), Ok(())))].into(), ..stubborn() };
    let ending = Script { on_signal: OnSignal::Ends(secs(5), Outcome::Code(0)), ..hooks(3) };
    let mut world = World::with(spec, &[("s0", hooks(1)), ("s1", hooks(2)), ("a0", ending)]);
    world.run_until(10.0);
    world.delete(None);
    world.run_until(60.0);
    let order: Vec<_> = world
        .orders
        .iter()
        .filter_map(|(at, action)| {
            let (what, name) = match action {
                Action::RunHook { instance, .. } => ("preStop", &instance.container),
                Action::Signal { instance, .. } => ("TERM", &instance.container),
                Action::Kill { instance } => ("KILL", &instance.container),
                _ => return None,
            };
            Some((World::seconds(*at), what, name.to_string()))
        })
        .collect();
    let expected = [
        (10.0, "preStop", "s0"),
        (10.0, "preStop", "s1"),
        (10.0, "preStop", "a0"),
        (13.0, "TERM", "a0"),
        (18.0, "TERM", "s1"),
        // The end of grace: s1 is killed, and s0 gets the least that everybody gets.
        (40.0, "TERM", "s0"),
        (40.0, "KILL", "s1"),
        (42.0, "KILL", "s0"),
    ];
    assert_eq!(order, expected.map(|(at, what, name)| (at, what, name.to_owned())));
    assert_eq!(gone_at(&world), [42.0]);
}

// spec: TERM-03
#[test]
fn the_stop_signal_is_the_containers_own_or_term() {
    let own = ContainerSpec { stop_signal: Some("SIGUSR1".into()), ..container("a0") };
    let mut world = World::with(pod(Always, vec![], vec![own, container("a1")]), &[]);
    world.run_until(10.0);
    world.delete(None);
    world.run_until(20.0);
    let signals = world.orders.iter().filter_map(|(_, action)| match action {
        Action::Signal { instance, signal } => Some((&*instance.container, &**signal)),
        _ => None,
    });
    assert_eq!(Vec::from_iter(signals), [("a0", "SIGUSR1"), ("a1", "SIGTERM")]);
    // The default disposition: ended at once, by the signal.
    assert_eq!(gone_at(&world), [10.0]);
    assert_eq!((world.terminated("a1").exit_code, world.terminated("a1").signal), (143, 15));
}

// spec: TERM-05
#[test]
fn a_second_delete_can_only_shorten_and_counts_from_the_first() {
    for (seconds, killed) in [
        (Some(30), 40.0),
        (Some(11), 22.0),
        (Some(90), 70.0),
        (Some(60), 70.0),
        (None, 70.0),
        // Over already: the least that everybody gets.
        (Some(5), 22.0),
        (Some(1), 22.0),
        (Some(-5), 22.0),
    ] {
        let mut world = one(stubborn());
        world.run_until(10.0);
        world.delete(Some(60));
        world.run_until(20.0);
        world.delete(seconds);
        world.run_until(100.0);
        assert_eq!((world.signals("a0"), world.kills("a0")), (vec![10.0], vec![killed]), "{seconds:?}");
        assert_eq!(gone_at(&world), [killed]);
    }
}

// spec: TERM-05
#[test]
fn the_shortest_of_many_holds() {
    let mut world = one(stubborn());
    world.run_until(10.0);
    for seconds in [60, 30, 45, 20, 25] {
        world.delete(Some(seconds));
        world.run_for(1.0);
    }
    assert_eq!(world.node.deletion(&world.uid).map(|d| d.grace_seconds), Some(20));
    world.run_until(100.0);
    assert_eq!(world.kills("a0"), [30.0]);
}

// spec: TERM-05
#[test]
fn a_shorter_grace_cuts_hooks_and_waiting_for_a_turn() {
    let hooked = ContainerSpec { pre_stop: Some(Handler::Exec), ..container("a0") };
    let mut world = World::with(pod(Always, vec![sidecar("s0")], vec![hooked]), &[("a0", stubborn())]);
    world.run_until(10.0);
    world.delete(Some(600));
    world.run_until(20.0);
    world.delete(Some(15));
    world.run_until(100.0);
    assert_eq!((world.signals("a0"), world.kills("a0")), (vec![25.0], vec![27.0]));
    assert_eq!(world.signals("s0"), [25.0]);
    assert_eq!(gone_at(&world), [27.0]);
}

// spec: TERM-05
#[test]
fn a_delete_with_less_cuts_the_stop_of_a_pod_that_ends_anyway() {
    // Its apps are done, the sidecar has 30 s; and one that a probe is killing with a grace of its own.
    let spec = pod(Never, vec![sidecar("s0")], vec![container("a0")]);
    let mut world = World::with(spec, &[("a0", exits(5, 0)), ("s0", stubborn())]);
    world.run_until(10.0);
    world.delete(Some(3));
    world.run_until(60.0);
    assert_eq!((world.signals("s0"), world.kills("s0")), (vec![5.0], vec![13.0]));
    assert_eq!(world.phase(), Phase::Succeeded);

    let liveness = Some(husk_core::spec::Probe {
        failure_threshold: 1,
        termination_grace_period_seconds: Some(600),
        ..probe(Handler::Exec)
    });
    let a0 = ContainerSpec { liveness_probe: liveness, ..container("a0") };
    let probes = vec![(ProbeKind::Liveness, secs(0), secs(1000), ProbeOutcome::Failure)];
    let mut world = World::with(pod(Always, vec![], vec![a0]), &[("a0", Script { probes, ..stubborn() })]);
    world.run_until(10.0);
    world.delete(None);
    world.run_until(60.0);
    assert_eq!((world.signals("a0"), world.kills("a0")), (vec![0.0], vec![40.0]));
}

// spec: TERM-05
#[test]
fn a_deletion_does_not_prolong_the_stop_that_a_probe_has_begun() {
    let liveness = husk_core::spec::Probe {
        failure_threshold: 1,
        termination_grace_period_seconds: Some(5),
        ..probe(Handler::Exec)
    };
    let a0 = ContainerSpec { liveness_probe: Some(liveness), pre_stop: Some(Handler::Exec), ..container("a0") };
    let probes = vec![(ProbeKind::Liveness, secs(0), secs(1000), ProbeOutcome::Failure)];
    let mut world = World::with(pod(Always, vec![], vec![a0]), &[("a0", Script { probes, ..stubborn() })]);
    world.run_until(2.0);
    world.delete(Some(600));
    world.run_until(60.0);
    // Its preStop hook hangs until the 5 s are over.
    assert_eq!((world.signals("a0"), world.kills("a0")), (vec![5.0], vec![7.0]));
    assert!(world.is_gone());
}

// spec: TERM-06
#[test]
fn a_forced_deletion_removes_the_object_at_once_and_then_kills() {
    for already_ending in [false, true] {
        let spec = pod(Always, vec![sidecar("s0")], vec![container("a0")]);
        let mut world = World::with(spec, &[("a0", stubborn())]);
        world.run_until(10.0);
        if already_ending {
            world.delete(None);
            world.run_until(13.0);
        }
        let before = world.orders.len();
        world.delete(Some(0));
        let now = World::seconds(world.now);
        assert!(matches!(world.orders[before].1, Action::Gone { .. }), "first the object disappears");
        assert_eq!((world.kills("a0"), world.kills("s0")), (vec![now], vec![now]));
        assert_eq!(world.node.pods().count(), 0);
        assert_eq!(world.node.status(&world.uid), None);
        world.run_until(60.0);
        assert_eq!(world.ordered(|a| matches!(a, Action::Teardown { .. })), [now]);
        assert_eq!(gone_at(&world).len(), 1, "once");
        assert_eq!(world.events("Killing"), ["Stopping container s0", "Stopping container a0"], "each once");
        assert_eq!(world.signals("s0"), [0.0; 0]);
        assert_eq!(world.node.next_wake(), None);
    }
}

// spec: TERM-06
#[test]
fn the_name_can_be_used_again_while_the_old_one_is_cleaned_up() {
    let mut world = one(stubborn());
    world.teardown_delay = secs(5);
    world.run_until(10.0);
    world.delete(Some(0));
    world.apply("p", "u2", pod(Always, vec![], vec![container("b0")]));
    assert_eq!(world.node.pods().map(ToString::to_string).collect::<Vec<_>>(), ["u2"]);
    world.run_until(14.9);
    let next = "u2".into();
    assert_eq!(world.node.status(&next).map(|status| status.phase), Some(Phase::Pending));
    assert!(world.starts("b0").is_empty(), "two pods of one name never run at once");
    world.run_until(15.0);
    assert_eq!(world.starts("b0"), [15.0]);
    assert_eq!(world.node.status(&next).map(|status| status.phase), Some(Phase::Running));
}

#[test]
fn a_pod_of_the_same_name_waits_for_the_end_of_the_one_before() {
    let mut world = one(stubborn());
    world.run_until(10.0);
    world.delete(None);
    world.run_until(12.0);
    world.apply("p", "u2", pod(Always, vec![], vec![container("b0")]));
    world.apply("p", "u3", pod(Always, vec![], vec![container("c0")]));
    world.apply("q", "u4", pod(Always, vec![], vec![container("d0")]));
    world.run_until(39.9);
    assert_eq!(world.starts("d0"), [12.0], "another name doesn't wait");
    assert!(world.starts("b0").is_empty());
    world.run_until(50.0);
    assert_eq!(world.starts("b0"), [40.0]);
    assert!(world.starts("c0").is_empty());
    // The one that waits can be deleted, and so can the one it waits for.
    let delete = |pod: &str| husk_core::Input::DeleteRequested { pod: pod.into(), grace_seconds: None };
    world.input(delete("u3"));
    world.run_until(51.0);
    assert!(world.gone.contains(&"u3".into()) && world.starts("c0").is_empty());
    world.input(delete("u2"));
    world.run_until(60.0);
    assert!(world.gone.contains(&"u2".into()));
    assert_eq!(world.node.pods().count(), 1);
}

fn liveness_killed(script: Script) -> World {
    let a0 = ContainerSpec { liveness_probe: Some(probe(Handler::Exec)), ..container("a0") };
    let probes = vec![(ProbeKind::Liveness, secs(0), secs(1000), ProbeOutcome::Failure)];
    World::with(pod(Always, vec![], vec![a0]), &[("a0", Script { probes, ..script })])
}

fn restart_all_pod() -> PodSpec {
    let rule =
        RestartRule { action: RestartAction::RestartAllContainers, operator: ExitCodeOperator::In, values: vec![88] };
    let a0 = ContainerSpec {
        restart_policy: Some(RestartPolicy::Never),
        restart_policy_rules: vec![rule],
        ..container("a0")
    };
    pod(Never, vec![container("i0"), sidecar("s0")], vec![a0, container("a1")])
}

/// Pods in every state that a deletion can meet, at 15 s.
fn in_all_states() -> Vec<(&'static str, World)> {
    let plain = || pod(Always, vec![], vec![container("a0")]);
    let with_init = || pod(Always, vec![container("i0")], vec![container("a0")]);
    let delayed = |sandbox: u64, failures| {
        let mut world = World::empty(Default::default(), &[]);
        (world.sandbox_delay, world.sandbox_failures) = (secs(sandbox), failures);
        world.apply("p", "u1", plain());
        world
    };
    let blocked = || {
        let mut world = World::empty(Default::default(), &[("b0", Script::default())]);
        world.apply("p", "u0", pod(Always, vec![], vec![container("b0")]));
        world.apply("p", "u1", plain());
        world
    };
    let hanging_start = ContainerSpec { post_start: Some(Handler::Exec), ..container("a0") };
    let hanging_stop = ContainerSpec { pre_stop: Some(Handler::Exec), ..container("a0") };
    let starting_sidecars = || {
        let side = |name| ContainerSpec { startup_probe: Some(probe(Handler::Exec)), ..sidecar(name) };
        let never = vec![(ProbeKind::Startup, secs(12), secs(1000), ProbeOutcome::Failure)];
        let spec = pod(Always, vec![side("s0"), side("s1")], vec![container("a0")]);
        World::with(spec, &[("s1", Script { probes: never, ..stubborn() })])
    };
    let fails = |reason| Script { lives: vec![Life::StartFails(reason, "why")], ..Script::default() };
    let restarting = || {
        let scripts = [("i0", exits(1, 0)), ("a0", lives(&[(14, 88)])), ("s0", stubborn()), ("a1", stubborn())];
        World::with(restart_all_pod(), &scripts)
    };
    let changed = || {
        let mut world = one(stubborn());
        world.run_until(10.0);
        let mut spec = plain();
        spec.containers[0].hash = 2;
        world.apply("p", "u1", spec);
        world
    };
    vec![
        ("sandbox being set up", delayed(20, 0)),
        ("sandbox failed", delayed(0, 1000)),
        ("image being pulled", one(Script { pull_delay: secs(100), ..Script::default() })),
        ("image pull backing off", one(Script { image_failures: 1000, ..Script::default() })),
        ("being started", one(Script { start_delay: secs(100), ..Script::default() })),
        ("can't be created", one(fails("CreateContainerConfigError"))),
        ("can't be run", one(fails("RunContainerError"))),
        ("running", one(Script::default())),
        ("running, ignores TERM", one(stubborn())),
        ("in its back-off", one(exits(1, 1))),
        ("init running", World::with(with_init(), &[("i0", stubborn())])),
        ("init in its back-off", World::with(with_init(), &[("i0", exits(1, 1))])),
        ("sidecars starting up", starting_sidecars()),
        ("postStart hangs", World::with(pod(Always, vec![], vec![hanging_start]), &[("a0", stubborn())])),
        ("preStop will hang", World::with(pod(Always, vec![], vec![hanging_stop]), &[("a0", stubborn())])),
        ("killed by its liveness probe", liveness_killed(stubborn())),
        ("restarted in place", restarting()),
        ("being replaced", changed()),
        ("waits for its name", blocked()),
        ("finished", World::with(pod(Never, vec![], vec![container("a0")]), &[("a0", exits(1, 0))])),
        ("failed", World::with(pod(Never, vec![], vec![container("a0")]), &[("a0", exits(1, 1))])),
    ]
}

// spec: TERM-08
#[test]
fn a_pod_in_any_state_ends_in_bounded_time_and_leaves_nothing() {
    for grace in [None, Some(7), Some(1), Some(0)] {
        for (what, mut world) in in_all_states() {
            world.run_until(15.0);
            let others = world.node.pods().count() - 1;
            world.delete(grace);
            let limit = grace.unwrap_or(30) as f64 + 2.0 * 3.0 + 2.0;
            world.run_for(limit);
            assert!(world.is_gone(), "{what}, {grace:?}");
            // A forced deletion may be cleaned up later; nothing answers here later than after 100 s.
            world.run_for(200.0);
            assert_eq!(world.node.pods().count(), others, "{what}, {grace:?}");
            assert_eq!(world.running_of("u1"), 0, "{what}, {grace:?}");
            if others == 0 {
                assert_eq!(world.node.next_wake(), None, "{what}, {grace:?}");
            }
            assert!(world.status().phase.is_terminal() || grace == Some(0), "{what}, {grace:?}");
            assert!(world.starts("a0").iter().all(|at| *at <= 15.0), "{what}, {grace:?}");
        }
    }
}

// spec: TERM-08
#[test]
fn in_any_state_a_second_shorter_delete_is_heard() {
    for (what, mut world) in in_all_states() {
        world.run_until(15.0);
        world.delete(Some(1000));
        world.run_for(5.0);
        if !world.is_gone() {
            world.delete(Some(10));
        }
        world.run_for(5.0 + 2.0 * 3.0 + 2.0);
        assert!(world.is_gone(), "{what}");
    }
}

// spec: TERM-08
#[test]
fn during_init_only_what_runs_is_stopped_and_gracefully() {
    let spec = pod(Always, vec![sidecar("s0"), container("i0"), container("i1")], vec![container("a0")]);
    let ending = |seconds| Script { on_signal: OnSignal::Ends(secs(seconds), Outcome::Code(0)), ..Script::default() };
    let mut world = World::with(spec, &[("s0", ending(1)), ("i0", ending(4))]);
    world.run_until(10.0);
    world.delete(None);
    world.run_until(60.0);
    assert_eq!((world.signals("i0"), world.signals("s0")), (vec![10.0], vec![10.0]), "no app to wait for");
    assert_eq!(gone_at(&world), [14.0]);
    assert!(world.starts("i1").is_empty(), "i0 exited with 0, but nothing goes on");
    assert_eq!(world.phase(), Phase::Failed);
}

// spec: TERM-08
#[test]
fn a_start_that_is_not_answered_yet_is_killed_once() {
    let hooked = ContainerSpec {
        post_start: Some(Handler::Exec),
        liveness_probe: Some(probe(Handler::Exec)),
        ..container("a0")
    };
    let script = Script { start_delay: secs(20), ..Script::default() };
    let mut world = World::with(pod(Always, vec![], vec![hooked]), &[("a0", script)]);
    world.run_until(10.0);
    world.delete(None);
    world.run_until(60.0);
    assert_eq!((world.kills("a0"), world.signals("a0")), (vec![10.0], vec![]));
    assert!(world.hooks("a0", Hook::PostStart).is_empty());
    assert!(world.probes("a0", ProbeKind::Liveness).is_empty());
    assert_eq!(gone_at(&world), [10.0]);
}

// spec: TERM-08
#[test]
fn during_post_start_the_hook_is_let_go_and_the_stop_is_graceful() {
    let a0 = ContainerSpec { post_start: Some(Handler::Exec), pre_stop: Some(Handler::Exec), ..container("a0") };
    let hooks = [(Hook::PreStop, (secs(3), Ok(())))].into();
    let script = Script { hooks, on_signal: OnSignal::Ends(secs(1), Outcome::Code(0)), ..Script::default() };
    let mut world = World::with(pod(Always, vec![], vec![a0]), &[("a0", script)]);
    world.run_until(10.0);
    world.delete(None);
    assert_eq!(world.ordered(|a| matches!(a, Action::CancelHook { hook: Hook::PostStart, .. })), [10.0]);
    assert!(world.is_running("a0"), "it runs, whatever its hook would have said");
    world.run_until(60.0);
    assert_eq!((world.hooks("a0", Hook::PreStop), world.signals("a0")), (vec![10.0], vec![13.0]));
    assert_eq!(gone_at(&world), [14.0]);
}

#[test]
fn what_is_said_of_a_pod_that_is_gone_is_not_heard() {
    let mut world = one(Script::default());
    world.run_until(5.0);
    world.delete(None);
    world.run_until(6.0);
    assert!(world.is_gone());
    let before = (world.orders.len(), world.events.len());
    world.delete(None);
    world.delete(Some(0));
    world.run_until(100.0);
    assert_eq!((world.orders.len(), world.events.len()), before);
}

#[test]
fn the_end_is_shown_before_the_object_disappears() {
    let mut world = one(Script::default());
    world.teardown_delay = secs(3);
    world.run_until(5.0);
    world.delete(None);
    world.run_until(60.0);
    assert_eq!(gone_at(&world), [8.0]);
    let failed = world.statuses.iter().find(|(_, status)| status.phase == Phase::Failed).map(|(at, _)| *at);
    assert_eq!(failed, Some(Instant::from_secs(1005)), "while it is being torn down");
    assert_eq!(world.terminated("a0").exit_code, 143);
    let sandbox = world.condition("PodReadyToStartContainers");
    assert_eq!(sandbox.status, ConditionStatus::False, "the very last status can be read as well");
    let (last, _) = world.orders.last().expect("there were orders");
    assert_eq!(World::seconds(*last), 8.0);
    assert!(matches!(world.orders.last(), Some((_, Action::Gone { .. }))), "and nothing comes after it");
}

// spec: TERM-06
#[test]
fn of_a_pod_that_is_gone_nothing_more_is_shown_whoever_asks() {
    let stubborn = Script { on_signal: OnSignal::Ignores, ..Script::default() };
    let mut world = World::with(pod(Always, vec![], vec![container("a0")]), &[("a0", stubborn)]);
    world.run_until(5.0);
    world.delete(Some(0));
    let shown = world.statuses.len();
    world.delete(Some(0));
    world.delete(None);
    assert_eq!(world.statuses.len(), shown);
    world.run_until(10.0);
    assert!(world.is_gone());
}
