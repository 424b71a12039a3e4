//! Cases with a history upstream, by their numbers in the list of facts: restarts of the agent and of the board.

use husk_core::io::{Hook, ProbeOutcome};
use husk_core::record::Interruption::{AgentRestart, Reboot};
use husk_core::spec::RestartPolicy::{Always, Never};
use husk_core::spec::{ContainerSpec, Handler, PodSpec, Probe, ProbeKind};
use husk_core::status::{ConditionStatus, ContainerState, Phase};

use crate::world::{Script, World, container, exits, lives, pod, probe, secs, sidecar};
use crate::*;

// spec: NODE-03
#[test]
fn edge_09_a_ready_pod_is_not_ready_only_until_its_probe_says_so_again() {
    for after in BOTH {
        let mut world = World::with(pod(Always, vec![], vec![ready_probe()]), &[]);
        world.run_until(100.0);
        assert_eq!(readiness(&world), ConditionStatus::True);
        let since = world.statuses.len();
        world.interrupt(after, 1.0);
        assert_eq!(readiness(&world), ConditionStatus::False);
        world.run_for(4.9);
        assert!(!was_ready_since(&world, since), "nothing is ready that has not been probed");
        world.run_for(0.1);
        assert_eq!(readiness(&world), ConditionStatus::True);
    }
}

// spec: NODE-03
#[test]
fn edge_10_a_pod_that_was_not_ready_is_not_ready_for_a_moment() {
    for after in BOTH {
        let never = (ProbeKind::Readiness, secs(0), secs(100_000), ProbeOutcome::Failure);
        let script = Script { probes: vec![never], ..Script::default() };
        let mut world = World::with(pod(Always, vec![], vec![ready_probe()]), &[("a0", script)]);
        world.run_until(100.0);
        world.interrupt(after, 1.0);
        world.run_for(100.0);
        assert!(!was_ready_since(&world, 0));
    }
}

// spec: NODE-03
#[test]
fn edge_11_an_interruption_while_it_starts_up_makes_it_neither_ready_nor_started() {
    for after in BOTH {
        let startup_probe = Some(Probe { failure_threshold: 30, ..probe(Handler::Exec) });
        let spec = pod(Always, vec![], vec![ContainerSpec { startup_probe, ..container("a0") }]);
        let slow = (ProbeKind::Startup, secs(0), secs(60), ProbeOutcome::Failure);
        let mut world = World::with(spec, &[("a0", Script { probes: vec![slow], ..Script::default() })]);
        world.run_until(50.0);
        world.interrupt(after, 1.0);
        world.run_for(59.0);
        assert!(!world.container("a0").started && !was_ready_since(&world, 0));
        world.run_for(11.0);
        assert!(world.container("a0").started && was_ready_since(&world, 0));
    }
}

// spec: TERM-11
#[test]
fn edge_12_crashed_apps_beside_a_sidecar_are_restarted_after_an_interruption() {
    for after in BOTH {
        let spec = pod(Always, vec![sidecar("s0")], vec![container("a0"), container("a1")]);
        let mut world = World::with(spec, &[("a0", exits(0, 1))]);
        world.run_until(40.0);
        world.interrupt(after, 1.0);
        world.run_until(200.0);
        assert_eq!(world.starts("a0"), [0.0, 0.0, 10.0, 30.0, 70.0, 150.0]);
        assert!(world.is_running("s0") && world.is_running("a1"));
        assert_eq!(world.starts("s0"), [0.0, 41.0]);
    }
}

// spec: INIT-06
#[test]
fn edge_13_after_a_reboot_stale_statuses_do_not_stand_for_init_containers() {
    let mut world = World::with(with_inits(), &INITS());
    world.run_until(50.0);
    world.interrupt(Reboot, 10.0);
    let status = world.status();
    assert!(status.init_container_statuses.iter().all(|c| matches!(c.state, ContainerState::Terminated(_))));
    world.run_for(4.9);
    assert_eq!((world.starts("i0").len(), world.starts("a0").len()), (2, 1), "the app waits for them");
}

