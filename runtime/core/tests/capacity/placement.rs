//! Does the node suit, and do the pods on it? (META-10, META-11, COND-04)

use husk_core::Input;
use husk_core::admission::NodeState;
use husk_core::group::{Group, GroupKind, GroupName};
use husk_core::placement::{PodTerm, SpreadConstraint};
use husk_core::scheduling::{NodeSelectorRequirement, NodeSelectorTerm};
use husk_core::selector::{Labels, Selector};
use husk_core::spec::{PodMeta, PodSpec};
use husk_core::status::Phase;

use crate::support::{asking_pod, change, node, static_meta, waits, why, world_with};
use crate::world::{World, meta};

fn placed(make: impl FnOnce(&mut husk_core::placement::Placement)) -> PodSpec {
    let mut spec = asking_pod(&[]);
    make(&mut spec.placement);
    spec
}

fn labelled(name: &str, uid: &str, app: &str) -> PodMeta {
    PodMeta { labels: Labels::from([("app".into(), app.into())]), ..meta(name, uid) }
}

fn near(app: &str) -> PodTerm {
    let selector = Selector::parse(&format!("app={app}")).expect("a selector");
    PodTerm { topology_key: "zone".into(), selector, ..PodTerm::default() }
}

fn suits(world: &World, uid: &str) -> bool {
    waits(world, uid).is_none()
}

// spec: META-10
#[test]
fn node_selector_and_node_affinity_are_asked() {
    let mut world = world_with(&[]);
    let selecting = |value: &str| placed(|p| p.demand.node_selector = [("zone".into(), value.into())].into());
    let requiring = |operator: &str, value: &str| {
        let expressions =
            vec![NodeSelectorRequirement { key: "zone".into(), operator: operator.into(), values: vec![value.into()] }];
        placed(|p| {
            p.demand.required_terms = Some(vec![NodeSelectorTerm { expressions, ..NodeSelectorTerm::default() }])
        })
    };
    world.apply("p", "u1", selecting("a"));
    world.apply("q", "u2", selecting("b"));
    world.apply("r", "u3", requiring("In", "a"));
    world.apply("s", "u4", requiring("NotIn", "a"));
    assert!(suits(&world, "u1") && suits(&world, "u3"));
    for uid in ["u2", "u4"] {
        let reason = "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.";
        assert_eq!(why(&world, uid), reason);
    }
    world.apply_as(static_meta("t", "u5"), selecting("b"));
    let status = world.status_of("u5");
    assert_eq!((status.phase, &*status.reason), (Phase::Failed, "NodeAffinity"));

    let mut moved = node(&[]);
    moved.labels.insert("zone".into(), "b".into());
    change(&mut world, moved);
    assert!(suits(&world, "u2") && suits(&world, "u4"), "as soon as the node's labels suit");
    assert!(suits(&world, "u1"), "who is there stays");
}

// spec: META-10
#[test]
fn a_gated_pod_waits_until_its_last_gate_is_removed() {
    let mut world = world_with(&[]);
    let gated = |gates: &[&str]| placed(|p| p.gates = gates.iter().map(|gate| (*gate).into()).collect());
    world.apply("p", "u1", gated(&["example.com/a", "example.com/b"]));
    let reason = ("SchedulingGated".into(), "Scheduling is blocked due to non-empty scheduling gates".into());
    assert_eq!(waits(&world, "u1"), Some(reason.clone()));
    assert!(world.events.is_empty(), "that is no failure");
    world.apply("p", "u1", gated(&["example.com/b"]));
    assert_eq!(waits(&world, "u1"), Some(reason));
    world.apply("p", "u1", gated(&[]));
    world.run_until(1.0);
    assert_eq!(world.phase(), Phase::Running);
}

// spec: META-10
#[test]
fn a_pod_that_wants_company_waits_for_it() {
    let mut world = world_with(&[]);
    let wants = placed(|p| p.affinity = vec![near("db")]);
    world.apply_as(labelled("p", "u1", "web"), wants.clone());
    assert_eq!(why(&world, "u1"), "0/1 nodes are available: 1 node(s) didn't match pod affinity rules.");
    world.apply_as(PodMeta { namespace: "other".into(), ..labelled("x", "u9", "db") }, asking_pod(&[]));
    assert!(!suits(&world, "u1"), "that is one of another namespace");
    world.apply_as(labelled("q", "u2", "db"), asking_pod(&[]));
    assert!(suits(&world, "u1"));
    world.apply_as(labelled("r", "u3", "web"), placed(|p| p.affinity = vec![near("web")]));
    assert!(suits(&world, "u3"));
    world.apply_as(labelled("s", "u4", "lone"), placed(|p| p.affinity = vec![near("lone")]));
    assert!(suits(&world, "u4"), "the first of those that want to be together");
}

