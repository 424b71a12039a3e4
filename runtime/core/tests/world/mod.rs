//! A node in a scripted world, in virtual time, in the manner of quinn's `Pair`: it steps from wake-up to wake-up, so a
//! five-minute back-off takes microseconds.

#![allow(dead_code, reason = "each test file uses its part")]

mod records;
mod specs;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use husk_core::event::Event;
use husk_core::io::{Action, Hook, Input, InstanceRef, Outcome, PodUid, ProbeOutcome, Urgency};
use husk_core::node::{Node, NodeConfig};
use husk_core::record::Interruption;
use husk_core::spec::{PodMeta, PodSpec, ProbeKind};
use husk_core::status::{Condition, ContainerState, ContainerStatus, Phase, PodStatus, Terminated};
use husk_core::time::Instant;
#[allow(unused_imports, reason = "each test file uses its part")]
pub(crate) use specs::*;

/// How long an instance runs and how it ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Life {
    /// Ends by itself.
    Exit(Duration, Outcome),
    /// Runs until it is stopped.
    Forever,
    /// Can't be made.
    StartFails(&'static str, &'static str),
}

/// What an instance does on its stop signal.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OnSignal {
    /// Ends after that time.
    Ends(Duration, Outcome),
    /// Goes on until KILL.
    Ignores,
}

/// How a container behaves.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    /// One per instance; the last one repeats.
    pub(crate) lives: Vec<Life>,
    pub(crate) on_signal: OnSignal,
    /// Result per probe kind, by time since the instance's start; success if not listed.
    pub(crate) probes: Vec<(ProbeKind, Duration, Duration, ProbeOutcome)>,
    /// How long each hook takes, and what it says. A hook without an entry never ends.
    pub(crate) hooks: BTreeMap<Hook, (Duration, Result<(), String>)>,
    /// How often the image can't be had at first.
    pub(crate) image_failures: u32,
    /// Later tries, counted from 1, that fail as well.
    pub(crate) failing_pulls: Vec<u32>,
    pub(crate) image_reason: &'static str,
    pub(crate) image_present: bool,
    pub(crate) pull_delay: Duration,
    pub(crate) start_delay: Duration,
    /// How long a probe takes.
    pub(crate) probe_delay: Duration,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            lives: vec![Life::Forever],
            on_signal: OnSignal::Ends(Duration::ZERO, Outcome::Signal(15)),
            probes: Vec::new(),
            hooks: BTreeMap::new(),
            image_failures: 0,
            failing_pulls: Vec::new(),
            image_reason: "ErrImagePull",
            image_present: true,
            pull_delay: Duration::ZERO,
            start_delay: Duration::ZERO,
            probe_delay: Duration::ZERO,
        }
    }
}

/// So many steps of a world are also done by a node that is restored from records: with more, weeks of probes take long.
const STEPS_WITH_HEIR: usize = 400;

pub(crate) struct World {
    pub(crate) node: Node,
    pub(crate) now: Instant,
    pub(crate) uid: PodUid,
    /// All orders so far, but events and status changes.
    pub(crate) orders: Vec<(Instant, Action)>,
    pub(crate) events: Vec<Event>,
    /// Every status that was published.
    pub(crate) statuses: Vec<(Instant, PodStatus)>,
    pub(crate) gone: BTreeSet<PodUid>,
    pub(crate) sandbox_delay: Duration,
    /// How often the sandbox can't be made.
    pub(crate) sandbox_failures: u32,
    pub(crate) teardown_delay: Duration,
    /// Every answer that was given so far.
    pub(crate) said: Vec<Input>,
    /// When something had to be persisted, and how soon.
    pub(crate) persisted: Vec<(Instant, Urgency)>,
    pub(crate) forgotten: BTreeSet<PodUid>,
    stored: BTreeMap<PodUid, Vec<u8>>,
    config: NodeConfig,
    steps: usize,
    /// What was said about the node itself; an heir hears it before it takes the pods.
    about_node: Vec<Input>,
    /// What running instances can't have; the message, by container.
    pub(crate) resize_failures: BTreeMap<String, String>,
    applied: Vec<PodUid>,
    scripts: BTreeMap<String, Script>,
    due: BTreeMap<(Instant, u64), Input>,
    sequence: u64,
    running: BTreeMap<InstanceRef, Instant>,
    started: BTreeMap<String, usize>,
    pulls: BTreeMap<String, u32>,
}

