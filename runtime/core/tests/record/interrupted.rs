//! What becomes of a pod whose instances ended with the agent or the board.

use husk_core::Instant;
use husk_core::io::Outcome;
use husk_core::record::Interruption::{AgentRestart, Reboot};
use husk_core::record::PodRecord;
use husk_core::spec::RestartPolicy::{self, Always, Never, OnFailure};
use husk_core::spec::{ContainerSpec, ExitCodeOperator, Handler, PodSpec, RestartAction, RestartRule};
use husk_core::status::{Condition, ConditionStatus, Phase};

use crate::world::{Life, OnSignal, Script, World, container, exits, pod, probe, secs, sidecar};
use crate::*;

// spec: TERM-11
#[test]
fn what_ran_runs_again_and_that_counts_as_a_restart() {
    for (after, reason) in [(AgentRestart, "AgentRestarted"), (Reboot, "NodeRebooted")] {
        for policy in [Always, OnFailure] {
            let mut world = World::with(app(policy), &[]);
            world.run_until(100.0);
            assert_eq!(world.container("a0").restart_count, 0);
            let before = world.status();
            world.interrupt(after, 7.0);
            world.run_for(0.0);
            assert!(world.is_running("a0"));
            assert_eq!(world.starts("a0"), [0.0, 107.0], "at once");
            let (status, now) = (world.status(), world.container("a0"));
            assert_eq!((now.restart_count, last_reason(&world, "a0").as_str()), (1, reason));
            assert_eq!(now.last_state.map(|end| end.exit_code), Some(137));
            assert_eq!((status.phase, &status.pod_ips), (Phase::Running, &before.pod_ips));
            assert_eq!(status.start_time, before.start_time, "the pod is the same");
            // No failure of its own: no back-off.
            world.interrupt(after, 1.0);
            world.run_for(0.0);
            assert_eq!(world.starts("a0"), [0.0, 107.0, 108.0]);
        }
    }
}

// spec: TERM-11
#[test]
fn what_may_run_only_once_is_started_again_after_the_agents_end_and_fails_after_the_boards() {
    let mut world = World::with(app(Never), &[]);
    world.run_until(10.0);
    world.interrupt(AgentRestart, 1.0);
    world.run_for(0.0);
    assert!(world.is_running("a0"));
    world.interrupt(Reboot, 1.0);
    world.run_for(10.0);
    assert_eq!((world.phase(), world.starts("a0").len()), (Phase::Failed, 2));
    assert_eq!(world.terminated("a0").reason, "ContainerStatusUnknown");
    // One that had not begun is started as ever.
    let mut world = World::empty(Default::default(), &[]);
    world.sandbox_delay = secs(60);
    world.apply("p", "u1", app(Never));
    world.run_until(10.0);
    world.interrupt(Reboot, 1.0);
    world.run_for(61.0);
    assert!(world.is_running("a0"));
}

// spec: INIT-06
#[test]
fn init_containers_run_again_after_a_reboot_once_each_and_not_after_the_agents_end() {
    let mut world = World::with(with_inits(), &INITS());
    world.run_until(50.0);
    assert_eq!(world.starts("a0"), [5.0]);
    world.interrupt(AgentRestart, 1.0);
    world.run_for(49.0);
    assert_eq!((world.starts("i0"), world.starts("i1")), (vec![0.0], vec![2.0]));
    assert_eq!(world.starts("a0"), [5.0, 51.0]);

    world.interrupt(Reboot, 10.0);
    world.run_for(0.0);
    assert_eq!(world.starts("i0"), [0.0, 110.0]);
    world.run_for(40.0);
    assert_eq!(world.starts("i1"), [2.0, 112.0]);
    assert_eq!(world.starts("a0"), [5.0, 51.0, 115.0], "after them");
    assert_eq!(world.phase(), Phase::Running);
    let counts = ["i0", "i1", "a0"].map(|name| world.container(name).restart_count);
    assert_eq!(counts, [1, 1, 2]);
}

