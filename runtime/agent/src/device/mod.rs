//! What runs on a device for years: the node, the API through which people see and change it, and the store that outlives both.
//!
//! Data goes one way round. A client writes an object, [`pods`] tells the node, the node's notices become statuses of objects.
//! Pods from files go to the node without asking anybody, so they run whatever the disk and the API do; their objects are mirrors.

mod before;
mod health;
mod manifests;
mod measured;
mod news;
mod node_events;
mod node_facts;
mod pod_object;
mod pods;
mod records;
mod references;
mod storage;
mod wall;

use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use husk_api::Gates;
use husk_apiserver::{Api, Listener, Memory, NODE_METRICS, Objects, POD_METRICS, serve};
use husk_core::Input;
use husk_core::event::EventKind;
use husk_core::eviction::EvictionConfig;
use husk_core::record::Interruption;
use husk_core::spec::ResourceList;
use husk_store::{OpenError, Opened, Options, Store};
use tokio::sync::watch;
use tokio::task::JoinSet;

use self::before::Bases;
use self::health::Health;
use self::measured::MeasuredObjects;
use self::node_facts::NodeFactsKeeper;
use self::pods::Pods;
use self::records::Records;
use self::references::StoredReferences;
use self::storage::StoreStorage;
use self::wall::WallClock;
use crate::clock::{self, Clock};
use crate::driver::remove;
use crate::images::{ImageTable, ImagesConfig};
use crate::local::{AgentConfig, AgentError, Continuation, LocalNode};
use crate::notice::Notice;
use crate::static_pods::{StaticPods, StaticPodsConfig};
use crate::volumes;

/// How long a shutdown waits beyond the grace of its pods.
const FAREWELL: Duration = Duration::from_secs(5);
/// So many changes of leases are remembered for watches.
const LEASES: usize = 16;

/// How a device is set up.
#[derive(Clone)]
pub struct DeviceConfig {
    /// The node. Its references are the objects of the API.
    pub node: AgentConfig,
    /// The Unix socket of the API.
    pub socket: PathBuf,
    /// A loopback address where the API listens as well.
    pub listen: Option<SocketAddr>,
    /// Where pods come from beside the API.
    pub static_pods: Option<StaticPodsConfig>,
    /// `shutdownGracePeriod`: how long pods have to end when the agent is told to. With 0 they are ended at once, go on when
    /// it starts again, and none of them counts as ended.
    pub shutdown_grace: Duration,
    /// `shutdownGracePeriodCriticalPods`: the part of it that critical pods have for themselves.
    pub shutdown_grace_critical: Duration,
    /// `maxPods`.
    pub max_pods: u32,
    /// Features that are on.
    pub gates: Gates,
}

/// What of a device may become another one while it runs.
#[derive(Clone)]
pub struct Reconfiguration {
    /// What images mean.
    pub images: ImageTable,
    /// Where they come from, and how long they are kept.
    pub images_config: ImagesConfig,
    /// `systemReserved` and `kubeReserved` together.
    pub reserved: ResourceList,
    /// When pods have to go because the node is short of something.
    pub evictions: EvictionConfig,
    /// `maxPods`.
    pub max_pods: u32,
    /// `shutdownGracePeriod`.
    pub shutdown_grace: Duration,
    /// `shutdownGracePeriodCriticalPods`.
    pub shutdown_grace_critical: Duration,
}

impl DeviceConfig {
    /// The part that a device takes while it runs.
    pub fn reconfiguration(&self) -> Reconfiguration {
        Reconfiguration {
            images: self.node.images.clone(),
            images_config: self.node.images_config.clone(),
            reserved: self.node.limits.reserved.clone(),
            evictions: self.node.limits.evictions.clone(),
            max_pods: self.max_pods,
            shutdown_grace: self.shutdown_grace,
            shutdown_grace_critical: self.shutdown_grace_critical,
        }
    }
}

