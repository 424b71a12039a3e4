//! A node and the world around it, which answers when it is told to.

use std::collections::BTreeMap;
use std::time::Duration;

use husk_core::admission::NodeState;
use husk_core::disruption::Disruption;
use husk_core::eviction::{PodUsage, Pressure, Shortage};
use husk_core::group::{Group, GroupKind, GroupName};
use husk_core::io::{Action, Input, InstanceRef, Outcome, PodUid, Trap};
use husk_core::node::{Node, NodeConfig};
use husk_core::quantity::Quantity;
use husk_core::record::{Interruption, PodRecord};
use husk_core::scheduling::Taint;
use husk_core::spec::{PodMeta, PodSpec, ResourceList};
use husk_core::status::{Condition, ConditionStatus, Word};
use husk_core::time::Instant;

use super::check::Seen;
use crate::answer::answer;
use crate::life::{NodeShape, Operation};
use crate::shape::MOST_GRACE_SECONDS;

const PODS: u8 = 4;
/// More orders than this at one instant are orders without end.
const MOST_ORDERS: usize = 20_000;
/// Most wake-ups that one jump of time is divided into.
const MOST_WAKES: usize = 5_000;

pub(super) struct World {
    pub(super) node: Node,
    /// Took over from a record and does the same from then on.
    heir: Option<Node>,
    config: NodeConfig,
    wild: bool,
    now: Instant,
    /// What was said of the node, for those that come after it.
    about_node: Vec<Input>,
    shuts_down: bool,
    open: Vec<Action>,
    pub(super) pods: BTreeMap<PodUid, Seen>,
    /// Records, as they had to be persisted.
    pub(super) stored: BTreeMap<PodUid, Vec<u8>>,
    names: [u32; PODS as usize],
}

impl World {
    pub(super) fn new(wild: bool, collects: bool) -> Self {
        let terminated_pod_gc_threshold = if collects { 2 } else { 12_500 };
        let config = NodeConfig { terminated_pod_gc_threshold, ..NodeConfig::default() };
        Self {
            node: Node::new(config.clone()),
            heir: None,
            config,
            wild,
            now: Instant::from_secs(1),
            about_node: Vec::new(),
            shuts_down: false,
            open: Vec::new(),
            pods: BTreeMap::new(),
            stored: BTreeMap::new(),
            names: [0; PODS as usize],
        }
    }

