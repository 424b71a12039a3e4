//! The simulator itself: it finds what is broken, makes it small, and writes it so that it can be played again.

use std::fs;
use std::time::Duration;

use husk_core::spec::PodSpec;
use husk_core::{Action, Input, Instant, Node};
use husk_sim::counts::Counts;
use husk_sim::play::{End, play_out};
use husk_sim::random::{Case, case};
use husk_sim::report::Report;
use husk_sim::run::{judge, run};
use husk_sim::scenario::What;
use husk_sim::shrink::shrink;
use husk_sim::{Broken, Scenario, Subject, Watch};

const DAY: Duration = Duration::from_secs(86_400);

/// A rule that isn't one: nothing is ever restarted after it ran out of memory.
#[derive(Default)]
struct Artificial {
    out_of_memory: bool,
    broken: Option<Instant>,
}

impl Watch for Artificial {
    fn input(&mut self, _now: Instant, input: &Input) {
        use husk_core::io::{Outcome, Trap};
        self.out_of_memory |= matches!(input, Input::Exited { outcome: Outcome::Trap(Trap::OutOfMemory), .. });
    }

    fn action(&mut self, now: Instant, action: &Action) {
        if self.out_of_memory && matches!(action, Action::Start { .. }) {
            self.broken.get_or_insert(now);
        }
    }

    fn settled(&mut self, _now: Instant, _node: &Node) {}
}

fn artificial(case: &Case) -> Result<(), Broken> {
    let mut watch = Artificial::default();
    play_out(&case.subjects, &case.scenario, DAY, &mut watch)?;
    let broken = |at| Broken { rule: "nothing runs after it was out of memory", at, seen: String::new() };
    watch.broken.map_or(Ok(()), |at| Err(broken(at)))
}

#[test]
fn a_failing_life_is_shrunk_to_what_makes_it_fail() {
    let (large, broken) = (0..).map(case).find_map(|case| Some((case.clone(), artificial(&case).err()?))).expect("one");
    let (small, _) = shrink(large.clone(), broken.clone(), artificial);
    assert_eq!(artificial(&small).map_err(|broken| broken.rule), Err(broken.rule));
    assert!(small.subjects.len() <= 2, "{:?}", small.subjects);
    let containers: usize = small.subjects.iter().map(|subject| subject.spec.all_containers().count()).sum();
    assert!(containers <= 2, "{:?}", small.subjects);
    let yaml = small.scenario.to_yaml();
    assert!(yaml.contains("OutOfMemory") && yaml.lines().count() < 25, "{yaml}");
}

#[test]
fn what_is_written_is_played_to_the_same_end() {
    let (seed, broken) = (0..).find_map(|seed| Some((seed, artificial(&case(seed)).err()?))).expect("one");
    let (small, broken) = shrink(case(seed), broken, artificial);
    let folder = tempfile::tempdir().expect("a folder");
    let (pods, scenario) = Report { case: small, broken: broken.clone() }.write(folder.path()).expect("written");

    let subjects = read(&fs::read_to_string(pods).expect("a manifest"));
    let scenario = Scenario::read(&scenario, &subjects).expect("a scenario");
    let again = artificial(&Case { subjects, scenario }).expect_err("broken as before");
    assert_eq!((again.rule, again.at), (broken.rule, broken.at));
}

/// As `husk simulate` reads it.
fn read(manifest: &str) -> Vec<Subject> {
    let checked = husk_api::check(manifest, "pods.yaml");
    assert!(checked.errors.is_empty(), "{:?}\n{manifest}", checked.errors);
    let pods = checked.documents.iter().map(|document| {
        let mut pod = husk_api::pod_of(&document.object).expect("a pod");
        pod.metadata.namespace = Some("default".into());
        husk_api::default_pod(&mut pod);
        (husk_api::core_meta(&pod), husk_api::core_spec(&pod))
    });
    Subject::cast(pods)
}