impl World {
    /// A world with one pod, named `p` in namespace `d`, already applied.
    pub(crate) fn with(spec: PodSpec, scripts: &[(&str, Script)]) -> Self {
        Self::configured(NodeConfig::default(), spec, scripts)
    }

    pub(crate) fn configured(config: NodeConfig, spec: PodSpec, scripts: &[(&str, Script)]) -> Self {
        let mut world = Self::empty(config, scripts);
        world.apply("p", "u1", spec);
        world
    }

    /// A world without pods.
    pub(crate) fn empty(config: NodeConfig, scripts: &[(&str, Script)]) -> Self {
        Self {
            node: Node::new(config.clone()),
            now: Instant::from_secs(1000),
            uid: PodUid::from("u1"),
            orders: Vec::new(),
            events: Vec::new(),
            statuses: Vec::new(),
            gone: BTreeSet::new(),
            sandbox_delay: Duration::ZERO,
            sandbox_failures: 0,
            teardown_delay: Duration::ZERO,
            said: Vec::new(),
            persisted: Vec::new(),
            forgotten: BTreeSet::new(),
            stored: BTreeMap::new(),
            config,
            steps: 0,
            about_node: Vec::new(),
            resize_failures: BTreeMap::new(),
            applied: Vec::new(),
            scripts: scripts.iter().map(|(name, script)| ((*name).to_owned(), script.clone())).collect(),
            due: BTreeMap::new(),
            sequence: 0,
            running: BTreeMap::new(),
            started: BTreeMap::new(),
            pulls: BTreeMap::new(),
        }
    }

    /// Creates or changes a pod in namespace `d`.
    pub(crate) fn apply(&mut self, name: &str, uid: &str, spec: PodSpec) {
        self.apply_as(meta(name, uid), spec);
    }

    pub(crate) fn apply_as(&mut self, meta: PodMeta, spec: PodSpec) {
        let uid = PodUid::from(meta.uid.as_str());
        if !self.applied.contains(&uid) {
            self.applied.push(uid);
        }
        self.input(Input::Applied { meta, spec: Box::new(spec) });
    }

    pub(crate) fn input(&mut self, input: Input) {
        self.step(Some(input));
        self.check_at_rest(self.now);
    }

    /// One step of the node, and of another that took over before it from the node's records and has to order the same.
    /// Returns true if anything was ordered.
    fn step(&mut self, input: Option<Input>) -> bool {
        self.steps += 1;
        let mut heir = (self.steps <= STEPS_WITH_HEIR).then(|| self.restored(Interruption::Handover));
        self.about_node.extend(input.clone().filter(|input| input.pod().is_none()));
        for node in [&mut self.node].into_iter().chain(&mut heir) {
            match &input {
                Some(input) => node.handle(self.now, input.clone()),
                None => node.advance(self.now),
            }
        }
        self.carry_out(heir.as_mut())
    }

    /// From here on there is no other node beside: there are things that no record holds, such as a shutdown that is under way.
    pub(crate) fn without_heir(&mut self) {
        self.steps = STEPS_WITH_HEIR;
    }

    /// Status of any pod.
    pub(crate) fn status_of(&self, uid: &str) -> PodStatus {
        self.node.status(&uid.into()).cloned().unwrap_or_else(|| panic!("no pod {uid}"))
    }

    /// A condition of any pod.
    pub(crate) fn condition_of(&self, uid: &str, kind: &str) -> Option<Condition> {
        self.status_of(uid).conditions.into_iter().find(|condition| condition.kind == kind)
    }

    /// Runs on until something like that was ordered, and no further.
    pub(crate) fn run_until_ordered(&mut self, what: impl Fn(&Action) -> bool) {
        let before = self.orders.len();
        while !self.orders[before..].iter().any(|(_, action)| what(action)) {
            let next = self.due.pop_first();
            let ((at, _), input) = next.expect("something is to come");
            self.now = self.now.max(at);
            self.step(Some(input));
        }
    }

