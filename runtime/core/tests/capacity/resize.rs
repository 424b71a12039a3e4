//! Resources of a running pod change (RES-11, COND-07).

use husk_core::Action;
use husk_core::actions::{PodView, compute};
use husk_core::admission::NodeState;
use husk_core::runtime::{Instance, InstanceState, RuntimeStatus, Sandbox};
use husk_core::spec::{PodMeta, PodSpec, ResizeRestartPolicy, Resources};
use husk_core::status::{Condition, Phase};

use crate::support::{amounts, asking_pod, change, important, limited, node, static_meta, waits, world_with};
use crate::world::{World, exits, meta};

fn updates(world: &World) -> Vec<Resources> {
    let resources = world.orders.iter().filter_map(|(_, action)| match action {
        Action::UpdateResources { resources, .. } => Some(resources.clone()),
        _ => None,
    });
    resources.collect()
}

fn cpu(resources: &Resources) -> String {
    resources.requests["cpu"].to_string()
}

fn asks(amount: &str) -> PodSpec {
    asking_pod(&[("cpu", amount)])
}

fn resize(world: &mut World, uid: &str, generation: i64, spec: PodSpec) {
    let name = world.node.meta(&uid.into()).expect("it is there").name.clone();
    world.apply_as(PodMeta { generation, ..meta(&name, uid) }, spec);
}

fn pending(world: &World, uid: &str) -> Option<(String, String)> {
    world.condition_of(uid, "PodResizePending").map(|c: Condition| (c.reason.to_string(), c.message))
}

fn in_progress(world: &World) -> Option<(String, String)> {
    world.condition_of("u1", "PodResizeInProgress").map(|c: Condition| (c.reason.to_string(), c.message))
}

// spec: RES-11, COND-07
#[test]
fn a_running_container_gets_other_resources_without_a_restart() {
    let mut world = world_with(&[("cpu", "1")]);
    world.apply("p", "u1", asks("200m"));
    world.run_until(10.0);
    assert_eq!(world.container("a0").allocated_resources, amounts(&[("cpu", "200m")]));
    resize(&mut world, "u1", 2, asks("500m"));
    assert_eq!(in_progress(&world), Some((String::new(), String::new())));
    let status = world.container("a0");
    assert_eq!(status.allocated_resources, amounts(&[("cpu", "500m")]));
    assert_eq!(status.resources.as_ref().map(cpu).as_deref(), Some("200m"), "what it still has");
    assert_eq!(world.status().observed_generation, 1, "not acted on yet");
    world.run_until(11.0);
    assert_eq!(updates(&world).iter().map(cpu).collect::<Vec<_>>(), ["500m"]);
    assert_eq!((in_progress(&world), pending(&world, "u1")), (None, None));
    assert_eq!(world.container("a0").resources.as_ref().map(cpu).as_deref(), Some("500m"));
    assert_eq!((world.status().observed_generation, world.container("a0").restart_count), (2, 0));
    assert_eq!(world.node.used()["cpu"].to_string(), "500m");
    assert_eq!((world.events("ResizeStarted").len(), world.events("ResizeCompleted").len()), (1, 1));
}

// spec: RES-11
#[test]
fn a_container_that_wants_to_be_restarted_for_it_is() {
    let mut spec = asks("200m");
    spec.containers[0].resize_policy.insert("cpu".into(), ResizeRestartPolicy::RestartContainer);
    let mut world = world_with(&[("cpu", "1")]);
    world.apply("p", "u1", spec.clone());
    world.run_until(10.0);
    spec.containers[0].resources.requests = amounts(&[("cpu", "300m")]);
    resize(&mut world, "u1", 2, spec);
    assert_eq!(in_progress(&world), Some((String::new(), String::new())));
    world.run_until(30.0);
    assert_eq!(world.events("Killing"), ["Container a0 resize requires restart"]);
    assert_eq!(world.container("a0").restart_count, 1);
    assert_eq!(world.container("a0").resources.as_ref().map(cpu).as_deref(), Some("300m"));
    assert!(updates(&world).is_empty() && in_progress(&world).is_none());
}

