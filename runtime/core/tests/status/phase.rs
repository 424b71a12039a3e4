use husk_core::phase::{PhaseInput, phase};
use husk_core::reasons;
use husk_core::runtime::InstanceState;
use husk_core::spec::RestartPolicy::{self, Always, Never, OnFailure};
use husk_core::status::{ContainerState, ContainerStatus, Phase, Terminated};
use husk_core::statuses::Statuses;

use crate::world::{World, container, sidecar};

const POLICIES: [RestartPolicy; 3] = [Always, OnFailure, Never];

// spec: PHASE-01
#[test]
fn whatever_the_containers_do_the_phase_is_one_of_the_known_words() {
    let end = |code| Terminated { exit_code: code, ..Terminated::default() };
    let status = |state, last_state| Some(ContainerStatus { state, last_state, ..ContainerStatus::default() });
    let waiting = ContainerState::default;
    let running = || ContainerState::Running { started_at: Default::default() };
    let stages = [
        None,
        status(waiting(), None),
        status(waiting(), Some(end(0))),
        status(waiting(), Some(end(1))),
        status(running(), None),
        status(ContainerState::Terminated(end(0)), None),
        status(ContainerState::Terminated(end(1)), None),
    ];
    let named = |name: &str, status: &Option<ContainerStatus>| {
        status.clone().map(|status| ContainerStatus { name: name.into(), ..status })
    };
    let mut seen = std::collections::BTreeSet::new();
    for policy in POLICIES {
        let world = World::new(policy, &[container("i"), sidecar("s")], &["a"]);
        for (i, s, a) in product(&stages) {
            let statuses: Vec<_> = [named("i", i), named("s", s), named("a", a)].into_iter().flatten().collect();
            for (terminal, initialized) in [(false, false), (false, true), (true, false), (true, true)] {
                let statuses = Statuses { init: &[], app: &statuses };
                let input = PhaseInput { spec: &world.spec, statuses, is_static: false, terminal, initialized };
                seen.insert(phase(input).as_str());
            }
        }
    }
    // Unknown is for pods of which nothing is heard any more; a node that sees its pods never says so.
    assert_eq!(Vec::from_iter(seen), ["Failed", "Pending", "Running", "Succeeded"]);
    assert_eq!(Phase::Unknown.as_str(), "Unknown");
}

fn product<T>(items: &[T]) -> impl Iterator<Item = (&T, &T, &T)> {
    items.iter().flat_map(move |a| items.iter().flat_map(move |b| items.iter().map(move |c| (a, b, c))))
}

// spec: PHASE-02
#[test]
fn pending_until_every_container_was_created_and_init_is_done() {
    let mut world = World::new(Always, &[container("i")], &["a", "b"]);
    assert_eq!(world.sync().phase, Phase::Pending, "nothing is there yet");
    world.hold_back("i", reasons::ERR_IMAGE_PULL, "no such image");
    assert_eq!(world.sync().phase, Phase::Pending, "the image is being fetched");
    world.start_failures.clear();
    world.run("i");
    assert_eq!(world.sync().phase, Phase::Pending, "init runs");
    world.exit("i", 0, reasons::COMPLETED);
    assert_eq!(world.sync().phase, Phase::Pending, "no app container exists");
    world.run("a");
    assert_eq!(world.sync().phase, Phase::Pending, "one app container does not exist");
    world.run("b");
    assert_eq!(world.sync().phase, Phase::Running);
}

// spec: PHASE-03
#[test]
fn a_container_that_crashes_again_and_again_leaves_the_pod_running() {
    for policy in [Always, OnFailure] {
        let mut world = World::new(policy, &[], &["a"]);
        world.run("a");
        world.exit("a", 1, reasons::ERROR);
        world.hold_back("a", reasons::CRASH_LOOP_BACK_OFF, "back-off 10s");
        assert_eq!(world.sync().phase, Phase::Running);
        assert_eq!(world.waiting_reason("a"), "CrashLoopBackOff");

        world.start_failures.clear();
        world.instance("a", InstanceState::Created);
        world.runtime.instances.truncate(1);
        assert_eq!(world.sync().phase, Phase::Running, "it is being started again");
    }
}

