//! How often what happened: what a run of the simulator has covered.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use husk_core::{Action, Input, Instant, Node};

use crate::play::Watch;

/// How often what happened.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Facts that were told.
    pub facts: u64,
    /// Orders that were given.
    pub orders: u64,
    /// Times that orders were taken: after each fact and each wake-up.
    pub steps: u64,
    /// Lives that were played to their end.
    pub cases: u64,
    by_name: HashMap<&'static str, u64>,
    by_reason: HashMap<String, u64>,
}

impl Counts {
    /// Adds those of another run.
    pub fn add(&mut self, other: Self) {
        self.facts += other.facts;
        self.orders += other.orders;
        self.steps += other.steps;
        self.cases += other.cases;
        for (name, count) in other.by_name {
            *self.by_name.entry(name).or_default() += count;
        }
        for (reason, count) in other.by_reason {
            *self.by_reason.entry(reason).or_default() += count;
        }
    }

    /// How often that was told, ordered, or recorded as an event.
    pub fn of(&self, name: &str) -> u64 {
        self.by_name.get(name).or_else(|| self.by_reason.get(name)).copied().unwrap_or_default()
    }

    fn count(&mut self, name: &'static str) {
        *self.by_name.entry(name).or_default() += 1;
    }
}

impl Watch for Counts {
    fn input(&mut self, _now: Instant, input: &Input) {
        self.facts += 1;
        self.count(fact(input));
    }

    fn action(&mut self, _now: Instant, action: &Action) {
        self.orders += 1;
        self.count(order(action));
        if let Action::Record { event } = action {
            match self.by_reason.get_mut(&*event.reason) {
                Some(count) => *count += 1,
                None => {
                    self.by_reason.insert(event.reason.to_string(), 1);
                }
            }
        }
    }

    fn settled(&mut self, _now: Instant, _node: &Node) {
        self.steps += 1;
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = String::from("facts and orders:");
        for (name, count) in &self.by_name.iter().collect::<BTreeMap<_, _>>() {
            line.push_str(&format!(" {name} {count},"));
        }
        line.push_str("\nevents:");
        for (reason, count) in &self.by_reason.iter().collect::<BTreeMap<_, _>>() {
            line.push_str(&format!(" {reason} {count},"));
        }
        f.write_str(line.trim_end_matches(','))
    }
}

fn fact(input: &Input) -> &'static str {
    match input {
        Input::Applied { .. } => "Applied",
        Input::Restored { .. } => "Restored",
        Input::DeleteRequested { .. } => "DeleteRequested",
        Input::SandboxReady { .. } => "SandboxReady",
        Input::SandboxFailed { .. } => "SandboxFailed",
        Input::TryAgain { .. } => "TryAgain",
        Input::ImageReady { .. } => "ImageReady",
        Input::ImageFailed { .. } => "ImageFailed",
        Input::Started { .. } => "Started",
        Input::StartFailed { .. } => "StartFailed",
        Input::Exited { .. } => "Exited",
        Input::ProbeResult { .. } => "ProbeResult",
        Input::HookDone { .. } => "HookDone",
        Input::ConditionSet { .. } => "ConditionSet",
        Input::Remark { .. } => "Remark",
        Input::TornDown { .. } => "TornDown",
        Input::ResourcesUpdated { .. } => "ResourcesUpdated",
        Input::ResourcesFailed { .. } => "ResourcesFailed",
        Input::Evict { .. } => "Evict",
        Input::LimitExceeded { .. } => "LimitExceeded",
        Input::NodeChanged { .. } => "NodeChanged",
        Input::Pressure { .. } => "Pressure",
        Input::Shutdown { .. } => "Shutdown",
        Input::GroupApplied { .. } => "GroupApplied",
        Input::GroupRemoved { .. } => "GroupRemoved",
    }
}

fn order(action: &Action) -> &'static str {
    match action {
        Action::SetUp { .. } => "SetUp",
        Action::PullImage { .. } => "PullImage",
        Action::Start { .. } => "Start",
        Action::Signal { .. } => "Signal",
        Action::Kill { .. } => "Kill",
        Action::RunProbe { .. } => "RunProbe",
        Action::RunHook { .. } => "RunHook",
        Action::CancelHook { .. } => "CancelHook",
        Action::UpdateResources { .. } => "UpdateResources",
        Action::Teardown { .. } => "Teardown",
        Action::StatusChanged { .. } => "StatusChanged",
        Action::Gone { .. } => "Gone",
        Action::Persist { .. } => "Persist",
        Action::Forget { .. } => "Forget",
        Action::Record { .. } => "Record",
    }
}
