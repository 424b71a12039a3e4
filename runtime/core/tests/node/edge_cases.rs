//! Cases with a history upstream, by their number in the list of facts. Those that need an agent's restart, the wire, volumes,
//! resizing or eviction are tested where those are.

use husk_core::Action;
use husk_core::io::{Hook, Outcome, ProbeOutcome};
use husk_core::spec::RestartPolicy::{Always, Never, OnFailure};
use husk_core::spec::{ContainerSpec, Handler, PodSpec, Probe, ProbeKind};
use husk_core::status::{ContainerState, Phase};
use husk_core::time::Instant;

use crate::world::{Life, OnSignal, Script, World, container, exits, lives, pod, probe, secs, sidecar};

fn stubborn() -> Script {
    Script { on_signal: OnSignal::Ignores, ..Script::default() }
}

fn with_liveness(probe: Probe) -> PodSpec {
    pod(Always, vec![], vec![ContainerSpec { liveness_probe: Some(probe), ..container("a0") }])
}

fn failing(kind: ProbeKind, from: u64) -> Script {
    Script { probes: vec![(kind, secs(from), secs(1_000_000), ProbeOutcome::Failure)], ..Script::default() }
}

#[test]
fn edge_01_exit_0_under_always_backs_off_too() {
    let mut world = World::with(pod(Always, vec![], vec![container("a0")]), &[("a0", exits(0, 0))]);
    world.run_until(65.0);
    assert_eq!(world.starts("a0"), [0.0, 0.0, 10.0, 30.0]);
    assert_eq!(world.waiting("a0").0, "CrashLoopBackOff");
    assert_eq!(world.phase(), Phase::Running);
}

#[test]
fn edge_02_back_off_begins_after_the_first_restart_and_ends_with_ten_healthy_minutes() {
    let script = lives(&[(3, 1), (3, 1), (3, 1), (601, 1), (3, 1)]);
    let mut world = World::with(pod(Always, vec![], vec![container("a0")]), &[("a0", script)]);
    world.run_until(660.0);
    // Ends at 3 (at once), 6 (10 s), 19 (20 s), then runs from 39 to 640 and begins anew.
    assert_eq!(world.starts("a0"), [0.0, 3.0, 16.0, 39.0, 640.0, 653.0]);
}

#[test]
fn edge_03_a_liveness_kill_backs_off_from_its_own_end() {
    // It crashed at 1; killed at 1 + 20 it takes 30 s to end, at 51. The delay of 10 s counts from there.
    let script = Script {
        lives: vec![Life::Exit(secs(1), Outcome::Code(1)), Life::Forever],
        probes: failing(ProbeKind::Liveness, 5).probes,
        ..stubborn()
    };
    let mut world = World::with(with_liveness(probe(Handler::Exec)), &[("a0", script)]);
    world.run_until(130.0);
    let killed = world.kills("a0")[0];
    assert_eq!((world.signals("a0")[0], killed), (31.0, 61.0));
    assert_eq!(world.starts("a0"), [0.0, 1.0, killed + 10.0]);
}

#[test]
fn edge_04_the_crash_loop_message_says_delay_and_container() {
    let spec = pod(Always, vec![], vec![container("web")]);
    let mut world = World::with(spec, &[("web", exits(0, 1))]);
    world.run_until(100.0);
    assert_eq!(world.waiting("web").1, "back-off 1m20s restarting failed container=web pod=p_d(u1)");
    assert_eq!(world.events("BackOff")[0], "Back-off restarting failed container web in pod p_d(u1)");
}

#[test]
fn edge_05_failures_that_killed_one_instance_do_not_count_against_the_next() {
    let mut world = World::with(with_liveness(probe(Handler::Exec)), &[("a0", failing(ProbeKind::Liveness, 0))]);
    world.run_until(45.0);
    // The first is killed at 20 and the next begins at once: it has until 40.
    assert_eq!(world.signals("a0"), [20.0, 40.0]);
}