// spec: INIT-06
#[test]
fn an_interruption_between_init_containers_repeats_only_what_has_to_be() {
    let mut world = World::with(with_inits(), &INITS());
    world.run_until(3.0);
    world.interrupt(AgentRestart, 1.0);
    world.run_for(20.0);
    assert_eq!((world.starts("i0"), world.starts("i1")), (vec![0.0], vec![2.0, 4.0]));
    assert_eq!(world.starts("a0"), [7.0]);

    let mut world = World::with(with_inits(), &INITS());
    world.run_until(3.0);
    world.interrupt(Reboot, 1.0);
    world.run_for(1.0);
    // While they run again, once more.
    world.interrupt(Reboot, 1.0);
    world.run_for(20.0);
    assert_eq!((world.starts("i0"), world.starts("i1")), (vec![0.0, 4.0, 6.0], vec![2.0, 8.0]));
    assert_eq!(world.starts("a0"), [11.0]);
    // Quick reboots are no crash loop.
    assert!(world.events("BackOff").is_empty());
}

// spec: INIT-06
#[test]
fn quick_reboots_are_no_crash_loop() {
    let mut world = World::with(with_inits(), &INITS());
    for _ in 0..4 {
        world.run_for(3.0);
        world.interrupt(Reboot, 1.0);
    }
    world.run_for(0.0);
    assert_eq!(world.starts("i0"), [0.0, 4.0, 8.0, 12.0, 16.0], "it completed each time");
}

// spec: TERM-11, SIDE-01
#[test]
fn sidecars_that_ran_come_back_before_what_they_serve() {
    for after in BOTH {
        let startup_probe = Some(probe(Handler::Exec));
        let s0 = ContainerSpec { startup_probe, ..sidecar("s0") };
        let spec = pod(Always, vec![s0, sidecar("s1"), container("i0")], vec![container("a0")]);
        let slow = || Script { start_delay: secs(5), ..Script::default() };
        let mut world = World::with(spec, &[("s0", slow()), ("s1", slow()), ("i0", exits(1, 0))]);
        world.run_until(50.0);
        assert!(world.is_running("a0"));
        world.interrupt(after, 10.0);
        world.run_for(50.0);
        let again = ["s0", "s1", "a0"].map(|name| world.starts(name)[1]);
        let init = f64::from(u8::from(after == Reboot));
        assert_eq!(again, [60.0, 65.0, 70.0 + init]);
    }
}

// spec: TERM-07
#[test]
fn a_pod_that_was_being_deleted_goes_on_to_end_and_starts_nothing() {
    let spec = PodSpec {
        termination_grace_period_seconds: Some(60),
        ..pod(Always, vec![sidecar("s0")], vec![container("a0")])
    };
    for after in BOTH {
        let stubborn = || Script { on_signal: OnSignal::Ignores, ..Script::default() };
        let mut world = World::with(spec.clone(), &[("a0", stubborn()), ("s0", stubborn())]);
        world.teardown_delay = secs(3);
        world.run_until(10.0);
        world.delete(None);
        world.run_until(30.0);
        let deletion = world.node.deletion(&world.uid);
        world.interrupt(after, 5.0);
        assert_eq!(world.node.deletion(&world.uid), deletion, "no new grace");
        world.run_for(10.0);
        assert!(world.is_gone() && world.forgotten.contains(&world.uid));
        assert_eq!((world.starts("a0"), world.starts("s0")), (vec![0.0], vec![0.0]));
        assert_eq!(world.statuses.last().map(|(_, status)| status.phase), Some(Phase::Failed));
        // Its sandbox is removed once more if nobody knows whether it was.
        let mut world = World::with(spec.clone(), &[]);
        world.teardown_delay = secs(60);
        world.run_until(10.0);
        world.delete(None);
        world.run_until(30.0);
        world.interrupt(after, 5.0);
        world.run_for(60.0);
        assert!(world.is_gone());
    }
}

// spec: TERM-07
#[test]
fn the_remaining_grace_goes_on_where_instances_live_on() {
    // Each step of this world is also done by a node that takes over from records: were a deadline another one, it would fail.
    let spec = PodSpec { termination_grace_period_seconds: Some(60), ..app(Always) };
    let mut world = World::with(spec, &[("a0", Script { on_signal: OnSignal::Ignores, ..Script::default() })]);
    world.run_until(10.0);
    world.delete(None);
    world.run_until(200.0);
    assert_eq!((world.signals("a0"), world.kills("a0")), (vec![10.0], vec![70.0]));
    assert!(world.is_gone());
}

