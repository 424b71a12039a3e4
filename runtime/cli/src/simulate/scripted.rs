//! A runtime that answers the core's orders as the scenario says, in virtual time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use husk_core::io::{Hook, InstanceRef, Outcome, ProbeOutcome};
use husk_core::spec::{PodSpec, ProbeKind};
use husk_core::{Action, Input, Instant};

use super::scenario::{Clock, Scenario, Script, Window};
use crate::span::Span;

/// The pod's address in every simulation.
const ADDRESS: &str = "127.1.0.1";
/// From KILL to the exit.
const KILL_TAKES: Duration = Duration::from_millis(1);
/// From the order to the end of the last remains.
const TEARDOWN_TAKES: Duration = Duration::from_millis(50);
/// A probe, if the scenario doesn't say.
const PROBE_TAKES: Span = Span::millis(10);

/// Answers orders; every answer waits for its time.
pub(super) struct Scripted<'a> {
    scenario: &'a Scenario,
    scripts: BTreeMap<String, Script>,
    images: BTreeMap<String, String>,
    /// Answers to come, by time and by order of their making.
    due: BTreeMap<(Instant, u64), Input>,
    made: u64,
    /// Instances that run, and since when.
    live: BTreeMap<InstanceRef, Instant>,
    pulled: BTreeSet<String>,
    failed: BTreeMap<(String, What), u32>,
}

/// What can fail a number of times before it succeeds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    SetUp,
    Pull,
    Start,
}

impl<'a> Scripted<'a> {
    /// A runtime for one pod.
    pub(super) fn new(scenario: &'a Scenario, spec: &PodSpec) -> Self {
        let containers = || spec.all_containers().map(|(_, container)| container);
        Self {
            scenario,
            scripts: containers().map(|c| (c.name.clone(), scenario.script(spec, &c.name))).collect(),
            images: containers().map(|c| (c.name.clone(), c.image.clone())).collect(),
            due: BTreeMap::new(),
            made: 0,
            live: BTreeMap::new(),
            pulled: BTreeSet::new(),
            failed: BTreeMap::new(),
        }
    }

    /// Something happens at that time.
    pub(super) fn plan(&mut self, at: Instant, input: Input) {
        self.due.insert((at, self.made), input);
        self.made += 1;
    }