#[test]
fn edge_06_a_startup_kill_backs_off() {
    let a0 = ContainerSpec {
        startup_probe: Some(Probe { failure_threshold: 1, ..probe(Handler::Exec) }),
        ..container("a0")
    };
    let mut world = World::with(pod(Always, vec![], vec![a0]), &[("a0", failing(ProbeKind::Startup, 0))]);
    world.run_until(100.0);
    assert_eq!(world.starts("a0"), [0.0, 0.0, 10.0, 30.0, 70.0]);
    assert_eq!(world.waiting("a0").0, "CrashLoopBackOff");
}

#[test]
fn edge_07_startup_does_not_run_again_after_its_verdict() {
    let a0 = ContainerSpec {
        startup_probe: Some(probe(Handler::Exec)),
        liveness_probe: Some(probe(Handler::Exec)),
        ..container("a0")
    };
    let mut world = World::with(pod(Always, vec![], vec![a0]), &[]);
    world.run_until(10_000.0);
    assert_eq!(world.probes("a0", ProbeKind::Startup), [0.0]);
    assert_eq!(world.probes("a0", ProbeKind::Liveness).len(), 1_001);
}

#[test]
fn edge_08_while_a_pod_ends_liveness_and_startup_stop_and_readiness_goes_on() {
    let probed = |name| ContainerSpec {
        liveness_probe: Some(Probe { failure_threshold: 1, ..probe(Handler::Exec) }),
        readiness_probe: Some(probe(Handler::Exec)),
        ..container(name)
    };
    let side =
        ContainerSpec { restart_policy: Some(Always), startup_probe: Some(probe(Handler::Exec)), ..probed("s0") };
    let spec = pod(Always, vec![side], vec![probed("a0")]);
    let script = || Script { on_signal: OnSignal::Ignores, ..failing(ProbeKind::Liveness, 12) };
    let mut world = World::with(spec, &[("a0", script()), ("s0", script())]);
    world.run_until(11.0);
    world.delete(None);
    world.run_until(100.0);
    for name in ["a0", "s0"] {
        assert_eq!(world.probes(name, ProbeKind::Liveness), [0.0, 10.0], "{name}");
        assert_eq!(world.probes(name, ProbeKind::Readiness), [0.0, 10.0, 20.0, 30.0, 40.0], "{name}");
    }
    assert_eq!(world.events("Killing").len(), 2, "each once");
}

#[test]
fn edge_16_the_restart_count_never_falls() {
    let spec = pod(OnFailure, vec![sidecar("s0")], vec![container("a0")]);
    let mut world = World::with(spec, &[("s0", exits(40, 0)), ("a0", lives(&[(5, 1), (700, 1), (1, 1), (1, 0)]))]);
    world.run_until(2000.0);
    for name in ["s0", "a0"] {
        let all =
            world.statuses.iter().flat_map(|(_, s)| s.init_container_statuses.iter().chain(&s.container_statuses));
        let counts: Vec<_> = all.filter(|status| status.name == name).map(|status| status.restart_count).collect();
        assert!(counts.is_sorted(), "{name}: {counts:?}");
    }
    assert_eq!(world.container("a0").restart_count, 3);
}

#[test]
fn edge_17_pre_stop_runs_runs_once_and_can_not_hold_up_the_end() {
    let a0 = ContainerSpec { pre_stop: Some(Handler::Exec), ..container("a0") };
    let mut world = World::with(pod(Always, vec![], vec![a0]), &[("a0", stubborn())]);
    world.run_until(5.0);
    world.delete(Some(12));
    // Whatever happens meanwhile.
    for _ in 0..5 {
        world.run_for(1.0);
        world.delete(Some(100));
    }
    world.run_until(100.0);
    assert_eq!(world.hooks("a0", Hook::PreStop), [5.0]);
    assert_eq!((world.signals("a0"), world.kills("a0")), (vec![17.0], vec![19.0]));
    assert!(world.is_gone());
}