    /// Everything that was due is done: looking again changes nothing, and the next thing that is due is later.
    fn check_at_rest(&mut self, now: Instant) {
        for pod in self.applied.clone() {
            self.node.handle(now, Input::TornDown { pod, attempt: u32::MAX });
            assert_eq!(self.node.poll_action(), None, "at {now:?} something was left to be done");
        }
        let wake = self.node.next_wake();
        assert!(wake.is_none_or(|wake| wake > now), "at {now:?} the next wake-up is {wake:?}");
    }

    pub(crate) fn delete(&mut self, grace_seconds: Option<i64>) {
        self.input(Input::DeleteRequested { pod: self.uid.clone(), grace_seconds });
    }

    pub(crate) fn script(&mut self, container: &str, script: Script) {
        self.scripts.insert(container.to_owned(), script);
    }

    /// Runs until that many seconds after the pod was applied.
    pub(crate) fn run_until(&mut self, seconds: f64) {
        let end = Instant::from_secs(1000) + Duration::from_secs_f64(seconds);
        let mut steps = 0;
        loop {
            let fact = self.due.first_key_value().map(|((at, _), _)| *at);
            let wake = self.node.next_wake();
            let Some(next) = [fact, wake].into_iter().flatten().min().filter(|at| *at <= end) else { break };
            steps += 1;
            assert!(steps < 1_000_000, "the world does not come to rest");
            self.check_at_rest(self.now.max(Instant::from_nanos(next.as_nanos() - 1)));
            self.now = self.now.max(next);
            if fact.is_some_and(|at| at <= self.now) {
                if let Some((_, input)) = self.due.pop_first() {
                    if let Input::Exited { instance, .. } = &input {
                        // It has ended otherwise meanwhile.
                        if self.running.remove(instance).is_none() {
                            continue;
                        }
                    }
                    self.said.push(input.clone());
                    self.step(Some(input));
                }
            } else {
                let shut_down = self.node.is_shut_down();
                let ordered = self.step(None);
                let had_to = ordered || shut_down != self.node.is_shut_down();
                assert!(had_to, "at {:?} the node was woken up for nothing", self.now);
            }
            self.check_at_rest(self.now);
        }
        self.now = self.now.max(end);
        self.node.advance(self.now);
        assert_eq!(self.node.poll_action(), None, "at {:?} something was due and not announced", self.now);
    }

    /// Nobody looks until that many seconds after the pod was applied, whatever is due.
    pub(crate) fn oversleep(&mut self, seconds: f64) {
        self.now = Instant::from_secs(1000) + Duration::from_secs_f64(seconds);
        self.step(None);
        self.check_at_rest(self.now);
    }

    /// Runs for that many seconds.
    pub(crate) fn run_for(&mut self, seconds: f64) {
        let since = self.now.saturating_since(Instant::from_secs(1000));
        self.run_until(since.as_secs_f64() + seconds);
    }

    fn answer(&mut self, after: Duration, input: Input) {
        self.sequence += 1;
        self.due.insert((self.now + after, self.sequence), input);
    }

    /// Returns true if there was anything. The heir has to order the same.
    fn carry_out(&mut self, mut heir: Option<&mut Node>) -> bool {
        let mut any = false;
        loop {
            let action = self.node.poll_action();
            if let Some(heir) = &mut heir {
                assert_eq!(heir.poll_action(), action, "a node that was restored from records orders something else");
            }
            let Some(action) = action else { break };
            any = true;
            self.check_not_gone(&action);
            match &action {
                Action::Record { event } => {
                    self.events.push(event.clone());
                    continue;
                }
                Action::StatusChanged { pod } => {
                    if *pod == self.uid
                        && let Some(status) = self.node.status(pod)
                    {
                        self.statuses.push((self.now, status.clone()));
                    }
                    continue;
                }
                Action::Persist { pod, urgency } => {
                    self.persisted.push((self.now, *urgency));
                    let record = self.node.record(pod).expect("a pod that is to be persisted");
                    self.stored.insert(pod.clone(), record.to_bytes());
                    continue;
                }
                Action::Forget { pod } => {
                    self.stored.remove(pod);
                    self.forgotten.insert(pod.clone());
                    continue;
                }
                Action::Gone { pod } => {
                    self.gone.insert(pod.clone());
                }
                other => self.obey(other.clone()),
            }
            self.orders.push((self.now, action));
        }
        if let Some(heir) = heir {
            assert_eq!(heir.next_wake(), self.node.next_wake());
            for pod in &self.applied {
                assert_eq!(heir.status(pod), self.node.status(pod));
            }
        }
        any
    }

