use husk_core::event::EventKind;
use husk_core::io::{Hook, Input, InstanceRef, Outcome, ProbeOutcome};
use husk_core::spec::RestartPolicy::{Always, Never};
use husk_core::spec::{ContainerSpec, Handler, Probe, ProbeKind, RestartPolicy};
use husk_core::status::{ConditionStatus, Phase};
use husk_core::time::Instant;
use husk_core::{Action, NodeConfig};

use crate::world::{Life, OnSignal, Script, World, container, exits, pod, probe, secs};

use ProbeKind::{Liveness, Readiness, Startup};

fn probed(kinds: &[(ProbeKind, Probe)]) -> ContainerSpec {
    let mut a0 = container("a0");
    for (kind, probe) in kinds {
        let place = match kind {
            Liveness => &mut a0.liveness_probe,
            Readiness => &mut a0.readiness_probe,
            Startup => &mut a0.startup_probe,
        };
        *place = Some(probe.clone());
    }
    a0
}

fn plain(kinds: &[ProbeKind]) -> ContainerSpec {
    probed(&kinds.iter().map(|kind| (*kind, probe(Handler::Exec))).collect::<Vec<_>>())
}

fn answers(list: &[(ProbeKind, u64, u64, ProbeOutcome)]) -> Script {
    let probes = list.iter().map(|(kind, from, to, outcome)| (*kind, secs(*from), secs(*to), *outcome)).collect();
    Script { probes, ..Script::default() }
}

fn fails(kind: ProbeKind, from: u64, to: u64) -> Script {
    answers(&[(kind, from, to, ProbeOutcome::Failure)])
}

fn world(policy: RestartPolicy, a0: ContainerSpec, script: Script) -> World {
    World::with(pod(policy, vec![], vec![a0]), &[("a0", script)])
}

fn is_ready(world: &World) -> bool {
    let ready = world.condition("Ready").status == ConditionStatus::True;
    assert_eq!(ready, world.container("a0").ready);
    ready
}

// spec: PROBE-03
#[test]
fn startup_gates_the_others_and_is_over_with_its_verdict() {
    let script = fails(Startup, 0, 15);
    let mut world = world(Always, plain(&[Liveness, Readiness, Startup]), script);
    world.run_until(19.9);
    assert!(!world.container("a0").started);
    world.run_until(45.0);
    assert!(world.container("a0").started);
    assert_eq!(world.probes("a0", Startup), [0.0, 10.0, 20.0]);
    assert_eq!(world.probes("a0", Liveness), [20.0, 30.0, 40.0]);
    assert_eq!(world.probes("a0", Readiness), [20.0, 30.0, 40.0]);
}

// spec: PROBE-03
#[test]
fn the_others_initial_delays_begin_once_startup_succeeded() {
    let delayed = Probe { initial_delay_seconds: 7, ..probe(Handler::Exec) };
    let a0 = probed(&[(Startup, probe(Handler::Exec)), (Liveness, delayed.clone()), (Readiness, delayed)]);
    let mut world = world(Always, a0, fails(Startup, 0, 15));
    world.run_until(40.0);
    assert_eq!(world.probes("a0", Startup), [0.0, 10.0, 20.0]);
    assert_eq!(world.probes("a0", Liveness), [27.0, 37.0]);
    assert_eq!(world.probes("a0", Readiness), [27.0, 37.0]);
}

// spec: PROBE-03
#[test]
fn startup_runs_again_in_the_next_instance() {
    let script = Script { lives: vec![Life::Exit(secs(15), Outcome::Code(1)), Life::Forever], ..Script::default() };
    let mut world = world(Always, plain(&[Liveness, Startup]), script);
    world.run_until(40.0);
    assert_eq!(world.starts("a0"), [0.0, 15.0]);
    assert_eq!(world.probes("a0", Startup), [0.0, 15.0]);
    assert_eq!(world.probes("a0", Liveness), [0.0, 10.0, 15.0, 25.0, 35.0]);
}

