use husk_core::api_status::{StatusInput, generate};
use husk_core::reasons;
use husk_core::runtime::{InstanceState, RuntimeStatus};
use husk_core::spec::RestartPolicy::{Always, Never};
use husk_core::status::{ContainerState, Phase, Terminated};
use husk_core::status_manager::{check_transition, terminate};
use husk_core::time::Instant;

use crate::world::{World, container};

// spec: STATE-01
#[test]
fn a_state_says_what_is_known_of_waiting_running_and_terminated() {
    let mut world = World::new(Always, &[], &["a"]);
    world.hold_back("a", reasons::CREATE_CONTAINER_CONFIG_ERROR, "configmap \"m\" not found");
    world.sync();
    let reason = reasons::CREATE_CONTAINER_CONFIG_ERROR.into();
    let message = "configmap \"m\" not found".into();
    assert_eq!(world.container("a").state, ContainerState::Waiting { reason, message });

    world.start_failures.clear();
    let (started, finished) = (Instant::from_secs(5), Instant::from_secs(9));
    world.instance("a", InstanceState::Running).started_at = Some(started);
    world.sync();
    assert_eq!(world.container("a").state, ContainerState::Running { started_at: started });

    let instance = &mut world.runtime.instances[0];
    instance.state = InstanceState::Exited;
    (instance.exit_code, instance.signal) = (143, 15);
    (instance.reason, instance.message) = (reasons::ERROR.into(), "bye".into());
    instance.finished_at = Some(finished);
    world.sync();
    let end = Terminated {
        exit_code: 143,
        signal: 15,
        reason: reasons::ERROR.into(),
        message: "bye".into(),
        started_at: Some(started),
        finished_at: Some(finished),
        container_id: "a-0".into(),
    };
    assert_eq!(world.container("a").state, ContainerState::Terminated(end));
}

// spec: STATE-02
#[test]
fn a_container_that_waits_says_for_what() {
    let mut world = World::new(Always, &[], &["a"]);
    world.sync();
    assert_eq!(world.waiting_reason("a"), "ContainerCreating");
    let mut world = World::new(Always, &[container("i")], &["a"]);
    world.sync();
    assert_eq!(world.waiting_reason("a"), "PodInitializing");

    for (constant, word) in [
        (reasons::CRASH_LOOP_BACK_OFF, "CrashLoopBackOff"),
        (reasons::ERR_IMAGE_PULL, "ErrImagePull"),
        (reasons::IMAGE_PULL_BACK_OFF, "ImagePullBackOff"),
        (reasons::INVALID_IMAGE_NAME, "InvalidImageName"),
        (reasons::ERR_IMAGE_NEVER_PULL, "ErrImageNeverPull"),
        (reasons::IMAGE_INSPECT_ERROR, "ImageInspectError"),
        (reasons::CREATE_CONTAINER_CONFIG_ERROR, "CreateContainerConfigError"),
        (reasons::CREATE_CONTAINER_ERROR, "CreateContainerError"),
        (reasons::RUN_CONTAINER_ERROR, "RunContainerError"),
    ] {
        let mut world = World::new(Always, &[], &["a"]);
        world.run("a");
        world.exit("a", 1, reasons::ERROR);
        world.hold_back("a", constant, "why");
        world.sync();
        assert_eq!(world.waiting_reason("a"), word);
        let last = world.container("a").last_state.as_ref().expect("how it ended before");
        assert_eq!(last.exit_code, 1);
    }
}

#[test]
fn a_container_that_is_not_to_run_says_how_it_ended_and_not_what_it_waits_for() {
    let mut world = World::new(Never, &[], &["a"]);
    world.run("a");
    world.exit("a", 1, reasons::ERROR);
    world.hold_back("a", reasons::CRASH_LOOP_BACK_OFF, "stale");
    world.sync();
    assert!(matches!(world.container("a").state, ContainerState::Terminated(_)));
}

// spec: STATE-03
#[test]
fn reasons_of_an_end_are_the_runtimes_own_or_say_that_nobody_knows() {
    for (reason, code) in [
        (reasons::COMPLETED, 0),
        (reasons::ERROR, 1),
        (reasons::OOM_KILLED, 137),
        (reasons::DEADLINE_EXCEEDED, 143),
        (reasons::START_ERROR, 128),
    ] {
        let mut world = World::new(Never, &[], &["a"]);
        world.run("a");
        world.exit("a", code, reason);
        world.sync();
        let ContainerState::Terminated(end) = &world.container("a").state else { panic!("it has ended") };
        assert_eq!((&*end.reason, end.exit_code), (reason, code));
    }

    let mut world = World::new(Never, &[], &["a"]);
    world.run("a");
    world.sync();
    let mut status = world.status.clone();
    terminate(&world.meta, &world.spec, &mut status);
    let ContainerState::Terminated(end) = &status.container_statuses[0].state else { panic!("it has ended") };
    assert_eq!((&*end.reason, end.exit_code), ("ContainerStatusUnknown", 137));
    assert_eq!(end.message, "The container could not be located when the pod was terminated");
    assert_eq!(status.phase, Phase::Failed);
}

