use husk_core::reasons;
use husk_core::runtime::{InstanceState, RuntimeStatus, Verdict};
use husk_core::spec::RestartPolicy::{Always, Never};
use husk_core::spec::{ExitCodeOperator, RestartAction, RestartRule};
use husk_core::status::{Condition, ConditionStatus, ContainerState, Phase};
use husk_core::status_manager::merge;
use husk_core::time::Instant;

use crate::world::{World, container, probe, sidecar};

const TRUE: ConditionStatus = ConditionStatus::True;
const FALSE: ConditionStatus = ConditionStatus::False;

impl World {
    /// Status, reason and message of a condition.
    fn says(&self, kind: &str) -> (ConditionStatus, &str, &str) {
        let condition = self.condition(kind);
        (condition.status, &condition.reason, &condition.message)
    }

    /// Which conditions are True, in the order in which a pod reaches them.
    fn reached(&self) -> Vec<&str> {
        let order = ["PodScheduled", "PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready"];
        order.into_iter().filter(|kind| self.condition(kind).status == TRUE).collect()
    }
}

fn custom(kind: &'static str, status: ConditionStatus) -> Condition {
    Condition {
        kind: kind.into(),
        status,
        reason: "".into(),
        message: String::new(),
        last_transition_time: None,
        observed_generation: 0,
    }
}

// spec: COND-01
#[test]
fn conditions_come_true_in_the_order_of_the_documents() {
    let mut world = World::new(Always, &[container("i")], &["a"]);
    world.spec.containers[0].readiness_probe = probe();
    world.meta.generation = 3;
    let sandbox = std::mem::take(&mut world.runtime.sandboxes);

    world.sync();
    assert_eq!(world.reached(), ["PodScheduled"]);
    world.runtime.sandboxes = sandbox;
    world.sync();
    assert_eq!(world.reached(), ["PodScheduled", "PodReadyToStartContainers"]);
    world.run("i");
    world.exit("i", 0, reasons::COMPLETED);
    world.sync();
    assert_eq!(world.reached(), ["PodScheduled", "PodReadyToStartContainers", "Initialized"]);
    world.run("a");
    world.sync();
    assert_eq!(world.reached(), ["PodScheduled", "PodReadyToStartContainers", "Initialized"]);
    world.runtime.instances[0].verdicts.readiness = Some(Verdict::Success);
    world.sync();
    assert_eq!(
        world.reached(),
        ["PodScheduled", "PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready"]
    );
    assert!(world.status.conditions.iter().all(|c| c.observed_generation == 3));
    assert!(world.status.conditions.iter().all(|c| c.last_transition_time.is_some()));
}

// spec: COND-02
#[test]
fn the_transition_time_moves_only_with_the_status() {
    let mut world = World::new(Always, &[], &["a"]);
    world.spec.containers[0].readiness_probe = probe();
    world.now = Instant::from_secs(1);
    world.run("a");
    world.sync();
    let time = |world: &World| world.condition("Ready").last_transition_time;
    assert_eq!(time(&world), Some(Instant::from_secs(1)));

    // Another reason, the same status.
    world.now = Instant::from_secs(2);
    world.spec.readiness_gates = vec!["example.com/g".into()];
    world.spec.containers[0].readiness_probe = None;
    world.sync();
    assert_eq!(world.condition("Ready").reason, reasons::READINESS_GATES_NOT_READY);
    assert_eq!(time(&world), Some(Instant::from_secs(1)));

    world.now = Instant::from_secs(3);
    world.spec.readiness_gates.clear();
    world.sync();
    assert_eq!(time(&world), Some(Instant::from_secs(3)));
    world.now = Instant::from_secs(4);
    world.sync();
    assert_eq!(time(&world), Some(Instant::from_secs(3)));
}

// spec: COND-03
#[test]
fn reasons_and_messages_are_upstreams() {
    let mut world = World::new(Never, &[container("i"), sidecar("s")], &["a", "b"]);
    world.sync();
    let not_initialized = "containers with incomplete status: [i s]";
    assert_eq!(world.says("Initialized"), (FALSE, "ContainersNotInitialized", not_initialized));
    let unready = "containers with unready status: [s a b]";
    assert_eq!(world.says("ContainersReady"), (FALSE, "ContainersNotReady", unready));
    assert_eq!(world.says("Ready"), (FALSE, "ContainersNotReady", unready));

    world.run("i");
    world.exit("i", 0, reasons::COMPLETED);
    ["s", "a", "b"].into_iter().for_each(|name| world.run(name));
    world.sync();
    assert_eq!(world.says("Ready"), (TRUE, "", ""));

    for (code, phase, reason) in [(0, Phase::Succeeded, "PodCompleted"), (1, Phase::Failed, "PodFailed")] {
        let mut world = World { terminal: true, ..world.clone() };
        ["s", "a", "b"].into_iter().for_each(|name| world.exit(name, code, reasons::ERROR));
        assert_eq!(world.sync().phase, phase);
        assert_eq!(world.says("ContainersReady"), (FALSE, reason, ""));
        assert_eq!(world.says("Ready"), (FALSE, reason, ""));
    }
}

