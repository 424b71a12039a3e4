//! Ends that others bring about (COND-06, DISR-04, DISR-05, TERM-10).

use husk_core::Input;
use husk_core::admission::NodeState;
use husk_core::disruption::Disruption;
use husk_core::scheduling::{Taint, Toleration, TolerationOperator};
use husk_core::spec::RestartPolicy::Never;
use husk_core::spec::{PodSpec, SYSTEM_CRITICAL_PRIORITY};
use husk_core::status::{ConditionStatus, Phase};

use crate::support::{asking_pod, change, important, node, static_meta, waits, why, world_with};
use crate::world::{OnSignal, Script, World, exits, secs};

fn stubborn() -> Script {
    Script { on_signal: OnSignal::Ignores, ..Script::default() }
}

fn evict(disruption: Disruption, grace_seconds: Option<i64>) -> Input {
    Input::Evict { pod: "u1".into(), disruption, grace_seconds }
}

// spec: DISR-04
#[test]
fn an_evicted_pod_ends_with_its_own_grace() {
    for (asked, killed) in [(None, 35.0), (Some(3), 8.0)] {
        let mut world = world_with(&[]);
        world.script("a0", stubborn());
        world.apply("p", "u1", asking_pod(&[]));
        world.run_until(5.0);
        world.input(evict(Disruption::EvictionByEvictionApi, asked));
        world.run_until(6.0);
        let target = world.condition("DisruptionTarget");
        assert_eq!((target.status, &*target.reason), (ConditionStatus::True, "EvictionByEvictionAPI"));
        assert_eq!(target.message, "Eviction API: evicting");
        assert!(world.node.deletion(&"u1".into()).is_some());
        world.run_until(60.0);
        assert_eq!((world.signals("a0"), world.kills("a0")), (vec![5.0], vec![killed]));
        assert!(world.is_gone());
    }
}

// spec: COND-06
#[test]
fn the_condition_says_who_ended_it() {
    for (disruption, reason) in [
        (Disruption::PreemptionByScheduler, "PreemptionByScheduler"),
        (Disruption::DeletionByTaintManager, "DeletionByTaintManager"),
        (Disruption::EvictionByEvictionApi, "EvictionByEvictionAPI"),
        (Disruption::DeletionByPodGc, "DeletionByPodGC"),
        (Disruption::TerminationByKubelet, "TerminationByKubelet"),
    ] {
        let mut world = world_with(&[]);
        world.script("a0", stubborn());
        world.apply("p", "u1", asking_pod(&[]));
        world.run_until(1.0);
        world.input(evict(disruption, None));
        world.run_until(40.0);
        let said = world.statuses.iter().filter_map(|(_, status)| {
            let target = status.conditions.iter().find(|condition| condition.kind == "DisruptionTarget")?;
            Some(target.reason.to_string())
        });
        let said: Vec<String> = said.collect();
        assert!(!said.is_empty() && said.iter().all(|said| said == reason), "{said:?}");
    }
}

// spec: COND-06
#[test]
fn a_pod_that_ends_by_itself_is_no_target() {
    let mut world = world_with(&[]);
    world.script("a0", exits(1, 1));
    world.apply("p", "u1", PodSpec { restart_policy: Never, ..asking_pod(&[]) });
    world.apply("q", "u2", PodSpec { active_deadline_seconds: Some(2), ..asking_pod(&[]) });
    world.run_until(10.0);
    world.input(evict(Disruption::EvictionByEvictionApi, None));
    assert!(world.statuses.iter().all(|(_, s)| s.conditions.iter().all(|c| c.kind != "DisruptionTarget")));
    assert!(world.condition_of("u2", "DisruptionTarget").is_none());
    assert!(world.is_gone());
}

fn tainted(effect: &str) -> NodeState {
    let taint = Taint { key: "gas".into(), value: "leak".into(), effect: effect.into() };
    NodeState { taints: vec![taint], ..node(&[]) }
}