    /// Of a pod that is gone nothing is begun, shown or asked any more.
    fn check_not_gone(&self, action: &Action) {
        let pod = match action {
            Action::SetUp { pod, .. } | Action::StatusChanged { pod } | Action::Gone { pod } => pod,
            Action::PullImage { instance }
            | Action::Start { instance }
            | Action::Signal { instance, .. }
            | Action::RunProbe { instance, .. }
            | Action::UpdateResources { instance, .. }
            | Action::RunHook { instance, .. } => &instance.pod,
            Action::Kill { .. }
            | Action::CancelHook { .. }
            | Action::Teardown { .. }
            | Action::Persist { .. }
            | Action::Forget { .. }
            | Action::Record { .. } => return,
        };
        assert!(!self.gone.contains(pod), "{action:?} for a pod that is gone");
    }

    fn obey(&mut self, action: Action) {
        match action {
            Action::SetUp { pod, attempt } => {
                let answer = if self.sandbox_failures > 0 {
                    self.sandbox_failures -= 1;
                    let (reason, message) = ("FailedCreatePodSandBox".into(), "no address is left".into());
                    Input::SandboxFailed { pod, attempt, reason, message }
                } else {
                    Input::SandboxReady { pod, attempt, ips: vec!["127.1.2.3".into()] }
                };
                self.answer(self.sandbox_delay, answer);
            }
            Action::PullImage { instance } => {
                let script = self.script_of(&instance);
                let pulls = self.pulls.entry(instance.container.to_string()).or_default();
                *pulls += 1;
                let failed = *pulls <= script.image_failures || script.failing_pulls.contains(pulls);
                self.answer(
                    script.pull_delay,
                    if failed {
                        Input::ImageFailed { instance, reason: script.image_reason.into(), message: "not there".into() }
                    } else {
                        let pulled = (!script.image_present).then_some(4096);
                        Input::ImageReady { instance, image_id: "sha256:1".into(), pulled }
                    },
                );
            }
            Action::Start { instance } => self.start(instance),
            Action::Signal { instance, .. } => {
                if let OnSignal::Ends(after, outcome) = self.script_of(&instance).on_signal {
                    self.answer(after, Input::Exited { instance, outcome, message: String::new() });
                }
            }
            Action::Kill { instance } => {
                self.answer(
                    Duration::ZERO,
                    Input::Exited { instance, outcome: Outcome::Signal(9), message: String::new() },
                );
            }
            Action::RunProbe { instance, kind, run, .. } => {
                let since = self.now.saturating_since(self.running.get(&instance).copied().unwrap_or(self.now));
                let script = self.script_of(&instance);
                let found = script.probes.iter().find(|(k, from, to, _)| *k == kind && *from <= since && since < *to);
                let result = found.map_or(ProbeOutcome::Success, |(.., outcome)| *outcome);
                let message = "as scripted".into();
                self.answer(script.probe_delay, Input::ProbeResult { instance, kind, run, result, message });
            }
            Action::RunHook { instance, hook } => {
                if let Some((after, result)) = self.script_of(&instance).hooks.get(&hook).cloned() {
                    self.answer(after, Input::HookDone { instance, hook, result });
                }
            }
            Action::Teardown { pod, attempt } => self.answer(self.teardown_delay, Input::TornDown { pod, attempt }),
            Action::UpdateResources { instance, revision, .. } => {
                let answer = match self.resize_failures.get(&*instance.container).cloned() {
                    None => Input::ResourcesUpdated { instance, revision },
                    Some(message) => Input::ResourcesFailed { instance, revision, message },
                };
                self.answer(Duration::ZERO, answer);
            }
            Action::CancelHook { .. }
            | Action::StatusChanged { .. }
            | Action::Gone { .. }
            | Action::Persist { .. }
            | Action::Forget { .. }
            | Action::Record { .. } => {}
        }
    }

