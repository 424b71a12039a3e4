//! Is there room? (RES-05, RES-07, RES-08, RES-12, RES-14, INIT-07, POD-10, POD-05)

use husk_core::io::{Input, Outcome, PodUid, Trap};
use husk_core::qos::QosClass;
use husk_core::spec::RestartPolicy::{Always, Never};
use husk_core::spec::{PodMeta, PodSpec, Resources};
use husk_core::status::Phase;
use husk_core::{Action, memory};

use crate::support::{
    amounts, asking, asking_pod, change, important, limited, node, static_meta, waits, why, world_with,
};
use crate::world::{Life, OnSignal, Script, World, container, exits, meta, pod, secs, sidecar};

fn unschedulable(what: &str) -> Option<(String, String)> {
    Some(("Unschedulable".into(), format!("0/1 nodes are available: {what}.")))
}

// spec: RES-08
#[test]
fn a_pod_that_does_not_fit_waits_and_begins_when_there_is_room() {
    let mut world = world_with(&[("cpu", "1"), ("memory", "1Gi")]);
    world.apply("p", "u1", asking_pod(&[("cpu", "800m"), ("memory", "512Mi")]));
    world.apply("q", "u2", asking_pod(&[("cpu", "300m"), ("memory", "768Mi")]));
    world.run_until(10.0);
    assert_eq!(world.status_of("u1").phase, Phase::Running);
    let status = world.status_of("u2");
    assert_eq!((status.phase, status.start_time), (Phase::Pending, None));
    assert!(status.container_statuses.is_empty());
    assert_eq!(waits(&world, "u2"), unschedulable("1 Insufficient cpu, 1 Insufficient memory"));
    assert_eq!(world.events("FailedScheduling").len(), 1);

    world.delete(Some(5));
    world.run_until(20.0);
    assert_eq!(waits(&world, "u2"), None);
    assert_eq!(world.status_of("u2").phase, Phase::Running);
    assert_eq!(world.events("Scheduled").last().map(String::as_str), Some("Successfully assigned d/q to husk"));
}

// spec: RES-08
#[test]
fn a_pod_that_has_ended_takes_no_room() {
    let mut world = world_with(&[("cpu", "1")]);
    let spec = PodSpec { restart_policy: Never, ..asking_pod(&[("cpu", "1")]) };
    world.script("a0", exits(5, 0));
    world.apply("p", "u1", spec.clone());
    world.apply("q", "u2", spec);
    assert_eq!(waits(&world, "u2"), unschedulable("1 Insufficient cpu"));
    world.run_until(100.0);
    assert_eq!(world.starts("a0"), [0.0, 5.0]);
    assert!(world.node.used().is_empty(), "{:?}", world.node.used());
}

// spec: RES-08
#[test]
fn a_static_pod_that_does_not_fit_has_failed() {
    for (what, resource, message) in [
        (("cpu", "2"), "cpu", "requested: 2000, used: 400, capacity: 1000"),
        (("memory", "2Gi"), "memory", "requested: 2147483648, used: 1024, capacity: 1073741824"),
    ] {
        let mut world = world_with(&[("cpu", "1"), ("memory", "1Gi")]);
        world.apply("p", "u1", asking_pod(&[("cpu", "400m"), ("memory", "1Ki")]));
        world.apply_as(static_meta("q", "u2"), asking_pod(&[what]));
        world.run_until(1.0);
        let status = world.status_of("u2");
        assert_eq!((status.phase, &*status.reason), (Phase::Failed, &*format!("OutOf{resource}")));
        let message = format!("Node didn't have enough resource: {resource}, {message}");
        assert_eq!(status.message, format!("Pod was rejected: {message}"));
        assert_eq!(world.events(&format!("OutOf{resource}")), [message]);
        assert!(status.container_statuses.is_empty(), "nothing of it ever was");
    }
}

