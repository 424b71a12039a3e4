//! What happens by itself: from the scenario's words to what the core is told.

use std::time::Duration;

use husk_core::admission::NodeState;
use husk_core::eviction::{PodUsage, Shortage};
use husk_core::group::{Group, GroupKind, GroupName};
use husk_core::io::{InstanceRef, PodUid};
use husk_core::quantity::{Notation, Quantity};
use husk_core::scheduling::Taint;
use husk_core::spec::{ContainerSpec, PodSpec, Resources};
use husk_core::status::{Condition, Word};
use husk_core::{Input, Instant};

use super::{Container, Due, Failed, Pod, World};
use crate::scenario::{Amounts, Cause, Change, NodeScript, What, outcome};

/// What a fact comes to.
pub(crate) enum Told {
    /// The core is told of it.
    Input(Input),
    /// The agent ends and begins again after so long.
    Restart(Cause, Duration),
    /// Nobody does anything for so long.
    Sleep(Duration),
    /// It means nothing now.
    Nothing,
}

impl World<'_> {
    pub(super) fn plan_deletions(&mut self) {
        for (number, delete) in self.scenario.delete.iter().enumerate() {
            for place in 0..self.pods.len() {
                self.plan(Instant::ZERO + delete.at.0, Due::Delete { place, number });
            }
        }
    }

    /// What the node is at the beginning; nothing if the scenario doesn't say.
    pub(crate) fn beginning(&self) -> Option<Input> {
        (*self.node != NodeScript::default()).then(|| self.node_changed())
    }

    /// What the node is now.
    pub(crate) fn now(&self) -> Option<Input> {
        Some(self.node_changed())
    }

    fn node_changed(&self) -> Input {
        Input::NodeChanged { state: Box::new(node_state(self.node)) }
    }

    /// The groups that there are.
    pub(crate) fn groups(&self) -> impl Iterator<Item = Input> {
        self.groups.values().map(|group| Input::GroupApplied { group: group.clone() })
    }

    /// A pod is created.
    pub(crate) fn apply(&mut self, place: usize) -> Input {
        let pod = &mut self.pods[place];
        pod.applied = true;
        Input::Applied { meta: pod.subject.meta.clone(), spec: Box::new(pod.subject.spec.clone()) }
    }

    /// A pod is deleted as all are.
    pub(crate) fn delete(&self, place: usize, number: usize) -> Told {
        let pod = &self.pods[place];
        if !pod.applied {
            return Told::Nothing;
        }
        let grace_seconds = self.scenario.delete[number].grace_period_seconds;
        Told::Input(Input::DeleteRequested { pod: uid(&pod.subject.id), grace_seconds })
    }

    /// A fact of the scenario.
    pub(crate) fn fact(&mut self, now: Instant, number: usize) -> Told {
        let scenario = self.scenario;
        let what = &scenario.facts[number].what;
        if what.pod().is_some_and(|id| self.pod(&uid(id)).is_none_or(|pod| !pod.applied)) {
            return Told::Nothing;
        }
        let input = match what {
            What::Delete { pod, grace_period_seconds } => {
                Input::DeleteRequested { pod: uid(pod), grace_seconds: *grace_period_seconds }
            }
            What::Evict { pod, by, grace_period_seconds } => {
                Input::Evict { pod: uid(pod), disruption: *by, grace_seconds: *grace_period_seconds }
            }
            What::LimitExceeded { pod } => {
                let message = "Usage of EmptyDir volume \"v\" exceeds the limit \"1Mi\". ".into();
                Input::LimitExceeded { pod: uid(pod), message }
            }
            What::SetCondition { pod, condition, status } => {
                let condition = Condition {
                    kind: Word::Owned(condition.clone()),
                    status: (*status).into(),
                    reason: Word::Borrowed(""),
                    message: String::new(),
                    last_transition_time: None,
                    observed_generation: 0,
                };
                Input::ConditionSet { pod: uid(pod), condition }
            }
            What::Update { pod, change } => return self.update(pod, change),
            What::Exit { pod, container, exit, trap } => {
                self.exit(now, pod, container, outcome(*exit, *trap));
                return Told::Nothing;
            }
            What::Node(node) => {
                self.node = node;
                Input::NodeChanged { state: Box::new(node_state(node)) }
            }
            What::Pressure { resource, grace_seconds, usage } => {
                let usage = usage.iter().map(|(pod, total)| PodUsage {
                    pod: uid(pod),
                    total: Quantity::new(*total, Notation::Binary),
                    containers: Vec::new(),
                });
                let shortage = Shortage {
                    threshold: Quantity::new(100 << 20, Notation::Binary),
                    available: Quantity::new(50 << 20, Notation::Binary),
                    grace_seconds: Some(*grace_seconds),
                    as_of: now,
                    usage: usage.collect(),
                };
                Input::Pressure { resource: *resource, shortage: Some(Box::new(shortage)) }
            }
            What::Relief { resource } => Input::Pressure { resource: *resource, shortage: None },
            What::ShutDown { grace, critical } => Input::Shutdown { grace: grace.0, critical: critical.0 },
            What::Group { name, gang } => {
                let group = Group { name: group_name(name), gang: *gang, parent: None };
                self.groups.insert(group.name.clone(), group.clone());
                Input::GroupApplied { group }
            }
            What::NoGroup { name } => {
                self.groups.remove(&group_name(name));
                Input::GroupRemoved { name: group_name(name) }
            }
            What::Restart { after, takes } => return Told::Restart(*after, takes.0),
            What::Sleep { takes } => return Told::Sleep(takes.0),
        };
        Told::Input(input)
    }

    fn exit(&mut self, now: Instant, pod: &str, container: &str, outcome: husk_core::io::Outcome) {
        let Some(place) = self.by_uid.get(&uid(pod)).copied() else { return };
        let live = self.pods[place].containers.iter().find(|c| c.name == container).and_then(|c| c.live.as_ref());
        let Some(attempt) = live.filter(|live| live.since.is_some()).map(|live| live.attempt) else { return };
        self.end(now, &InstanceRef { pod: uid(pod), container: container.into(), attempt }, outcome);
    }

    fn update(&mut self, id: &str, change: &Change) -> Told {
        let scenario = self.scenario;
        let Some(Pod { subject, containers, gone: false, .. }) = self.pod(&uid(id)) else { return Told::Nothing };
        let before = subject.spec.clone();
        match change {
            Change::Image { container, image } => {
                if let Some(spec) = container_mut(&mut subject.spec, container) {
                    spec.image.clone_from(image);
                    spec.hash = hash(spec.hash, image);
                }
                for known in containers.iter_mut().filter(|known| known.name == *container) {
                    known.image.clone_from(image);
                }
            }
            Change::Resources { container, requests, limits } => {
                if let Some(spec) = container_mut(&mut subject.spec, container) {
                    spec.resources = Resources { requests: amounts(requests), limits: amounts(limits) };
                }
            }
            Change::ActiveDeadline { seconds } => subject.spec.active_deadline_seconds = Some(*seconds),
            Change::Ungate {} => subject.spec.placement.gates.clear(),
            Change::Debug { container } => {
                if subject.spec.container(container).is_none() {
                    let image = "debug".to_owned();
                    let spec = ContainerSpec { name: container.clone(), image, hash: 1, ..ContainerSpec::default() };
                    subject.spec.ephemeral_containers.push(spec);
                    containers.push(Container {
                        name: container.clone(),
                        image: "debug".into(),
                        script: scenario.script(subject, container),
                        failed: Failed::default(),
                        live: None,
                    });
                }
            }
        }
        if subject.spec == before {
            return Told::Nothing;
        }
        subject.meta.generation += 1;
        Told::Input(Input::Applied { meta: subject.meta.clone(), spec: Box::new(subject.spec.clone()) })
    }
}

fn uid(id: &str) -> PodUid {
    PodUid::from(id)
}

fn group_name(name: &str) -> GroupName {
    GroupName { kind: GroupKind::Pods, namespace: "default".into(), name: name.into() }
}

fn container_mut<'s>(spec: &'s mut PodSpec, name: &str) -> Option<&'s mut ContainerSpec> {
    let PodSpec { init_containers, containers, ephemeral_containers, .. } = spec;
    let mut all = init_containers.iter_mut().chain(containers).chain(ephemeral_containers);
    all.find(|container| container.name == name)
}

/// Stands for another definition.
fn hash(before: u64, image: &str) -> u64 {
    image.bytes().fold(before, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// Those that can't be read were refused with the scenario.
fn amounts(written: &Amounts) -> husk_core::spec::ResourceList {
    written.parse().unwrap_or_default()
}

fn node_state(script: &NodeScript) -> NodeState {
    let taint = |key: &String| Taint { key: key.clone(), value: String::new(), effect: "NoExecute".into() };
    NodeState {
        allocatable: script.allocatable.as_ref().map(amounts),
        taints: script.taints.iter().map(taint).collect(),
        cordoned: script.cordoned,
        ..NodeState::default()
    }
}
