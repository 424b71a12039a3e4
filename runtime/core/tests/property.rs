//! Random operations on a node, and what must hold whatever happens.
//!
//! The world here is not scripted: which order is answered next, and how, is drawn. After the drawn operations every pod is
//! deleted and the world answers at once, but guests ignore their stop signal and hooks hang: the worst that is allowed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use husk_core::io::{Action, Input, InstanceRef, Outcome, PodUid, ProbeOutcome};
use husk_core::node::{Node, NodeConfig};
use husk_core::record::{Interruption, PodRecord};
use husk_core::spec::{ContainerSpec, Handler, PodMeta, PodSpec, Probe, RestartPolicy};
use husk_core::status::{ContainerState, ContainerStatus, Phase, PodStatus};
use husk_core::time::Instant;
use proptest::prelude::*;

const PODS: usize = 3;
const GRACE_SECONDS: i64 = 20;
const MOST_GRACE_SECONDS: i64 = 40;

/// One drawn operation. Numbers choose among what there is at that moment.
#[derive(Clone, Copy, Debug)]
enum Operation {
    Apply {
        pod: usize,
        shape: usize,
    },
    Delete {
        pod: usize,
        grace: Option<i64>,
    },
    /// Answers an order, well or badly.
    Answer {
        order: usize,
        well: bool,
    },
    /// Answers an order with the attempt number of another instance.
    Stale {
        order: usize,
    },
    Exit {
        instance: usize,
        code: i32,
    },
    /// Lets time pass, but not beyond the next wake-up.
    Wait {
        millis: u64,
    },
    /// Lets time pass, whatever is due.
    Jump {
        seconds: u64,
    },
    /// The agent ends, or the board, and goes on from what was persisted.
    Interrupt {
        reboot: bool,
    },
}

fn operation_or_interruption() -> impl Strategy<Value = Operation> {
    prop_oneof![
        15 => operation(),
        1 => any::<bool>().prop_map(|reboot| Operation::Interrupt { reboot }),
    ]
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        1 => (0..PODS, 0..SHAPES.len()).prop_map(|(pod, shape)| Operation::Apply { pod, shape }),
        1 => (0..PODS, prop_oneof![Just(None), (0..MOST_GRACE_SECONDS).prop_map(Some)])
            .prop_map(|(pod, grace)| Operation::Delete { pod, grace }),
        12 => (any::<usize>(), prop::bool::weighted(0.8)).prop_map(|(order, well)| Operation::Answer { order, well }),
        1 => any::<usize>().prop_map(|order| Operation::Stale { order }),
        3 => (any::<usize>(), prop_oneof![Just(0), Just(1), Just(42)])
            .prop_map(|(instance, code)| Operation::Exit { instance, code }),
        4 => (0..20_000_u64).prop_map(|millis| Operation::Wait { millis }),
        2 => (0..700_u64).prop_map(|seconds| Operation::Jump { seconds }),
    ]
}

/// Pods to draw from: init containers, sidecars, apps with every kind of probe and hook.
const SHAPES: [fn() -> PodSpec; 6] = [
    || pod(RestartPolicy::Always, vec![], vec![container("a0"), container("a1")]),
    || pod(RestartPolicy::OnFailure, vec![container("i0"), sidecar("s0"), container("i1")], vec![probed("a0")]),
    || pod(RestartPolicy::Never, vec![sidecar("s0"), sidecar("s1")], vec![container("a0"), hooked("a1")]),
    || PodSpec {
        active_deadline_seconds: Some(300),
        ..pod(RestartPolicy::Always, vec![container("i0"), container("i1")], vec![probed("a0"), hooked("a1")])
    },
    || {
        let once = ContainerSpec { restart_policy: Some(RestartPolicy::Never), ..container("a1") };
        pod(RestartPolicy::Always, vec![container("i0"), sidecar("s0")], vec![container("a0"), once])
    },
    || {
        let slow = |container: ContainerSpec, seconds| ContainerSpec {
            post_start: Some(Handler::Sleep(seconds)),
            pre_stop: Some(Handler::Sleep(seconds)),
            ..container
        };
        pod(
            RestartPolicy::OnFailure,
            vec![slow(sidecar("s0"), 3)],
            vec![slow(probed("a0"), 5), slow(container("a1"), 30)],
        )
    },
];

fn pod(policy: RestartPolicy, init: Vec<ContainerSpec>, apps: Vec<ContainerSpec>) -> PodSpec {
    PodSpec {
        restart_policy: policy,
        init_containers: init,
        containers: apps,
        termination_grace_period_seconds: Some(GRACE_SECONDS),
        ..PodSpec::default()
    }
}