// spec: TERM-11
#[test]
fn a_forced_deletion_is_told_again_and_what_is_left_is_removed() {
    let mut world = World::with(app(Always), &[]);
    world.teardown_delay = secs(60);
    world.run_until(10.0);
    world.delete(Some(0));
    assert!(world.is_gone() && !world.forgotten.contains(&world.uid));
    world.interrupt(AgentRestart, 1.0);
    assert!(world.is_gone(), "nobody knows whether the first time was carried out");
    world.run_for(60.0);
    assert!(world.forgotten.contains(&world.uid));
    assert!(world.node.record(&world.uid).is_none());
}

// spec: STATE-04
#[test]
fn restart_counts_only_ever_rise() {
    let spec = pod(Always, vec![container("i0"), sidecar("s0")], vec![container("a0")]);
    let mut world = World::with(spec, &[("i0", exits(1, 0)), ("a0", exits(20, 1))]);
    let mut counts = [0; 3];
    for round in 0..12 {
        world.run_for(33.0);
        let now = ["i0", "s0", "a0"].map(|name| world.container(name).restart_count);
        for (was, is) in counts.iter().zip(now) {
            assert!(is >= *was, "{counts:?} became {now:?}");
        }
        counts = now;
        world.interrupt(BOTH[round % 2], 3.0);
    }
    world.run_for(600.0);
    for ((_, was), (at, is)) in world.statuses.iter().zip(world.statuses.iter().skip(1)) {
        let all = |status: &husk_core::status::PodStatus| {
            let all = status.init_container_statuses.iter().chain(&status.container_statuses);
            all.map(|c| c.restart_count).collect::<Vec<_>>()
        };
        assert!(all(was).iter().zip(all(is)).all(|(was, is)| *was <= is), "a count fell at {at:?}: {was:?} {is:?}");
    }
    // One per reboot.
    assert_eq!(world.container("i0").restart_count, 6);
    assert_eq!(world.starts("i0").len(), 7);
}

// spec: RESTART-12
#[test]
fn a_back_off_goes_on_for_its_rest() {
    for after in BOTH {
        let mut world = World::with(app(Always), &[("a0", exits(0, 1))]);
        world.run_until(40.0);
        assert_eq!(world.starts("a0"), [0.0, 0.0, 10.0, 30.0]);
        assert_eq!(world.waiting("a0").0, "CrashLoopBackOff");
        world.interrupt(after, 5.0);
        assert_eq!(world.waiting("a0").0, "CrashLoopBackOff");
        // The same instants as without it.
        world.run_until(700.0);
        assert_eq!(world.starts("a0"), [0.0, 0.0, 10.0, 30.0, 70.0, 150.0, 310.0, 610.0]);
        // Away for longer than it had to wait.
        world.interrupt(after, 1000.0);
        world.run_for(0.0);
        assert_eq!(world.starts("a0").last(), Some(&1700.0));
    }
}

// spec: RESTART-12
#[test]
fn time_that_did_not_go_on_makes_no_wait_longer_than_ever() {
    let mut world = World::with(app(Always), &[("a0", exits(0, 1))]);
    world.run_until(700.0);
    let record = PodRecord::from_bytes(&world.node.record(&world.uid).expect("a record").to_bytes());
    let record = Box::new(record.expect("a valid record"));
    assert_eq!(record.saved_at(), Instant::from_secs(1700));
    let mut node = husk_core::Node::default();
    let input = husk_core::Input::Restored { record, after: Reboot };
    node.handle(Instant::ZERO, input);
    let retry_at = node.retry_at(&world.uid, "a0");
    assert!(retry_at.is_some_and(|at| at <= Instant::from_secs(300)), "{retry_at:?}");
}