// spec: STATE-04
#[test]
fn the_last_end_is_kept_and_the_restart_count_never_falls() {
    let mut world = World::new(Always, &[], &["a"]);
    world.run("a");
    world.sync();
    world.exit("a", 7, reasons::ERROR);
    world.sync();
    world.run("a");
    world.sync();
    assert_eq!(world.container("a").restart_count, 1);
    assert_eq!(world.container("a").last_state.as_ref().map(|end| end.exit_code), Some(7));

    // The runtime forgets the instance that ended.
    world.runtime.instances.truncate(1);
    world.sync();
    assert_eq!(world.container("a").restart_count, 1);
    assert_eq!(world.container("a").last_state.as_ref().map(|end| end.exit_code), Some(7));

    // The board reboots: nothing is left but the status.
    let mut rebooted = World { runtime: RuntimeStatus::default(), ..world.clone() };
    rebooted.sync();
    assert_eq!(rebooted.container("a").restart_count, 1);
    rebooted.run("a");
    rebooted.runtime.instances[0].restart_count = 2;
    rebooted.sync();
    assert_eq!(rebooted.container("a").restart_count, 2);

    // A runtime that counts from 0 again.
    world.exit("a", 0, reasons::COMPLETED);
    world.sync();
    world.runtime.instances.clear();
    world.run("a");
    world.sync();
    assert_eq!(world.container("a").restart_count, 2);
}

#[test]
fn a_running_container_that_vanished_has_ended_nobody_knows_how() {
    let mut world = World::new(Always, &[], &["a"]);
    world.run("a");
    world.sync();
    world.runtime.instances.clear();
    world.sync();
    let status = world.container("a");
    let last = status.last_state.as_ref().expect("its end is inferred");
    assert_eq!((&*last.reason, last.exit_code), (reasons::CONTAINER_STATUS_UNKNOWN, 137));
    assert_eq!(status.restart_count, 1);

    // Not a restart if the pod ends anyway.
    let mut world = World::new(Always, &[], &["a"]);
    world.run("a");
    world.sync();
    let status = generate(StatusInput {
        meta: &world.meta,
        spec: &world.spec,
        runtime: &RuntimeStatus::default(),
        old: &world.status,
        deleting: true,
        terminal: false,
        start_failures: &[],
        failed_by_node: None,
        now: world.now,
    });
    assert_eq!(status.container_statuses[0].restart_count, 0);
}

#[test]
fn the_node_fails_a_pod_with_its_own_reason_whatever_the_containers_say() {
    let mut world = World::new(Always, &[], &["a"]);
    world.run("a");
    world.sync();
    let deadline = reasons::DEADLINE_EXCEEDED.into();
    let status = generate(StatusInput {
        meta: &world.meta,
        spec: &world.spec,
        runtime: &world.runtime,
        old: &world.status,
        deleting: false,
        terminal: true,
        start_failures: &[],
        failed_by_node: Some((&deadline, reasons::DEADLINE_EXCEEDED_MESSAGE)),
        now: world.now,
    });
    assert_eq!((status.phase, &*status.reason), (Phase::Failed, "DeadlineExceeded"));
    assert_eq!(status.message, "Pod was active on the node longer than the specified deadline");
}

// spec: INIT-05
#[test]
fn init_container_statuses_are_in_spec_order_and_app_container_statuses_sorted() {
    let init = [container("z"), container("m"), container("a")];
    let mut world = World::new(Always, &init, &["y", "b"]);
    // The order in which things happen does not matter.
    world.run("m");
    world.run("z");
    world.sync();
    let names = |statuses: &[husk_core::status::ContainerStatus]| {
        statuses.iter().map(|s| s.name.clone()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names(&world.status.init_container_statuses), "z m a");
    assert_eq!(names(&world.status.container_statuses), "b y");
}

#[test]
fn a_container_that_ended_for_good_cannot_live_again() {
    let mut world = World::new(Never, &[], &["a"]);
    world.run("a");
    let running = world.sync().clone();
    world.exit("a", 0, reasons::COMPLETED);
    let ended = world.sync().clone();
    assert_eq!(check_transition(&world.spec, &running, &ended), Ok(()));
    let illegal = check_transition(&world.spec, &ended, &running).expect_err("it may not");
    assert_eq!(illegal.to_string(), "terminated container a attempted illegal transition to non-terminated state");
}