// spec: COND-04
#[test]
fn readiness_gates_keep_ready_false_while_the_containers_are_ready() {
    let mut world = World::new(Always, &[], &["a"]);
    world.spec.readiness_gates = vec!["example.com/g".into(), "example.com/h".into()];
    world.run("a");
    world.status.conditions.push(custom("example.com/h", FALSE));
    world.sync();
    assert_eq!(world.says("ContainersReady"), (TRUE, "", ""));
    let message = "corresponding condition of pod readiness gate \"example.com/g\" does not exist., \
                   the status of pod readiness gate \"example.com/h\" is not \"True\", but False";
    assert_eq!(world.says("Ready"), (FALSE, "ReadinessGatesNotReady", message));

    world.status.conditions.retain(|c| c.kind != "example.com/h");
    world.status.conditions.extend([custom("example.com/g", TRUE), custom("example.com/h", TRUE)]);
    world.sync();
    assert_eq!(world.says("Ready"), (TRUE, "", ""));
    assert_eq!(world.says("example.com/g").0, TRUE, "others' conditions stay");
}

// spec: COND-08
#[test]
fn initialized_comes_before_the_sandbox_without_init_containers_and_after_the_last_with_them() {
    let mut plain = World::new(Always, &[], &["a"]);
    plain.runtime = RuntimeStatus::default();
    plain.sync();
    assert_eq!(plain.says("Initialized"), (TRUE, "", ""));
    assert_eq!(plain.says("PodReadyToStartContainers").0, FALSE);

    let mut world = World::new(Always, &[container("i"), container("j")], &["a"]);
    world.sync();
    assert_eq!(world.says("Initialized").0, FALSE);
    world.run("i");
    world.exit("i", 0, reasons::COMPLETED);
    world.sync();
    assert_eq!(world.says("Initialized").2, "containers with incomplete status: [j]");
    world.run("j");
    world.exit("j", 0, reasons::COMPLETED);
    world.sync();
    assert_eq!(world.says("Initialized"), (TRUE, "", ""));
}

#[test]
fn until_init_is_done_the_pod_is_pending_and_the_apps_wait() {
    let mut world = World::new(Always, &[container("i"), container("j")], &["a"]);
    world.run("i");
    world.exit("i", 0, reasons::COMPLETED);
    world.run("j");
    world.sync();
    assert_eq!(world.status.phase, Phase::Pending);
    assert_eq!(
        world.says("Initialized"),
        (FALSE, "ContainersNotInitialized", "containers with incomplete status: [j]")
    );
    assert_eq!(world.waiting_reason("a"), "PodInitializing");
}

#[test]
fn a_terminal_phase_is_published_when_nothing_runs_any_more_and_with_it_why() {
    let mut world = World::new(Never, &[], &["a"]);
    world.run("a");
    let running = world.sync().clone();
    let mut failed = running.clone();
    failed.phase = Phase::Failed;
    failed.reason = "Evicted".into();
    failed.conditions.push(custom(reasons::DISRUPTION_TARGET, TRUE));

    let held_back = merge(&running, failed.clone(), true, world.now);
    assert_eq!((held_back.phase, &*held_back.reason), (Phase::Running, ""));
    assert!(held_back.conditions.iter().all(|c| c.kind != reasons::DISRUPTION_TARGET));

    world.status = merge(&running, failed, false, world.now);
    assert_eq!((world.status.phase, &*world.status.reason), (Phase::Failed, "Evicted"));
    assert_eq!(world.says("DisruptionTarget").0, TRUE);
    assert_eq!(world.says("Ready"), (FALSE, "PodFailed", ""));
}

#[test]
fn all_containers_are_restarting_until_none_of_them_is_left_whatever_ephemeral_ones_do() {
    let mut world = World::new(Always, &[], &["a"]);
    world.spec.containers[0].restart_policy = Some(Never);
    world.spec.containers[0].restart_policy_rules = vec![RestartRule {
        action: RestartAction::RestartAllContainers,
        operator: ExitCodeOperator::In,
        values: vec![42],
    }];
    world.spec.ephemeral_containers = vec![container("e")];
    world.run("e");
    world.run("a");
    world.sync();
    assert_eq!(world.says("AllContainersRestarting"), (FALSE, "", ""));
    world.exit("a", 42, reasons::ERROR);
    world.sync();
    let message = "container exited with restart policy rule";
    assert_eq!(world.says("AllContainersRestarting"), (TRUE, "RestartAllContainersStarted", message));

    world.runtime.instances.retain(|i| i.name == "e");
    world.sync();
    assert_eq!(world.says("AllContainersRestarting"), (FALSE, "", ""));
    assert_eq!(world.waiting_reason("a"), "RestartingAllContainers");
    assert_eq!(world.container("a").restart_count, 1);
    // Once is enough.
    world.sync();
    assert_eq!(world.container("a").restart_count, 1);
}

#[test]
fn what_is_gone_before_the_status_says_so_restarts_with_the_others() {
    let mut world = World::new(Always, &[], &["a", "b", "c"]);
    world.spec.containers[0].restart_policy = Some(Never);
    world.spec.containers[0].restart_policy_rules = vec![RestartRule {
        action: RestartAction::RestartAllContainers,
        operator: ExitCodeOperator::In,
        values: vec![42],
    }];
    for name in ["a", "b", "c"] {
        world.run(name);
    }
    world.sync();
    world.exit("a", 42, reasons::ERROR);
    world.runtime.instances.retain(|instance| instance.name != "b");
    let lost = world.runtime.instances.iter_mut().find(|instance| instance.name == "c").expect("it runs");
    lost.state = InstanceState::Unknown;
    world.sync();
    assert_eq!(world.waiting_reason("b"), "RestartingAllContainers");
    let ContainerState::Terminated(end) = &world.container("c").state else { panic!("it was lost") };
    assert_eq!(&*end.reason, "RestartingAllContainers");
}