// spec: RES-08
#[test]
fn less_important_pods_make_room_as_few_as_possible() {
    let mut world = world_with(&[("cpu", "1")]);
    world.script("a0", Script { on_signal: OnSignal::Ends(secs(3), Outcome::Code(0)), ..Script::default() });
    world.apply("p", "u1", important(10, asking_pod(&[("cpu", "500m")])));
    world.apply("q", "u2", important(5, asking_pod(&[("cpu", "200m")])));
    world.apply("r", "u3", important(5, asking_pod(&[("cpu", "300m")])));
    world.run_until(10.0);
    world.apply("s", "u4", important(100, asking_pod(&[("cpu", "300m")])));
    world.apply("t", "u5", important(1, asking_pod(&[("cpu", "300m")])));
    world.run_until(11.0);
    let target = world.condition_of("u3", "DisruptionTarget").expect("it has to go");
    assert_eq!(&*target.reason, "PreemptionByScheduler");
    assert_eq!(target.message, "default-scheduler: preempting to accommodate a higher priority pod");
    assert!(["u1", "u2"].iter().all(|uid| world.condition_of(uid, "DisruptionTarget").is_none()));
    assert_eq!(world.events("Preempted"), ["Preempted by pod u4 on node husk"]);
    assert_eq!(waits(&world, "u4"), unschedulable("1 Insufficient cpu"), "it ends with its own grace");
    world.run_until(20.0);
    assert_eq!(waits(&world, "u4"), None);
    assert!(waits(&world, "u5").is_some(), "the room was kept for the one it was made for");
    assert!(world.gone.contains(&"u3".into()));
}

// spec: RES-08
#[test]
fn nobody_goes_where_that_does_not_help_or_is_not_wanted() {
    let mut world = world_with(&[("cpu", "1")]);
    world.apply("p", "u1", important(10, asking_pod(&[("cpu", "500m")])));
    world.apply("q", "u2", important(100, asking_pod(&[("cpu", "2")])));
    world.apply("r", "u3", important(10, asking_pod(&[("cpu", "600m")])));
    let mut peaceful = important(100, asking_pod(&[("cpu", "600m")]));
    peaceful.placement.never_preempts = true;
    world.apply("s", "u4", peaceful);
    world.run_until(100.0);
    assert_eq!(world.status_of("u1").phase, Phase::Running);
    for uid in ["u2", "u3", "u4"] {
        assert_eq!(waits(&world, uid), unschedulable("1 Insufficient cpu"), "{uid}");
    }
}

// spec: RES-08
#[test]
fn a_waiting_pod_that_is_deleted_is_gone_at_once() {
    let mut world = world_with(&[("cpu", "1")]);
    world.apply("p", "u1", asking_pod(&[("cpu", "2")]));
    world.delete(None);
    assert!(world.is_gone());
    assert!(world.ordered(|action| matches!(action, Action::SetUp { .. })).is_empty());
}

// spec: INIT-07
#[test]
fn room_is_needed_for_init_at_its_worst_or_for_work_whichever_is_more() {
    let init = vec![asking("i0", &[("cpu", "900m")]), sidecar_asking("s0", "200m")];
    let apps = vec![asking("a0", &[("cpu", "300m")]), asking("a1", &[("cpu", "300m")])];
    let mut world = world_with(&[("cpu", "1")]);
    world.apply("p", "u1", pod(Always, init.clone(), apps.clone()));
    assert_eq!(world.node.used()["cpu"].to_string(), "900m", "init: 900m, work: 800m");
    let init = init.into_iter().rev().collect();
    world.apply("q", "u2", pod(Always, init, apps));
    assert!(why(&world, "u2").contains("Insufficient cpu"));
    change(&mut world, node(&[("cpu", "2")]));
    assert_eq!(
        world.node.used()["cpu"].to_string(),
        "2",
        "beside the sidecar that is there before it, init needs 1100m"
    );
}

fn sidecar_asking(name: &str, cpu: &str) -> husk_core::spec::ContainerSpec {
    husk_core::spec::ContainerSpec { resources: asking(name, &[("cpu", cpu)]).resources, ..sidecar(name) }
}

// spec: RES-12
#[test]
fn what_the_pod_asks_for_as_a_whole_counts() {
    let mut world = world_with(&[("cpu", "1"), ("memory", "1Gi")]);
    let whole = Resources { requests: amounts(&[("cpu", "700m"), ("memory", "64Mi")]), ..Resources::default() };
    let spec = PodSpec { resources: Some(whole), ..asking_pod(&[("cpu", "100m")]) };
    world.apply("p", "u1", spec.clone());
    assert_eq!(world.node.used()["cpu"].to_string(), "700m");
    assert_eq!(world.status_of("u1").qos_class, Some(QosClass::Burstable));
    world.apply("q", "u2", spec);
    assert!(waits(&world, "u2").is_some());
}

// spec: RES-07
#[test]
fn the_class_is_fixed_when_the_pod_is_created() {
    let mut world = world_with(&[]);
    let both = [("cpu", "100m"), ("memory", "64Mi")];
    world.apply("p", "u1", limited(asking_pod(&both)));
    world.apply("q", "u2", asking_pod(&both[..1]));
    world.apply("r", "u3", asking_pod(&[]));
    world.run_until(1.0);
    let class = |world: &World, uid| world.status_of(uid).qos_class;
    assert_eq!(class(&world, "u1"), Some(QosClass::Guaranteed));
    assert_eq!(class(&world, "u2"), Some(QosClass::Burstable));
    assert_eq!(class(&world, "u3"), Some(QosClass::BestEffort));
    world.apply("r", "u3", limited(asking_pod(&both)));
    world.run_until(2.0);
    assert_eq!(class(&world, "u3"), Some(QosClass::BestEffort));
}

