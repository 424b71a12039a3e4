//! A node with many pods for which nothing is due, and one that something happens to: the cost of an event must be that of the
//! pod it is about, however many others there are.

#![allow(dead_code, reason = "each user takes its part")]

use std::time::Duration;

use husk_core::io::{Action, Input, InstanceRef, Outcome, PodUid, ProbeOutcome};
use husk_core::quantity::Quantity;
use husk_core::spec::{ContainerSpec, Handler, PodMeta, PodSpec, Probe, ResourceList, Resources};
use husk_core::status::{Condition, ConditionStatus};
use husk_core::{Instant, Node, NodeConfig};

/// The pod that something happens to.
const BUSY: &str = "busy";

/// Longer than any back-off is remembered.
const LONG: Duration = Duration::from_secs(700);

/// A node whose pods all run.
pub(crate) struct Fleet {
    pub(crate) node: Node,
    pub(crate) now: Instant,
    busy: PodUid,
    app: InstanceRef,
    ready: bool,
    /// Probes that were ordered so far.
    pub(crate) probes: u64,
    /// Of every container.
    resources: Resources,
    /// Orders are taken out before they are answered, as a shell does it.
    orders: Vec<Action>,
}

/// Something that happens to the busy pod.
pub(crate) struct Event {
    pub(crate) name: &'static str,
    pub(crate) happen: fn(&mut Fleet),
}

/// Each leaves the node as it was, so that it can happen again and again.
pub(crate) const EVENTS: [Event; 6] = [
    Event { name: "wake-up, probe, success", happen: Fleet::probe },
    Event { name: "probe fails once, then succeeds", happen: Fleet::probe_fails_once },
    Event { name: "exit and restart", happen: Fleet::restart },
    Event { name: "apply, run, delete", happen: Fleet::come_and_go },
    Event { name: "condition set, status changes", happen: Fleet::change_status },
    Event { name: "record to bytes", happen: Fleet::persist },
];

impl Fleet {
    /// So many pods that idle, and the busy one.
    pub(crate) fn new(idle: usize) -> Self {
        let mut fleet = Self::empty();
        for n in 0..idle {
            fleet.idle_pod(n);
        }
        fleet.apply(BUSY, 10);
        fleet
    }

    /// So many pods that are all probed every ten seconds.
    pub(crate) fn probed(pods: usize) -> Self {
        let mut fleet = Self::empty();
        for n in 0..pods {
            fleet.apply(&format!("pod-{n:05}"), 10);
        }
        fleet
    }

    /// So many that idle and have requests and limits of CPU and memory.
    pub(crate) fn sized(pods: usize) -> Self {
        let mut fleet = Self::empty();
        let amounts = |cpu, memory| -> ResourceList {
            [("cpu", cpu), ("memory", memory)]
                .map(|(name, amount)| (name.into(), Quantity::parse(amount).expect("an amount")))
                .into()
        };
        fleet.resources = Resources { requests: amounts("100m", "16Mi"), limits: amounts("200m", "32Mi") };
        for n in 0..pods {
            fleet.idle_pod(n);
        }
        fleet
    }

    fn empty() -> Self {
        Self {
            node: Node::new(NodeConfig::default()),
            now: Instant::from_secs(1),
            busy: PodUid::from(BUSY),
            app: instance(&PodUid::from(BUSY), 0),
            ready: false,
            probes: 0,
            resources: Resources::default(),
            orders: Vec::new(),
        }
    }

    /// One more that idles: its probes are due in more than a hundred years, so it has a timer and nothing to do.
    pub(crate) fn idle_pod(&mut self, n: usize) {
        self.apply(&format!("pod-{n:05}"), u32::MAX);
    }