fn tolerating(effect: &str, seconds: Option<i64>) -> PodSpec {
    let mut spec = asking_pod(&[]);
    let (key, operator, effect) = ("gas".into(), TolerationOperator::Exists, effect.into());
    spec.placement.tolerations = vec![Toleration { key, operator, effect, seconds, ..Toleration::default() }];
    spec
}

// spec: DISR-05
#[test]
fn no_schedule_keeps_new_pods_off() {
    let mut world = world_with(&[]);
    world.apply("p", "u1", asking_pod(&[]));
    change(&mut world, tainted("NoSchedule"));
    world.apply("q", "u2", asking_pod(&[]));
    world.apply("r", "u3", tolerating("NoSchedule", None));
    world.run_until(10.0);
    assert_eq!(world.status_of("u1").phase, Phase::Running, "who is there stays");
    assert_eq!(why(&world, "u2"), "0/1 nodes are available: 1 node(s) had untolerated taint {gas: leak}.");
    assert_eq!(world.status_of("u3").phase, Phase::Running);
    change(&mut world, tainted("PreferNoSchedule"));
    assert_eq!(waits(&world, "u2"), None);
}

// spec: DISR-05
#[test]
fn no_execute_ends_pods_when_their_toleration_is_over() {
    let mut world = world_with(&[]);
    world.apply("p", "u1", asking_pod(&[]));
    world.apply("q", "u2", tolerating("NoExecute", Some(60)));
    world.apply("r", "u3", tolerating("", None));
    world.apply_as(static_meta("s", "u4"), asking_pod(&[]));
    world.run_until(10.0);
    change(&mut world, tainted("NoExecute"));
    world.run_until(69.0);
    let gone = |world: &World| world.gone.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(gone(&world), ["u1"]);
    assert_eq!(world.events("TaintManagerEviction"), ["Marking for deletion Pod d/p"]);
    let target = world.statuses.iter().flat_map(|(_, s)| &s.conditions).find(|c| c.kind == "DisruptionTarget");
    let target = target.expect("it said why");
    assert_eq!(&*target.reason, "DeletionByTaintManager");
    assert_eq!(target.message, "Taint manager: deleting due to NoExecute taint");
    world.run_until(1000.0);
    assert_eq!(gone(&world), ["u1", "u2"], "60 s after the taint came");
    assert!(["u3", "u4"].iter().all(|uid| world.status_of(uid).phase == Phase::Running));
}

// spec: DISR-05
#[test]
fn a_taint_that_goes_in_time_is_forgotten() {
    let mut world = world_with(&[]);
    world.apply("p", "u1", tolerating("NoExecute", Some(60)));
    change(&mut world, tainted("NoExecute"));
    world.run_until(40.0);
    change(&mut world, node(&[]));
    assert_eq!(world.events("TaintManagerEviction"), ["Cancelling deletion of Pod d/p"]);
    world.run_until(100.0);
    change(&mut world, tainted("NoExecute"));
    world.run_until(159.0);
    assert_eq!(world.phase(), Phase::Running, "it counts from the new taint");
    world.run_until(170.0);
    assert!(world.is_gone());
}

// spec: TERM-10
#[test]
fn a_node_that_shuts_down_ends_critical_pods_last() {
    let mut world = world_with(&[]);
    world.script("a0", stubborn());
    world.apply("p", "u1", asking_pod(&[]));
    world.apply("q", "u2", important(SYSTEM_CRITICAL_PRIORITY, asking_pod(&[])));
    world.apply("r", "u3", important(5, PodSpec { termination_grace_period_seconds: Some(3), ..asking_pod(&[]) }));
    world.run_until(10.0);
    world.without_heir();
    world.input(Input::Shutdown { grace: secs(30), critical: secs(10) });
    world.apply("s", "u4", asking_pod(&[]));
    world.apply_as(static_meta("t", "u5"), asking_pod(&[]));
    assert!(waits(&world, "u4").is_some(), "nobody begins any more");
    let refused = world.status_of("u5");
    assert_eq!((refused.phase, &*refused.reason), (Phase::Failed, "NodeShutdown"));
    assert_eq!(refused.message, "Pod was rejected: Pod was rejected as the node is shutting down.");
    world.run_until(29.0);
    assert_eq!(world.status_of("u3").phase, Phase::Failed, "with its own grace, which is less");
    assert_eq!((world.status_of("u1").phase, world.status_of("u2").phase), (Phase::Running, Phase::Running));
    assert_eq!(world.signals("a0"), [10.0, 10.0]);
    world.run_until(60.0);
    assert_eq!(world.signals("a0"), [10.0, 10.0, 30.0], "the critical one, once the others have ended");
    assert_eq!(world.kills("a0"), [13.0, 30.0, 40.0]);
    assert!(world.node.is_shut_down());
    for uid in ["u1", "u2", "u3"] {
        let status = world.status_of(uid);
        assert_eq!((status.phase, &*status.reason), (Phase::Failed, "Terminated"));
        assert_eq!(status.message, "Pod was terminated in response to imminent node shutdown.");
        let target = world.condition_of(uid, "DisruptionTarget").expect("a target");
        assert_eq!((&*target.reason, &target.message), ("TerminationByKubelet", &status.message));
    }
}