// spec: RES-14
#[test]
fn a_device_belongs_to_one_pod_until_that_has_ended_and_is_cleaned_up() {
    const PIN: &str = "gpio.husk.dev/relay-1";
    let mut world = world_with(&[("cpu", "4"), (PIN, "1")]);
    world.teardown_delay = secs(2);
    world.apply("p", "u1", asking_pod(&[(PIN, "1")]));
    world.apply("q", "u2", asking_pod(&[(PIN, "1")]));
    world.apply("r", "u3", asking_pod(&[("spi.husk.dev/bus-0", "1")]));
    world.run_until(10.0);
    assert_eq!(waits(&world, "u2"), unschedulable("1 Insufficient gpio.husk.dev/relay-1"));
    assert_eq!(waits(&world, "u3"), unschedulable("1 Insufficient spi.husk.dev/bus-0"), "the node has none");
    world.delete(None);
    world.run_until(11.0);
    assert!(waits(&world, "u2").is_some(), "what the pod had is not cleaned up yet");
    world.run_until(12.0);
    assert_eq!(waits(&world, "u2"), None);
}

// spec: RES-05
#[test]
fn a_container_that_burnt_all_its_fuel_ends_with_152() {
    let spec = PodSpec { restart_policy: Never, ..asking_pod(&[("husk.dev/fuel", "1M")]) };
    let mut world = world_with(&[("cpu", "1")]);
    world
        .script("a0", Script { lives: vec![Life::Exit(secs(3), Outcome::Trap(Trap::OutOfFuel))], ..Script::default() });
    world.apply("p", "u1", spec.clone());
    world.apply("q", "u2", spec);
    world.run_until(10.0);
    assert_eq!(waits(&world, "u2"), None, "a budget is nobody else's");
    assert_eq!(world.terminated("a0").exit_code, 152);
    assert_eq!(world.phase(), Phase::Failed);
}

// spec: POD-10
#[test]
fn a_pod_for_another_operating_system_is_refused() {
    let mut world = world_with(&[]);
    let for_os = |os: &str| PodSpec { os: Some(os.into()), ..asking_pod(&[]) };
    world.apply("p", "u1", for_os("windows"));
    world.apply("q", "u2", for_os("linux"));
    world.run_until(5.0);
    let status = world.status_of("u1");
    assert_eq!((status.phase, &*status.reason), (Phase::Failed, "PodOSNotSupported"));
    assert_eq!(status.message, "Pod was rejected: Failed to admit pod as the OS field doesn't match node OS");
    assert_eq!(world.status_of("u2").phase, Phase::Running);
    world.delete(None);
    world.run_until(6.0);
    assert!(world.is_gone(), "the object can be deleted");
}

// spec: POD-05
#[test]
fn what_takes_effect_at_once_is_observed_at_once() {
    let spec = pod(Always, vec![], vec![container("a0")]);
    let mut world = World::with(spec.clone(), &[("a0", stubborn())]);
    world.run_until(5.0);
    let at = |generation| PodMeta { generation, ..meta("p", "u1") };
    world.apply_as(at(2), PodSpec { active_deadline_seconds: Some(1000), ..spec.clone() });
    assert_eq!(world.status().observed_generation, 2);

    // An image takes effect once the container that has the old one is gone.
    let mut other = PodSpec { active_deadline_seconds: Some(1000), ..spec };
    other.containers[0].hash += 1;
    world.apply_as(at(3), other.clone());
    world.run_until(10.0);
    assert_eq!((world.status().observed_generation, world.condition("Ready").observed_generation), (2, 3));
    world.run_until(50.0);
    assert_eq!(world.status().observed_generation, 3);
    world.apply_as(at(4), PodSpec { active_deadline_seconds: Some(500), ..other });
    assert_eq!(world.status().observed_generation, 4);
}

// spec: POD-05
#[test]
fn a_pod_without_a_generation_is_counted_by_the_node() {
    let spec = pod(Always, vec![], vec![container("a0")]);
    let unnumbered = || PodMeta { generation: 0, ..static_meta("p", "u1") };
    let mut world = world_with(&[]);
    let generation = |world: &World| world.node.meta(&"u1".into()).expect("it is there").generation;
    world.apply_as(unnumbered(), spec.clone());
    assert_eq!(generation(&world), 1);
    world.apply_as(unnumbered(), spec.clone());
    assert_eq!(generation(&world), 1, "nothing changed");
    world.apply_as(unnumbered(), PodSpec { active_deadline_seconds: Some(9), ..spec });
    assert_eq!((generation(&world), world.status().observed_generation), (2, 2));
    world.script("a0", stubborn());
    world.run_until(1.0);
    world.delete(Some(20));
    assert_eq!(generation(&world), 3, "a deletion is a change");
}