#[test]
fn edge_18_no_pre_stop_without_grace() {
    let a0 = ContainerSpec { pre_stop: Some(Handler::Exec), ..container("a0") };
    // A pod whose own grace is 0, ended by its deadline: TERM at once, and 2 s to react.
    let spec = PodSpec {
        termination_grace_period_seconds: Some(0),
        active_deadline_seconds: Some(5),
        ..pod(Always, vec![], vec![a0])
    };
    let mut world = World::with(spec, &[("a0", stubborn())]);
    world.run_until(100.0);
    assert!(world.hooks("a0", Hook::PreStop).is_empty());
    assert_eq!((world.signals("a0"), world.kills("a0")), (vec![5.0], vec![7.0]));
}

#[test]
fn edge_19_a_forced_deletion_cuts_a_long_grace() {
    let a0 = ContainerSpec { pre_stop: Some(Handler::Exec), ..container("a0") };
    let mut world = World::with(pod(Always, vec![], vec![a0]), &[("a0", stubborn())]);
    world.run_until(5.0);
    world.delete(Some(86_400));
    world.run_until(60.0);
    assert!(!world.is_gone());
    world.delete(Some(0));
    assert!(world.is_gone());
    assert_eq!(world.kills("a0"), [60.0]);
    assert_eq!(world.ordered(|a| matches!(a, Action::CancelHook { .. })), [0.0; 0]);
    world.run_until(61.0);
    assert_eq!(world.ordered(|a| matches!(a, Action::CancelHook { .. })), [60.0]);
    assert_eq!(world.running_of("u1"), 0);
}

#[test]
fn edge_20_sidecars_that_still_initialise_get_their_signal() {
    let starting = |name| ContainerSpec { startup_probe: Some(probe(Handler::Exec)), ..sidecar(name) };
    let spec = pod(Always, vec![starting("s0"), starting("s1"), starting("s2")], vec![container("a0")]);
    let mut world = World::with(spec, &[("s1", failing(ProbeKind::Startup, 0))]);
    world.run_until(5.0);
    assert!(world.is_running("s0") && world.is_running("s1"));
    world.delete(None);
    world.run_until(60.0);
    assert_eq!((world.signals("s0"), world.signals("s1")), (vec![5.0], vec![5.0]));
    assert!(world.kills("s0").is_empty() && world.kills("s1").is_empty());
    assert!(world.starts("s2").is_empty());
    assert!(world.is_gone());
}

#[test]
fn edge_21_a_sidecars_exit_code_does_not_fail_a_job() {
    let spec = pod(OnFailure, vec![sidecar("s0")], vec![container("a0")]);
    let killed = Script { on_signal: OnSignal::Ignores, ..Script::default() };
    let mut world = World::with(spec, &[("s0", killed), ("a0", exits(5, 0))]);
    world.run_until(100.0);
    assert_eq!(world.terminated("s0").exit_code, 137);
    assert_eq!(world.phase(), Phase::Succeeded);
}

#[test]
fn edge_22_failed_by_the_deadline_is_not_said_while_a_state_says_running() {
    let spec = PodSpec {
        active_deadline_seconds: Some(5),
        ..pod(Always, vec![container("i0")], vec![container("a0"), container("a1")])
    };
    let mut world = World::with(spec, &[("i0", exits(1, 0)), ("a0", stubborn())]);
    world.run_until(100.0);
    assert_eq!((world.phase(), &*world.status().reason), (Phase::Failed, "DeadlineExceeded"));
    for (at, status) in &world.statuses {
        let runs = status.container_statuses.iter().any(|c| matches!(c.state, ContainerState::Running { .. }));
        let failed = status.phase == Phase::Failed || status.reason == "DeadlineExceeded";
        assert!(!(runs && failed), "at {at:?}: {status:?}");
    }
}