/// Why a device can't start.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// Its folder can't be used.
    #[error("can't use the data folder {path}: {error}; give another with --data-dir")]
    Data {
        /// Which.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// Its state can't be opened.
    #[error(transparent)]
    Store(#[from] OpenError),
    /// The node can't start.
    #[error(transparent)]
    Node(#[from] AgentError),
    /// The API can't listen there.
    #[error("can't listen on {place}: {error}")]
    Listen {
        /// Socket or address.
        place: String,
        /// Why not.
        error: io::Error,
    },
    /// A task ended by a fault of its own.
    #[error("the agent broke off: {0}")]
    Lost(String),
}

/// A device that runs. Dropping it ends it as a crash would: everything goes on with the next start.
pub struct Device {
    node: Arc<LocalNode>,
    api: Api,
    static_pods: Option<StaticPods>,
    records: Arc<Records>,
    store: Arc<Store>,
    clock: Clock,
    tasks: JoinSet<&'static str>,
    grace: (Duration, Duration),
    max_pods: watch::Sender<u32>,
    health: Arc<Health>,
}

impl Device {
    /// Starts a device on the current runtime, with everything that was there before.
    pub async fn start(config: DeviceConfig) -> Result<Self, DeviceError> {
        let data_dir = config.node.data_dir.clone();
        let (told, version) = watch::channel(0);
        let opened = open(&data_dir, told).await?;
        if let Some(set_aside) = &opened.set_aside {
            tracing::error!("{set_aside}");
        }
        for unreadable in &opened.unreadable {
            tracing::error!(pod = unreadable.uid, error = %unreadable.error, "a pod's record can't be read");
        }
        if let Some(error) = &opened.degraded {
            tracing::error!(%error, "the disk is full: what changes is kept in memory until there is space");
        }
        let health = Arc::new(Health::default());
        if let Some(error) = &opened.degraded {
            health.store.failed(error);
        }
        let mut remarks = node_events::of_start(&opened, &config.node.node_name, &clock::boot().id);
        let Opened { store, now, interruption, records: of_before, unreadable, .. } = opened;
        let (store, clock) = (Arc::new(store), Clock::starting_at(now));
        let storage = Arc::new(StoreStorage::new(store.clone(), clock, version.clone(), health.clone()));
        // Events are many, small and soon forgotten; a lease is written every ten seconds.
        let objects = Objects::new(storage)
            .with("events", Arc::new(Memory::default()))
            .with("leases.coordination.k8s.io", Arc::new(Memory::new(LEASES)));
        let wall = Arc::new(WallClock::new(clock));
        let manifests = config.static_pods.as_ref().map(|from| &*from.folder);
        // Not before the state is open, which no two agents have at once.
        let memory = volumes::Memory::of(&data_dir);
        let bases = Bases { data_dir: &data_dir, manifests, memory: &memory };
        let before = before::gather(&objects, &store, now, of_before, &unreadable, bases, &wall.now()).await;

        let references = Arc::new(StoredReferences::new(store.clone()));
        let keeper = Arc::new(Records::new(store.clone(), clock, health.clone()));
        let node_config = AgentConfig { references: references.clone(), ..config.node.clone() };
        let after = interruption.unwrap_or(Interruption::Reboot);
        let continuation = Continuation { now, after, pods: before.restored, keeper: keeper.clone(), memory };
        let node = Arc::new(LocalNode::go_on(node_config, continuation)?);
        let measured = MeasuredObjects { measures: node.measures().clone(), node_name: node.node_name().to_owned() };
        let measured = Arc::new(measured);
        let objects = [&NODE_METRICS, &POD_METRICS]
            .into_iter()
            .fold(objects, |objects, resource| objects.with(&resource.qualified(), measured.clone()));

        let device = husk_apiserver::Device {
            node_name: node.node_name().to_owned(),
            agent_version: env!("CARGO_PKG_VERSION").to_owned(),
            gates: config.gates,
        };
        let api =
            Api::new(objects.clone(), Arc::new(node.containers()), device).checked(health.checks(&node, &store, clock));
        let listeners = listen(&config).await?;
        let mut tasks = JoinSet::new();
        let max_pods = watch::Sender::new(config.max_pods);
        let facts =
            NodeFactsKeeper::new(node.clone(), objects.clone(), max_pods.subscribe(), health.clone(), data_dir.clone());
        facts.report().await;
        let name = node.node_name();
        remarks.push((EventKind::Normal, "NodeReady", format!("Node {name} status is now: NodeReady")));
        node_events::record(&objects, name, remarks).await;
        let base = data_dir.clone();
        let mut pods =
            Pods::new(node.clone(), objects.clone(), wall, base, keeper.clone(), &before.objects, health.clone());
        // Nobody sees them without their statuses.
        pods.begin().await;
        node.set_evictions(config.node.limits.evictions.clone());
        let serving = api.clone();
        tasks.spawn(async move {
            if let Err(error) = serve(serving, listeners).await {
                tracing::error!(%error, "the API ended");
            }
            "the API"
        });
        tasks.spawn(named("the pods", pods.run()));
        tasks.spawn(named("the node's state", facts.keep()));
        tasks.spawn(named("the records", keeper.clone().write(version)));
        tasks.spawn(named("the references", references.follow(objects.clone())));
        let static_pods = match config.static_pods {
            Some(from) => {
                let static_pods = StaticPods::go_on(from, node.clone(), before.from_files, before.leftovers);
                let telling = manifests::tell(static_pods.problems(), objects, node.node_name().to_owned());
                tasks.spawn(named("the manifests", telling));
                Some(static_pods)
            }
            None => {
                before.from_files.iter().for_each(|pod| {
                    let uid = pod.metadata.uid.as_deref().unwrap_or_default();
                    node.delete(&uid.into(), None);
                });
                before.leftovers.iter().for_each(|folder| remove(folder));
                None
            }
        };
        let grace = grace(config.shutdown_grace, config.shutdown_grace_critical);
        Ok(Self { node, api, static_pods, records: keeper, store, clock, tasks, grace, max_pods, health })
    }

    /// The node.
    pub fn node(&self) -> &Arc<LocalNode> {
        &self.node
    }

    /// The API.
    pub fn api(&self) -> &Api {
        &self.api
    }

    /// Looks at the folder of static pods now.
    pub fn look(&self) {
        if let Some(static_pods) = &self.static_pods {
            static_pods.look();
        }
    }

    /// Goes on with another configuration. What runs isn't touched by it.
    pub fn reconfigure(&mut self, new: Reconfiguration) {
        self.node.images().set(new.images, new.images_config);
        self.node.collect_images();
        self.node.machine().reserve(new.reserved, new.evictions.clone());
        self.node.set_evictions(new.evictions);
        self.grace = grace(new.shutdown_grace, new.shutdown_grace_critical);
        // Says that the rest is another one as well.
        self.max_pods.send_replace(new.max_pods);
    }

    /// Resolves when a part of it has ended by itself, which none should. The name is for people.
    pub async fn broken(&mut self) -> String {
        match self.tasks.join_next().await {
            Some(Ok(name)) => format!("{name} ended"),
            Some(Err(error)) => error.to_string(),
            None => "there is nothing left of it".into(),
        }
    }

    /// Ends it in good order (TERM-10): its pods within their grace, the critical ones last, and everything is on the disk.
    pub async fn shut_down(self) -> Result<(), DeviceError> {
        let Self { node, api, static_pods, records, store, clock, mut tasks, grace, max_pods: _, health } = self;
        let (grace, critical) = grace;
        health.is_ending.store(true, Ordering::Relaxed);
        let remark = (EventKind::Normal, "Shutdown", "Shutdown manager detected shutdown event".to_owned());
        node_events::record(api.objects(), node.node_name(), vec![remark]).await;
        if let Some(static_pods) = static_pods {
            static_pods.stop().await;
        }
        if !grace.is_zero() {
            let mut notices = node.watch();
            node.tell(Input::Shutdown { grace, critical });
            let ended = async {
                loop {
                    match notices.recv().await {
                        Ok(Notice::ShutDown { .. }) | Err(tokio::sync::broadcast::error::RecvError::Closed) => return,
                        Ok(_) | Err(_) => {}
                    }
                }
            };
            if tokio::time::timeout(grace + FAREWELL, ended).await.is_err() {
                tracing::warn!("pods are still there after their grace");
            }
        }
        api.end();
        tasks.shutdown().await;
        drop(api);
        records.flush().await;
        if let Some(node) = Arc::into_inner(node) {
            node.shutdown().await?;
        }
        drop(records);
        // Somebody who still reads keeps it open: nothing is lost by that.
        if let Some(store) = Arc::into_inner(store) {
            let closed = tokio::task::spawn_blocking(move || store.close(clock.now())).await;
            match closed {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::warn!(%error, "the state can't be closed in good order"),
                Err(error) => return Err(DeviceError::Lost(error.to_string())),
            }
        }
        Ok(())
    }
}

/// The whole, and the critical pods' part of it.
fn grace(all: Duration, critical: Duration) -> (Duration, Duration) {
    (all, critical.min(all))
}

async fn named(name: &'static str, work: impl Future<Output = ()>) -> &'static str {
    work.await;
    name
}

/// Opens the state; the folder is this user's alone.
async fn open(data_dir: &Path, told: watch::Sender<u64>) -> Result<Opened, DeviceError> {
    let path = data_dir.to_owned();
    let opening = tokio::task::spawn_blocking(move || {
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&path);
        made.map_err(|error| DeviceError::Data { path: path.clone(), error })?;
        let options = Options {
            on_change: Box::new(move |version| told.send_modify(|known| *known = version)),
            ..Options::new(clock::boot())
        };
        Ok(Store::open(&path.join("state.redb"), options)?)
    });
    opening.await.map_err(|error| DeviceError::Lost(error.to_string()))?
}

async fn listen(config: &DeviceConfig) -> Result<Vec<Listener>, DeviceError> {
    let socket = &config.socket;
    if let Some(folder) = socket.parent() {
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.map_err(|error| DeviceError::Listen { place: socket.display().to_string(), error })?;
    }
    let unix = Listener::unix(socket);
    let mut listeners = vec![unix.map_err(|error| DeviceError::Listen { place: socket.display().to_string(), error })?];
    if let Some(address) = config.listen {
        let tcp = Listener::tcp(address).await;
        listeners.push(tcp.map_err(|error| DeviceError::Listen { place: address.to_string(), error })?);
    }
    Ok(listeners)
}
