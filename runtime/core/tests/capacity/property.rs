//! Random operations on a node with little room: what is given away never exceeds what there is, nobody waits who would fit,
//! everything is given back, and a node that took over from the records does the same.

use std::collections::BTreeSet;
use std::time::Duration;

use husk_core::admission::NodeState;
use husk_core::disruption::Disruption;
use husk_core::eviction::{PodUsage, Pressure, Shortage};
use husk_core::io::{Action, Input, InstanceRef, Outcome, PodUid};
use husk_core::node::{Node, NodeConfig};
use husk_core::quantity::Quantity;
use husk_core::record::{Interruption, PodRecord};
use husk_core::scheduling::Taint;
use husk_core::spec::{PodMeta, PodSpec};
use husk_core::status::ConditionStatus;
use husk_core::time::Instant;
use proptest::prelude::*;

use crate::support::{amounts, asking_pod, important};

const PODS: usize = 6;
const CAPACITY_MILLI: i64 = 1000;

#[derive(Clone, Debug)]
enum Operation {
    /// Creates a pod or resizes it.
    Apply {
        pod: usize,
        milli: i64,
        priority: i32,
    },
    Delete {
        pod: usize,
    },
    Evict {
        pod: usize,
    },
    Exit {
        pod: usize,
    },
    Taint {
        no_execute: bool,
    },
    Untaint,
    Cordon,
    Pressure {
        on: bool,
    },
    /// Answers all that was ordered, resizes badly if so drawn.
    Answer {
        well: bool,
    },
    Wait {
        seconds: u64,
    },
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        6 => (0..PODS, 1..12i64, 0..3i32).prop_map(|(pod, step, priority)| {
            Operation::Apply { pod, milli: step * 100, priority: priority * 10 }
        }),
        1 => (0..PODS).prop_map(|pod| Operation::Delete { pod }),
        1 => (0..PODS).prop_map(|pod| Operation::Evict { pod }),
        1 => (0..PODS).prop_map(|pod| Operation::Exit { pod }),
        1 => any::<bool>().prop_map(|no_execute| Operation::Taint { no_execute }),
        1 => Just(Operation::Untaint),
        1 => Just(Operation::Cordon),
        1 => any::<bool>().prop_map(|on| Operation::Pressure { on }),
        6 => any::<bool>().prop_map(|well| Operation::Answer { well }),
        3 => (1..40u64).prop_map(|seconds| Operation::Wait { seconds }),
    ]
}

struct World {
    node: Node,
    now: Instant,
    /// What an heir hears of the node before it takes the pods.
    about_node: Vec<Input>,
    priorities: [Option<i32>; PODS],
    names: [u32; PODS],
    open: Vec<Action>,
    running: BTreeSet<InstanceRef>,
}

impl World {
    fn new() -> Self {
        let mut world = Self {
            node: Node::new(NodeConfig::default()),
            now: Instant::from_secs(1),
            about_node: Vec::new(),
            priorities: [None; PODS],
            names: [0; PODS],
            open: Vec::new(),
            running: BTreeSet::new(),
        };
        world.change(&[], false);
        world
    }

    fn uid(&self, pod: usize) -> PodUid {
        PodUid::from(format!("u{pod}-{}", self.names[pod]).as_str())
    }

    fn change(&mut self, taints: &[Taint], cordoned: bool) {
        let allocatable = Some(amounts(&[("cpu", "1")]));
        let state = NodeState { allocatable, taints: taints.to_vec(), cordoned, ..NodeState::default() };
        self.step(Some(Input::NodeChanged { state: Box::new(state) }));
    }

    fn play(&mut self, operation: Operation) {
        match operation {
            Operation::Apply { pod, milli, priority } => {
                if self.node.meta(&self.uid(pod)).is_none() {
                    self.names[pod] += 1;
                    self.priorities[pod] = Some(priority);
                }
                let spec = important(self.priorities[pod].unwrap_or(0), asking_pod(&[("cpu", &format!("{milli}m"))]));
                let uid = self.uid(pod);
                let name = uid.to_string();
                let meta =
                    PodMeta { namespace: "d".into(), uid: name.clone(), name, generation: 1, ..PodMeta::default() };
                let spec = PodSpec { termination_grace_period_seconds: Some(20), ..spec };
                self.step(Some(Input::Applied { meta, spec: Box::new(spec) }));
            }
            Operation::Delete { pod } => {
                self.step(Some(Input::DeleteRequested { pod: self.uid(pod), grace_seconds: None }));
            }
            Operation::Evict { pod } => {
                let disruption = Disruption::EvictionByEvictionApi;
                self.step(Some(Input::Evict { pod: self.uid(pod), disruption, grace_seconds: None }));
            }
            Operation::Exit { pod } => {
                let uid = self.uid(pod);
                if let Some(instance) = self.running.iter().find(|instance| instance.pod == uid).cloned() {
                    self.exit(instance, Outcome::Code(1));
                }
            }
            Operation::Taint { no_execute } => {
                let effect = if no_execute { "NoExecute" } else { "NoSchedule" };
                self.change(&[Taint { key: "k".into(), value: String::new(), effect: effect.into() }], false);
            }
            Operation::Untaint => self.change(&[], false),
            Operation::Cordon => self.change(&[], true),
            Operation::Pressure { on } => {
                let usage = self.node.pods().cloned().collect::<Vec<_>>().into_iter();
                let usage = usage.map(|pod| PodUsage { pod, total: Quantity::ZERO, containers: Vec::new() }).collect();
                let (threshold, available) = (Quantity::from_milli(2000), Quantity::from_milli(1000));
                let shortage = Shortage { threshold, available, grace_seconds: Some(5), as_of: self.now, usage };
                let shortage = on.then(|| Box::new(shortage));
                self.step(Some(Input::Pressure { resource: Pressure::Memory, shortage }));
            }
            Operation::Answer { well } => {
                for action in core::mem::take(&mut self.open) {
                    self.answer(action, well);
                }
            }
            Operation::Wait { seconds } => {
                let end = self.now + Duration::from_secs(seconds);
                while let Some(wake) = self.node.next_wake().filter(|wake| *wake <= end) {
                    assert!(wake > self.now, "what was due is done");
                    self.now = Instant::from_nanos(wake.as_nanos() - 1);
                    assert!(!self.step(None), "something was due before {wake:?}");
                    self.now = wake;
                    assert!(self.step(None), "woken up at {wake:?} for nothing");
                }
                self.now = end;
            }
        }
    }