fn container(name: &str) -> ContainerSpec {
    ContainerSpec { name: name.into(), image: "i".into(), hash: 1, ..ContainerSpec::default() }
}

fn sidecar(name: &str) -> ContainerSpec {
    ContainerSpec { restart_policy: Some(RestartPolicy::Always), ..container(name) }
}

fn probed(name: &str) -> ContainerSpec {
    let probe = Probe {
        handler: Handler::Exec,
        initial_delay_seconds: 3,
        period_seconds: 5,
        timeout_seconds: 1,
        success_threshold: 1,
        failure_threshold: 2,
        termination_grace_period_seconds: None,
    };
    ContainerSpec {
        liveness_probe: Some(probe.clone()),
        readiness_probe: Some(probe.clone()),
        startup_probe: Some(probe),
        ..container(name)
    }
}

fn hooked(name: &str) -> ContainerSpec {
    ContainerSpec { post_start: Some(Handler::Exec), pre_stop: Some(Handler::HttpGet), ..container(name) }
}

/// What the world knows of one pod, from orders alone.
#[derive(Debug, Default)]
struct Seen {
    spec: PodSpec,
    /// Instances that were ordered to start and haven't ended.
    alive: BTreeMap<String, u32>,
    /// Last exit code per container, none while it runs.
    ended: BTreeMap<String, i32>,
    started: BTreeMap<String, bool>,
    ever_started: BTreeSet<String>,
    status: PodStatus,
    /// The latest instant at which its grace is spent, once it ends.
    spent: Option<Instant>,
    rebooted: bool,
    gone: bool,
}

struct World {
    node: Node,
    now: Instant,
    inputs: Vec<(Instant, Option<Input>)>,
    outputs: Vec<Action>,
    open: Vec<Action>,
    pods: BTreeMap<PodUid, Seen>,
    /// The records that had to be persisted.
    stored: BTreeMap<PodUid, Vec<u8>>,
    names: [u32; PODS],
}

impl World {
    fn new() -> Self {
        Self {
            node: Node::new(NodeConfig::default()),
            now: Instant::from_secs(1),
            inputs: Vec::new(),
            outputs: Vec::new(),
            open: Vec::new(),
            pods: BTreeMap::new(),
            stored: BTreeMap::new(),
            names: [0; PODS],
        }
    }

    /// The uid of the pod that has that name now.
    fn uid(&self, pod: usize) -> PodUid {
        PodUid::from(format!("p{pod}-{}", self.names[pod]).as_str())
    }

    fn perform(&mut self, operation: Operation) {
        match operation {
            Operation::Apply { pod, shape } => {
                if self.pods.get(&self.uid(pod)).is_some_and(|seen| seen.gone) {
                    self.names[pod] += 1;
                }
                let uid = self.uid(pod);
                if self.pods.contains_key(&uid) {
                    return;
                }
                let spec = SHAPES[shape]();
                let meta = PodMeta {
                    namespace: "d".into(),
                    name: format!("p{pod}"),
                    uid: uid.to_string(),
                    generation: 1,
                    is_static: false,
                    ..PodMeta::default()
                };
                self.pods.insert(uid, Seen { spec: spec.clone(), ..Seen::default() });
                self.input(Input::Applied { meta, spec: Box::new(spec) });
            }
            Operation::Delete { pod, grace } => self.delete(self.uid(pod), grace),
            Operation::Answer { order, well } => {
                if !self.open.is_empty() {
                    let action = self.open.remove(order % self.open.len());
                    self.answer(action, well);
                }
            }
            Operation::Stale { order } => {
                if !self.open.is_empty() {
                    let action = self.open[order % self.open.len()].clone();
                    self.answer_stale(action);
                }
            }
            Operation::Exit { instance, code } => {
                let running: Vec<_> = self.running().collect();
                if !running.is_empty() {
                    let instance = running[instance % running.len()].clone();
                    self.exit(instance, Outcome::Code(code));
                }
            }
            Operation::Wait { millis } => {
                let until = self.now + Duration::from_millis(millis);
                match self.node.next_wake().filter(|wake| *wake <= until) {
                    Some(_) => self.wake_up(),
                    None => self.sleep(until),
                }
            }
            Operation::Jump { seconds } => self.advance(self.now + Duration::from_secs(seconds)),
            Operation::Interrupt { reboot: false } => self.interrupt(Interruption::AgentRestart),
            Operation::Interrupt { reboot: true } => self.interrupt(Interruption::Reboot),
        }
    }

