//! The agent's front: takes pods and tells what becomes of them.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use husk_core::backoff::BackoffConfig;
use husk_core::deletion::Deletion;
use husk_core::eviction::EvictionConfig;
use husk_core::io::{PodUid, Urgency};
use husk_core::record::{Interruption, PodRecord};
use husk_core::spec::ResourceList;
use husk_core::status::PodStatus;
use husk_core::{Input, Instant, NodeConfig};
use husk_engine::{Engine, EngineConfig, EngineError, Log, Metering};
use k8s_openapi::api::core::v1::Pod;
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use crate::addresses::Addresses;
use crate::backend::Containers;
use crate::clock::Clock;
use crate::driver::{Command, Driver, Tools};
use crate::histories::Histories;
use crate::images::{ImageTable, Images, ImagesConfig};
use crate::logs::Logs;
use crate::machine::ThisMachine;
use crate::measures::Measures;
use crate::metrics::Metrics;
use crate::notice::Notice;
use crate::pod::LocalPod;
use crate::preflight::{self, Trouble};
use crate::references::References;
use crate::sandbox::Ground;
use crate::shares::MemoryQos;
use crate::users::{IDS_PER_POD, PODS, Users};
use crate::view::ContainerView;
use crate::volumes::Memory;

/// What containers of an agent that was killed left behind is removed when this one has long been at work.
const LEFTOVERS_AFTER: Duration = Duration::from_secs(60);

/// So many notices may wait for one who watches.
const MOST_NOTICES: usize = 8192;

/// How an agent is set up.
#[derive(Clone)]
pub struct AgentConfig {
    /// Volumes of pods and root directories of containers live here.
    pub data_dir: PathBuf,
    /// Compiled modules are kept here; nowhere if not given.
    pub cache_dir: Option<PathBuf>,
    /// What images mean.
    pub images: ImageTable,
    /// Where images come from and how long they are kept.
    pub images_config: ImagesConfig,
    /// What pods refer to beside themselves.
    pub references: Arc<dyn References>,
    /// `spec.nodeName` of its pods.
    pub node_name: String,
    /// Bounds on what pods may do.
    pub limits: NodeLimits,
}

/// Bounds of a node on what pods may do.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeLimits {
    /// Delays of containers that crash.
    pub crash_loop: BackoffConfig,
    /// `terminated-pod-gc-threshold`: pods that have ended go beyond this number, the oldest first; 0 for never (TERM-09).
    pub terminated_pods: usize,
    /// `systemReserved` and `kubeReserved` together: what of the machine is not for pods.
    pub reserved: ResourceList,
    /// Ids of users of a pod that has its own, a multiple of 65,536 (META-07).
    pub ids_per_pod: u32,
    /// `memoryThrottlingFactor` and `memoryReservationPolicy`.
    pub memory_qos: MemoryQos,
    /// When pods have to go because the node is short of something (RES-09): that much is no pod's.
    pub evictions: EvictionConfig,
    /// Threads that guests compute on; as many as there are processors if none (`husk.guestThreads`).
    pub guest_threads: Option<NonZeroU32>,
    /// Files, folders, sockets and streams that one instance of a container may hold open (`husk.guestOpenFiles`).
    pub guest_open_files: Option<NonZeroU32>,
    /// How guests that compute are stopped (`husk.metering`).
    pub metering: Metering,
}

impl Default for NodeLimits {
    /// As upstream has them.
    fn default() -> Self {
        let terminated_pods = NodeConfig::default().terminated_pod_gc_threshold;
        Self {
            crash_loop: BackoffConfig::default(),
            terminated_pods,
            reserved: ResourceList::new(),
            ids_per_pod: IDS_PER_POD,
            memory_qos: MemoryQos::default(),
            evictions: EvictionConfig::default(),
            guest_threads: None,
            guest_open_files: None,
            metering: Metering::Fuel,
        }
    }
}

