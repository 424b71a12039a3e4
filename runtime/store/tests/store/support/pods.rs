//! Real pods on a node that does what the core orders, in virtual time, with the store in the loop.

use std::collections::BTreeMap;
use std::time::Duration;

use husk_core::io::{Action, Input, Outcome, PodUid};
use husk_core::record::Interruption;
use husk_core::spec::{ContainerSpec, PodMeta, PodSpec, RestartPolicy};
use husk_core::{Instant, Node, NodeConfig, PodRecord};
use husk_store::Store;

/// A node with pods of one container.
pub(crate) struct Pods {
    pub(crate) node: Node,
    pub(crate) now: Instant,
    due: BTreeMap<(Instant, u64), Input>,
    sequence: u64,
    /// How long each container runs before it fails; none: forever.
    life: Option<Duration>,
    /// Restarts by pod, as they were when nothing waited to be written: who shows no more than that never takes it back.
    pub(crate) durable_restarts: BTreeMap<PodUid, u32>,
}

impl Pods {
    pub(crate) fn new(now: Instant, life: Option<Duration>) -> Self {
        Self {
            node: Node::new(NodeConfig::default()),
            now,
            due: BTreeMap::new(),
            sequence: 0,
            life,
            durable_restarts: BTreeMap::new(),
        }
    }

    /// The pods of these records.
    pub(crate) fn restored(now: Instant, life: Option<Duration>, records: Vec<PodRecord>, after: Interruption) -> Self {
        let mut pods = Self::new(now, life);
        for record in records.into_iter().map(Box::new) {
            pods.node.handle(now, Input::Restored { record, after });
        }
        pods
    }

    pub(crate) fn apply(&mut self, name: &str) {
        let meta = PodMeta {
            namespace: "default".into(),
            name: name.into(),
            uid: format!("6f1c0f5e-7b1d-4d0c-9d5b-{name:0>12}"),
            generation: 1,
            ..PodMeta::default()
        };
        let container = ContainerSpec {
            name: "app".into(),
            image: "registry.example/app:1".into(),
            hash: 1,
            ..ContainerSpec::default()
        };
        let spec = PodSpec {
            restart_policy: RestartPolicy::Always,
            containers: vec![container],
            termination_grace_period_seconds: Some(30),
            ..PodSpec::default()
        };
        self.node.handle(self.now, Input::Applied { meta, spec: Box::new(spec) });
    }

    /// Lives until then; what is to be persisted goes to the store, and the store is advanced when it wants to be.
    ///
    /// False if the disk refused: then it ends there.
    pub(crate) fn run_until(&mut self, end: Instant, store: &Store) -> bool {
        loop {
            while let Some(action) = self.node.poll_action() {
                self.obey(action, store);
            }
            let answer = self.due.keys().next().map(|(at, _)| *at);
            let next = [answer, self.node.next_wake(), store.next_wake()].into_iter().flatten().min();
            let Some(next) = next.filter(|next| *next <= end) else { break };
            self.now = self.now.max(next);
            while let Some(entry) = self.due.first_entry().filter(|entry| entry.key().0 <= self.now) {
                let input = entry.remove();
                self.node.handle(self.now, input);
            }
            self.node.advance(self.now);
            if store.advance(self.now).is_err() {
                return false;
            }
            if store.next_wake().is_none() {
                self.durable_restarts = self.restarts();
            }
        }
        self.now = end;
        true
    }

    /// Restarts by pod.
    pub(crate) fn restarts(&self) -> BTreeMap<PodUid, u32> {
        let count = |uid| self.node.status(uid)?.container_statuses.first().map(|container| container.restart_count);
        self.node.pods().map(|uid| (uid.clone(), count(uid).unwrap_or(0))).collect()
    }

    fn obey(&mut self, action: Action, store: &Store) {
        let soon = Duration::from_millis(50);
        match action {
            Action::SetUp { pod, attempt } => {
                self.answer(soon, Input::SandboxReady { pod, attempt, ips: vec!["127.1.0.2".into()] });
            }
            Action::PullImage { instance } => {
                let image_id = format!("sha256:{}", "0123456789abcdef".repeat(4));
                self.answer(soon, Input::ImageReady { instance, image_id, pulled: None });
            }
            Action::Start { instance } => {
                let id = format!("husk://{}/{}/{}", instance.pod, instance.container, instance.attempt);
                self.answer(soon, Input::Started { instance: instance.clone(), id });
                if let Some(life) = self.life {
                    let (outcome, message) = (Outcome::Code(1), String::new());
                    self.answer(soon + life, Input::Exited { instance, outcome, message });
                }
            }
            Action::Kill { instance } | Action::Signal { instance, .. } => {
                let (outcome, message) = (Outcome::Signal(15), String::new());
                self.answer(soon, Input::Exited { instance, outcome, message });
            }
            Action::Teardown { pod, attempt } => self.answer(soon, Input::TornDown { pod, attempt }),
            Action::Persist { pod, urgency } => {
                let record = self.node.record(&pod).expect("a pod that is to be persisted");
                store.persist(self.now, &pod.0, record.to_bytes(), urgency);
            }
            Action::Forget { pod } => store.forget(self.now, &pod.0),
            _ => {}
        }
    }

    fn answer(&mut self, after: Duration, input: Input) {
        self.sequence += 1;
        self.due.insert((self.now + after, self.sequence), input);
    }
}
