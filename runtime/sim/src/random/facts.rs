//! What happens to pods and to the node.

use std::collections::BTreeMap;

use husk_core::disruption::Disruption;
use husk_core::eviction::Pressure;

use super::dice::Dice;
use super::pods::{CODES, CPU, MEMORY};
use crate::scenario::{Amounts, Cause, Change, Fact, NodeScript, Scenario, Subject, TrapName, Trials, What};
use crate::span::Span;

/// What there is time for after the last pod was deleted.
const AFTERWARDS: u64 = 100_000;

impl Dice {
    /// What happens to some pods in so many seconds; at the end all are deleted.
    pub(super) fn scenario(&mut self, subjects: &[Subject], seconds: u64) -> Scenario {
        let pods = subjects.iter().map(|subject| (subject.id.clone(), self.pod_script(subject, seconds))).collect();
        let bounded = self.one_in(2);
        let mut scenario = Scenario {
            until: Some(Span::secs(seconds + AFTERWARDS)),
            max_container_restart_period: self.maybe(4, &[1, 15, 60]).map(Span::secs),
            terminated_pod_gc_threshold: self.maybe(6, &[1, 3]),
            node: if bounded { self.node(subjects.len()) } else { NodeScript::default() },
            pods,
            facts: self.facts(subjects, seconds),
            trials: self.trials(subjects.len()),
            ..Scenario::default()
        };
        for subject in subjects {
            let what = What::Delete { pod: subject.id.clone(), grace_period_seconds: self.grace() };
            scenario.facts.push(Fact { at: Span::secs(seconds), what });
        }
        scenario.facts.sort_by_key(|fact| fact.at);
        scenario
    }

    fn trials(&mut self, pods: usize) -> Trials {
        // A handover costs as much as there are pods.
        let rarely = u32::try_from(pods).unwrap_or(u32::MAX).saturating_mul(8);
        Trials {
            hand_over_every: self.maybe(4, &[7, 61, 301]).map_or(0, |every: u32| every.max(rarely)),
            repeat_every: *self.pick(&[0, 5, 17]),
            look_every: *self.pick(&[0, 3, 11]),
            timers_first: self.one_in(3),
        }
    }

    fn node(&mut self, pods: usize) -> NodeScript {
        let mut allocatable = BTreeMap::new();
        for (name, amounts) in [("cpu", ["1", "4", "64"]), ("memory", ["64Mi", "256Mi", "8Gi"])] {
            allocatable.insert(name.to_owned(), (*self.pick(&amounts)).to_owned());
        }
        if self.one_in(2) {
            allocatable.insert("pods".to_owned(), (1 + self.below(pods as u64)).to_string());
        }
        let taints = self.maybe(6, &["broken"]).into_iter().map(String::from).collect();
        NodeScript { allocatable: Some(Amounts(allocatable)), taints, cordoned: self.one_in(10) }
    }

    fn grace(&mut self) -> Option<i64> {
        self.maybe(2, &[0, 0, 1, 2, 10, 45])
    }

    fn facts(&mut self, subjects: &[Subject], seconds: u64) -> Vec<Fact> {
        let mut facts = Vec::new();
        for group in ["g0", "g1"] {
            if subjects.iter().any(|subject| subject.spec.placement.group.as_deref() == Some(group)) {
                let what = What::Group { name: group.into(), gang: self.maybe(2, &[1, 2, 3]) };
                facts.push(Fact { at: self.time(seconds), what });
            }
        }
        for subject in subjects {
            for _ in 0..*self.pick(&[0, 0, 1, 1, 2, 4]) {
                let what = self.about_pod(subject);
                facts.push(Fact { at: self.time(seconds), what });
            }
        }
        for _ in 0..*self.pick(&[0, 1, 2, 4, 8]) {
            let what = self.about_node(subjects);
            facts.push(Fact { at: self.time(seconds), what });
        }
        if self.one_in(8) {
            let grace = self.span_up_to(100);
            let critical = Span::secs(grace.0.as_secs() / 3);
            facts.push(Fact { at: self.time(seconds), what: What::ShutDown { grace, critical } });
        }
        facts
    }

    fn about_pod(&mut self, subject: &Subject) -> What {
        let pod = subject.id.clone();
        let containers: Vec<_> = subject.spec.all_containers().map(|(_, c)| c.name.clone()).collect();
        let container = self.pick(&containers).clone();
        match self.below(12) {
            0 | 1 => What::Delete { pod, grace_period_seconds: self.grace() },
            2 => What::Evict {
                pod,
                by: *self.pick(&[Disruption::EvictionByEvictionApi, Disruption::PreemptionByScheduler]),
                grace_period_seconds: self.grace(),
            },
            3 => What::LimitExceeded { pod },
            4 => What::SetCondition { pod, condition: "example.com/gate".into(), status: !self.one_in(3) },
            5 | 6 => What::Exit {
                pod,
                container,
                exit: *self.pick(&CODES),
                trap: self.maybe(4, &[TrapName::OutOfMemory, TrapName::Fault]),
            },
            _ => What::Update { pod, change: self.change(container) },
        }
    }

    fn change(&mut self, container: String) -> Change {
        match self.below(8) {
            0..2 => Change::Image { container, image: format!("image-{}", self.below(6)) },
            2..6 => {
                let place = usize::try_from(self.below(4)).unwrap_or_default();
                let list = |cpu: usize, memory: usize| {
                    let amounts = [("cpu", CPU[cpu]), ("memory", MEMORY[memory])];
                    Amounts(amounts.map(|(name, amount)| (name.to_owned(), amount.to_owned())).into())
                };
                let limits = if self.one_in(2) { list(3, 3) } else { Amounts::default() };
                Change::Resources { container, requests: list(place, place), limits }
            }
            6 => match self.one_in(2) {
                true => Change::ActiveDeadline { seconds: *self.pick(&[1, 60, 600]) },
                false => Change::Ungate {},
            },
            _ => Change::Debug { container: format!("e{}", self.below(2)) },
        }
    }

    fn about_node(&mut self, subjects: &[Subject]) -> What {
        let resource = *self.pick(&[Pressure::Memory, Pressure::Memory, Pressure::Disk, Pressure::Pid]);
        match self.below(10) {
            0..3 => {
                let mut usage = BTreeMap::new();
                for subject in subjects.iter().take(20) {
                    if self.one_in(2) {
                        usage.insert(subject.id.clone(), i64::try_from(self.below(100 << 20)).unwrap_or_default());
                    }
                }
                What::Pressure { resource, grace_seconds: *self.pick(&[0, 1, 30]), usage }
            }
            3 | 4 => What::Relief { resource },
            5 => What::Node(if self.one_in(2) { self.node(subjects.len()) } else { NodeScript::default() }),
            6 => What::Sleep { takes: self.span() },
            7 => What::NoGroup { name: (*self.pick(&["g0", "g1"])).into() },
            8 => What::Restart { after: Cause::Reboot, takes: self.span() },
            _ => What::Restart { after: Cause::AgentRestart, takes: self.span() },
        }
    }
}