    fn interrupt(&mut self, after: Interruption) {
        self.open.clear();
        for (uid, seen) in &mut self.pods {
            // Sidecars that ran come back before what they serve.
            seen.ever_started.retain(|name| !seen.started.contains_key(name));
            seen.alive.clear();
            seen.started.clear();
            if self.stored.contains_key(uid) {
                // That it is gone is told again.
                seen.gone = false;
            }
            if after == Interruption::Reboot {
                // All init containers have to run again, and the pod is Pending while they do.
                seen.ever_started.clear();
                seen.ended.retain(|name, _| !name.starts_with('i'));
                seen.rebooted = true;
            }
        }
        self.node = restored(self.now, self.stored.values().cloned(), after);
        self.drain();
    }

    fn delete(&mut self, uid: PodUid, grace_seconds: Option<i64>) {
        if self.pods.contains_key(&uid) {
            self.input(Input::DeleteRequested { pod: uid, grace_seconds });
        }
    }

    fn running(&self) -> impl Iterator<Item = InstanceRef> {
        self.pods.iter().flat_map(|(uid, seen)| {
            let running = seen.alive.iter().filter(|(name, _)| seen.started.get(*name) == Some(&true));
            running.map(|(name, attempt)| instance(uid, name, *attempt))
        })
    }

    fn answer(&mut self, action: Action, well: bool) {
        let message = || "drawn".to_owned();
        match action {
            Action::SetUp { pod, attempt } if well => {
                self.input(Input::SandboxReady { pod, attempt, ips: vec!["127.1.1.1".into()] });
            }
            Action::SetUp { pod, attempt } => {
                let reason = "FailedMount".into();
                self.input(Input::SandboxFailed { pod, attempt, reason, message: message() });
            }
            Action::PullImage { instance } if well => {
                self.input(Input::ImageReady { instance, image_id: "sha256:1".into(), pulled: None });
            }
            Action::PullImage { instance } => {
                self.input(Input::ImageFailed { instance, reason: "ErrImagePull".into(), message: message() });
            }
            Action::Start { instance } if well => {
                let seen = self.pods.get_mut(&instance.pod).expect("a known pod");
                seen.started.insert(instance.container.to_string(), true);
                seen.ever_started.insert(instance.container.to_string());
                let id = format!("{}-{}", instance.container, instance.attempt);
                self.input(Input::Started { instance, id });
            }
            Action::Start { instance } => {
                let seen = self.pods.get_mut(&instance.pod).expect("a known pod");
                seen.alive.remove(&*instance.container);
                self.input(Input::StartFailed { instance, reason: "CreateContainerError".into(), message: message() });
            }
            Action::Signal { instance, .. } if well => self.exit(instance, Outcome::Signal(15)),
            Action::Kill { instance } => self.killed(instance),
            Action::RunProbe { instance, kind, run, .. } => {
                let result = if well { ProbeOutcome::Success } else { ProbeOutcome::Failure };
                self.input(Input::ProbeResult { instance, kind, run, result, message: message() });
            }
            Action::RunHook { instance, hook } => {
                let result = if well { Ok(()) } else { Err(message()) };
                self.input(Input::HookDone { instance, hook, result });
            }
            Action::Teardown { pod, attempt } => self.input(Input::TornDown { pod, attempt }),
            _ => {}
        }
    }

    /// A fact about an instance that isn't current must change nothing but the log of what was said.
    fn answer_stale(&mut self, action: Action) {
        let (Action::Start { instance } | Action::Signal { instance, .. } | Action::RunHook { instance, .. }) = action
        else {
            return;
        };
        let stale = InstanceRef { attempt: instance.attempt + 1000, ..instance };
        let before = self.outputs.len();
        self.input(Input::Started { instance: stale.clone(), id: "stale".into() });
        self.input(Input::Exited { instance: stale, outcome: Outcome::Code(7), message: String::new() });
        assert_eq!(self.outputs.len(), before, "a stale answer led to {:?}", &self.outputs[before..]);
    }

    /// A start that wasn't answered yet is answered by the failure to start.
    fn killed(&mut self, at: InstanceRef) {
        let seen = self.pods.get(&at.pod).expect("a known pod");
        if seen.alive.get(&*at.container) != Some(&at.attempt) {
            return;
        }
        if seen.started.get(&*at.container) == Some(&true) {
            self.exit(at, Outcome::Signal(9));
        } else {
            self.open.retain(|open| !matches!(open, Action::Start { instance } if *instance == at));
            self.answer(Action::Start { instance: at }, false);
        }
    }