// spec: PROBE-03
#[test]
fn every_instance_has_its_own_initial_delays() {
    let late = Probe { initial_delay_seconds: 4, ..probe(Handler::Exec) };
    let a0 = probed(&[(Startup, late.clone()), (Liveness, late)]);
    let script = Script { lives: vec![Life::Exit(secs(15), Outcome::Code(1)), Life::Forever], ..Script::default() };
    let mut world = world(Always, a0, script);
    world.run_until(24.0);
    assert_eq!(world.probes("a0", Startup), [4.0, 19.0]);
    assert_eq!(world.probes("a0", Liveness), [8.0, 23.0]);
}

// spec: PROBE-04
#[test]
fn enough_failures_in_a_row_kill_the_container() {
    for (kind, from, killed, word) in [(Liveness, 15, 40.0, "liveness"), (Startup, 0, 20.0, "startup")] {
        let mut world = world(Always, plain(&[kind]), fails(kind, from, 1000));
        world.run_until(killed - 0.1);
        assert!(world.signals("a0").is_empty());
        world.run_until(killed);
        assert_eq!(world.signals("a0"), [killed]);
        let unhealthy: Vec<_> = world.events.iter().filter(|e| e.reason == "Unhealthy").take(3).collect();
        assert_eq!(unhealthy.len(), 3);
        assert!(unhealthy.iter().all(|e| e.kind == EventKind::Warning && e.field_path == "spec.containers{a0}"));
        assert_eq!(unhealthy[2].message, format!("{} probe failed: as scripted", kind.as_str()));
        assert_eq!(unhealthy[2].count, 3);
        assert_eq!(world.events("Killing"), [format!("Container a0 failed {word} probe, will be restarted")]);
        assert_eq!(world.starts("a0"), [0.0, killed]);
        assert_eq!(world.container("a0").restart_count, 1);
    }
}

// spec: PROBE-04
#[test]
fn under_never_the_kill_says_why_and_the_pod_fails() {
    let mut world = world(Never, plain(&[Liveness]), fails(Liveness, 15, 1000));
    world.run_until(60.0);
    assert_eq!(world.events("Killing"), ["Container a0 failed liveness probe"]);
    assert_eq!(world.phase(), Phase::Failed);
    assert_eq!(world.terminated("a0").exit_code, 143);
}

// spec: PROBE-04
#[test]
fn the_probes_own_grace_holds_for_its_kill() {
    for (own, policy, grace) in [
        (None, Always, 30.0),
        (Some(5), Always, 5.0),
        (Some(5), Never, 5.0),
        (Some(60), Always, 60.0),
        (Some(1), Always, 2.0),
    ] {
        for kind in [Liveness, Startup] {
            let strict = Probe { termination_grace_period_seconds: own, failure_threshold: 1, ..probe(Handler::Exec) };
            let script = Script { on_signal: OnSignal::Ignores, ..fails(kind, 0, 1000) };
            let mut world = world(policy, probed(&[(kind, strict)]), script);
            world.run_until(grace - 0.1);
            assert!(world.kills("a0").is_empty());
            world.run_until(grace);
            assert_eq!((world.signals("a0")[0], world.kills("a0")), (0.0, vec![grace]), "{own:?} {kind:?} {policy:?}");
        }
    }
}

// spec: PROBE-04
#[test]
fn failures_that_are_not_in_a_row_kill_nobody() {
    let script = answers(&[
        (Liveness, 5, 25, ProbeOutcome::Failure),
        (Liveness, 35, 55, ProbeOutcome::Failure),
        (Liveness, 65, 85, ProbeOutcome::Failure),
    ]);
    let mut world = world(Always, plain(&[Liveness]), script);
    world.run_until(200.0);
    assert_eq!(world.starts("a0"), [0.0]);
    assert_eq!(world.events("Unhealthy").len(), 6);
    assert!(world.events("Killing").is_empty());
}