// spec: COND-07
#[test]
fn what_the_node_will_never_have_is_infeasible() {
    let mut world = world_with(&[("cpu", "1"), ("memory", "1Gi")]);
    world.apply("p", "u1", asks("200m"));
    world.apply_as(static_meta("q", "u2"), asks("100m"));
    world.run_until(10.0);
    resize(&mut world, "u1", 2, asks("5"));
    let message = "Node didn't have enough capacity: cpu, requested: 5000, capacity: 1000";
    assert_eq!(pending(&world, "u1"), Some(("Infeasible".into(), message.into())));
    assert_eq!(world.condition("PodResizePending").observed_generation, 2);
    world.apply_as(PodMeta { generation: 2, ..static_meta("q", "u2") }, asks("50m"));
    let message = "In-place resize of static-pods is not supported";
    assert_eq!(pending(&world, "u2"), Some(("Infeasible".into(), message.into())));
    change(&mut world, NodeState { allocatable: None, ..node(&[]) });
    world.run_until(100.0);
    assert!(pending(&world, "u1").is_some() && updates(&world).is_empty(), "it isn't tried again");
    resize(&mut world, "u1", 3, asks("200m"));
    assert_eq!(pending(&world, "u1"), None, "taken back");
}

// spec: COND-07, RES-11
#[test]
fn what_does_not_fit_now_is_tried_again_when_there_is_room() {
    let mut world = world_with(&[("cpu", "1")]);
    world.apply("p", "u1", asks("200m"));
    world.apply("q", "u2", asks("700m"));
    world.run_until(10.0);
    resize(&mut world, "u1", 2, asks("400m"));
    let message = "Node didn't have enough resource: cpu, requested: 400, used: 700, capacity: 1000";
    assert_eq!(pending(&world, "u1"), Some(("Deferred".into(), message.into())));
    assert_eq!(world.container("a0").allocated_resources, amounts(&[("cpu", "200m")]));
    assert_eq!(world.events("ResizeDeferred").len(), 1);
    world.run_until(100.0);
    assert!(updates(&world).is_empty());
    resize(&mut world, "u2", 2, asks("600m"));
    assert_eq!(pending(&world, "u1"), None, "the other one left as much as it needs");
    world.run_until(101.0);
    assert_eq!(updates(&world).iter().map(cpu).collect::<Vec<_>>(), ["600m", "400m"]);
}

// spec: RES-11
#[test]
fn deferred_ones_are_tried_by_shrinking_priority_class_and_age() {
    let mut world = world_with(&[("cpu", "1"), ("memory", "1Gi")]);
    let both = |cpu: &str| asking_pod(&[("cpu", cpu), ("memory", "1Mi")]);
    world.apply("old", "u1", both("100m"));
    world.apply("young", "u2", both("100m"));
    world.apply("strict", "u3", limited(both("100m")));
    world.apply("important", "u4", important(7, both("100m")));
    world.apply("big", "u5", both("600m"));
    world.run_until(1.0);
    resize(&mut world, "u1", 2, both("200m"));
    world.run_until(2.0);
    resize(&mut world, "u2", 2, both("200m"));
    world.run_until(3.0);
    resize(&mut world, "u3", 2, limited(both("200m")));
    world.run_until(4.0);
    resize(&mut world, "u4", 2, important(7, both("200m")));
    let waiting = |world: &World| {
        let all = ["u1", "u2", "u3", "u4"];
        all.into_iter().filter(|uid| pending(world, uid).is_some()).collect::<Vec<_>>()
    };
    assert_eq!(waiting(&world), ["u1", "u2", "u3", "u4"]);
    for (step, (left, expected)) in
        [("500m", &["u1", "u2", "u3"][..]), ("400m", &["u1", "u2"]), ("300m", &["u2"]), ("200m", &[])]
            .into_iter()
            .enumerate()
    {
        resize(&mut world, "u5", 2 + step as i64, both(left));
        assert_eq!(waiting(&world), expected, "with {left} for the big one");
    }
}