    pub(super) fn perform(&mut self, operation: Operation) {
        match operation {
            Operation::Apply { pod, again, shape } => {
                let (pod, spec, labels) = (pod % PODS, shape.spec(), shape.labels());
                let known = self.pods.get(&self.uid(pod));
                if known.is_some_and(|seen| seen.gone || again) {
                    self.names[usize::from(pod)] += 1;
                } else if known.is_some() && !self.wild {
                    return;
                }
                self.apply(pod, labels, spec);
            }
            Operation::Update { pod, change } => {
                let uid = self.uid(pod % PODS);
                if let Some(seen) = self.pods.get(&uid).filter(|seen| !seen.gone) {
                    let (mut spec, labels) = (seen.spec.clone(), seen.labels.clone());
                    change.make(&mut spec);
                    self.apply(pod % PODS, labels, spec);
                }
            }
            Operation::Answer { order, well } => {
                if !self.open.is_empty() {
                    let order = self.open.remove(usize::from(order) % self.open.len());
                    self.answer(order, well);
                }
            }
            Operation::AnswerAll => self.answer_all(|_| true),
            Operation::Stale { order, attempt } => {
                if !self.open.is_empty() {
                    let order = self.open[usize::from(order) % self.open.len()].clone();
                    self.answer_stale(order, u32::from(attempt) + 1000);
                }
            }
            Operation::Exit { instance, code } => self.exit_one(instance, Outcome::Code(code.into())),
            Operation::OutOfMemory { instance } => self.exit_one(instance, Outcome::Trap(Trap::OutOfMemory)),
            Operation::Wait { millis } => self.wait(Duration::from_millis(millis.into())),
            Operation::Wake => {
                if let Some(wake) = self.node.next_wake() {
                    self.advance(wake);
                }
            }
            Operation::Jump { seconds } => self.advance(self.now + Duration::from_secs(seconds.into())),
            Operation::Delete { pod, grace } => self.delete(self.uid(pod % PODS), grace),
            Operation::Evict { pod, why, grace } => {
                let causes = [
                    Disruption::EvictionByEvictionApi,
                    Disruption::PreemptionByScheduler,
                    Disruption::DeletionByTaintManager,
                    Disruption::DeletionByPodGc,
                    Disruption::TerminationByKubelet,
                ];
                let disruption = causes[usize::from(why) % causes.len()];
                let grace_seconds = grace.map(bounded);
                self.input(Input::Evict { pod: self.uid(pod % PODS), disruption, grace_seconds });
            }
            Operation::LimitExceeded { pod } => {
                self.input(Input::LimitExceeded { pod: self.uid(pod % PODS), message: "too much".into() });
            }
            Operation::Condition { pod, gate, holds } => {
                let condition = Condition {
                    kind: if gate { "example.com/gate".into() } else { "example.com/other".into() },
                    status: if holds { ConditionStatus::True } else { ConditionStatus::False },
                    reason: Word::Borrowed("Drawn"),
                    message: String::new(),
                    last_transition_time: None,
                    observed_generation: 0,
                };
                self.input(Input::ConditionSet { pod: self.uid(pod % PODS), condition });
            }
            Operation::NodeChanged(shape) => self.input(Input::NodeChanged { state: Box::new(state(shape)) }),
            Operation::Pressure { resource, lasts, grace, known } => self.pressure(resource, lasts, grace, known),
            Operation::Shutdown { grace, critical } => {
                self.shuts_down = true;
                self.heir = None;
                let seconds = |drawn: u8| Duration::from_secs((drawn % MOST_GRACE_SECONDS).into());
                self.input(Input::Shutdown { grace: seconds(grace), critical: seconds(critical) });
            }
            Operation::Group { gang, composite, parent } => {
                let gang = gang.map(|count| usize::from(count % 4));
                let parent = parent.then(|| "all".to_owned());
                self.input(Input::GroupApplied { group: Group { name: group_name(composite), gang, parent } });
            }
            Operation::GroupGone { composite } => self.input(Input::GroupRemoved { name: group_name(composite) }),
            Operation::Interrupt { reboot: false } => self.interrupt(Interruption::AgentRestart),
            Operation::Interrupt { reboot: true } => self.interrupt(Interruption::Reboot),
            Operation::HandOver => self.hand_over(),
        }
    }

    /// The uid of the pod that has that name now.
    fn uid(&self, pod: u8) -> PodUid {
        PodUid::from(format!("p{pod}-{}", self.names[usize::from(pod)]).as_str())
    }

    fn apply(&mut self, pod: u8, labels: BTreeMap<String, String>, spec: PodSpec) {
        let uid = self.uid(pod);
        let seen = self.pods.entry(uid.clone()).or_default();
        seen.generation += i64::from(seen.spec != spec);
        let meta = PodMeta {
            namespace: "d".into(),
            name: format!("p{pod}"),
            uid: uid.to_string(),
            generation: seen.generation,
            is_static: pod == PODS - 1,
            labels: labels.clone(),
        };
        (seen.spec, seen.labels) = (spec.clone(), labels);
        self.input(Input::Applied { meta, spec: Box::new(spec) });
    }

    fn delete(&mut self, pod: PodUid, grace: Option<u8>) {
        self.input(Input::DeleteRequested { pod, grace_seconds: grace.map(bounded) });
    }

    fn pressure(&mut self, resource: u8, lasts: bool, grace: u8, known: u8) {
        let resources = [Pressure::Memory, Pressure::Disk, Pressure::Pid];
        let usage = self.node.pods().enumerate().filter(|(n, _)| known >> (n % 8) & 1 == 1).map(|(n, pod)| PodUsage {
            pod: pod.clone(),
            total: Quantity::from_milli(n as i64 * 50_000),
            containers: vec![("a0".into(), Quantity::from_milli(n as i64 * 40_000))],
        });
        let shortage = Shortage {
            threshold: Quantity::from_milli(2000),
            available: Quantity::from_milli(1000),
            grace_seconds: Some(bounded(grace)),
            as_of: self.now,
            usage: usage.collect(),
        };
        let resource = resources[usize::from(resource) % resources.len()];
        self.input(Input::Pressure { resource, shortage: lasts.then(|| Box::new(shortage)) });
    }