// spec: PROBE-05
#[test]
fn readiness_takes_out_of_service_and_back_and_restarts_nothing() {
    let mut world = world(Always, plain(&[Readiness]), fails(Readiness, 15, 65));
    world.run_until(0.0);
    assert!(is_ready(&world));
    world.run_until(39.9);
    assert!(is_ready(&world), "two failures are not three");
    world.run_until(40.0);
    assert!(!is_ready(&world));
    let ready = world.condition("Ready");
    assert_eq!((&*ready.reason, &*ready.message), ("ContainersNotReady", "containers with unready status: [a0]"));
    world.run_until(69.9);
    assert!(!is_ready(&world));
    world.run_until(70.0);
    assert!(is_ready(&world));
    assert_eq!(world.starts("a0"), [0.0]);
    assert!(world.signals("a0").is_empty());
    assert_eq!(world.events("Unhealthy").len(), 5);
    assert_eq!(world.events("Unhealthy")[0], "Readiness probe failed: as scripted");
}

// spec: PROBE-05
#[test]
fn success_needs_its_threshold_too() {
    let careful = Probe { success_threshold: 2, ..probe(Handler::Exec) };
    let mut world = world(Always, probed(&[(Readiness, careful)]), fails(Readiness, 0, 15));
    world.run_until(29.9);
    assert!(!is_ready(&world));
    world.run_until(30.0);
    assert!(is_ready(&world));
}

// spec: PROBE-05
#[test]
fn while_the_pod_ends_readiness_goes_on_and_the_others_stop() {
    let script = Script {
        on_signal: OnSignal::Ignores,
        ..answers(&[(Readiness, 25, 1000, ProbeOutcome::Failure), (Liveness, 25, 1000, ProbeOutcome::Failure)])
    };
    let mut a0 = plain(&[Liveness, Readiness]);
    a0.readiness_probe.as_mut().expect("it has one").failure_threshold = 1;
    let mut world = world(Always, a0, script);
    world.run_until(22.0);
    world.delete(None);
    world.run_until(29.9);
    assert!(world.container("a0").ready);
    world.run_until(51.9);
    assert!(!world.container("a0").ready, "it fails from 30 on");
    assert_eq!(world.probes("a0", Readiness), [0.0, 10.0, 20.0, 30.0, 40.0, 50.0]);
    assert_eq!(world.probes("a0", Liveness), [0.0, 10.0, 20.0]);
    assert_eq!(world.signals("a0"), [22.0]);
    world.run_until(60.0);
    assert_eq!(world.kills("a0"), [52.0]);
    assert!(world.is_gone());
}

// spec: PROBE-05
#[test]
fn that_holds_for_a_pod_that_its_deadline_ends_too() {
    let mut spec = pod(Always, vec![], vec![plain(&[Liveness, Readiness])]);
    spec.active_deadline_seconds = Some(22);
    let script = Script { on_signal: OnSignal::Ignores, ..Script::default() };
    let mut world = World::with(spec, &[("a0", script)]);
    world.run_until(60.0);
    assert_eq!(world.probes("a0", Liveness), [0.0, 10.0, 20.0]);
    assert_eq!(world.probes("a0", Readiness), [0.0, 10.0, 20.0, 30.0, 40.0, 50.0]);
}

// spec: PROBE-05
#[test]
fn startup_stops_when_the_pod_ends() {
    let script = Script { on_signal: OnSignal::Ignores, ..fails(Startup, 0, 1000) };
    let mut world = world(Always, plain(&[Startup]), script);
    world.run_until(5.0);
    world.delete(None);
    world.run_until(34.0);
    assert_eq!(world.probes("a0", Startup), [0.0]);
    assert_eq!(world.events("Killing"), ["Stopping container a0"]);
}

