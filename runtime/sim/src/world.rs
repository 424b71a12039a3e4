//! A runtime that answers the core's orders as the scenario says, in virtual time.

mod facts;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use husk_core::group::{Group, GroupName};
use husk_core::io::{Hook, InstanceRef, Outcome, PodUid, ProbeOutcome};
use husk_core::spec::ProbeKind;
use husk_core::{Action, Input, Instant};

pub(crate) use self::facts::Told;
use crate::scenario::{Clock, NodeScript, Scenario, Script, SetUp, Subject, TearDown, Window};
use crate::span::Span;

/// From KILL to the exit.
const KILL_TAKES: Duration = Duration::from_millis(1);
/// A probe, if the scenario doesn't say.
const PROBE_TAKES: Span = Span::millis(10);

/// Answers orders; every answer waits for its time.
pub(crate) struct World<'a> {
    scenario: &'a Scenario,
    pods: Vec<Pod<'a>>,
    by_uid: HashMap<PodUid, usize>,
    /// What is to come, by time and by order of its making.
    due: BTreeMap<Key, Due>,
    made: u64,
    pulled: BTreeSet<String>,
    /// What the node has and is now.
    node: &'a NodeScript,
    groups: BTreeMap<GroupName, Group>,
}

type Key = (Instant, u64);

/// Something that is to come.
pub(crate) enum Due {
    /// An answer to an order.
    Answer(Input),
    /// All pods are looked at, before they begin to be deleted for good.
    Look,
    /// A pod is created.
    Apply(usize),
    /// A pod is deleted, by the scenario's deletion of that number.
    Delete {
        /// Which pod.
        place: usize,
        /// Which deletion.
        number: usize,
    },
    /// The scenario's fact of that number.
    Fact(usize),
}

struct Pod<'a> {
    /// As it was last asked for.
    subject: Subject,
    set_up: &'a SetUp,
    tear_down: &'a TearDown,
    failed_set_ups: u32,
    /// It was created.
    applied: bool,
    /// Nobody can change it any more.
    gone: bool,
    containers: Vec<Container>,
}

struct Container {
    name: String,
    image: String,
    script: Script,
    failed: Failed,
    /// The instance that runs or is being started.
    live: Option<Live>,
}

/// How often something failed so far.
#[derive(Default)]
struct Failed {
    pulls: u32,
    starts: u32,
    resizes: u32,
}

#[derive(Default)]
struct Live {
    attempt: u32,
    /// Since when it runs.
    since: Option<Instant>,
    /// The answer that starts or ends it.
    next: Option<Key>,
    /// Answers of its probes and hooks.
    probes: [Option<Key>; 3],
    hooks: [Option<Key>; 2],
}

impl<'a> World<'a> {
    /// A runtime for some pods.
    pub(crate) fn new(scenario: &'a Scenario, subjects: &[Subject]) -> Self {
        let pods: Vec<_> = subjects.iter().map(|subject| Pod::new(scenario, subject)).collect();
        let by_uid = pods.iter().enumerate().map(|(n, pod)| (PodUid::from(pod.subject.id.as_str()), n)).collect();
        let (due, pulled, groups) = (BTreeMap::new(), BTreeSet::new(), BTreeMap::new());
        let mut world = Self { scenario, pods, by_uid, due, made: 0, pulled, node: &scenario.node, groups };
        if let Some(at) = scenario.last_deletion() {
            world.plan(Instant::ZERO + at.0, Due::Look);
        }
        for (n, subject) in subjects.iter().enumerate() {
            let applied = scenario.pods.get(&subject.id).map_or(Span::default(), |pod| pod.applied);
            world.plan(Instant::ZERO + applied.0, Due::Apply(n));
        }
        world.plan_deletions();
        for (n, fact) in scenario.facts.iter().enumerate() {
            world.plan(Instant::ZERO + fact.at.0, Due::Fact(n));
        }
        world
    }