/// Exit code 42 of `a0` restarts every container.
pub(crate) fn restart_all() -> PodSpec {
    let rule = RestartRule {
        action: RestartAction::RestartAllContainers,
        operator: ExitCodeOperator::In,
        values: vec![42, 137],
    };
    let restart_policy = Some(RestartPolicy::Never);
    let a0 = ContainerSpec { restart_policy, restart_policy_rules: vec![rule], ..container("a0") };
    pod(Never, vec![container("i0")], vec![a0, container("a1")])
}

// spec: RESTART-09
#[test]
fn a_restart_in_place_survives_an_interruption_half_way() {
    for after in BOTH {
        let a0 = Script { lives: vec![Life::Exit(secs(10), Outcome::Code(42)), Life::Forever], ..Script::default() };
        let mut world = World::with(restart_all(), &[("i0", exits(1, 0)), ("a0", a0)]);
        // As soon as it begins: nobody has answered that a1 is down.
        world.run_until(10.9);
        world.run_until_ordered(|action| matches!(action, husk_core::Action::Kill { .. }));
        assert_eq!(world.condition("AllContainersRestarting").status, ConditionStatus::True);
        world.interrupt(after, 5.0);
        world.run_for(100.0);
        assert_eq!(world.condition("AllContainersRestarting").status, ConditionStatus::False);
        assert_eq!((world.starts("i0").len(), world.starts("a0").len(), world.starts("a1").len()), (2, 2, 2));
        let counts = ["i0", "a0", "a1"].map(|name| world.container(name).restart_count);
        assert_eq!((counts, world.phase()), ([1, 1, 1], Phase::Running));
    }
}

// spec: RESTART-09
#[test]
fn the_exit_code_of_what_ended_with_the_agent_asks_for_nothing() {
    let mut world = World::with(restart_all(), &[("i0", exits(1, 0))]);
    world.run_until(10.0);
    world.interrupt(AgentRestart, 5.0);
    world.run_for(10.0);
    assert_eq!(world.starts("i0").len(), 1);
    assert_eq!((world.starts("a0").len(), world.starts("a1").len()), (2, 2));
}

// spec: COND-05
#[test]
fn what_clients_said_survives() {
    let gate = "example.com/ready";
    let spec = PodSpec { readiness_gates: vec![gate.into()], ..app(Always) };
    let mut world = World::with(spec, &[]);
    let condition = Condition {
        kind: gate.into(),
        status: ConditionStatus::True,
        reason: "".into(),
        message: String::new(),
        last_transition_time: None,
        observed_generation: 0,
    };
    world.input(husk_core::Input::ConditionSet { pod: world.uid.clone(), condition });
    world.run_until(10.0);
    let before = world.condition(gate);
    world.interrupt(Reboot, 1.0);
    world.run_for(0.0);
    assert_eq!(world.condition(gate), before);
    assert_eq!(readiness(&world), ConditionStatus::True);
}

// spec: POD-09
#[test]
fn the_active_deadline_goes_on() {
    for after in BOTH {
        let spec = PodSpec { active_deadline_seconds: Some(100), ..app(Always) };
        let mut world = World::with(spec, &[]);
        world.run_until(90.0);
        world.interrupt(after, 5.0);
        world.run_until(99.0);
        assert_eq!(world.phase(), Phase::Running);
        world.run_until(101.0);
        assert_eq!((world.phase(), &*world.status().reason), (Phase::Failed, "DeadlineExceeded"));
    }
}

// spec: POD-04
#[test]
fn a_pod_waits_for_the_end_of_its_namesake_whichever_record_comes_first() {
    let slow = PodSpec { termination_grace_period_seconds: Some(60), ..app(Always) };
    let mut world = World::empty(Default::default(), &[]);
    world.teardown_delay = secs(30);
    world.apply("p", "z-old", slow);
    world.run_until(10.0);
    world.input(husk_core::Input::DeleteRequested { pod: "z-old".into(), grace_seconds: None });
    world.apply("p", "a-new", app(Always));
    world.interrupt(AgentRestart, 1.0);
    world.run_for(29.0);
    assert_eq!(world.starts("a0").len(), 1);
    world.run_for(2.0);
    assert_eq!(world.starts("a0").len(), 2);
}