// spec: PHASE-04
#[test]
fn succeeded_when_all_ended_with_0_and_none_will_restart() {
    for policy in [OnFailure, Never] {
        let mut world = World::new(policy, &[], &["a", "b"]);
        world.run("a");
        world.run("b");
        world.exit("a", 0, reasons::COMPLETED);
        assert_eq!(world.sync().phase, Phase::Running);
        world.exit("b", 0, reasons::COMPLETED);
        assert_eq!(world.sync().phase, Phase::Succeeded);
    }
}

// spec: PHASE-05
#[test]
fn failed_when_all_ended_and_one_of_them_badly() {
    for (reason, code) in [(reasons::ERROR, 3), (reasons::OOM_KILLED, 137)] {
        let mut world = World::new(Never, &[], &["a", "b"]);
        world.run("a");
        world.run("b");
        world.exit("a", code, reason);
        assert_eq!(world.sync().phase, Phase::Running, "b still runs");
        world.exit("b", 0, reasons::COMPLETED);
        assert_eq!(world.sync().phase, Phase::Failed);
    }
}

#[test]
fn the_phases_of_the_documents_examples() {
    use Phase::{Failed, Running, Succeeded};
    // Containers that have ended, of how many, how; the phase under Always, OnFailure and Never.
    type Ends<'a> = &'a [(i32, &'static str)];
    let table: [(Ends<'_>, usize, [Phase; 3]); 6] = [
        (&[(0, reasons::COMPLETED)], 1, [Running, Succeeded, Succeeded]),
        (&[(1, reasons::ERROR)], 1, [Running, Running, Failed]),
        (&[(1, reasons::ERROR)], 2, [Running, Running, Running]),
        (&[(1, reasons::ERROR), (1, reasons::ERROR)], 2, [Running, Running, Failed]),
        (&[(0, reasons::COMPLETED), (1, reasons::ERROR)], 2, [Running, Running, Failed]),
        (&[(137, reasons::OOM_KILLED)], 1, [Running, Running, Failed]),
    ];
    for (ends, containers, expected) in table {
        for (policy, expected) in POLICIES.into_iter().zip(expected) {
            let names = &["c1", "c2"][..containers];
            let mut world = World::new(policy, &[], names);
            names.iter().for_each(|name| world.run(name));
            assert_eq!(world.sync().phase, Running);
            for (name, (code, reason)) in names.iter().zip(ends) {
                world.exit(name, *code, reason);
            }
            assert_eq!(world.sync().phase, expected, "{containers} containers, {ends:?}, {policy:?}");
        }
    }
}

// spec: PHASE-07
#[test]
fn sidecars_count_while_they_run_and_decide_nothing_once_they_ended() {
    let mut world = World::new(Never, &[sidecar("s")], &["a"]);
    world.run("s");
    assert_eq!(world.sync().phase, Phase::Pending, "the app does not exist yet");
    world.run("a");
    assert_eq!(world.sync().phase, Phase::Running);
    world.exit("a", 0, reasons::COMPLETED);
    assert_eq!(world.sync().phase, Phase::Running, "a started sidecar counts as running");
    world.exit("s", 137, reasons::ERROR);
    world.terminal = true;
    assert_eq!(world.sync().phase, Phase::Succeeded, "how the sidecar ended does not matter");

    for (pod, own) in [(Never, None), (Always, Some(Never))] {
        let mut init = container("i");
        init.restart_policy = own;
        let mut world = World::new(pod, &[init], &["a"]);
        world.run("i");
        world.exit("i", 1, reasons::ERROR);
        assert_eq!(world.sync().phase, Phase::Failed, "{pod:?}, {own:?}");
    }
}