/// Why an agent can't start.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The engine can't.
    #[error("the Wasm engine can't start: {0}")]
    Engine(#[from] EngineError),
    /// The pods' addresses can't be managed.
    #[error("can't give out pod addresses: {0}")]
    Addresses(io::Error),
    /// There is no place for volumes.
    #[error("can't use the data folder {path}: {error}")]
    Data {
        /// Which.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// Its task ended by a fault of its own.
    #[error("the agent broke off: {0}")]
    Lost(String),
}

/// What a node goes on with that outlives its agent.
pub struct Continuation {
    /// The node's time now.
    pub now: Instant,
    /// What became of the containers since.
    pub after: Interruption,
    /// The pods that were there, each with its record, in the order in which the node took them.
    pub pods: Vec<Restored>,
    /// Keeps records from now on.
    pub keeper: Arc<dyn Keeper>,
    /// Where volumes in memory are.
    pub(crate) memory: Memory,
}

/// A pod that was there before the agent started.
pub struct Restored {
    /// What is known of its life.
    pub record: PodRecord,
    /// The object.
    pub pod: Pod,
    /// What asks for its end, if anybody did and its record doesn't say so yet.
    pub deletion: Option<Input>,
    /// The folder that its images are relative to.
    pub base: PathBuf,
}

/// Keeps what has to survive the agent, until whoever knows of a pod's object hears of [`Notice::Forgotten`]. Nothing here may wait for a
/// disk: it is called on the agent's own task.
pub trait Keeper: Send + Sync {
    /// A pod is like this now.
    fn persist(&self, now: Instant, record: &PodRecord, urgency: Urgency);
}

/// What a node knows of one of its pods.
#[derive(Clone, Debug)]
pub struct PodState {
    /// Which.
    pub uid: PodUid,
    /// The object as it was applied, with the status that its containers are told.
    pub pod: Arc<Pod>,
    /// Its status; none once it is gone for those who watch.
    pub status: Option<Arc<PodStatus>>,
    /// What the status doesn't say, by container.
    pub views: Arc<[ContainerView]>,
    /// Its deletion, if it is being deleted.
    pub deletion: Option<Deletion>,
}

/// An agent for the pods of one machine, driven by a task of its own.
pub struct LocalNode {
    commands: mpsc::UnboundedSender<Command>,
    /// Weak: who watches hears of it when the driver has ended, however it did.
    notices: broadcast::WeakSender<Notice>,
    driver: JoinHandle<()>,
    logs: Logs,
    metrics: Metrics,
    measures: Measures,
    short_of: watch::Sender<BTreeSet<&'static str>>,
    histories: Histories,
    engine: Engine,
    ground: Ground,
    node_name: String,
    began: SystemTime,
}

/// A pod that was applied.
#[derive(Clone, Debug)]
pub struct PodHandle {
    /// `metadata.uid`.
    pub uid: PodUid,
    /// The log of each container.
    pub logs: BTreeMap<String, Log>,
}

impl LocalNode {
    /// Starts an agent on the current runtime. It ends, and its containers with it, when this is dropped;
    /// [`shutdown`](Self::shutdown) also waits for that.
    pub fn start(config: AgentConfig) -> Result<Self, AgentError> {
        Self::start_with(config, None)
    }

    /// The same, with the pods that were there before. Nothing of them goes when the agent ends: they go on with the next one.
    pub fn go_on(config: AgentConfig, continuation: Continuation) -> Result<Self, AgentError> {
        Self::start_with(config, Some(continuation))
    }

    fn start_with(config: AgentConfig, continuation: Option<Continuation>) -> Result<Self, AgentError> {
        let path = &config.data_dir;
        std::fs::create_dir_all(path).map_err(|error| AgentError::Data { path: path.clone(), error })?;
        let own = EngineConfig::default();
        let number = |set: Option<NonZeroU32>| set.and_then(|number| usize::try_from(number.get()).ok());
        let engine = Engine::new(EngineConfig {
            workers: number(config.limits.guest_threads).unwrap_or(own.workers),
            metering: config.limits.metering,
            handles: number(config.limits.guest_open_files).unwrap_or(own.handles),
            cache_dir: config.cache_dir.clone(),
            cache_bytes: config.images_config.compiled_code_limit,
            compiler: config.images_config.compiler.clone(),
            scratch_dir: Some(path.join("containers")),
            leftovers_after: LEFTOVERS_AFTER,
            ..own
        })?;
        let addresses = Addresses::of_this_user().map_err(AgentError::Addresses)?;
        let (commands, orders) = mpsc::unbounded_channel();
        let (notices, _) = broadcast::channel(MOST_NOTICES);
        let images = Images::new(config.images.clone(), config.images_config.clone(), &config.data_dir);
        let machine = ThisMachine::new(path, config.limits.reserved.clone(), config.limits.evictions.clone());
        let users = Users::new(path, config.limits.ids_per_pod);
        let memory = continuation.as_ref().map_or_else(Memory::none, |before| before.memory.clone());
        let ground = Ground { images, references: config.references.clone(), machine, users, memory };
        let node_name = config.node_name.clone();
        let clock = Clock::starting_at(continuation.as_ref().map_or(Instant::ZERO, |before| before.now));
        let began = SystemTime::now() - clock.now().since_epoch();
        let (logs, watched) = (Logs::default(), notices.downgrade());
        let (measures, histories) = (Measures::new(clock.now()), Histories::new(clock));
        let metrics = Metrics::new(&node_name, began, measures.clone());
        let short_of = watch::Sender::new(BTreeSet::new());
        let tools = Tools {
            ground: ground.clone(),
            engine: engine.clone(),
            addresses,
            clock,
            logs: logs.clone(),
            metrics: metrics.clone(),
            measures: measures.clone(),
            histories: histories.clone(),
            short_of: short_of.clone(),
        };
        let mut driver = Driver::new(config, tools, notices);
        if let Some(before) = continuation {
            driver.go_on(before);
        }
        let driver = tokio::spawn(driver.run(orders));
        Ok(Self {
            commands,
            notices: watched,
            driver,
            logs,
            metrics,
            measures,
            short_of,
            histories,
            engine,
            ground,
            node_name,
            began,
        })
    }

    /// Everything that is known to keep a pod from running here. `base` is the folder of its manifest.
    pub async fn preflight(&self, pod: &Pod, base: &Path) -> Vec<Trouble> {
        preflight::check(pod, base, &self.ground, &self.engine).await
    }

    /// Its figures, for Prometheus.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// What its pods use.
    pub(crate) fn measures(&self) -> &Measures {
        &self.measures
    }

    /// Conditions of the node that say of what it is short (RES-09).
    pub(crate) fn short_of(&self) -> watch::Receiver<BTreeSet<&'static str>> {
        self.short_of.subscribe()
    }

    /// Has pods go by these thresholds from now on. Before it is said none goes.
    pub(crate) fn set_evictions(&self, config: EvictionConfig) {
        let _ = self.commands.send(Command::SetEvictions(config));
    }

    /// What it has.
    pub(crate) fn machine(&self) -> &ThisMachine {
        &self.ground.machine
    }

    /// Its images.
    pub(crate) fn images(&self) -> &Images {
        &self.ground.images
    }

    /// The ways into its containers, for an API server.
    pub fn containers(&self) -> Containers {
        Containers::new(self.logs.clone(), self.metrics.clone(), self.histories.clone())
    }

    /// Takes a pod, defaulted and valid, with a uid.
    pub fn apply(&self, pod: Pod, base: PathBuf) -> PodHandle {
        let uid = PodUid::from(pod.metadata.uid.as_deref().unwrap_or_default());
        let logs = self.logs.of(&uid, &pod);
        let local = LocalPod::new(pod, base, &self.node_name, logs.clone());
        let handle = PodHandle { uid, logs };
        // Should the driver be gone, those who watch hear of that.
        let _ = self.commands.send(Command::Apply(Box::new(local)));
        handle
    }

    /// Asks for a pod's end; its own grace if none is given, in seconds.
    pub fn delete(&self, pod: &PodUid, grace_seconds: Option<i64>) {
        let _ = self.commands.send(Command::Delete { pod: pod.clone(), grace_seconds });
    }

    /// Tells the node a fact that is not about a container: what the node has, that it shuts down, what a client said of a pod.
    pub fn tell(&self, fact: Input) {
        let _ = self.commands.send(Command::Tell(Box::new(fact)));
    }

    /// Looks at the disk that images are on now, and not only when it is time to.
    pub(crate) fn collect_images(&self) {
        let _ = self.commands.send(Command::CollectImages);
    }

    /// All pods as they are now. None if the agent has ended.
    pub async fn pods(&self) -> Option<Vec<PodState>> {
        let (reply, pods) = oneshot::channel();
        let _ = self.commands.send(Command::Look(reply));
        pods.await.ok()
    }

    /// Does it answer? It does so between any two turns of its work, so that one that doesn't hangs or has ended.
    pub async fn answers(&self) -> bool {
        let (reply, answer) = oneshot::channel();
        let _ = self.commands.send(Command::Answer(reply));
        answer.await.is_ok()
    }

    /// What happens from now on. The channel is closed if the agent has ended, by [`shutdown`](Self::shutdown) or by a fault.
    pub fn watch(&self) -> broadcast::Receiver<Notice> {
        match self.notices.upgrade() {
            Some(notices) => notices.subscribe(),
            None => broadcast::channel(1).1,
        }
    }

    /// Ends the agent: kills what still runs and waits until nothing is left of any pod, which takes a moment only.
    pub async fn shutdown(self) -> Result<(), AgentError> {
        let Self { commands, driver, .. } = self;
        drop(commands);
        driver.await.map_err(|error| AgentError::Lost(error.to_string()))
    }

    /// `spec.nodeName` of its pods.
    pub fn node_name(&self) -> &str {
        &self.node_name
    }

    /// The wall-clock time of [`husk_core::Instant::ZERO`], by the clock as it was when the agent began.
    pub fn epoch(&self) -> SystemTime {
        self.began
    }
}

/// Names a file of the data folder for its pod.
pub(crate) fn pod_folder(data_dir: &Path, pod: &PodUid) -> PathBuf {
    data_dir.join(PODS).join(pod.0.as_ref())
}