#[test]
fn edge_23_failed_never_becomes_succeeded_and_no_terminal_phase_while_containers_run() {
    // The apps end with 1 and 0; the sidecar takes its time and ends well.
    let slow = Script { on_signal: OnSignal::Ends(secs(20), Outcome::Code(0)), ..Script::default() };
    let spec = pod(Never, vec![sidecar("s0")], vec![container("a0"), container("a1")]);
    let mut world = World::with(spec, &[("s0", slow), ("a0", exits(2, 1)), ("a1", exits(4, 0))]);
    world.run_until(23.9);
    assert_eq!(world.phase(), Phase::Running);
    world.run_until(24.0);
    assert_eq!(world.phase(), Phase::Failed);
    world.delete(None);
    world.run_until(100.0);
    assert!(world.statuses.iter().all(|(_, status)| status.phase != Phase::Succeeded));
}

#[test]
fn edge_26_an_ephemeral_container_is_not_made_again() {
    let spec = PodSpec { ephemeral_containers: vec![container("e0")], ..pod(Always, vec![], vec![container("a0")]) };
    let mut world = World::with(spec, &[("e0", exits(5, 1)), ("a0", exits(7, 1))]);
    world.run_until(10_000.0);
    assert_eq!(world.starts("e0"), [0.0]);
    assert_eq!(world.container("e0").restart_count, 0);
}

#[test]
fn edge_27_a_post_start_that_hangs_holds_up_nobody_else_and_not_the_end() {
    let hanging = ContainerSpec { post_start: Some(Handler::Exec), ..container("a0") };
    let mut world = World::with(pod(Always, vec![], vec![hanging, container("a1")]), &[]);
    world.apply("q", "u2", pod(Always, vec![], vec![container("b0")]));
    world.run_until(1000.0);
    assert!(world.is_running("a1"));
    assert_eq!(world.starts("b0"), [0.0]);
    assert_eq!(world.waiting("a0").0, "ContainerCreating");
    world.delete(None);
    world.run_until(1000.0);
    assert!(world.is_gone());
}

#[test]
fn edge_33_a_probes_timeout_is_handed_on_and_its_failure_counts() {
    let strict = Probe { timeout_seconds: 3, period_seconds: 5, failure_threshold: 2, ..probe(Handler::Exec) };
    // The shell answers a timeout as a failure, after 3 s.
    let script = Script { probe_delay: secs(3), ..failing(ProbeKind::Liveness, 0) };
    let mut world = World::with(with_liveness(strict), &[("a0", script)]);
    world.run_until(8.0);
    let timeouts = world.orders.iter().filter_map(|(_, action)| match action {
        Action::RunProbe { timeout, .. } => Some(*timeout),
        _ => None,
    });
    assert_eq!(Vec::from_iter(timeouts)[..2], [secs(3); 2]);
    assert_eq!(world.probes("a0", ProbeKind::Liveness)[..2], [0.0, 5.0]);
    assert_eq!(world.signals("a0"), [8.0]);
}

#[test]
fn edge_35_on_failure_a_liveness_kill_restarts_even_after_exit_0() {
    let mut spec = with_liveness(probe(Handler::Exec));
    spec.restart_policy = OnFailure;
    let well = OnSignal::Ends(secs(1), Outcome::Code(0));
    let mut world = World::with(spec, &[("a0", Script { on_signal: well, ..failing(ProbeKind::Liveness, 0) })]);
    world.run_until(600.0);
    assert_eq!(world.starts("a0")[..4], [0.0, 21.0, 52.0, 93.0]);
    assert!(world.statuses.iter().all(|(_, status)| !status.phase.is_terminal()));
    assert_eq!(world.container("a0").last_state.map(|end| end.exit_code), Some(0));
}

#[test]
fn edge_36_more_than_twenty_restarts_and_a_clock_that_jumps() {
    let mut world = World::with(pod(Always, vec![], vec![container("a0")]), &[("a0", exits(0, 1))]);
    world.run_until(20_000.0);
    assert!(world.starts("a0").len() > 60);
    // The shell's clock is monotonic; one that isn't is taken to stand still.
    let next = world.node.next_wake().expect("it is in its back-off");
    world.node.advance(Instant::ZERO);
    assert_eq!((world.node.poll_action(), world.node.next_wake()), (None, Some(next)));
    let before = world.starts("a0").len();
    world.run_for(300.0);
    assert_eq!(world.starts("a0").len(), before + 1);
}