    /// One step, also by a node that takes over before it and has to order the same. Returns true if anything was ordered.
    fn step(&mut self, input: Option<Input>) -> bool {
        let mut heir = self.heir();
        for node in [&mut self.node, &mut heir] {
            match input.clone() {
                Some(input) => node.handle(self.now, input),
                None => node.advance(self.now),
            }
        }
        self.about_node.extend(input.filter(|input| input.pod().is_none()));
        let mut any = false;
        loop {
            let action = self.node.poll_action();
            assert_eq!(heir.poll_action(), action, "a node that took over does something else");
            any |= action.is_some();
            match action {
                None => break,
                Some(Action::Record { .. } | Action::StatusChanged { .. } | Action::Persist { .. }) => {}
                Some(action) => self.open.push(action),
            }
        }
        assert_eq!((heir.next_wake(), heir.used()), (self.node.next_wake(), self.node.used()));
        assert!(self.node.next_wake().is_none_or(|wake| wake > self.now), "no wake-up is in the past");
        self.check();
        any
    }

    fn heir(&self) -> Node {
        let mut heir = Node::new(NodeConfig::default());
        for input in &self.about_node {
            heir.handle(self.now, input.clone());
        }
        let all = (0..PODS).flat_map(|pod| (0..=self.names[pod]).map(move |name| format!("u{pod}-{name}")));
        let mut records: Vec<PodRecord> = all.filter_map(|uid| self.node.record(&uid.as_str().into())).collect();
        records.sort_by_key(PodRecord::accepted);
        for record in records {
            let record = Box::new(PodRecord::from_bytes(&record.to_bytes()).expect("a valid record"));
            heir.handle(self.now, Input::Restored { record, after: Interruption::Handover });
        }
        heir
    }

    fn exit(&mut self, instance: InstanceRef, outcome: Outcome) {
        if self.running.remove(&instance) {
            self.step(Some(Input::Exited { instance, outcome, message: String::new() }));
        }
    }

    fn answer(&mut self, action: Action, well: bool) {
        let input = match action {
            Action::SetUp { pod, attempt } => Input::SandboxReady { pod, attempt, ips: vec!["127.0.0.2".into()] },
            Action::PullImage { instance } => Input::ImageReady { instance, image_id: "sha256:1".into(), pulled: None },
            Action::Start { instance } => {
                self.running.insert(instance.clone());
                Input::Started { instance, id: "husk://1".into() }
            }
            Action::Kill { instance } => return self.exit(instance, Outcome::Signal(9)),
            Action::Teardown { pod, attempt } => Input::TornDown { pod, attempt },
            Action::UpdateResources { instance, revision, .. } if well => {
                Input::ResourcesUpdated { instance, revision }
            }
            Action::UpdateResources { instance, revision, .. } => {
                Input::ResourcesFailed { instance, revision, message: "not now".into() }
            }
            // Guests ignore their stop signal.
            _ => return,
        };
        self.step(Some(input));
    }

    fn check(&self) {
        let used = self.node.used().get("cpu").map_or(0, Quantity::milli_value);
        assert!(used <= CAPACITY_MILLI, "{used} of {CAPACITY_MILLI} are given away");
        // Of those that wait for CPU alone the most important one, for which room may be kept, does not fit.
        let waits = |pod: &&PodUid| {
            let conditions = &self.node.status(pod).expect("it is there").conditions;
            let scheduled = conditions.iter().find(|c| c.kind == "PodScheduled").expect("always there");
            scheduled.status == ConditionStatus::False
                && scheduled.message == "0/1 nodes are available: 1 Insufficient cpu."
        };
        let spec = |pod: &PodUid| self.node.spec(pod).expect("it is there");
        let most = self.node.pods().filter(waits).map(|pod| spec(pod).priority()).max();
        let first: Vec<&PodUid> =
            self.node.pods().filter(waits).filter(|pod| Some(spec(pod).priority()) == most).collect();
        if let [pod] = first[..] {
            let wants = spec(pod).containers[0].resources.requests["cpu"].milli_value();
            assert!(used + wants > CAPACITY_MILLI, "{pod} waits for {wants} although only {used} are given away");
        }
    }

    /// Everything ends; nothing of it is left.
    fn end(mut self) {
        for pod in 0..PODS {
            self.play(Operation::Delete { pod });
        }
        for _ in 0..20 {
            self.play(Operation::Answer { well: true });
            self.play(Operation::Wait { seconds: 5 });
        }
        assert_eq!(self.node.pods().count(), 0);
        assert!(self.node.used().is_empty(), "{:?} is not given back", self.node.used());
        assert_eq!(self.node.next_wake(), None);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    // spec: RES-08
    #[test]
    fn nothing_is_given_away_twice(operations in proptest::collection::vec(operation(), 1..60)) {
        let mut world = World::new();
        for operation in operations {
            world.play(operation);
        }
        world.end();
    }
}