// spec: META-10
#[test]
fn pods_that_mind_each_other_do_not_meet() {
    let mut world = world_with(&[]);
    let shy = || placed(|p| p.anti_affinity = vec![near("web")]);
    world.apply_as(labelled("p", "u1", "web"), shy());
    assert!(suits(&world, "u1"));
    world.apply_as(labelled("q", "u2", "web"), asking_pod(&[]));
    let theirs = "0/1 nodes are available: 1 node(s) didn't satisfy existing pods anti-affinity rules.";
    assert_eq!(why(&world, "u2"), theirs);
    world.apply_as(labelled("r", "u3", "db"), shy());
    let own = "0/1 nodes are available: 1 node(s) didn't match pod anti-affinity rules.";
    assert_eq!(why(&world, "u3"), own);
    world.delete(Some(1));
    world.run_until(5.0);
    assert!(suits(&world, "u2"), "it is gone");
    assert!(!suits(&world, "u3"), "the next one is there");
}

// spec: META-10
#[test]
fn one_node_is_one_domain_to_spread_over() {
    let mut world = world_with(&[]);
    let spread = |topology_key: &str, max_skew, min_domains| {
        let selector = Selector::parse("app=web").expect("a selector");
        let topology_key = topology_key.into();
        placed(|p| p.spread = vec![SpreadConstraint { topology_key, selector, max_skew, min_domains }])
    };
    for (number, uid) in ["u1", "u2", "u3"].into_iter().enumerate() {
        world.apply_as(labelled(&format!("p{number}"), uid, "web"), spread("zone", 1, 1));
        assert!(suits(&world, uid), "nowhere else has more");
    }
    world.apply_as(labelled("q", "u4", "web"), spread("zone", 3, 2));
    let unmet = "0/1 nodes are available: 1 node(s) didn't match pod topology spread constraints";
    assert_eq!(why(&world, "u4"), format!("{unmet}."), "a second domain would have to be there");
    world.apply_as(labelled("r", "u5", "web"), spread("rack", 1, 1));
    assert_eq!(why(&world, "u5"), format!("{unmet} (missing required label)."));
}

// spec: META-10
#[test]
fn a_cordoned_node_takes_nobody() {
    let mut world = world_with(&[]);
    world.apply("p", "u1", asking_pod(&[]));
    change(&mut world, NodeState { cordoned: true, ..node(&[]) });
    world.apply("q", "u2", asking_pod(&[]));
    assert_eq!(why(&world, "u2"), "0/1 nodes are available: 1 node(s) were unschedulable.");
    change(&mut world, node(&[]));
    world.run_until(1.0);
    assert!(["u1", "u2"].iter().all(|uid| world.status_of(uid).phase == Phase::Running));
}

fn group(kind: GroupKind, name: &str, gang: Option<usize>, parent: Option<&str>) -> Input {
    let name = GroupName { kind, namespace: "d".into(), name: name.into() };
    Input::GroupApplied { group: Group { name, gang, parent: parent.map(Into::into) } }
}

fn member(of: &str, cpu: &str) -> PodSpec {
    let mut spec = asking_pod(&[("cpu", cpu)]);
    spec.placement.group = Some(of.into());
    spec
}

// spec: META-11
#[test]
fn a_gang_is_placed_together_or_not_at_all() {
    let mut world = world_with(&[("cpu", "1")]);
    world.apply("p0", "u1", member("g", "400m"));
    assert_eq!(why(&world, "u1"), "waiting for PodGroup \"g\" to be created");
    world.input(group(GroupKind::Pods, "g", Some(3), None));
    world.apply("p1", "u2", member("g", "400m"));
    assert!(["u1", "u2"].iter().all(|uid| !suits(&world, uid)), "two of three are there");
    world.apply("p2", "u3", member("g", "400m"));
    assert!(["u1", "u2", "u3"].iter().all(|uid| !suits(&world, uid)), "two of three would fit");
    assert_eq!(why(&world, "u3"), "0/1 nodes are available: 1 Insufficient cpu.");
    assert!(world.node.used().is_empty(), "nobody holds what the others need");
    change(&mut world, node(&[("cpu", "2")]));
    assert!(["u1", "u2", "u3"].iter().all(|uid| suits(&world, uid)));
    world.apply("p3", "u4", member("g", "400m"));
    assert!(suits(&world, "u4"), "enough of its group are there");
}

// spec: META-11
#[test]
fn pods_of_a_basic_group_are_placed_one_by_one() {
    let mut world = world_with(&[("cpu", "1")]);
    world.input(group(GroupKind::Pods, "g", None, None));
    world.apply("p0", "u1", member("g", "700m"));
    world.apply("p1", "u2", member("g", "700m"));
    assert!(suits(&world, "u1") && !suits(&world, "u2"));
}

// spec: META-11
#[test]
fn the_groups_above_have_to_exist_and_to_agree() {
    let mut world = world_with(&[("cpu", "1")]);
    world.input(group(GroupKind::Pods, "g", Some(1), Some("c")));
    world.input(group(GroupKind::Pods, "h", Some(2), Some("c")));
    world.apply("p0", "u1", member("g", "300m"));
    assert_eq!(why(&world, "u1"), "waiting for CompositePodGroup \"c\" to be created");
    world.input(group(GroupKind::Groups, "c", Some(2), None));
    assert!(!suits(&world, "u1"), "its own group could begin, the other one not");
    world.apply("p1", "u2", member("h", "300m"));
    assert!(!suits(&world, "u1") && !suits(&world, "u2"));
    world.apply("p2", "u3", member("h", "300m"));
    assert!(["u1", "u2", "u3"].iter().all(|uid| suits(&world, uid)));
}