    fn start(&mut self, instance: InstanceRef) {
        let script = self.script_of(&instance);
        let nth = self.started.entry(instance.container.to_string()).or_default();
        let life = script.lives.get(*nth).or(script.lives.last()).copied().unwrap_or(Life::Forever);
        *nth += 1;
        if let Life::StartFails(reason, message) = life {
            let (reason, message) = (reason.into(), message.into());
            return self.answer(script.start_delay, Input::StartFailed { instance, reason, message });
        }
        self.running.insert(instance.clone(), self.now + script.start_delay);
        let id = format!("husk://{}-{}", instance.container, instance.attempt);
        self.answer(script.start_delay, Input::Started { instance: instance.clone(), id });
        if let Life::Exit(after, outcome) = life {
            let message = String::new();
            self.answer(script.start_delay + after, Input::Exited { instance, outcome, message });
        }
    }

    fn script_of(&self, instance: &InstanceRef) -> Script {
        self.scripts.get(&*instance.container).cloned().unwrap_or_default()
    }

    // What tests look at.

    /// Status of the pod; the last one published if it is gone.
    pub(crate) fn status(&self) -> PodStatus {
        let current = self.node.status(&self.uid).cloned();
        current.or_else(|| self.statuses.last().map(|(_, status)| status.clone())).expect("the pod had a status")
    }

    pub(crate) fn phase(&self) -> Phase {
        self.status().phase
    }

    pub(crate) fn condition(&self, kind: &str) -> Condition {
        let status = self.status();
        let found = status.conditions.iter().find(|c| c.kind == kind).cloned();
        found.unwrap_or_else(|| panic!("no condition {kind} among {:?}", status.conditions))
    }

    pub(crate) fn container(&self, name: &str) -> ContainerStatus {
        let status = self.status();
        let all = status.init_container_statuses.iter().chain(&status.container_statuses);
        let mut all = all.chain(&status.ephemeral_container_statuses);
        all.find(|c| c.name == name).cloned().unwrap_or_else(|| panic!("no status of {name} in {status:?}"))
    }

    pub(crate) fn waiting(&self, name: &str) -> (String, String) {
        match self.container(name).state {
            ContainerState::Waiting { reason, message } => (reason.to_string(), message),
            other => panic!("{name} is {other:?}, not waiting"),
        }
    }

    pub(crate) fn terminated(&self, name: &str) -> Terminated {
        match self.container(name).state {
            ContainerState::Terminated(terminated) => terminated,
            other => panic!("{name} is {other:?}, not terminated"),
        }
    }

    pub(crate) fn is_running(&self, name: &str) -> bool {
        matches!(self.container(name).state, ContainerState::Running { .. })
    }

    /// Seconds after the pod was applied.
    pub(crate) fn seconds(at: Instant) -> f64 {
        at.saturating_since(Instant::from_secs(1000)).as_secs_f64()
    }

    /// When a container was started, in seconds after the pod was applied.
    pub(crate) fn starts(&self, container: &str) -> Vec<f64> {
        self.ordered(|action| matches!(action, Action::Start { instance } if &*instance.container == container))
    }

    pub(crate) fn signals(&self, container: &str) -> Vec<f64> {
        self.ordered(|action| matches!(action, Action::Signal { instance, .. } if &*instance.container == container))
    }

    pub(crate) fn kills(&self, container: &str) -> Vec<f64> {
        self.ordered(|action| matches!(action, Action::Kill { instance } if &*instance.container == container))
    }

    pub(crate) fn probes(&self, container: &str, which: ProbeKind) -> Vec<f64> {
        self.ordered(|action| {
            matches!(action, Action::RunProbe { instance, kind, .. } if &*instance.container == container && *kind == which)
        })
    }

    pub(crate) fn hooks(&self, container: &str, which: Hook) -> Vec<f64> {
        self.ordered(|action| {
            matches!(action, Action::RunHook { instance, hook } if &*instance.container == container && *hook == which)
        })
    }

    pub(crate) fn ordered(&self, which: impl Fn(&Action) -> bool) -> Vec<f64> {
        self.orders.iter().filter(|(_, action)| which(action)).map(|(at, _)| Self::seconds(*at)).collect()
    }

    /// Messages of the events with that reason, in order.
    pub(crate) fn events(&self, reason: &str) -> Vec<String> {
        self.events.iter().filter(|e| e.reason == reason).map(|e| e.message.clone()).collect()
    }

    /// How many instances of a pod run, or are about to.
    pub(crate) fn running_of(&self, uid: &str) -> usize {
        self.running.keys().filter(|instance| instance.pod == PodUid::from(uid)).count()
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.gone.contains(&self.uid)
    }
}