    /// A pod with an app that is probed that often; returns once it runs and is ready.
    fn apply(&mut self, name: &str, period_seconds: u32) {
        let probe = Probe {
            handler: Handler::HttpGet,
            initial_delay_seconds: 0,
            period_seconds,
            timeout_seconds: 1,
            success_threshold: 1,
            failure_threshold: 3,
            termination_grace_period_seconds: None,
        };
        let app = ContainerSpec {
            name: "app".into(),
            image: "registry.example/team/app:1.0".into(),
            hash: 1,
            liveness_probe: Some(probe.clone()),
            readiness_probe: Some(probe),
            resources: self.resources.clone(),
            ..ContainerSpec::default()
        };
        let spec = Box::new(PodSpec { containers: vec![app], ..PodSpec::default() });
        let meta = PodMeta {
            namespace: "default".into(),
            name: name.into(),
            uid: name.into(),
            generation: 1,
            labels: [("app".into(), "idle".into())].into(),
            ..PodMeta::default()
        };
        self.node.handle(self.now, Input::Applied { meta, spec });
        self.obey();
    }

    /// Answers every order until there is none.
    fn obey(&mut self) {
        loop {
            self.orders.extend(std::iter::from_fn(|| self.node.poll_action()));
            if self.orders.is_empty() {
                break;
            }
            let mut orders = std::mem::take(&mut self.orders);
            for order in orders.drain(..) {
                match &order {
                    Action::Start { instance } if instance.pod == self.busy => self.app = instance.clone(),
                    Action::RunProbe { .. } => self.probes += 1,
                    _ => {}
                }
                if let Some(answer) = answer(order) {
                    self.node.handle(self.now, answer);
                }
            }
            self.orders = orders;
        }
    }

    /// Whatever is due next, which is probes, and it goes well.
    pub(crate) fn probe(&mut self) {
        self.wake();
        self.obey();
    }

    /// Time passes until something is due.
    fn wake(&mut self) {
        self.now = self.node.next_wake().unwrap_or(self.now);
        self.node.advance(self.now);
    }

    fn probe_fails_once(&mut self) {
        self.wake();
        while let Some(order) = self.node.poll_action() {
            if let Some(Input::ProbeResult { instance, kind, run, .. }) = answer(order) {
                let (result, message) = (ProbeOutcome::Failure, String::from("refused"));
                self.node.handle(self.now, Input::ProbeResult { instance, kind, run, result, message });
            }
        }
        self.probe();
    }

    /// It ran for long, so there is no back-off.
    fn restart(&mut self) {
        self.now = self.now + LONG;
        let (instance, outcome) = (self.app.clone(), Outcome::Code(1));
        self.node.handle(self.now, Input::Exited { instance, outcome, message: String::new() });
        self.obey();
    }

    fn come_and_go(&mut self) {
        self.apply("guest", 10);
        self.node.handle(self.now, Input::DeleteRequested { pod: "guest".into(), grace_seconds: None });
        self.obey();
    }

    fn change_status(&mut self) {
        self.ready = !self.ready;
        let condition = Condition {
            kind: "example.com/ready".into(),
            status: ConditionStatus::from(self.ready),
            reason: "".into(),
            message: String::new(),
            last_transition_time: None,
            observed_generation: 0,
        };
        self.node.handle(self.now, Input::ConditionSet { pod: self.busy.clone(), condition });
        self.obey();
    }

    fn persist(&mut self) {
        let bytes = self.node.record(&self.busy).map(|record| record.to_bytes());
        std::hint::black_box(bytes);
    }
}

fn instance(pod: &PodUid, attempt: u32) -> InstanceRef {
    InstanceRef { pod: pod.clone(), container: "app".into(), attempt }
}

/// All goes well.
fn answer(order: Action) -> Option<Input> {
    Some(match order {
        Action::SetUp { pod, attempt } => Input::SandboxReady { pod, attempt, ips: vec!["127.1.2.3".into()] },
        Action::PullImage { instance } => Input::ImageReady { instance, image_id: "sha256:1".into(), pulled: None },
        Action::Start { instance } => {
            let id = format!("husk://{}-{}", instance.container, instance.attempt);
            Input::Started { instance, id }
        }
        Action::Signal { instance, .. } => {
            Input::Exited { instance, outcome: Outcome::Signal(15), message: String::new() }
        }
        Action::RunProbe { instance, kind, run, .. } => {
            let (result, message) = (ProbeOutcome::Success, String::new());
            Input::ProbeResult { instance, kind, run, result, message }
        }
        Action::Teardown { pod, attempt } => Input::TornDown { pod, attempt },
        _ => return None,
    })
}