#[test]
fn every_random_pod_is_a_valid_pod() {
    // A definition's hash isn't part of the manifest.
    let without_hashes = |mut spec: PodSpec| {
        for container in spec.init_containers.iter_mut().chain(&mut spec.containers) {
            container.hash = 0;
        }
        spec
    };
    for seed in 0..40 {
        let case = case(seed);
        for drawn in case.subjects {
            // One file can't have two pods of one name, so each has its own.
            let read = read(&husk_sim::manifest::manifest(std::slice::from_ref(&drawn)));
            assert_eq!(read.len(), 1);
            assert_eq!(without_hashes(read[0].spec.clone()), without_hashes(drawn.spec), "seed {seed}");
        }
    }
}

#[test]
fn every_random_scenario_can_be_written_and_read() {
    for seed in 0..40 {
        let Case { subjects, scenario } = case(seed);
        assert_eq!(Scenario::parse(&scenario.to_yaml(), &subjects).expect("valid"), scenario, "seed {seed}");
    }
}

#[test]
fn the_same_seed_is_the_same_life() {
    let played = |seed| {
        let mut counts = Counts::default();
        judge(&case(seed), &mut counts).expect("no rule is broken");
        (counts.steps, counts.facts, counts.to_string())
    };
    for seed in 1..20 {
        assert_eq!(played(seed), played(seed), "seed {seed}");
    }
}

// spec: PHASE-08, SIDE-04, TERM-08, STATE-04, TERM-07
#[test]
fn no_rule_is_broken_and_everything_happens() {
    let outcome = run(1_000_000, 300_000, 2, |_| {});
    assert_eq!(outcome.failed, None);
    let counts = outcome.counts;
    let rare = [
        "SandboxFailed",
        "ImageFailed",
        "StartFailed",
        "HookDone",
        "ResourcesUpdated",
        "ResourcesFailed",
        "Evict",
        "LimitExceeded",
        "Pressure",
        "Shutdown",
        "Restored",
        "CancelHook",
        "Kill",
        "Preempted",
        "Evicted",
        "BackOff",
        "Unhealthy",
        "ProbeWarning",
        "FailedPostStartHook",
        "FailedPreStopHook",
        "FailedScheduling",
        "OOMKilling",
        "DeadlineExceeded",
        "TaintManagerEviction",
        "ResizeDeferred",
        "ResizeInfeasible",
        "ResizeCompleted",
        "SandboxChanged",
    ];
    let missing: Vec<_> = rare.into_iter().filter(|name| counts.of(name) == 0).collect();
    assert!(missing.is_empty(), "{missing:?} never happened: {counts}");
}

#[test]
fn an_end_comes_before_the_end_of_time() {
    let Case { subjects, scenario } = case(3);
    let end = play_out(&subjects, &scenario, Duration::from_secs(1), &mut Counts::default());
    assert_eq!(end, Ok(End::Cut(Instant::from_secs(1))));
    let last = scenario.facts.iter().map(|fact| fact.at).max();
    for subject in &subjects {
        let goes = |what: &What| matches!(what, What::Delete { pod, .. } if *pod == subject.id);
        let deleted = scenario.facts.iter().any(|fact| Some(fact.at) == last && goes(&fact.what));
        assert!(deleted, "{} is not deleted at last", subject.id);
    }
}

/// Lives that once broke a rule, and what it was.
#[test]
fn lives_that_broke_a_rule_once_break_none() {
    let found = [
        (1358, "a node was woken up for a resize of a container that was being stopped"),
        (2555, "the referee: who ended by itself and is deleted then goes on ending in its own time"),
        (3188, "a shutdown was woken up for a step of pods that ended anyway"),
        (4325, "the referee: a pod without a place is not evicted"),
        (4444, "a look forgot when a failed resize is tried again"),
        (5929, "a shutdown did not go on when the last pod of its step disappeared"),
        (15815, "the referee: a shutdown ends nobody who waits for a place"),
        (26761, "the referee: who ends in the preStop hook of a restart is started again"),
        (37046, "the referee: a sidecar's grace begins when it is stopped, whatever else is being stopped then"),
        (51611, "the referee: an init container that is to be done again is not done"),
        (173_295, "two who asked for the restart of all in turns went on without a pause"),
    ];
    for (seed, what) in found {
        assert_eq!(judge(&case(seed), &mut Counts::default()), Ok(()), "{what}");
    }
}