// spec: TERM-10
#[test]
fn a_shutdown_waits_for_nobody_that_has_ended() {
    let mut world = world_with(&[]);
    world.apply("p", "u1", asking_pod(&[]));
    world.apply("q", "u2", important(SYSTEM_CRITICAL_PRIORITY, asking_pod(&[])));
    world.run_until(1.0);
    world.without_heir();
    world.input(Input::Shutdown { grace: secs(30), critical: secs(10) });
    world.run_until(2.0);
    assert!(world.node.is_shut_down(), "they end by the signal at once");
    assert_eq!(world.node.next_wake(), None);
}

// spec: TERM-10
#[test]
fn a_shutdown_goes_on_once_the_last_pod_of_a_step_has_disappeared() {
    let mut world = world_with(&[]);
    world.apply("p", "u1", asking_pod(&[]));
    world.apply("q", "u2", important(SYSTEM_CRITICAL_PRIORITY, asking_pod(&[])));
    world.run_until(1.0);
    world.without_heir();
    world.input(Input::Shutdown { grace: secs(30), critical: secs(10) });
    // Its object goes with the last that is left of it.
    world.input(Input::DeleteRequested { pod: "u1".into(), grace_seconds: None });
    world.run_until(2.0);
    assert!(world.gone.contains(&"u1".into()));
    assert_eq!(world.status_of("u2").phase, Phase::Failed, "the critical one had its turn");
    assert!(world.node.is_shut_down());
}

// spec: TERM-10
#[test]
fn a_shutdown_is_not_woken_for_a_step_that_ends_nobody() {
    let mut world = world_with(&[]);
    world.teardown_delay = secs(20);
    world.apply("p", "u1", asking_pod(&[]));
    world.run_until(1.0);
    world.without_heir();
    let begun = world.now;
    world.input(Input::Shutdown { grace: secs(5), critical: secs(2) });
    world.run_until(1.5);
    assert_eq!(world.node.next_wake(), Some(begun + secs(5)), "no critical pod waits for its turn after 3 s");
    world.run_until(5.9);
    assert!(!world.node.is_shut_down());
    world.run_until(6.0);
    assert!(world.node.is_shut_down(), "all the time that there was is over");
}

// spec: TERM-10
#[test]
fn a_shutdown_is_not_woken_for_a_step_of_pods_that_end_anyway() {
    let mut world = world_with(&[]);
    world.teardown_delay = secs(20);
    world.apply("p", "u1", asking_pod(&[]));
    world.apply("q", "u2", important(SYSTEM_CRITICAL_PRIORITY, asking_pod(&[])));
    world.run_until(1.0);
    world.input(Input::DeleteRequested { pod: "u2".into(), grace_seconds: None });
    world.run_until(2.0);
    world.without_heir();
    let begun = world.now;
    world.input(Input::Shutdown { grace: secs(5), critical: secs(2) });
    world.run_until(2.5);
    assert_eq!(world.node.next_wake(), Some(begun + secs(5)), "the critical one ends already");
    world.run_until(7.0);
    assert!(world.node.is_shut_down());
}