// spec: PROBE-06
#[test]
fn before_the_first_probe_readiness_has_failed_liveness_succeeded_and_startup_is_unknown() {
    let late = Probe { initial_delay_seconds: 20, ..probe(Handler::Exec) };
    let a0 = probed(&[(Liveness, late.clone()), (Readiness, late.clone())]);
    let mut one = world(Always, a0, Script::default());
    one.run_until(19.9);
    assert_eq!(one.node.probe_verdict(&one.uid, "a0", Readiness), Some(false));
    assert_eq!(one.node.probe_verdict(&one.uid, "a0", Liveness), Some(true));
    assert!(!is_ready(&one));
    assert!(one.container("a0").started);
    assert!(one.signals("a0").is_empty());
    one.run_until(20.0);
    assert!(is_ready(&one));

    let mut other = world(Always, probed(&[(Startup, late)]), Script::default());
    other.run_until(19.9);
    assert_eq!(other.node.probe_verdict(&other.uid, "a0", Startup), None);
    assert!(!other.container("a0").started && !is_ready(&other));
    assert!(other.is_running("a0"));
    assert!(other.signals("a0").is_empty(), "Unknown kills nobody");
    other.run_until(20.0);
    assert!(other.container("a0").started && is_ready(&other));
}

// spec: PROBE-06
#[test]
fn a_probe_that_can_not_be_carried_out_changes_nothing() {
    let broken = |kind| answers(&[(kind, 5, 1000, ProbeOutcome::Error)]);
    let mut readiness = world(Always, plain(&[Readiness]), broken(Readiness));
    readiness.run_until(100.0);
    assert!(is_ready(&readiness));
    let first: Vec<_> = readiness.probes("a0", Readiness).into_iter().take(7).collect();
    assert_eq!(first, [0.0, 10.0, 10.0, 10.0, 20.0, 20.0, 20.0], "three tries, then a period later");
    let told = readiness.events("Unhealthy");
    assert_eq!(told.len(), 10, "once per round");
    assert_eq!(told[0], "Readiness probe errored and resulted in unknown state: as scripted");

    let mut liveness = world(Always, plain(&[Liveness]), broken(Liveness));
    liveness.run_until(1000.0);
    assert_eq!(liveness.starts("a0"), [0.0]);
}

// spec: PROBE-07
#[test]
fn after_a_kill_the_next_instance_has_all_its_chances() {
    let strict = Probe { period_seconds: 5, ..probe(Handler::Exec) };
    let mut world = world(Always, probed(&[(Liveness, strict)]), fails(Liveness, 0, 1000));
    world.run_until(21.0);
    // Probes at 0, 5, 10 kill the first; the second begins at 10 and has its own three.
    assert_eq!(world.signals("a0"), [10.0, 20.0]);
    assert_eq!(world.probes("a0", Liveness), [0.0, 5.0, 10.0, 10.0, 15.0, 20.0]);
}

// spec: PROBE-07
#[test]
fn a_verdict_holds_until_there_is_another_instance() {
    let script = Script { on_signal: OnSignal::Ignores, ..fails(Liveness, 15, 1000) };
    let mut world = world(Always, plain(&[Liveness]), script);
    world.run_until(69.9);
    assert_eq!(world.signals("a0"), [40.0]);
    assert_eq!(world.probes("a0", Liveness), [0.0, 10.0, 20.0, 30.0, 40.0], "not while it is being stopped");
    assert_eq!(world.node.probe_verdict(&world.uid, "a0", Liveness), Some(false));
    world.run_until(70.0);
    assert_eq!(world.starts("a0"), [0.0, 70.0]);
    assert_eq!(world.node.probe_verdict(&world.uid, "a0", Liveness), Some(true));
}

// spec: PROBE-07
#[test]
fn readiness_begins_anew_with_the_next_instance() {
    let late = Probe { initial_delay_seconds: 3, ..probe(Handler::Exec) };
    let script = Script { lives: vec![Life::Exit(secs(20), Outcome::Code(1)), Life::Forever], ..Script::default() };
    let mut world = world(Always, probed(&[(Readiness, late)]), script);
    world.run_until(19.9);
    assert!(is_ready(&world));
    world.run_until(22.9);
    assert!(world.is_running("a0"));
    assert!(!is_ready(&world));
    world.run_until(23.0);
    assert!(is_ready(&world));
}