    fn answer(&mut self, order: Action, well: bool) {
        match order {
            Action::Start { ref instance } => {
                if let Some(seen) = self.pods.get_mut(&instance.pod) {
                    seen.start_answered(instance, well);
                }
            }
            Action::Signal { instance, .. } if well => return self.exit(instance, Outcome::Signal(15)),
            Action::Kill { instance } => return self.killed(instance),
            _ => {}
        }
        if let Some(input) = answer(order, well) {
            self.input(input);
        }
    }

    fn answer_all(&mut self, which: impl Fn(&Action) -> bool) {
        for _ in 0..MOST_ORDERS {
            let Some(next) = self.open.iter().position(&which) else { return };
            let order = self.open.remove(next);
            self.answer(order, true);
        }
        panic!("orders without end");
    }

    /// A fact about an instance or an attempt that isn't current changes nothing.
    fn answer_stale(&mut self, mut order: Action, by: u32) {
        match &mut order {
            Action::SetUp { attempt, .. } | Action::Teardown { attempt, .. } => *attempt += by,
            Action::RunProbe { run, .. } => *run += by,
            Action::UpdateResources { revision, .. } => *revision += by,
            Action::PullImage { instance }
            | Action::Start { instance }
            | Action::Signal { instance, .. }
            | Action::Kill { instance }
            | Action::RunHook { instance, .. }
            | Action::CancelHook { instance, .. } => instance.attempt += by,
            _ => {}
        }
        if let Some(input) = answer(order, by.is_multiple_of(2)) {
            let orders = self.step(Some(input.clone()));
            assert!(orders.is_empty(), "the stale {input:?} led to {orders:?}");
        }
    }

    /// A start that wasn't answered yet is answered by the failure to start.
    fn killed(&mut self, at: InstanceRef) {
        let Some(seen) = self.pods.get(&at.pod) else { return };
        if seen.runs(&at) {
            self.exit(at, Outcome::Signal(9));
        } else if seen.is_alive(&at) {
            self.open.retain(|open| !matches!(open, Action::Start { instance } if *instance == at));
            self.answer(Action::Start { instance: at }, false);
        }
    }

    fn exit_one(&mut self, which: u8, outcome: Outcome) {
        let running: Vec<InstanceRef> = self.pods.iter().flat_map(|(uid, seen)| seen.running(uid)).collect();
        if !running.is_empty() {
            self.exit(running[usize::from(which) % running.len()].clone(), outcome);
        }
    }

    fn exit(&mut self, at: InstanceRef, outcome: Outcome) {
        if self.pods.get_mut(&at.pod).is_some_and(|seen| seen.ended(&at, outcome)) {
            self.input(Input::Exited { instance: at, outcome, message: String::new() });
        }
    }

    /// Nothing is due before the wake-up that was promised.
    fn wait(&mut self, time: Duration) {
        let until = self.now + time;
        match self.node.next_wake() {
            Some(wake) if wake <= until => self.advance(wake),
            _ => {
                self.now = until;
                let orders = self.step(None);
                assert!(orders.is_empty(), "{orders:?} were due before the next wake-up");
            }
        }
    }

    fn advance(&mut self, until: Instant) {
        self.now = self.now.max(until);
        self.step(None);
    }

    pub(super) fn input(&mut self, input: Input) {
        if input.pod().is_none() {
            self.about_node.push(input.clone());
        }
        self.step(Some(input));
    }

    /// One step of the node, and of its heir: the orders.
    fn step(&mut self, input: Option<Input>) -> Vec<Action> {
        for node in std::iter::once(&mut self.node).chain(&mut self.heir) {
            match input.clone() {
                Some(input) => node.handle(self.now, input),
                None => node.advance(self.now),
            }
        }
        let mut orders = Vec::new();
        loop {
            let order = self.node.poll_action();
            if let Some(heir) = &mut self.heir {
                assert_eq!(heir.poll_action(), order, "a node that took over orders something else");
            }
            let Some(order) = order else { break };
            self.check(&order, self.now, self.wild);
            orders.push(order);
            assert!(orders.len() < MOST_ORDERS, "orders without end");
        }
        if let Some(heir) = &self.heir {
            assert_eq!(heir.next_wake(), self.node.next_wake(), "a node that took over wakes at another time");
            assert_eq!(heir.used(), self.node.used(), "a node that took over has given away something else");
            for uid in self.pods.keys() {
                assert_eq!(heir.status(uid), self.node.status(uid), "a node that took over shows something else");
            }
        }
        let wake = self.node.next_wake();
        assert!(wake.is_none_or(|wake| wake > self.now), "at {:?} the next wake-up is {wake:?}", self.now);
        let answered = |order: &Action| answer(order.clone(), true).is_some();
        self.open.extend(orders.iter().filter(|order| answered(order)).cloned());
        orders
    }