    /// How long it takes where it has to, at most, until a pod that is over is gone.
    pub(crate) fn slack(scenario: &Scenario) -> Duration {
        let takes = |of_pod| scenario.set_up(of_pod).takes.0 + scenario.tear_down(of_pod).takes.0;
        scenario.pods.values().map(Some).chain([None]).map(takes).max().unwrap_or_default() + KILL_TAKES * 100
    }

    /// When the next thing is due.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.due.first_key_value().map(|((at, _), _)| *at)
    }

    /// The next thing, if it is due.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<Due> {
        let entry = self.due.first_entry().filter(|entry| entry.key().0 <= now)?;
        let due = entry.remove();
        if let Due::Answer(input) = &due {
            self.note(now, input);
        }
        Some(due)
    }

    /// All instances and all that is under way are lost. What is to come by itself comes that much earlier by the node's clock.
    pub(crate) fn lose_everything(&mut self, behind: Duration) {
        for container in self.pods.iter_mut().flat_map(|pod| &mut pod.containers) {
            container.live = None;
        }
        let due = std::mem::take(&mut self.due).into_iter().filter(|(_, due)| !matches!(due, Due::Answer(_)));
        let earlier = |at: Instant| Instant::ZERO + at.since_epoch().saturating_sub(behind);
        self.due = due.map(|((at, made), due)| ((earlier(at), made), due)).collect();
    }

    /// What an answer that is given says about the instance.
    fn note(&mut self, now: Instant, input: &Input) {
        match input {
            Input::Started { instance, .. } => {
                let Some(container) = self.container(instance) else { return };
                let run = container.script.run(instance.attempt);
                let end = run.duration.map(|duration| {
                    let (outcome, message) = (run.outcome(), run.message.clone());
                    (now + duration.0, Input::Exited { instance: instance.clone(), outcome, message })
                });
                let next = end.map(|(at, input)| self.plan(at, Due::Answer(input)));
                if let Some(live) = self.live(instance) {
                    (live.since, live.next) = (Some(now), next);
                }
            }
            Input::Exited { instance, .. } | Input::StartFailed { instance, .. } => {
                let Some(container) = self.container(instance) else { return };
                let Some(live) = container.live.take_if(|live| live.attempt == instance.attempt) else { return };
                // Nothing more comes from it.
                for key in live.next.into_iter().chain(live.probes.into_iter().chain(live.hooks).flatten()) {
                    self.due.remove(&key);
                }
            }
            _ => {}
        }
    }

    /// Takes an order.
    pub(crate) fn carry_out(&mut self, now: Instant, action: &Action) {
        match action {
            Action::SetUp { pod, attempt } => self.set_up(now, pod, *attempt),
            Action::PullImage { instance } => self.pull(now, instance),
            Action::Start { instance } => self.start(now, instance),
            Action::Signal { instance, signal } => self.signal(now, instance, signal),
            Action::Kill { instance } => self.end(now + KILL_TAKES, instance, Outcome::Signal(9)),
            Action::RunProbe { instance, kind, run, timeout } => self.probe(now, instance, *kind, *run, *timeout),
            Action::RunHook { instance, hook } => self.hook(now, instance, *hook),
            Action::CancelHook { instance, hook } => {
                if let Some(key) = self.live(instance).and_then(|live| live.hooks[*hook as usize].take()) {
                    self.due.remove(&key);
                }
            }
            Action::UpdateResources { instance, revision, .. } => self.resize(now, instance, *revision),
            Action::Teardown { pod, attempt } => {
                let Some(known) = self.pod(pod) else { return };
                let at = now + known.tear_down.takes.0;
                self.plan(at, Due::Answer(Input::TornDown { pod: pod.clone(), attempt: *attempt }));
            }
            Action::Gone { pod } => {
                if let Some(pod) = self.pod(pod) {
                    pod.gone = true;
                }
            }
            Action::StatusChanged { .. } | Action::Persist { .. } | Action::Forget { .. } | Action::Record { .. } => {}
        }
    }

    fn set_up(&mut self, now: Instant, pod: &PodUid, attempt: u32) {
        let Some(place) = self.by_uid.get(pod).copied() else { return };
        let known = &mut self.pods[place];
        let at = now + known.set_up.takes.0;
        let input = if fails(&mut known.failed_set_ups, known.set_up.fails) {
            let message = "the pod's address is not free yet".into();
            Input::SandboxFailed { pod: pod.clone(), attempt, reason: "FailedCreatePodSandBox".into(), message }
        } else {
            // Addresses are given in order.
            let (high, low) = (1 + place / 250, 1 + place % 250);
            Input::SandboxReady { pod: pod.clone(), attempt, ips: vec![format!("127.{high}.0.{low}")] }
        };
        self.plan(at, Due::Answer(input));
    }

    fn pull(&mut self, now: Instant, instance: &InstanceRef) {
        let Some(container) = self.container(instance) else { return };
        let (image, script) = (container.image.clone(), container.script.image.clone());
        let (known, image_id) = (instance, format!("sim:{image}"));
        let instance = instance.clone();
        let (after, input) = if self.pulled.contains(&image) {
            (Duration::ZERO, Input::ImageReady { instance, image_id, pulled: None })
        } else if self.container(known).is_some_and(|container| fails(&mut container.failed.pulls, script.fails)) {
            let (reason, message) = (script.reason.into(), script.message);
            (script.takes.0, Input::ImageFailed { instance, reason, message })
        } else {
            self.pulled.insert(image);
            (script.takes.0, Input::ImageReady { instance, image_id, pulled: Some(0) })
        };
        self.plan(now + after, Due::Answer(input));
    }

    fn start(&mut self, now: Instant, instance: &InstanceRef) {
        let Some(container) = self.container(instance) else { return };
        let script = container.script.start.clone();
        let input = if fails(&mut container.failed.starts, script.fails) {
            let (reason, message) = (script.reason.into(), script.message);
            Input::StartFailed { instance: instance.clone(), reason, message }
        } else {
            let id = format!("husk://{}-{}", instance.container, instance.attempt);
            Input::Started { instance: instance.clone(), id }
        };
        container.live = Some(Live { attempt: instance.attempt, ..Live::default() });
        let next = Some(self.plan(now + script.takes.0, Due::Answer(input)));
        if let Some(live) = self.live(instance) {
            live.next = next;
        }
    }

    fn signal(&mut self, now: Instant, instance: &InstanceRef, signal: &str) {
        let Some(container) = self.container(instance) else { return };
        let script = &container.script.on_stop;
        if script.ignores || container.live.as_ref().is_none_or(|live| live.since.is_none()) {
            return;
        }
        // Validation let only known ones through.
        let Some(number) = husk_core::signal::number(signal) else { return };
        let handles = script.takes.is_some() || script.exit.is_some();
        if !handles && !husk_core::signal::ends_by_default(number) {
            return;
        }
        let outcome = if handles { Outcome::Code(script.exit.unwrap_or(0)) } else { Outcome::Signal(number) };
        let at = now + script.takes.map_or(KILL_TAKES, |takes| takes.0);
        // What it does by itself before that still happens.
        if self.live(instance).is_some_and(|live| live.next.is_none_or(|(due, _)| due > at)) {
            self.end(at, instance, outcome);
        }
    }

    /// An instance that runs or is being started ends at that time, and not otherwise.
    fn end(&mut self, at: Instant, instance: &InstanceRef, outcome: Outcome) {
        let Some(live) = self.live(instance) else { return };
        if let Some(key) = live.next.take() {
            self.due.remove(&key);
        }
        let input = Input::Exited { instance: instance.clone(), outcome, message: String::new() };
        let next = Some(self.plan(at, Due::Answer(input)));
        if let Some(live) = self.live(instance) {
            live.next = next;
        }
    }

    fn probe(&mut self, now: Instant, instance: &InstanceRef, kind: ProbeKind, run: u32, timeout: Duration) {
        let Some(container) = self.container(instance) else { return };
        let script = container.script.probes.of(kind);
        let started = container.live.as_ref().and_then(|live| live.since).unwrap_or(now);
        let fails = script.fails.iter().find(|window| window_holds(window, now, started, instance.attempt));
        let takes = script.takes.unwrap_or(PROBE_TAKES).0;
        let message = || script.message.clone().unwrap_or_else(|| "as the scenario says".into());
        let (result, message) = match (takes > timeout, fails) {
            (true, _) => (ProbeOutcome::Failure, format!("timed out after {}", Span(timeout))),
            (false, Some(window)) => (window.says.unwrap_or(ProbeOutcome::Failure), message()),
            (false, None) => (ProbeOutcome::Success, String::new()),
        };
        let input = Input::ProbeResult { instance: instance.clone(), kind, run, result, message };
        let key = Some(self.plan(now + takes.min(timeout), Due::Answer(input)));
        if let Some(live) = self.live(instance) {
            live.probes[kind as usize] = key;
        }
    }

    fn hook(&mut self, now: Instant, instance: &InstanceRef, hook: Hook) {
        let Some(container) = self.container(instance) else { return };
        let hooks = &container.script.hooks;
        let script = match hook {
            Hook::PostStart => &hooks.post_start,
            Hook::PreStop => &hooks.pre_stop,
        };
        let (takes, result) = (script.takes.0, script.fails.clone().map_or(Ok(()), Err));
        let input = Input::HookDone { instance: instance.clone(), hook, result };
        let key = Some(self.plan(now + takes, Due::Answer(input)));
        if let Some(live) = self.live(instance) {
            live.hooks[hook as usize] = key;
        }
    }

    fn resize(&mut self, now: Instant, instance: &InstanceRef, revision: u32) {
        let Some(container) = self.container(instance) else { return };
        let (takes, times) = (container.script.resize.takes.0, container.script.resize.fails);
        let instance = instance.clone();
        let input = if fails(&mut container.failed.resizes, times) {
            Input::ResourcesFailed { instance, revision, message: "the memory is in use".into() }
        } else {
            Input::ResourcesUpdated { instance, revision }
        };
        self.plan(now + takes, Due::Answer(input));
    }

    fn plan(&mut self, at: Instant, due: Due) -> Key {
        let key = (at, self.made);
        self.due.insert(key, due);
        self.made += 1;
        key
    }

    fn pod(&mut self, uid: &PodUid) -> Option<&mut Pod<'a>> {
        self.by_uid.get(uid).map(|place| &mut self.pods[*place])
    }

    fn container(&mut self, instance: &InstanceRef) -> Option<&mut Container> {
        let containers = &mut self.pod(&instance.pod)?.containers;
        containers.iter_mut().find(|container| *container.name == *instance.container)
    }

    fn live(&mut self, instance: &InstanceRef) -> Option<&mut Live> {
        self.container(instance)?.live.as_mut().filter(|live| live.attempt == instance.attempt)
    }
}

impl<'a> Pod<'a> {
    fn new(scenario: &'a Scenario, subject: &Subject) -> Self {
        let of_pod = scenario.pods.get(&subject.id);
        let containers = subject.spec.all_containers().map(|(_, container)| Container {
            name: container.name.clone(),
            image: container.image.clone(),
            script: scenario.script(subject, &container.name),
            failed: Failed::default(),
            live: None,
        });
        Self {
            set_up: scenario.set_up(of_pod),
            tear_down: scenario.tear_down(of_pod),
            failed_set_ups: 0,
            applied: false,
            gone: false,
            containers: containers.collect(),
            subject: subject.clone(),
        }
    }
}

/// Does it fail once more? It fails so many times before it succeeds.
fn fails(so_far: &mut u32, times: u32) -> bool {
    let fails = *so_far < times;
    *so_far += u32::from(fails);
    fails
}

fn window_holds(window: &Window, now: Instant, started: Instant, attempt: u32) -> bool {
    let zero = match window.since {
        Clock::Beginning => Instant::ZERO,
        Clock::Start => started,
    };
    let at = now - zero;
    window.attempt.is_none_or(|only| only == attempt) && at >= window.from.0 && window.to.is_none_or(|to| at < to.0)
}