// spec: PROBE-07
#[test]
fn a_container_that_does_not_run_has_failed_its_probes_and_is_not_probed() {
    let mut world = world(Always, plain(&[Liveness, Readiness]), exits(3, 1));
    world.run_until(7.0);
    assert_eq!(world.waiting("a0").0, "CrashLoopBackOff");
    assert_eq!(world.node.probe_verdict(&world.uid, "a0", Readiness), Some(false));
    assert_eq!(world.node.probe_verdict(&world.uid, "a0", Liveness), Some(false));
    world.run_until(200.0);
    assert_eq!(world.probes("a0", Readiness), world.starts("a0"), "once per instance: it lives for 3 s");
}

// spec: PROBE-08
#[test]
fn without_a_probe_a_running_container_is_started_and_ready() {
    let slow = Script { start_delay: secs(3), ..Script::default() };
    let mut world = world(Always, container("a0"), slow);
    world.run_until(2.9);
    assert!(!world.container("a0").started && !is_ready(&world));
    world.run_until(3.0);
    assert!(world.container("a0").started && is_ready(&world));
    assert!(world.ordered(|a| matches!(a, Action::RunProbe { .. })).is_empty());
}

// spec: PROBE-08
#[test]
fn each_kind_stands_for_itself() {
    let mut world = world(Always, plain(&[Liveness]), Script::default());
    world.run_until(0.0);
    assert!(is_ready(&world), "a liveness probe does not hold back readiness");
    assert!(world.container("a0").started);
}

// spec: PROBE-15
#[test]
fn readiness_is_probed_at_once_after_the_start_and_once_started() {
    let mut one = world(Always, plain(&[Readiness]), Script { start_delay: secs(2), ..Script::default() });
    one.run_until(2.0);
    assert_eq!(one.probes("a0", Readiness), [2.0]);
    assert!(is_ready(&one));

    let slow = Probe { period_seconds: 60, ..probe(Handler::Exec) };
    let a0 = probed(&[(Startup, probe(Handler::Exec)), (Readiness, slow)]);
    let mut other = world(Always, a0, fails(Startup, 0, 15));
    other.run_until(20.0);
    assert_eq!(other.probes("a0", Readiness), [20.0]);
    assert!(is_ready(&other));
}

// spec: PROBE-14
#[test]
fn what_begins_together_with_the_node_is_not_probed_all_at_once() {
    let delayed = Probe { initial_delay_seconds: 3, ..probe(Handler::Exec) };
    let names: Vec<_> = (0..40).map(|number| format!("a{number}")).collect();
    let containers = |spec: &ContainerSpec| {
        let of = |name: &String| ContainerSpec { name: name.as_str().into(), ..spec.clone() };
        names.iter().map(of).collect::<Vec<_>>()
    };
    let scripts: Vec<_> = names.iter().map(|name| (&**name, Script::default())).collect();
    for (spec, delay) in [(plain(&[Readiness]), 0.0), (probed(&[(Readiness, delayed)]), 3.0)] {
        let config = NodeConfig { spread_probes_after: Some(Instant::from_secs(998)), ..NodeConfig::default() };
        let mut world = World::configured(config, pod(Always, vec![], containers(&spec)), &scripts);
        world.run_until(60.0);
        let mut firsts: Vec<f64> = names.iter().map(|name| world.probes(name, Readiness)[0] - delay).collect();
        firsts.sort_by(f64::total_cmp);
        // Somewhere in the first period, and in each quarter of it as many as there may be if they are spread evenly.
        assert!(firsts[0] >= 0.0 && firsts[39] < 10.0, "{firsts:?}");
        for quarter in [0.0, 2.5, 5.0, 7.5] {
            let there = firsts.iter().filter(|at| (quarter..quarter + 2.5).contains(*at)).count();
            assert!((3..=20).contains(&there), "{there} in the quarter after {quarter}");
        }
        // Each keeps its own place.
        for name in &names {
            let all = world.probes(name, Readiness);
            assert!(all.windows(2).all(|pair| (pair[1] - pair[0] - 10.0).abs() < 1e-6), "{all:?}");
        }
    }
}