    fn hand_over(&mut self) {
        // A shutdown isn't handed over: who shuts down hands nothing over.
        if self.shuts_down {
            return;
        }
        let mut heir = Node::new(self.config.clone());
        for input in &self.about_node {
            heir.handle(self.now, input.clone());
        }
        let records = self.pods.keys().filter_map(|uid| Some(self.node.record(uid)?.to_bytes()));
        restore(&mut heir, self.now, records, Interruption::Handover);
        assert_eq!(heir.poll_action(), None, "a node that takes over has something to order");
        if self.heir.is_some() {
            self.node = heir;
        } else {
            self.heir = Some(heir);
        }
    }

    fn interrupt(&mut self, after: Interruption) {
        self.open.clear();
        self.heir = None;
        self.shuts_down = false;
        self.about_node.retain(|input| !matches!(input, Input::Shutdown { .. }));
        for (uid, seen) in &mut self.pods {
            seen.interrupted(after, self.stored.contains_key(uid));
        }
        self.node = Node::new(self.config.clone());
        restore(&mut self.node, self.now, self.stored.clone().into_values(), after);
        self.step(None);
        for input in self.about_node.clone() {
            self.step(Some(input));
        }
        // A pod that was not on record when the agent ended is applied again from its object.
        let lost: Vec<PodUid> = self
            .pods
            .iter()
            .filter(|(uid, seen)| !seen.gone && !self.stored.contains_key(uid))
            .map(|(uid, _)| uid.clone())
            .collect();
        for uid in lost {
            self.pods.remove(&uid);
        }
    }

    /// Deletes everything and answers at once, but guests ignore their signal and hooks hang: the worst that is allowed.
    pub(super) fn finish(&mut self) {
        let uids: Vec<_> = self.pods.iter().filter(|(_, seen)| !seen.gone).map(|(uid, _)| uid.clone()).collect();
        for uid in uids {
            self.delete(uid, None);
        }
        let containers = 12;
        let limit = self.now + Duration::from_secs(u64::from(MOST_GRACE_SECONDS) + 2 * containers + 2);
        for _ in 0..MOST_WAKES {
            self.answer_all(|order| !matches!(order, Action::Signal { .. } | Action::RunHook { .. }));
            match self.node.next_wake() {
                Some(wake) => self.advance(wake),
                None => return self.check_the_end(self.wild || self.now <= limit, self.now),
            }
        }
        panic!("the end does not come");
    }
}

/// Up to the longest grace; 0 is possible.
fn bounded(drawn: u8) -> i64 {
    i64::from(drawn % (MOST_GRACE_SECONDS + 1))
}

fn state(shape: NodeShape) -> NodeState {
    let amount = |milli: i64| Quantity::from_milli(milli);
    let allocatable = ResourceList::from([
        ("cpu".into(), amount(i64::from(shape.cpu) * 20)),
        ("pods".into(), amount(i64::from(shape.pods % 8) * 1000)),
    ]);
    let taint = |no_execute: bool| Taint {
        key: "k".into(),
        value: String::new(),
        effect: if no_execute { "NoExecute" } else { "NoSchedule" }.into(),
    };
    NodeState {
        allocatable: shape.limited.then_some(allocatable),
        labels: if shape.zone { BTreeMap::from([("zone".into(), "z".into())]) } else { BTreeMap::new() },
        taints: shape.taint.map(taint).into_iter().collect(),
        cordoned: shape.cordoned,
        os: String::new(),
    }
}

fn group_name(composite: bool) -> GroupName {
    let (kind, name) = if composite { (GroupKind::Groups, "all") } else { (GroupKind::Pods, "g") };
    GroupName { kind, namespace: "d".into(), name: name.into() }
}

/// The pods of these records, in the order in which they were accepted.
fn restore(node: &mut Node, now: Instant, records: impl Iterator<Item = Vec<u8>>, after: Interruption) {
    let read = |bytes: Vec<u8>| PodRecord::from_bytes(&bytes).unwrap_or_else(|error| panic!("its own record: {error}"));
    let mut records: Vec<_> = records.map(read).collect();
    records.sort_by_key(PodRecord::accepted);
    for record in records.into_iter().map(Box::new) {
        node.handle(now, Input::Restored { record, after });
    }
}
