//! The agent's task: feeds the core with what happens and carries out its orders.
//!
//! Whatever takes time runs in a task of its own and answers through a channel; the core itself is only ever touched from here.

mod containers;
mod disks;
mod measuring;
mod on_disk;
mod pressure;
mod sandboxes;
mod views;

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time;

use husk_api::{core_meta, core_spec};
use husk_core::event::EventKind;
use husk_core::eviction::EvictionConfig;
use husk_core::io::{Hook, InstanceRef, PodUid, Urgency};
use husk_core::{Action, Input, Instant, Node, NodeConfig};
use husk_engine::{Container, Engine, StartError};
use k8s_openapi::api::core::v1::LinuxContainerUser;
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio::task::AbortHandle;

use self::disks::Disks;
use self::on_disk::Measuring;
use self::pressure::Shortages;
pub(crate) use self::sandboxes::remove;
use crate::addresses::Addresses;
use crate::clock::Clock;
use crate::histories::Histories;
use crate::hooks::Remark;
use crate::images::Found;
use crate::instance::{self, MessagePolicy};
use crate::local::{AgentConfig, Continuation, Keeper, PodState, Restored, pod_folder};
use crate::logs::Logs;
use crate::measures::Measures;
use crate::metrics::Metrics;
use crate::notice::Notice;
use crate::pod::{LocalPod, Work};
use crate::probes::Turns;
use crate::sandbox::{Ground, Sandbox};
use crate::upkeep::Updating;

/// So long the agent waits for its guests when it is shut down; a guest that was killed ends at its next check.
const SHUTDOWN: time::Duration = time::Duration::from_secs(10);

/// What the agent's owner wants.
pub(crate) enum Command {
    /// Take this pod.
    Apply(Box<LocalPod>),
    /// End that pod.
    Delete {
        /// Which.
        pod: PodUid,
        /// Seconds; the pod's own if not given.
        grace_seconds: Option<i64>,
    },
    /// Tell the core this.
    Tell(Box<Input>),
    /// Look at the disk that images are on.
    CollectImages,
    /// Have pods go by these thresholds.
    SetEvictions(EvictionConfig),
    /// Say that it is there.
    Answer(oneshot::Sender<()>),
    /// Say how all pods are.
    Look(oneshot::Sender<Vec<PodState>>),
}