    fn exit(&mut self, at: InstanceRef, outcome: Outcome) {
        let Some(seen) = self.pods.get_mut(&at.pod) else { return };
        let current = seen.alive.get(&*at.container) == Some(&at.attempt);
        if !current || seen.started.get(&*at.container) != Some(&true) {
            return;
        }
        seen.alive.remove(&*at.container);
        seen.started.remove(&*at.container);
        seen.ended.insert(at.container.to_string(), outcome.exit_code());
        self.input(Input::Exited { instance: at, outcome, message: String::new() });
    }

    fn advance(&mut self, until: Instant) {
        self.now = until;
        self.inputs.push((until, None));
        self.node.advance(until);
        self.drain();
    }

    /// Nothing is due before the wake-up that was promised.
    fn sleep(&mut self, until: Instant) {
        let before = self.outputs.len();
        self.advance(until);
        assert_eq!(self.outputs.len(), before, "work was due before next_wake: {:?}", &self.outputs[before..]);
    }

    /// Sleeps until the next wake-up: something is due then.
    fn wake_up(&mut self) {
        let Some(wake) = self.node.next_wake() else { return };
        assert!(wake > self.now, "what is due at {wake:?} was not done at {:?}", self.now);
        self.sleep(Instant::from_nanos(wake.as_nanos() - 1));
        let before = self.outputs.len();
        self.advance(wake);
        assert!(self.outputs.len() > before, "woken up at {wake:?} for nothing");
    }

    fn input(&mut self, input: Input) {
        self.inputs.push((self.now, Some(input.clone())));
        self.node.handle(self.now, input);
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(action) = self.node.poll_action() {
            self.check(&action);
            self.outputs.push(action.clone());
            if !matches!(
                action,
                Action::Record { .. }
                    | Action::StatusChanged { .. }
                    | Action::Gone { .. }
                    | Action::Persist { .. }
                    | Action::Forget { .. }
            ) {
                self.open.push(action);
            }
        }
    }

    fn check(&mut self, action: &Action) {
        let now = self.now;
        match action {
            Action::Start { instance } => {
                let seen = self.pods.get_mut(&instance.pod).expect("a known pod");
                let name = instance.container.to_string();
                assert!(!seen.gone, "{name} was started after its pod had gone");
                let completed = name.starts_with('i') && seen.ended.get(&name) == Some(&0);
                assert!(!completed, "{name} was run again after it had completed");
                let other = seen.alive.insert(name.clone(), instance.attempt);
                assert_eq!(other, None, "a second instance of {name}");
                seen.ended.remove(&name);
                if name.starts_with('a') {
                    for init in &seen.spec.init_containers {
                        let done = match init.is_sidecar() {
                            // It may be down for a moment, but it was up before.
                            true => seen.ever_started.contains(&init.name),
                            false => seen.ended.get(&init.name) == Some(&0),
                        };
                        assert!(done, "{name} was started before {} was done: {seen:?}", init.name);
                    }
                }
            }
            Action::Signal { instance, .. } if instance.container.starts_with('s') => {
                let deletion = self.node.deletion(&instance.pod);
                let seen = &self.pods[&instance.pod];
                let apps: Vec<_> = seen.alive.keys().filter(|name| name.starts_with('a')).collect();
                let spent = deletion.map(|deletion| deletion.timestamp).or(seen.spent);
                let spent = spent.is_none_or(|at| at <= now);
                assert!(apps.is_empty() || spent, "{} got its signal while {apps:?} run", instance.container);
            }
            Action::StatusChanged { pod } => {
                let Some(status) = self.node.status(pod).cloned() else { return };
                let seen = self.pods.get_mut(pod).expect("a known pod");
                check_status(seen, &status);
                seen.status = status;
            }
            Action::Persist { pod, .. } => {
                let record = self.node.record(pod).expect("a pod that is to be persisted");
                self.stored.insert(pod.clone(), record.to_bytes());
            }
            Action::Forget { pod } => {
                self.stored.remove(pod);
            }
            Action::Gone { pod } => {
                let seen = self.pods.get_mut(pod).expect("a known pod");
                assert!(!seen.gone, "gone twice");
                seen.gone = true;
            }
            _ => {}
        }
    }

