//! The table of pods, from a manifest and what the runtime reports.

use std::borrow::Cow;
use std::time::Duration;

use husk_api::{Object, PodRow, Wall, core_meta, core_spec, decode, k8s, status_object};
use husk_core::Instant;
use husk_core::api_status::{StartFailure, StatusInput, generate};
use husk_core::runtime::{Instance, InstanceState, RuntimeStatus, Sandbox};
use husk_core::status::{ConditionStatus, ContainerState, Phase, PodStatus};
use husk_core::status_manager::merge;

const MANIFEST: &str = "
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  initContainers:
  - {name: first, image: busybox}
  - {name: second, image: busybox}
  containers:
  - {name: app, image: busybox}
";

/// The pod of the manifest and what the runtime reports of it.
struct World {
    pod: k8s::Pod,
    runtime: RuntimeStatus,
    start_failures: Vec<StartFailure>,
    status: PodStatus,
    now: Instant,
}

impl World {
    fn new() -> Self {
        let decoded = decode(MANIFEST, "pod.yaml");
        let object = decoded.documents.into_iter().next().expect("one document").object;
        let Object::Pod(pod) = object else { panic!("it is a pod") };
        let sandboxes = vec![Sandbox { ready: true, has_ip: true, ..Sandbox::default() }];
        Self {
            pod: *pod,
            runtime: RuntimeStatus { ips: vec!["127.0.1.1".into()], sandboxes, instances: Vec::new() },
            start_failures: Vec::new(),
            status: PodStatus::default(),
            now: Instant::ZERO,
        }
    }

    fn run(&mut self, name: &str) {
        let count = self.runtime.of(name).count() as u32;
        let instance = Instance {
            name: name.into(),
            id: format!("{name}-{count}"),
            state: InstanceState::Running,
            restart_count: count,
            ..Instance::default()
        };
        self.runtime.instances.insert(0, instance);
    }

    fn exit(&mut self, name: &str, exit_code: i32) {
        let found = self.runtime.instances.iter_mut().find(|i| i.name == name);
        let instance = found.expect("it was started");
        instance.state = InstanceState::Exited;
        instance.exit_code = exit_code;
        instance.reason = Cow::Borrowed(if exit_code == 0 { "Completed" } else { "Error" });
        instance.finished_at = Some(self.now);
    }

    fn row(&mut self) -> PodRow {
        let new = generate(StatusInput {
            meta: &core_meta(&self.pod),
            spec: &core_spec(&self.pod),
            runtime: &self.runtime,
            old: &self.status,
            deleting: false,
            terminal: false,
            start_failures: &self.start_failures,
            failed_by_node: None,
            now: self.now,
        });
        self.status = merge(&self.status, new, true, self.now);
        let wall = Wall("2026-01-01T00:00:00Z".parse().expect("a time"));
        self.pod.status = Some(status_object(&self.status, &wall));
        self.pod.metadata.creation_timestamp = Some(wall.time(Instant::ZERO));
        PodRow::of(&self.pod, wall.timestamp(self.now))
    }

    fn assert_uninitialized(&self, incomplete: &str) {
        assert_eq!(self.status.phase, Phase::Pending);
        let initialized = self.status.conditions.iter().find(|c| c.kind == "Initialized").expect("it is set");
        assert_eq!(initialized.status, ConditionStatus::False);
        assert_eq!(initialized.reason, "ContainersNotInitialized");
        assert_eq!(initialized.message, format!("containers with incomplete status: [{incomplete}]"));
        let app = &self.status.container_statuses[0];
        assert!(matches!(&app.state, ContainerState::Waiting { reason, .. } if reason == "PodInitializing"));
    }
}

// spec: INIT-04
#[test]
fn while_it_initializes_the_pod_is_pending_and_says_how_far_it_is() {
    let mut world = World::new();
    assert_eq!(world.row().status, "Init:0/2");
    world.assert_uninitialized("first second");
    world.run("first");
    assert_eq!(world.row().status, "Init:0/2");

    world.exit("first", 1);
    assert_eq!(world.row().status, "Init:Error");
    world.assert_uninitialized("first second");
    world.start_failures.push(StartFailure {
        container: "first".into(),
        reason: "CrashLoopBackOff".into(),
        message: "back-off 10s restarting failed container=first pod=p_default()".into(),
    });
    assert_eq!(world.row().status, "Init:CrashLoopBackOff");
    world.assert_uninitialized("first second");

    world.start_failures.clear();
    world.run("first");
    world.exit("first", 0);
    world.run("second");
    assert_eq!(world.row().status, "Init:1/2");
    world.assert_uninitialized("second");
    world.exit("second", 0);
    assert_eq!(world.row().status, "PodInitializing");
    world.run("app");
    assert_eq!(world.row().status, "Running");
    assert_eq!(world.status.phase, Phase::Running);
}

#[test]
fn a_row_tells_the_restarts_and_how_long_ago_the_last_was() {
    let mut world = World::new();
    for init in ["first", "second"] {
        world.run(init);
        world.exit(init, 0);
    }
    world.run("app");
    world.row();
    world.now = world.now + Duration::from_secs(100);
    world.exit("app", 1);
    world.row();
    world.run("app");
    world.now = world.now + Duration::from_secs(303);
    let row = world.row();
    let cells = ["p", "1/1", "Running", "1 (5m3s ago)", "6m43s", "127.0.1.1", "<none>", "<none>", "<none>"];
    assert_eq!(row.cells(), cells);
}