// spec: PROBE-14
#[test]
fn what_begins_later_is_probed_at_once() {
    let config = NodeConfig { spread_probes_after: Some(Instant::from_secs(990)), ..NodeConfig::default() };
    let mut world = World::configured(config, pod(Always, vec![], vec![plain(&[Readiness])]), &[]);
    world.run_until(1.0);
    assert_eq!(world.probes("a0", Readiness), [0.0]);
}

#[test]
fn probes_keep_their_period_to_the_second() {
    let timing = Probe { initial_delay_seconds: 2, period_seconds: 3, ..probe(Handler::Exec) };
    for (takes, expected) in [(0, [2.0, 5.0, 8.0, 11.0]), (1, [2.0, 5.0, 8.0, 11.0]), (4, [2.0, 6.0, 10.0, 14.0])] {
        let script = Script { probe_delay: secs(takes), ..Script::default() };
        let mut world = world(Always, probed(&[(Liveness, timing.clone())]), script);
        world.run_until(14.5);
        assert_eq!(world.probes("a0", Liveness)[..4], expected, "a probe takes {takes} s");
    }
}

#[test]
fn the_initial_delay_counts_from_the_start_of_the_instance_and_not_from_the_end_of_its_hook() {
    let late = Probe { initial_delay_seconds: 5, ..probe(Handler::Exec) };
    let mut a0 = probed(&[(Liveness, late)]);
    a0.post_start = Some(Handler::Exec);
    for (hook, first) in [(3, 6.0), (9, 10.0)] {
        let hooks = [(Hook::PostStart, (secs(hook), Ok(())))].into();
        let script = Script { start_delay: secs(1), hooks, ..Script::default() };
        let mut world = world(Always, a0.clone(), script);
        world.run_until(12.0);
        assert_eq!(world.probes("a0", Liveness), [first]);
    }
}

#[test]
fn a_probe_is_told_its_timeout() {
    let patient = Probe { timeout_seconds: 7, ..probe(Handler::Exec) };
    let mut world = world(Always, probed(&[(Readiness, patient)]), Script::default());
    world.run_until(1.0);
    let timeouts = world.orders.iter().filter_map(|(_, action)| match action {
        Action::RunProbe { timeout, .. } => Some(*timeout),
        _ => None,
    });
    assert_eq!(Vec::from_iter(timeouts), [secs(7)]);
}

#[test]
fn what_a_probe_says_of_an_earlier_instance_or_too_late_changes_nothing() {
    let script = Script { probe_delay: secs(1000), ..exits(30, 1) };
    let mut a0 = plain(&[Liveness]);
    a0.liveness_probe.as_mut().expect("it has one").failure_threshold = 1;
    let mut world = world(Always, a0, script);
    world.run_until(35.0);
    assert_eq!(world.starts("a0"), [0.0, 30.0]);
    let mut say = |attempt, run| {
        let instance = InstanceRef { pod: "u1".into(), container: "a0".into(), attempt };
        let (result, message) = (ProbeOutcome::Failure, String::new());
        world.input(Input::ProbeResult { instance, kind: Liveness, run, result, message });
        world.signals("a0").len()
    };
    assert_eq!(say(0, 0), 0, "another instance");
    assert_eq!(say(1, 0), 0, "another run");
    assert_eq!(say(1, 1), 1);
    assert_eq!(say(1, 1), 1, "said once");
}

// spec: TERM-06
#[test]
fn an_instance_that_is_killed_is_not_probed_any_more() {
    let every = Probe { period_seconds: 1, ..probe(Handler::Exec) };
    let a0 = probed(&[(Readiness, every)]);
    let mut world = world(Always, a0, Script { on_signal: OnSignal::Ignores, ..Script::default() });
    world.run_until(4.5);
    // Its next probe is due at this very instant.
    let delete = Input::DeleteRequested { pod: world.uid.clone(), grace_seconds: Some(0) };
    world.node.handle(Instant::from_secs(1005), delete);
    let orders: Vec<_> = std::iter::from_fn(|| world.node.poll_action()).collect();
    assert!(orders.iter().any(|order| matches!(order, Action::Kill { .. })));
    assert!(!orders.iter().any(|order| matches!(order, Action::RunProbe { .. })), "{orders:?}");
}