// spec: RES-11
#[test]
fn edge_28_an_infeasible_resize_is_not_carried_out_at_a_restart() {
    let mut world = world_with(&[("cpu", "1")]);
    world.script("a0", exits(20, 1));
    world.apply("p", "u1", asks("200m"));
    world.run_until(10.0);
    resize(&mut world, "u1", 2, asks("5"));
    world.run_until(30.0);
    assert_eq!(world.container("a0").restart_count, 1);
    assert_eq!(world.node.allocated(&"u1".into(), "a0").map(cpu).as_deref(), Some("200m"));
    assert_eq!(world.container("a0").resources.as_ref().map(cpu).as_deref(), Some("200m"));
    assert_eq!(pending(&world, "u1").map(|(reason, _)| reason).as_deref(), Some("Infeasible"));
}

// spec: COND-07
#[test]
fn edge_29_a_resize_does_not_hang_when_its_container_ends_or_can_not_have_it() {
    let mut world = world_with(&[("cpu", "1")]);
    world.apply("p", "u1", asks("200m"));
    world.run_until(10.0);
    world.resize_failures.insert("a0".into(), "it uses more than that".into());
    resize(&mut world, "u1", 2, asks("300m"));
    world.run_until(25.0);
    assert_eq!(in_progress(&world), Some(("Error".into(), "it uses more than that".into())));
    assert_eq!(updates(&world).len(), 2, "tried again after 10 s");
    assert!(!world.events("ResizeError").is_empty());
    world.resize_failures.clear();
    world.run_until(35.0);
    assert_eq!((in_progress(&world), updates(&world).len()), (None, 3));

    // Asked for twice in a row: the first answer isn't taken for the second.
    resize(&mut world, "u1", 3, asks("400m"));
    resize(&mut world, "u1", 4, asks("100m"));
    world.run_until(36.0);
    assert_eq!(world.container("a0").resources.as_ref().map(cpu).as_deref(), Some("100m"));
    assert_eq!(in_progress(&world), None);

    // Its end answers an order, too.
    world.resize_failures.insert("a0".into(), "no".into());
    resize(&mut world, "u1", 5, asks("150m"));
    world.run_until(37.0);
    world.delete(Some(1));
    world.run_until(40.0);
    assert!(world.is_gone());
}

// spec: RES-11
#[test]
fn a_waiting_pod_is_just_another_pod_after_the_change() {
    let mut world = world_with(&[("cpu", "1")]);
    world.apply("p", "u1", asks("2"));
    assert!(waits(&world, "u1").is_some());
    resize(&mut world, "u1", 2, asks("1"));
    world.run_until(1.0);
    assert_eq!(world.phase(), Phase::Running);
    assert!(updates(&world).is_empty() && pending(&world, "u1").is_none());
}

/// CPU is had in thousandths, memory in whole bytes.
#[test]
fn a_fraction_of_a_byte_is_no_resize() {
    let spec = asking_pod(&[("cpu", "2"), ("memory", "2")]);
    let requests = amounts(&[("cpu", "1500m"), ("memory", "1500m")]);
    let actuated = [("a0".to_owned(), Resources { requests, ..Resources::default() })].into();
    let runtime = RuntimeStatus {
        sandboxes: vec![Sandbox { ready: true, has_ip: true, ..Sandbox::default() }],
        instances: vec![Instance { name: "a0".into(), state: InstanceState::Running, ..Instance::default() }],
        ..RuntimeStatus::default()
    };
    let view =
        PodView { spec: &spec, deleting: false, restart_all: false, runtime: &runtime, actuated: Some(&actuated) };
    let updates = compute(view).updates;
    assert_eq!((updates.cpu, updates.memory), (vec!["a0".to_owned()], vec![]));
}