    /// When the next answer is due.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.due.keys().next().map(|(at, _)| *at)
    }

    /// The next answer, if it is due.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<Input> {
        let entry = self.due.first_entry().filter(|entry| entry.key().0 <= now)?;
        let input = entry.remove();
        match &input {
            Input::Started { instance, .. } => {
                self.live.insert(instance.clone(), now);
                let run = self.script(instance).run(instance.attempt);
                if let Some(duration) = run.duration {
                    let (outcome, message) = (run.outcome(), run.message.clone());
                    self.plan(now + duration.0, Input::Exited { instance: instance.clone(), outcome, message });
                }
            }
            Input::Exited { instance, .. } => self.forget(&instance.clone()),
            _ => {}
        }
        Some(input)
    }

    /// Takes an order.
    pub(super) fn carry_out(&mut self, now: Instant, action: &Action) {
        match action {
            Action::SetUp { pod, attempt } => {
                let (pod, attempt) = (pod.clone(), *attempt);
                let input = if self.still_fails("", What::SetUp, self.scenario.set_up.fails) {
                    let message = "the pod's address is not free yet".into();
                    Input::SandboxFailed { pod, attempt, reason: "FailedCreatePodSandBox".into(), message }
                } else {
                    Input::SandboxReady { pod, attempt, ips: vec![ADDRESS.into()] }
                };
                self.plan(now + self.scenario.set_up.takes.0, input);
            }
            Action::PullImage { instance } => self.pull(now, instance),
            Action::Start { instance } => self.start(now, instance),
            Action::Signal { instance, signal } => self.signal(now, instance, signal),
            Action::Kill { instance } => {
                self.due.retain(|_, input| !starts_or_ends(input, instance));
                let outcome = Outcome::Signal(9);
                let instance = instance.clone();
                self.plan(now + KILL_TAKES, Input::Exited { instance, outcome, message: String::new() });
            }
            Action::RunProbe { instance, kind, run, timeout } => self.probe(now, instance, *kind, *run, *timeout),
            Action::RunHook { instance, hook } => {
                let hooks = &self.script(instance).hooks;
                let script = match hook {
                    Hook::PostStart => &hooks.post_start,
                    Hook::PreStop => &hooks.pre_stop,
                };
                let result = script.fails.clone().map_or(Ok(()), Err);
                let at = now + script.takes.0;
                self.plan(at, Input::HookDone { instance: instance.clone(), hook: *hook, result });
            }
            Action::CancelHook { instance, hook } => self.due.retain(
                |_, input| !matches!(input, Input::HookDone { instance: i, hook: h, .. } if i == instance && h == hook),
            ),
            Action::UpdateResources { instance, revision, .. } => {
                self.plan(now, Input::ResourcesUpdated { instance: instance.clone(), revision: *revision });
            }
            Action::Teardown { pod, attempt } => {
                self.plan(now + TEARDOWN_TAKES, Input::TornDown { pod: pod.clone(), attempt: *attempt });
            }
            Action::StatusChanged { .. }
            | Action::Gone { .. }
            | Action::Persist { .. }
            | Action::Forget { .. }
            | Action::Record { .. } => {}
        }
    }

    fn pull(&mut self, now: Instant, instance: &InstanceRef) {
        let image = self.images.get(&*instance.container).cloned().unwrap_or_default();
        let script = self.script(instance).image.clone();
        let image_id = format!("sim:{image}");
        if self.pulled.contains(&image) {
            self.plan(now, Input::ImageReady { instance: instance.clone(), image_id, already_present: true });
        } else if self.still_fails(&instance.container, What::Pull, script.fails) {
            let (reason, message) = ("ErrImagePull".into(), script.message);
            self.plan(now + script.takes.0, Input::ImageFailed { instance: instance.clone(), reason, message });
        } else {
            self.pulled.insert(image);
            let at = now + script.takes.0;
            self.plan(at, Input::ImageReady { instance: instance.clone(), image_id, already_present: false });
        }
    }

    fn start(&mut self, now: Instant, instance: &InstanceRef) {
        let script = self.script(instance).start.clone();
        let input = if self.still_fails(&instance.container, What::Start, script.fails) {
            let (reason, message) = ("RunContainerError".into(), script.message);
            Input::StartFailed { instance: instance.clone(), reason, message }
        } else {
            let id = format!("husk://{}-{}", instance.container, instance.attempt);
            Input::Started { instance: instance.clone(), id }
        };
        self.plan(now + script.takes.0, input);
    }

    fn signal(&mut self, now: Instant, instance: &InstanceRef, signal: &str) {
        let script = self.script(instance).on_stop.clone();
        if script.ignores || !self.live.contains_key(instance) {
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
        // What it would have done by itself later no longer happens.
        self.due.retain(|(due, _), input| *due <= at || !starts_or_ends(input, instance));
        self.plan(at, Input::Exited { instance: instance.clone(), outcome, message: String::new() });
    }

    fn probe(&mut self, now: Instant, instance: &InstanceRef, kind: ProbeKind, run: u32, timeout: Duration) {
        let script = self.script(instance).probes.of(kind).clone();
        let started = self.live.get(instance).copied().unwrap_or(now);
        let fails = script.fails.iter().any(|window| window_holds(window, now, started, instance.attempt));
        let takes = script.takes.unwrap_or(PROBE_TAKES).0;
        let (result, message) = match (takes > timeout, fails) {
            (true, _) => (ProbeOutcome::Failure, format!("timed out after {}", Span(timeout))),
            (false, true) => (ProbeOutcome::Failure, script.message.unwrap_or_else(|| "as the scenario says".into())),
            (false, false) => (ProbeOutcome::Success, String::new()),
        };
        let instance = instance.clone();
        self.plan(now + takes.min(timeout), Input::ProbeResult { instance, kind, run, result, message });
    }

    /// Nothing more comes from an instance that has ended.
    fn forget(&mut self, instance: &InstanceRef) {
        self.live.remove(instance);
        self.due.retain(|_, input| {
            !starts_or_ends(input, instance)
                && !matches!(input, Input::ProbeResult { instance: i, .. } if i == instance)
        });
    }

    fn still_fails(&mut self, container: &str, what: What, times: u32) -> bool {
        let failed = self.failed.entry((container.into(), what)).or_default();
        let fails = *failed < times;
        *failed += u32::from(fails);
        fails
    }

    fn script(&self, instance: &InstanceRef) -> &Script {
        static NOTHING: std::sync::LazyLock<Script> = std::sync::LazyLock::new(Script::default);
        self.scripts.get(&*instance.container).unwrap_or(&NOTHING)
    }
}

fn window_holds(window: &Window, now: Instant, started: Instant, attempt: u32) -> bool {
    let zero = match window.since {
        Clock::Beginning => Instant::ZERO,
        Clock::Start => started,
    };
    let at = now - zero;
    window.attempt.is_none_or(|only| only == attempt) && at >= window.from.0 && window.to.is_none_or(|to| at < to.0)
}

fn starts_or_ends(input: &Input, of: &InstanceRef) -> bool {
    matches!(input,
        Input::Started { instance, .. } | Input::StartFailed { instance, .. } | Input::Exited { instance, .. }
        if instance == of)
}