    /// Deletes everything and answers at once, in the worst allowed way.
    fn finish(&mut self) {
        let uids: Vec<_> = self.pods.iter().filter(|(_, seen)| !seen.gone).map(|(uid, _)| uid.clone()).collect();
        for uid in uids {
            self.delete(uid, None);
        }
        let containers = 5;
        let limit = self.now + Duration::from_secs(MOST_GRACE_SECONDS.unsigned_abs() + 2 * containers + 2);
        let mut steps = 0;
        loop {
            steps += 1;
            assert!(steps < 10_000, "the end does not come");
            let obeyed = |action: &Action| !matches!(action, Action::Signal { .. } | Action::RunHook { .. });
            if let Some(next) = self.open.iter().position(obeyed) {
                let action = self.open.remove(next);
                self.answer(action, true);
                continue;
            }
            match self.node.next_wake() {
                Some(_) => self.wake_up(),
                None => break,
            }
        }
        let left: Vec<_> = self.pods.iter().filter(|(_, seen)| !seen.gone).collect();
        assert!(left.is_empty(), "not gone: {left:?}");
        assert_eq!(self.node.pods().count(), 0);
        let alive: Vec<_> = self.pods.values().flat_map(|seen| seen.alive.keys()).collect();
        assert!(alive.is_empty(), "left over: {alive:?}");
        assert!(self.stored.is_empty(), "records are left");
        assert!(self.now <= limit, "took until {:?}, allowed was {limit:?}", self.now);
    }
}

fn check_status(seen: &Seen, status: &PodStatus) {
    let old = &seen.status;
    if old.phase.is_terminal() {
        assert_eq!(old.phase, status.phase, "a terminal phase was left");
    }
    if status.phase.is_terminal() && seen.alive.keys().any(|name| seen.started.get(name) == Some(&true)) {
        panic!("{:?} was reported while {:?} run", status.phase, seen.alive);
    }
    if status.phase == Phase::Pending && !seen.rebooted {
        assert_ne!(old.phase, Phase::Running, "Running became Pending");
    }
    for (was, is) in pairs(old, status) {
        assert!(was.restart_count <= is.restart_count, "the restart count of {} fell: {was:?} {is:?}", is.name);
        // A completed init container counts as ready upstream.
        if is.ready && is.name.starts_with('a') {
            assert!(matches!(is.state, ContainerState::Running { .. }), "ready and not running: {is:?}");
        }
    }
}

fn pairs<'a>(
    old: &'a PodStatus,
    new: &'a PodStatus,
) -> impl Iterator<Item = (&'a ContainerStatus, &'a ContainerStatus)> {
    let old: Vec<_> = old.init_container_statuses.iter().chain(&old.container_statuses).collect();
    let new = new.init_container_statuses.iter().chain(&new.container_statuses);
    new.filter_map(move |is| Some((*old.iter().find(|was| was.name == is.name)?, is)))
}

/// A new node with the pods of these records.
fn restored(now: Instant, records: impl Iterator<Item = Vec<u8>>, after: Interruption) -> Node {
    let mut records: Vec<_> = records.map(|bytes| PodRecord::from_bytes(&bytes).expect("a valid record")).collect();
    records.sort_by_key(PodRecord::accepted);
    let mut node = Node::new(NodeConfig::default());
    for record in records.into_iter().map(Box::new) {
        node.handle(now, Input::Restored { record, after });
    }
    node
}

fn instance(pod: &PodUid, container: &str, attempt: u32) -> InstanceRef {
    InstanceRef { pod: pod.clone(), container: container.into(), attempt }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    // spec: PHASE-08, SIDE-04, TERM-08
    #[test]
    fn whatever_happens(operations in prop::collection::vec(operation(), 1..250), every in 1..40_usize) {
        let mut world = World::new();
        for operation in operations {
            world.perform(operation);
        }
        world.finish();

        // Equal inputs give equal outputs, also of a node that hands over to another by records again and again.
        let mut again = Node::new(NodeConfig::default());
        let mut outputs = Vec::new();
        for (step, (at, input)) in world.inputs.into_iter().enumerate() {
            match input {
                Some(input) => again.handle(at, input),
                None => again.advance(at),
            }
            outputs.extend(std::iter::from_fn(|| again.poll_action()));
            if step % every == 0 {
                let records = world.pods.keys().filter_map(|uid| Some(again.record(uid)?.to_bytes()));
                again = restored(at, records, Interruption::Handover);
                prop_assert_eq!(again.poll_action(), None);
            }
        }
        prop_assert_eq!(outputs, world.outputs);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    // spec: STATE-04, TERM-07
    #[test]
    fn whatever_is_interrupted(operations in prop::collection::vec(operation_or_interruption(), 1..250)) {
        let mut world = World::new();
        for operation in operations {
            world.perform(operation);
        }
        world.finish();
    }
}