fn stubborn() -> Script {
    Script { on_signal: OnSignal::Ignores, ..Script::default() }
}

// spec: RES-10
#[test]
fn growth_above_the_request_is_slowed_by_the_factor() {
    const MIB: u64 = 1 << 20;
    let throttle = |class, request, limit, factor| memory::throttle(class, request, limit, 1000 * MIB, factor, 4096);
    let above = |class, request, limit, factor| throttle(class, request, limit, factor).map(|throttle| throttle.above);
    let burstable = |request, limit| above(QosClass::Burstable, request, limit, memory::DEFAULT_THROTTLING_FACTOR);
    assert_eq!(burstable(100 * MIB, Some(200 * MIB)), Some(190 * MIB), "request + 0.9 x (limit - request)");
    assert_eq!(burstable(0, Some(100 * MIB)), Some(90 * MIB));
    assert_eq!(burstable(100 * MIB, None), Some(910 * MIB), "without a limit the node's is taken");
    assert_eq!(burstable(100 * MIB, Some(100 * MIB)), None);
    assert_eq!(above(QosClass::Burstable, MIB, Some(MIB + 5000), 0.9), Some(MIB + 4096), "whole pages");
    assert_eq!(above(QosClass::Burstable, MIB, Some(2 * MIB), 0.0), None);
    assert_eq!(above(QosClass::Guaranteed, MIB, Some(2 * MIB), 0.9), None);
    assert_eq!(above(QosClass::BestEffort, 0, None, 0.9), Some(900 * MIB), "of all that the node has");
}

// spec: RES-10
#[test]
fn who_grows_waits_the_longer_the_nearer_his_limit_is() {
    const MIB: u64 = 1 << 20;
    let throttle = memory::Throttle { above: 60 * MIB, limit: 100 * MIB };
    let millis = |used, grown| throttle.delay(used * MIB, grown).as_millis();
    assert_eq!(millis(60, 50 * MIB), 0);
    assert_eq!(millis(61, MIB), 1);
    assert_eq!(millis(80, MIB), 500, "half way, a quarter of the longest");
    assert_eq!((millis(100, MIB), millis(100, 40 * MIB), millis(500, MIB)), (2000, 2000, 2000));
    assert_eq!(millis(100, MIB / 16), 124, "small growths wait for less");
}

// spec: RES-10
#[test]
fn tiered_reservation_keeps_requests_by_class() {
    use memory::ReservationPolicy::{None, TieredReservation};
    let kept = |policy, class| {
        let reservation = memory::reservation(policy, class, 64);
        (reservation.hard, reservation.soft)
    };
    assert_eq!(kept(TieredReservation, QosClass::Guaranteed), (64, 0));
    assert_eq!(kept(TieredReservation, QosClass::Burstable), (0, 64));
    assert_eq!(kept(TieredReservation, QosClass::BestEffort), (0, 0));
    assert_eq!(kept(None, QosClass::Guaranteed), (0, 0));
}

#[test]
fn without_limits_of_the_node_everything_fits() {
    let mut world = World::with(asking_pod(&[("cpu", "1000"), ("gpio.husk.dev/any", "7"), ("memory", "9Pi")]), &[]);
    world.run_until(1.0);
    assert_eq!(world.phase(), Phase::Running);
    world.input(Input::NodeChanged { state: Box::new(node(&[("pods", "1")])) });
    world.apply("q", "u2", asking_pod(&[]));
    assert_eq!(waits(&world, "u2"), unschedulable("1 Too many pods"));
}

// spec: RES-08
#[test]
fn who_makes_room_without_any_grace_is_gone_and_not_shown_again() {
    let mut world = world_with(&[("cpu", "1")]);
    let brief = |spec: PodSpec| PodSpec { termination_grace_period_seconds: Some(0), ..spec };
    world.apply("p", "u1", brief(asking_pod(&[("cpu", "800m")])));
    world.run_until(5.0);
    world.apply("q", "u2", important(100, asking_pod(&[("cpu", "800m")])));
    world.run_until(10.0);
    assert!(world.gone.contains(&PodUid::from("u1")));
    assert_eq!(world.status_of("u2").phase, Phase::Running);
}
