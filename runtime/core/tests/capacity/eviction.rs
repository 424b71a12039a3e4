//! The node runs short (RES-09), pods that used too much, terminal pods in great number (TERM-09).

use husk_core::Input;
use husk_core::eviction::{PodUsage, Pressure, Shortage};
use husk_core::io::{Hook, Outcome};
use husk_core::node::NodeConfig;
use husk_core::quantity::Quantity;
use husk_core::scheduling::{Toleration, TolerationOperator};
use husk_core::spec::RestartPolicy::{Always, Never};
use husk_core::spec::{ContainerSpec, Handler, PodSpec, SYSTEM_CRITICAL_PRIORITY};
use husk_core::status::Phase;
use husk_core::time::Instant;

use crate::support::{asking_pod, important, limited, static_meta, waits, why, world_with};
use crate::world::{OnSignal, Script, World, container, exits, pod, secs};

fn amount(text: &str) -> Quantity {
    Quantity::parse(text).expect("an amount")
}

/// Each pod has one container, `a0`, that uses so much.
fn press(world: &mut World, pressure: Pressure, usage: &[(&str, &str)], grace_seconds: i64) {
    let shortage = short_of(usage, Some(grace_seconds), world.now);
    world.input(Input::Pressure { resource: pressure, shortage: Some(Box::new(shortage)) });
}

fn short_of(usage: &[(&str, &str)], grace_seconds: Option<i64>, as_of: Instant) -> Shortage {
    let usage = usage
        .iter()
        .map(|(uid, used)| PodUsage {
            pod: (*uid).into(),
            total: amount(used),
            containers: vec![("a0".into(), amount(used))],
        })
        .collect();
    let (threshold, available) = (amount("100Mi"), amount("50Mi"));
    Shortage { threshold, available, grace_seconds, as_of, usage }
}

fn over(pressure: Pressure) -> Input {
    Input::Pressure { resource: pressure, shortage: None }
}

/// Uids of those that were evicted.
fn evicted(world: &World) -> Vec<String> {
    let mut uids: Vec<String> = world.node.pods().map(ToString::to_string).collect();
    uids.retain(|uid| world.status_of(uid).reason == "Evicted");
    uids
}

// spec: RES-09
#[test]
fn one_after_the_other_goes_best_effort_first() {
    let mut world = world_with(&[]);
    let both = [("cpu", "100m"), ("memory", "64Mi")];
    world.apply("guaranteed", "u1", limited(asking_pod(&both)));
    world.apply("modest", "u2", asking_pod(&[("memory", "64Mi")]));
    world.apply("greedy", "u3", asking_pod(&[("memory", "32Mi")]));
    world.apply("careless", "u4", asking_pod(&[]));
    world.run_until(1.0);
    let usage = [("u1", "60Mi"), ("u2", "60Mi"), ("u3", "90Mi"), ("u4", "70Mi")];
    let order = ["u4", "u3", "u1", "u2"];
    for count in 1..=order.len() {
        press(&mut world, Pressure::Memory, &usage, 0);
        world.run_for(10.0);
        let mut expected = order[..count].to_vec();
        expected.sort_unstable();
        assert_eq!(evicted(&world), expected, "one for each look");
    }
}

// spec: RES-09
#[test]
fn an_evicted_pod_has_failed_and_says_why_with_figures() {
    let mut world = world_with(&[]);
    world.script("a0", Script { on_signal: OnSignal::Ignores, ..Script::default() });
    world.apply("p", "u1", asking_pod(&[("memory", "10Mi")]));
    world.run_until(5.0);
    press(&mut world, Pressure::Memory, &[("u1", "80Mi")], 0);
    assert_eq!(world.phase(), Phase::Running, "not as long as something of it runs");
    world.run_until(30.0);
    assert_eq!(world.kills("a0"), [7.0], "it has no time");
    let status = world.status();
    assert_eq!((status.phase, &*status.reason), (Phase::Failed, "Evicted"));
    let message = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. Container a0 was using \
                   80Mi, request is 10Mi, has larger consumption of memory. ";
    assert_eq!(status.message, message);
    let target = world.condition("DisruptionTarget");
    assert_eq!((&*target.reason, target.message.as_str()), ("TerminationByKubelet", message));
    assert_eq!(world.events("Evicted"), [message]);
    assert!(!world.is_gone(), "the object stays");
    world.run_until(1000.0);
    assert_eq!(world.starts("a0"), [0.0], "whatever its policy");
}

// spec: RES-09
#[test]
fn with_a_soft_threshold_there_is_time_but_never_more_than_the_pods_own() {
    for (offered, ends) in [(10, 15.0), (60, 35.0)] {
        let mut world = world_with(&[]);
        world.script("a0", Script { on_signal: OnSignal::Ignores, ..Script::default() });
        world.apply("p", "u1", asking_pod(&[]));
        world.run_until(5.0);
        press(&mut world, Pressure::Memory, &[("u1", "80Mi")], offered);
        world.run_until(100.0);
        assert_eq!(world.kills("a0"), [ends]);
    }
}