// spec: INIT-06
#[test]
fn edge_14_an_init_container_that_completed_long_ago_is_not_run_again_after_the_agents_end() {
    let mut world = World::with(with_inits(), &[("i0", exits(2, 0)), ("i1", exits(3, 0)), ("a0", exits(3600, 0))]);
    for _ in 0..20 {
        world.run_for(7200.0);
        world.interrupt(AgentRestart, 1.0);
    }
    world.run_for(1.0);
    assert_eq!((world.starts("i0").len(), world.starts("i1").len()), (1, 1));
    assert!(world.is_running("a0"));
}

// spec: INIT-06
#[test]
fn edge_15_the_phase_is_running_again_after_a_reboot_with_sidecars() {
    let started = ContainerSpec { startup_probe: Some(probe(Handler::Exec)), ..sidecar("s0") };
    let spec = pod(Always, vec![container("i0"), started, container("i1")], vec![container("a0")]);
    let mut world = World::with(spec, &[("i0", exits(2, 0)), ("i1", exits(2, 0))]);
    world.run_until(60.0);
    assert_eq!(world.phase(), Phase::Running);
    for after in BOTH {
        world.interrupt(after, 5.0);
        world.run_for(60.0);
        assert_eq!((world.phase(), readiness(&world)), (Phase::Running, ConditionStatus::True));
    }
}

// spec: STATE-04
#[test]
fn edge_16_a_restart_count_neither_falls_nor_begins_anew() {
    for after in BOTH {
        let mut world = World::with(app(Always), &[("a0", lives(&[(1, 1), (1, 1), (1, 1), (100_000, 0)]))]);
        world.run_until(100.0);
        assert_eq!(world.container("a0").restart_count, 3);
        let mut low = u32::MAX;
        for expected in 4..10 {
            let since = world.statuses.len();
            world.interrupt(after, 1.0);
            world.run_for(10.0);
            for (_, status) in &world.statuses[since..] {
                low = low.min(status.container_statuses[0].restart_count);
            }
            assert_eq!(world.container("a0").restart_count, expected);
        }
        assert!(low >= 3);
    }
}

// spec: TERM-11
#[test]
fn edge_24_a_terminal_pod_stays_terminal_and_is_not_taken_anew() {
    for after in BOTH {
        for (code, phase) in [(0, Phase::Succeeded), (1, Phase::Failed)] {
            let spec = pod(Never, vec![container("i0")], vec![container("a0")]);
            let mut world = World::with(spec.clone(), &[("i0", exits(1, 0)), ("a0", exits(1, code))]);
            world.run_until(10.0);
            let before = world.status();
            assert_eq!(before.phase, phase);
            let orders = world.orders.len();
            world.interrupt(after, 5.0);
            world.run_for(100.0);
            // The shell applies what it has on disk, as ever.
            world.apply("p", "u1", spec);
            world.run_for(100.0);
            assert_eq!(world.orders.len(), orders, "{:?}", &world.orders[orders..]);
            assert_eq!(world.status(), before);
        }
    }
}

// spec: HOOK-01
#[test]
fn edge_27_post_start_runs_for_the_new_instance_and_a_hook_that_hung_blocks_nothing() {
    for after in BOTH {
        let hooked = ContainerSpec { post_start: Some(Handler::Exec), ..container("a0") };
        // No script for the hook: it hangs.
        let mut world = World::with(pod(Always, vec![], vec![hooked, container("a1")]), &[]);
        world.run_until(10.0);
        assert!(!world.is_running("a0"));
        let hooks = [(Hook::PostStart, (secs(2), Ok(())))].into();
        world.script("a0", Script { hooks, ..Script::default() });
        world.interrupt(after, 1.0);
        world.run_for(5.0);
        assert_eq!(world.hooks("a0", Hook::PostStart), [0.0, 11.0]);
        assert!(world.is_running("a0") && world.is_running("a1"));
        assert_eq!(world.container("a0").restart_count, 1);
    }
}

// spec: EPH-02
#[test]
fn edge_26_an_ephemeral_container_is_not_started_again() {
    for after in BOTH {
        let spec = PodSpec { ephemeral_containers: vec![container("e0")], ..app(Always) };
        let mut world = World::with(spec, &[]);
        world.run_until(10.0);
        assert!(world.is_running("e0"));
        world.interrupt(after, 1.0);
        world.run_for(100.0);
        assert_eq!((world.starts("e0").len(), world.starts("a0").len()), (1, 2));
    }
}