/// What a task of the driver came to.
enum Answer {
    /// A fact for the core.
    Fact(Input),
    /// An image is there; what the instance needs of it.
    Image { instance: InstanceRef, found: Found },
    /// The pod's sandbox was made, or not.
    SetUp { pod: PodUid, attempt: u32, version: u64, result: Result<Sandbox, (&'static str, String)> },
    /// A hook ran, or not.
    Hook { instance: InstanceRef, hook: Hook, result: Result<Option<Remark>, String> },
    /// An instance was made, or not. It runs only when the core knows of it: who is told to stop then is stopped as it wants to be.
    Created { instance: InstanceRef, version: u64, result: Result<(Container, LinuxContainerUser), StartError> },
    /// The volumes of running pods are up to date.
    Updated,
    /// What is left of the disk.
    SawDisk(pressure::Seen),
    /// Images were collected; what is wrong with that.
    Collected(Option<(&'static str, String)>),
}

/// An instance between its start and its end.
enum Slot {
    /// Being started; to be killed once it is.
    Starting { kill: bool },
    /// Running.
    Running(Container),
}

/// What a driver works with.
pub(crate) struct Tools {
    pub(crate) ground: Ground,
    pub(crate) engine: Engine,
    pub(crate) addresses: Addresses,
    pub(crate) clock: Clock,
    pub(crate) logs: Logs,
    pub(crate) metrics: Metrics,
    pub(crate) measures: Measures,
    pub(crate) histories: Histories,
    /// Conditions of the node that say of what it is short, for those who want to know.
    pub(crate) short_of: watch::Sender<BTreeSet<&'static str>>,
}

/// An order of the core on its way to be carried out.
enum Order {
    /// Do this.
    Do(Action),
    /// Tell this, which was so when it was ordered.
    Tell(Notice),
}

pub(crate) struct Driver {
    config: AgentConfig,
    ground: Ground,
    node: Node,
    engine: Engine,
    addresses: Arc<Addresses>,
    clock: Clock,
    /// None if nothing outlives the agent.
    keeper: Option<Arc<dyn Keeper>>,
    told_shut_down: bool,
    pods: HashMap<PodUid, LocalPod>,
    instances: HashMap<InstanceRef, Slot>,
    hooks: HashMap<(InstanceRef, Hook), AbortHandle>,
    updating: Updating,
    turns: Turns,
    disks: Disks,
    shortages: Shortages,
    measuring: Measuring,
    short_of: watch::Sender<BTreeSet<&'static str>>,
    answer: mpsc::UnboundedSender<Answer>,
    answers: mpsc::UnboundedReceiver<Answer>,
    notices: broadcast::Sender<Notice>,
    logs: Logs,
    metrics: Metrics,
    measures: Measures,
    histories: Histories,
}

impl Driver {
    pub(crate) fn new(config: AgentConfig, tools: Tools, notices: broadcast::Sender<Notice>) -> Self {
        let Tools { ground, engine, addresses, clock, logs, metrics, measures, histories, short_of } = tools;
        let (answer, answers) = mpsc::unbounded_channel();
        engine.set_memory_limit(ground.machine.memory_for_pods());
        let node = NodeConfig {
            node_name: config.node_name.clone(),
            crash_loop: config.limits.crash_loop,
            terminated_pod_gc_threshold: config.limits.terminated_pods,
            ..NodeConfig::default()
        };
        Self {
            config,
            ground,
            node: Node::new(node),
            engine,
            addresses: Arc::new(addresses),
            clock,
            keeper: None,
            told_shut_down: false,
            pods: HashMap::new(),
            instances: HashMap::new(),
            hooks: HashMap::new(),
            updating: Updating::No,
            turns: Turns::default(),
            disks: Disks::default(),
            shortages: Shortages::new(),
            measuring: Measuring::default(),
            short_of,
            answer,
            answers,
            notices,
            logs,
            metrics,
            measures,
            histories,
        }
    }

    /// Takes over the pods of the last run.
    pub(crate) fn go_on(&mut self, before: Continuation) {
        let Continuation { after, pods, keeper, .. } = before;
        self.keeper = Some(keeper);
        if !pods.is_empty() {
            self.node.spread_probes(self.now());
        }
        for Restored { record, pod, deletion, base } in pods {
            let uid = record.uid().clone();
            let logs = self.logs.of(&uid, &pod);
            let local = LocalPod::new(pod, base, &self.config.node_name, logs);
            self.ground.images.reserve(&uid, local.image_names().collect());
            self.metrics.take(&local.pod, self.ground.users.gives_range(&local.pod));
            let (meta, spec) = (core_meta(&local.pod), Box::new(core_spec(&local.pod)));
            let ends = record.is_ending() || deletion.is_some();
            self.pods.insert(uid.clone(), local);
            self.fact(Input::Restored { record: Box::new(record), after });
            // What was asked for last may not be in its record, and is known before anything is begun.
            if !ends && self.node.status(&uid).is_some() {
                self.fact(Input::Applied { meta, spec });
            }
            deletion.into_iter().for_each(|deletion| self.fact(deletion));
            // Its address is its own before any new pod may look for one (TERM-11). That of one that has ended may be another pod's.
            let status = self.node.status(&uid).filter(|_| !ends);
            let ip = status.and_then(|status| status.pod_ips.first()?.parse().ok());
            if let (Some(ip), Some(local)) = (ip, self.pods.get_mut(&uid)) {
                local.reserved = self.addresses.take_this(ip).ok();
            }
        }
    }

    /// Runs until nobody gives commands any more.
    pub(crate) async fn run(mut self, mut commands: mpsc::UnboundedReceiver<Command>) {
        let mut collection = self.ground.images.collections();
        let mut looks = disks::looks();
        let mut measurements = measuring::measurements();
        let [mut memory, mut shortages] = pressure::looks();
        let mut storage = on_disk::looks();
        let mut changes = self.ground.references.changes();
        loop {
            while self.carry_out_all() {}
            if self.node.is_shut_down() && !self.told_shut_down {
                self.told_shut_down = true;
                self.tell(Notice::ShutDown { at: self.now() });
            }
            let wake = self.node.next_wake().map(|at| self.clock.until(at));
            let sleep = async {
                match wake {
                    Some(time) => tokio::time::sleep(time).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                command = commands.recv() => match command {
                    Some(command) => self.command(command),
                    None => return self.abandon().await,
                },
                Some(answer) = self.answers.recv() => self.answered(answer),
                Ok(()) = changes.changed() => self.references_changed(),
                () = sleep => self.node.advance(self.now()),
                _ = collection.tick() => self.collect_images(),
                _ = looks.tick() => self.look_at_disks(),
                _ = measurements.tick() => self.measure(),
                _ = memory.tick(), if !self.instances.is_empty() => self.look_at_memory(),
                _ = shortages.tick() => self.look_what_is_left(),
                _ = storage.tick(), if !self.instances.is_empty() => self.hold_to_storage_limits(),
            }
        }
    }

    fn now(&self) -> Instant {
        self.clock.now()
    }

    fn fact(&mut self, input: Input) {
        let now = self.now();
        self.histories.input(now, &input);
        self.node.handle(now, input);
    }

    fn command(&mut self, command: Command) {
        match command {
            Command::Apply(local) => {
                let (meta, spec) = (core_meta(&local.pod), core_spec(&local.pod));
                self.metrics.take(&local.pod, self.ground.users.gives_range(&local.pod));
                self.ground.images.reserve(&PodUid::from(meta.uid.as_str()), local.image_names().collect());
                match self.pods.entry(PodUid::from(meta.uid.as_str())) {
                    Entry::Occupied(known) => {
                        let known = known.into_mut();
                        let file = local.file().filter(|file| known.file() != Some(file)).map(str::to_owned);
                        known.update(*local);
                        if let Some(file) = file {
                            let pod = PodUid::from(meta.uid.as_str());
                            self.tell(Notice::Moved { at: self.now(), pod, file });
                        }
                        // Labels and annotations may be in files of its volumes.
                        self.update_volumes();
                    }
                    Entry::Vacant(unknown) => {
                        unknown.insert(*local);
                    }
                }
                self.fact(Input::Applied { meta, spec: Box::new(spec) });
            }
            Command::Delete { pod, grace_seconds } => self.fact(Input::DeleteRequested { pod, grace_seconds }),
            Command::Tell(input) => self.fact(*input),
            Command::CollectImages => self.collect_images(),
            Command::SetEvictions(config) => self.set_evictions(config),
            // Who asked may have given up.
            Command::Answer(reply) => drop(reply.send(())),
            Command::Look(reply) => {
                // Who asked may have given up.
                let _ = reply.send(self.states());
            }
        }
    }

    fn answered(&mut self, answer: Answer) {
        match answer {
            Answer::Fact(input) => {
                if let Input::Exited { instance, .. } = &input {
                    self.logs.ended(instance);
                    self.instances.remove(instance);
                }
                if let Input::TornDown { pod, .. } = &input
                    && let Some(local) = self.pods.get_mut(pod)
                {
                    local.work = Work::None;
                }
                self.fact(input);
            }
            Answer::Image { instance, found } => {
                let (image_id, pulled) = (found.id.clone(), found.pulled);
                if let Some(local) = self.pods.get_mut(&instance.pod) {
                    local.images.insert(instance.container.to_string(), found);
                }
                self.fact(Input::ImageReady { instance, image_id, pulled });
            }
            Answer::SetUp { pod, attempt, version, result } => self.was_set_up(pod, attempt, version, result),
            Answer::Created { instance, version, result } => self.created(instance, version, result),
            Answer::SawDisk(seen) => self.saw_disk(seen),
            Answer::Collected(wrong) => {
                if let Some((reason, message)) = wrong {
                    self.tell(Notice::Node { at: self.now(), kind: EventKind::Warning, reason, message });
                }
            }
            Answer::Updated => {
                if std::mem::take(&mut self.updating) == Updating::AndAgain {
                    self.update_volumes();
                }
            }
            Answer::Hook { instance, hook, result } => {
                self.hooks.remove(&(instance.clone(), hook));
                if let Ok(Some(Remark { reason, message })) = &result {
                    let (instance, message) = (instance.clone(), message.clone());
                    self.fact(Input::Remark { instance, reason: (*reason).into(), message });
                }
                self.fact(Input::HookDone { instance, hook, result: result.map(|_| ()) });
            }
        }
    }

    fn created(
        &mut self,
        instance: InstanceRef,
        version: u64,
        result: Result<(Container, LinuxContainerUser), StartError>,
    ) {
        let slot = self.instances.remove(&instance);
        let (container, user) = match result {
            Ok(created) => created,
            Err(StartError { reason, message, .. }) => {
                if let Some(local) = self.pods.get_mut(&instance.pod) {
                    local.wants = true;
                }
                self.fact(Input::StartFailed { instance, reason: reason.into(), message });
                if version != self.ground.version() {
                    self.references_changed();
                }
                return;
            }
        };
        if matches!(slot, Some(Slot::Starting { kill: true })) {
            container.kill();
        }
        self.logs.started(&instance, &container);
        self.instances.insert(instance.clone(), Slot::Running(container.clone()));
        let id = container.id().to_owned();
        if let Some(local) = self.pods.get_mut(&instance.pod) {
            local.users.insert(instance.container.to_string(), user);
        }
        self.fact(Input::Started { instance: instance.clone(), id });
        container.start();
        let definition = self.pods.get(&instance.pod).and_then(|local| local.container(&instance.container));
        let policy = definition.map(MessagePolicy::of).unwrap_or_default();
        let answer = self.answer.clone();
        tokio::spawn(async move {
            let outcome = container.wait().await;
            let message = instance::last_words(&container, outcome, policy);
            let _ = answer.send(Answer::Fact(Input::Exited { instance, outcome, message }));
        });
    }

    /// Carries out what is ordered. Returns false if nothing was.
    fn carry_out_all(&mut self) -> bool {
        let mut orders = Vec::new();
        while let Some(action) = self.node.poll_action() {
            self.histories.action(self.now(), &action);
            match action {
                // Before anybody is told of it: what was seen is not to be forgotten.
                Action::Persist { pod, urgency } => self.persist(&pod, urgency),
                Action::StatusChanged { pod } => {
                    self.grant(&pod);
                    orders.extend(self.status_of(pod).map(Order::Tell));
                }
                other => orders.push(Order::Do(other)),
            }
        }
        self.histories.settled(self.now(), &self.node);
        let some = !orders.is_empty();
        for order in orders {
            match order {
                Order::Do(action) => self.carry_out(action),
                Order::Tell(notice) => self.tell(notice),
            }
        }
        some
    }

    fn persist(&self, pod: &PodUid, urgency: Urgency) {
        if let (Some(keeper), Some(record)) = (&self.keeper, self.node.record(pod)) {
            keeper.persist(self.now(), &record, urgency);
        }
    }

    fn carry_out(&mut self, action: Action) {
        match action {
            Action::SetUp { pod, attempt } => self.set_up(pod, attempt),
            Action::PullImage { instance } => self.pull(instance),
            Action::Start { instance } => self.start(instance),
            Action::Signal { instance, signal } => {
                if let Some(Slot::Running(container)) = self.instances.get(&instance) {
                    instance::signal(container, &signal);
                }
            }
            Action::Kill { instance } => match self.instances.get_mut(&instance) {
                Some(Slot::Running(running)) => running.kill(),
                Some(Slot::Starting { kill }) => *kill = true,
                // It ended already, and the core was told.
                None => {}
            },
            Action::RunProbe { instance, kind, run, timeout } => self.probe(instance, kind, run, timeout),
            Action::RunHook { instance, hook } => self.run_hook(instance, hook),
            Action::CancelHook { instance, hook } => {
                if let Some(task) = self.hooks.remove(&(instance, hook)) {
                    task.abort();
                }
            }
            Action::UpdateResources { instance, revision, resources } => {
                self.update_resources(instance, revision, &resources);
            }
            Action::Teardown { pod, attempt } => self.tear_down(pod, attempt),
            Action::StatusChanged { .. } | Action::Persist { .. } => {}
            // Only the object: what is left of the pod may still run, and is torn down behind it.
            Action::Gone { pod } => self.tell(Notice::Gone { at: self.now(), pod }),
            Action::Forget { pod } => {
                self.pods.remove(&pod);
                self.ground.images.release(&pod);
                self.logs.forget(&pod);
                self.tell(Notice::Forgotten { at: self.now(), pod });
            }
            Action::Record { event } => self.tell(Notice::Event { at: self.now(), event: Arc::new(event) }),
        }
    }

    fn tell(&self, notice: Notice) {
        self.metrics.observe(&notice);
        // Nobody has to watch.
        let _ = self.notices.send(notice);
    }

    fn answer_async(&self, work: impl Future<Output = Answer> + Send + 'static) -> AbortHandle {
        let answer = self.answer.clone();
        let task = tokio::spawn(async move {
            let _ = answer.send(work.await);
        });
        task.abort_handle()
    }

    fn answer_blocking(&self, work: impl FnOnce() -> Answer + Send + 'static) {
        let answer = self.answer.clone();
        tokio::task::spawn_blocking(move || {
            let _ = answer.send(work());
        });
    }

    /// Nobody wants the agent any more: nothing of its pods stays behind.
    async fn abandon(mut self) {
        self.hooks.drain().for_each(|(_, task)| task.abort());
        for slot in self.instances.values_mut() {
            match slot {
                Slot::Starting { kill } => *kill = true,
                Slot::Running(running) => running.kill(),
            }
        }
        let quiet = async {
            while self.is_busy() {
                // What the core orders now is not carried out any more.
                let Some(answer) = self.answers.recv().await else { break };
                self.answered(answer);
            }
        };
        if tokio::time::timeout(SHUTDOWN, quiet).await.is_err() {
            tracing::warn!("guests are still there after they were killed");
        }
        // Volumes of pods that go on are theirs.
        if self.keeper.is_none() {
            for pod in self.pods.keys() {
                remove(&pod_folder(&self.config.data_dir, pod));
            }
        }
    }

    fn is_busy(&self) -> bool {
        !self.instances.is_empty() || self.pods.values().any(|local| !matches!(local.work, Work::None))
    }
}