// spec: RES-09
#[test]
fn edge_30_a_critical_or_static_pod_is_never_evicted() {
    let mut world = world_with(&[]);
    world.apply("p", "u1", important(SYSTEM_CRITICAL_PRIORITY, asking_pod(&[])));
    world.apply_as(static_meta("q", "u2"), asking_pod(&[]));
    world.run_until(1.0);
    for pressure in [Pressure::Memory, Pressure::Disk, Pressure::Pid] {
        press(&mut world, pressure, &[("u1", "900Mi"), ("u2", "900Mi")], 0);
    }
    world.run_until(100.0);
    assert!(["u1", "u2"].iter().all(|uid| world.status_of(uid).phase == Phase::Running));
}

// spec: RES-09
#[test]
fn under_pressure_few_are_taken() {
    let mut world = world_with(&[]);
    let patient = {
        let mut spec = asking_pod(&[]);
        let key = "node.kubernetes.io/memory-pressure".into();
        let operator = TolerationOperator::Exists;
        spec.placement.tolerations = vec![Toleration { key, operator, ..Toleration::default() }];
        spec
    };
    press(&mut world, Pressure::Memory, &[], 0);
    world.apply("p", "u1", asking_pod(&[]));
    world.apply("q", "u2", asking_pod(&[("memory", "1Mi")]));
    world.apply("r", "u3", patient);
    let taint = "0/1 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/memory-pressure: }.";
    assert_eq!(why(&world, "u1"), taint);
    assert_eq!((waits(&world, "u2"), waits(&world, "u3")), (None, None));

    world.input(over(Pressure::Memory));
    assert_eq!(waits(&world, "u1"), None);
    press(&mut world, Pressure::Disk, &[], 0);
    world.apply("s", "u4", asking_pod(&[("memory", "1Mi")]));
    world.apply("t", "u5", important(SYSTEM_CRITICAL_PRIORITY, asking_pod(&[])));
    assert!(why(&world, "u4").contains("disk-pressure"));
    assert_eq!(waits(&world, "u5"), None, "critical ones are taken whatever is short");
}

// spec: RES-09
#[test]
fn edge_19_an_eviction_cuts_a_long_grace() {
    let mut world = world_with(&[]);
    world.script("a0", Script { on_signal: OnSignal::Ignores, ..Script::default() });
    world.apply("p", "u1", PodSpec { termination_grace_period_seconds: Some(3600), ..asking_pod(&[]) });
    world.run_until(1.0);
    world.delete(None);
    world.run_until(10.0);
    world.without_heir();
    world.input(Input::Shutdown { grace: secs(20), critical: secs(5) });
    world.run_until(100.0);
    assert_eq!(world.kills("a0"), [25.0]);
}

#[test]
fn a_pod_that_used_too_much_itself_is_evicted_but_no_disruption() {
    let mut world = world_with(&[]);
    world.apply("p", "u1", asking_pod(&[]));
    world.run_until(1.0);
    let message = "Usage of EmptyDir volume \"cache\" exceeds the limit \"1Mi\". ";
    world.input(Input::LimitExceeded { pod: "u1".into(), message: message.into() });
    world.run_until(10.0);
    let status = world.status();
    assert_eq!((status.phase, &*status.reason, status.message.as_str()), (Phase::Failed, "Evicted", message));
    assert_eq!((world.terminated("a0").exit_code, &*world.terminated("a0").reason), (143, "Error"));
    assert!(world.condition_of("u1", "DisruptionTarget").is_none());
}

#[test]
fn a_pod_that_used_too_much_has_no_time_for_hooks() {
    let mut world = world_with(&[]);
    let a0 = ContainerSpec { pre_stop: Some(Handler::Exec), ..container("a0") };
    world.script("a0", Script { on_signal: OnSignal::Ignores, ..Script::default() });
    world.apply("p", "u1", pod(Always, vec![], vec![a0]));
    world.run_until(1.0);
    world.input(Input::LimitExceeded { pod: "u1".into(), message: "too much".into() });
    world.run_until(10.0);
    assert!(world.hooks("a0", Hook::PreStop).is_empty());
    assert_eq!((world.signals("a0"), world.kills("a0")), (vec![1.0], vec![3.0]));
}

// spec: TERM-09
#[test]
fn of_too_many_terminal_pods_evicted_ones_go_first_and_then_the_oldest() {
    let config = NodeConfig { terminated_pod_gc_threshold: 2, ..NodeConfig::default() };
    let mut world = World::empty(config, &[]);
    world.script("a0", exits(1, 0));
    let once = PodSpec { restart_policy: Never, ..asking_pod(&[]) };
    world.apply("p", "u1", once.clone());
    world.apply("q", "u2", once.clone());
    world.run_until(10.0);
    assert!(world.gone.is_empty(), "as many as may be");
    world.script("a0", Script { on_signal: OnSignal::Ends(secs(0), Outcome::Code(0)), ..Script::default() });
    world.apply("r", "u3", once.clone());
    world.run_until(11.0);
    press(&mut world, Pressure::Memory, &[("u3", "80Mi")], 0);
    world.input(over(Pressure::Memory));
    world.run_until(20.0);
    assert_eq!(world.gone.iter().map(ToString::to_string).collect::<Vec<_>>(), ["u3"]);
    world.script("a0", exits(1, 3));
    world.apply("s", "u4", once);
    world.run_until(30.0);
    assert_eq!(world.gone.iter().map(ToString::to_string).collect::<Vec<_>>(), ["u1", "u3"]);
}
