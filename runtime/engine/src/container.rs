//! A container: a guest that runs, and how to signal, end and watch it.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytes::Bytes;
use husk_core::cpu::{CpuShare, Usage};
use husk_core::io::Outcome;
use husk_core::memory::Throttle;
use tokio::sync::{mpsc, watch};

use crate::account::{Account, InUse, MemoryUse};
use crate::asked::Asked;
use crate::attach::{Attached, OwnOutput};
use crate::engine::{Engine, Metering};
use crate::exec::{Exec, Process, Streams};
use crate::guest::Guest;
use crate::handles::Lease;
use crate::image::{DEFAULT_PATH, Image, ImageError, ModuleFile};
use crate::last_words::LastWords;
use crate::limits::Meter;
use crate::log::{Line, Log, Stream};
use crate::mount::Mount;
use crate::net::{Egress, PodAddress, PodNet, Protocol};
use crate::outcome::Ended;
use crate::owner::{ActsAs, Owner, OwnerError};
use crate::pod::Pod;
use crate::program::Program;
use crate::remove::Scratch;
use crate::root;
use crate::signal::{self, Control, Delivery, Pending, UnknownSignal};
use crate::stdio::Stdio;
use crate::turns::Seat;
use crate::wasi::{self, Setting};

/// Pieces of standard input that wait until the guest reads them.
const STDIN_PIECES: usize = 4;

/// What a container is started with. Start from [`ContainerConfig::new`].
#[derive(Clone, Debug)]
pub struct ContainerConfig {
    /// The program.
    pub image: Image,
    /// Replaces the image's own command. If its first word is a module of the image that one is started, or else the entry
    /// module with the command as its own arguments, the first word included.
    pub command: Vec<String>,
    /// Arguments; without a command those of the entry module.
    pub args: Vec<String>,
    /// Environment. That of the image, `PATH`, `HOSTNAME` and, with a working directory, `PWD` are added unless they are here.
    pub env: Vec<(String, String)>,
    /// Working directory, the image's own if none: `wasi:cli`'s initial directory, and `PWD` for guests that go by that. It is made if it isn't there; in a
    /// read-only mount, or an image that is a directory, it has to be.
    pub working_dir: Option<String>,
    /// Directories and files. Unless one of them is `/`, the container has a root directory of its own: an empty one for an image that is
    /// a file, the image itself, read-only and with a writable `/tmp`, for an image that is a directory. What it writes there
    /// is gone when it has ended.
    pub mounts: Vec<Mount>,
    /// Who the guest's files belong to, and whose files it may use: the node's own user's if none.
    pub owner: Option<Owner>,
    /// Don't let the guest write to its root directory (`readOnlyRootFilesystem`).
    pub read_only_root: bool,
    /// The pod's address, one of 127.0.0.0/8 ([`net`](crate::net)).
    pub ip: Ipv4Addr,
    /// The pod's name for itself.
    pub hostname: String,
    /// More names that resolve.
    pub hosts: Vec<(String, Ipv4Addr)>,
    /// The guest may open sockets.
    pub network: bool,
    /// What the guest may reach beyond the node.
    pub egress: Egress,
    /// What its instances may use of the processors together: so much of them while others compute, and no more than that.
    pub cpu: CpuShare,
    /// What all containers of its pod may use together, and what they compete with other pods by; without one the container is a pod of its
    /// own, with the same share.
    pub pod: Option<Pod>,
    /// Bytes that its instances may hold together; crossing it ends the guest that does.
    pub memory_limit: Option<u64>,
    /// What slows the growth of what they hold, before that limit does worse (RES-10).
    pub memory_throttle: Option<Throttle>,
    /// Fuel that an instance may use in its life.
    pub fuel_budget: Option<u64>,
    /// Absolute path of the file that the guest may write its last words to, for [`Container::last_words`]. It is there and empty when
    /// the guest starts, unless a read-only directory with other files is in its place.
    pub last_words: Option<String>,
    /// Keep standard input open, to be written by [`Container::stdin`]. It is empty otherwise.
    pub stdin: bool,
    /// Standard input and output are a terminal to the guest: it writes to one output only.
    pub tty: bool,
}

impl ContainerConfig {
    /// The entry module of an image with its default arguments, no limits, no directories, and 127.0.0.1 as its address.
    pub fn new(image: Image) -> Self {
        Self {
            image,
            command: Vec::new(),
            args: Vec::new(),
            env: Vec::new(),
            working_dir: None,
            mounts: Vec::new(),
            owner: None,
            read_only_root: false,
            ip: Ipv4Addr::LOCALHOST,
            hostname: String::new(),
            hosts: Vec::new(),
            network: true,
            egress: Egress::Deny,
            cpu: CpuShare::default(),
            pod: None,
            memory_limit: None,
            memory_throttle: None,
            fuel_budget: None,
            last_words: None,
            stdin: false,
            tty: false,
        }
    }
}

/// A container could not be started.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct StartError {
    /// For a container's waiting state: `CreateContainerError`.
    pub reason: &'static str,
    /// For people; names the file or mount and the remedy.
    pub message: String,
}

impl From<ImageError> for StartError {
    fn from(error: ImageError) -> Self {
        Self { reason: "CreateContainerError", message: error.to_string() }
    }
}

impl From<root::RootError> for StartError {
    fn from(error: root::RootError) -> Self {
        Self { reason: "CreateContainerError", message: error.to_string() }
    }
}

impl From<wasi::MountError> for StartError {
    fn from(error: wasi::MountError) -> Self {
        Self { reason: "CreateContainerError", message: error.to_string() }
    }
}

impl From<OwnerError> for StartError {
    fn from(error: OwnerError) -> Self {
        Self { reason: "CreateContainerError", message: error.to_string() }
    }
}

/// A container, from its creation on. Clones are the same container; it is killed when the last one is dropped.
#[derive(Clone, Debug)]
pub struct Container(pub(crate) Arc<Inner>);

#[derive(Debug)]
pub(crate) struct Inner {
    id: String,
    pub(crate) context: Arc<ExecContext>,
    pub(crate) control: Control,
    ready: watch::Sender<Option<bool>>,
    /// Whether it was started.
    begun: watch::Sender<bool>,
    stdin: Mutex<Option<mpsc::Sender<Bytes>>>,
    pub(crate) stdout: Arc<OwnOutput>,
    pub(crate) stderr: Arc<OwnOutput>,
    log: Log,
    /// Lines that were in the log before.
    lines_before: u64,
    /// Of the disk, its own.
    folders: Vec<PathBuf>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.control.deliver(signal::KILL);
    }
}

/// What all instances of a container have in common.
#[derive(Debug)]
pub(crate) struct ExecContext {
    pub(crate) engine: Engine,
    pub(crate) config: ContainerConfig,
    address: Arc<PodAddress>,
    memory: Arc<Account>,
    seat: Seat,
    acts_as: Option<ActsAs>,
    pub(crate) ended: watch::Sender<Option<Ended>>,
    last_words: OnceLock<Vec<u8>>,
}

impl Container {
    pub(crate) async fn create(engine: Engine, mut config: ContainerConfig, log: Log) -> Result<Self, StartError> {
        complete(&mut config);
        if config.fuel_budget.is_some() && engine.0.metering != Metering::Fuel {
            let message =
                "it has a budget of fuel, and guests of this node are stopped by time, so that none is counted".into();
            return Err(StartError { reason: "CreateContainerError", message });
        }
        let acts_as = config.owner.as_ref().map(|owner| engine.owners().of(owner)).transpose()?;
        let mut own = root::add(&mut config, engine.scratch())?;
        let last_words = LastWords::prepare(&mut config, engine.scratch(), &mut own)?;
        if let Some(owner) = &config.owner {
            root::hand_over(&own, owner)?;
        }
        let address = Arc::new(PodAddress {
            ip: config.ip,
            hostname: config.hostname.clone(),
            hosts: config.hosts.clone(),
            egress: config.egress,
            ports: engine.ports().clone(),
        });
        let (seat, memory) = match config.pod.take() {
            Some(pod) => pod.container(config.cpu, config.memory_limit),
            None => Pod::of_one(&engine, config.cpu, config.memory_limit),
        };
        let memory = Arc::new(memory);
        memory.set_throttle(config.memory_throttle);
        let context = Arc::new(ExecContext {
            engine,
            config,
            address,
            memory,
            seat,
            acts_as,
            ended: watch::Sender::new(None),
            last_words: OnceLock::new(),
        });
        let (module, argv) = context.module(&context.config.command, &context.config.args);
        let program = context.engine.program(module).await?;

        let (stdin, guest_stdin) = match context.config.stdin {
            true => Some(mpsc::channel(STDIN_PIECES)).unzip(),
            false => (None, None),
        };
        let tty = context.config.tty;
        let stdout = Arc::new(OwnOutput::new(log.clone(), Stream::Stdout));
        let stderr = if tty { stdout.clone() } else { Arc::new(OwnOutput::new(log.clone(), Stream::Stderr)) };
        let stdio = Stdio { stdin: guest_stdin, stdout: stdout.clone(), stderr: stderr.clone(), is_terminal: tty };
        let control = Control::new(program.handles_signals);
        let (ready, begun) = (watch::Sender::new(None), watch::Sender::new(false));
        let guest =
            context.guest(GuestParts { argv: &argv, stdio, signals: control.pending.clone(), ready: ready.clone() })?;

        let (begin, stop) = (begun.subscribe(), control.stop.subscribe());
        let inner = Inner {
            folders: own.iter().map(|own| own.path().to_path_buf()).collect(),
            id: new_id(),
            control,
            ready,
            begun,
            stdin: Mutex::new(stdin),
            stdout: stdout.clone(),
            stderr: stderr.clone(),
            lines_before: log.written(),
            log: log.clone(),
            context: context.clone(),
        };
        let engine = context.engine.clone();
        engine.threads().spawn(async move {
            // However this task ends, those who wait for the container hear of it.
            let end = End { context, log, own };
            let ended = end.context.run(program, guest, begin, stop).await;
            end.log.flush();
            if let Some(last_words) = last_words.and_then(|file| file.read()) {
                let _ = end.context.last_words.set(last_words);
            }
            end.context.ended.send_replace(Some(ended));
            for output in [stdout, stderr] {
                output.finish(end.context.engine.threads());
            }
        });
        Ok(Self(Arc::new(inner)))
    }

    /// Lets the guest run, if it doesn't yet and wasn't killed meanwhile.
    pub fn start(&self) {
        self.0.begun.send_replace(true);
    }

    /// Unique name of this instance (`containerID`).
    pub fn id(&self) -> &str {
        &self.0.id
    }

    /// Delivers a signal by its name, as in `SIGTERM`. A guest that imports the lifecycle interface finds it in its queue; any
    /// other has the default disposition, which for most signals is to end at once. KILL ends every guest.
    pub fn signal(&self, name: &str) -> Result<Delivery, UnknownSignal> {
        let number = signal::number(name)?;
        Ok(match self.outcome() {
            Some(_) => Delivery::Gone,
            None => self.0.control.deliver(number),
        })
    }

    /// Ends the guest now, whatever it does, and what was started in it by [`exec`](Self::exec).
    pub fn kill(&self) {
        self.0.control.deliver(signal::KILL);
    }

    /// Waits for the end. When this returns the guest's memory, files and sockets are free again.
    pub async fn wait(&self) -> Outcome {
        let mut ended = self.0.context.ended.subscribe();
        signal::said(&mut ended).await.unwrap_or_else(Ended::lost).outcome
    }

    /// How it ended, if it has.
    pub fn outcome(&self) -> Option<Outcome> {
        self.0.context.ended.borrow().as_ref().map(|ended| ended.outcome)
    }

    /// Why it ended, if it trapped: the reason in the first line, then the functions it was in.
    pub fn detail(&self) -> Option<String> {
        self.0.context.ended.borrow().as_ref().and_then(|ended| ended.detail.clone())
    }

    /// The end of what it wrote to [`ContainerConfig::last_words`], once it has ended.
    pub fn last_words(&self) -> &[u8] {
        self.0.context.last_words.get().map_or(&[], Vec::as_slice)
    }

    /// What it wrote to its log, as far as that is kept: a log may be that of several containers, one after the other.
    pub fn lines(&self) -> Vec<Line> {
        self.0.log.lines().into_iter().filter(|line| line.seq >= self.0.lines_before).collect()
    }

    /// Number of the first line that it writes to its log.
    pub fn first_line(&self) -> u64 {
        self.0.lines_before
    }

    /// What the guest says of its readiness through the lifecycle interface; none if it never said anything.
    pub fn ready(&self) -> Option<bool> {
        *self.0.ready.borrow()
    }

    /// Whether the guest handles signals.
    pub fn handles_signals(&self) -> bool {
        self.0.control.handles_signals
    }

    /// Folders of the disk that are its own and go when it ends: what it writes to its root directory is there.
    pub fn folders(&self) -> &[PathBuf] {
        &self.0.folders
    }

    /// What its instances hold in linear memories and tables.
    pub fn memory(&self) -> MemoryUse {
        self.0.context.memory.usage()
    }

    /// What its instances have used of the processors.
    pub fn cpu(&self) -> Usage {
        self.0.context.seat.usage()
    }

    /// Changes what they may use, from now on (RES-11).
    pub fn change_cpu(&self, share: CpuShare) {
        self.0.context.seat.change(share);
    }

    /// Changes how much memory they may hold, from now on (RES-11).
    ///
    /// # Errors
    /// They hold more than that. Nothing is changed.
    pub fn change_memory_limit(&self, limit: Option<u64>) -> Result<(), InUse> {
        self.0.context.memory.change_limit(limit)
    }

    /// Changes what slows the growth of what they hold, from now on (RES-10).
    pub fn change_memory_throttle(&self, throttle: Option<Throttle>) {
        self.0.context.memory.set_throttle(throttle);
    }

    /// Where the node connects to for an address of a pod, which differs for ports that the node may not bind itself.
    pub fn locate(&self, protocol: Protocol, address: SocketAddr) -> SocketAddr {
        let SocketAddr::V4(v4) = address else { return address };
        self.0.context.engine.ports().locate(protocol, v4).map_or(address, SocketAddr::V4)
    }

    /// The writing end of standard input, if it is open. Each writer has one of its own.
    pub fn stdin(&self) -> Option<mpsc::Sender<Bytes>> {
        self.0.stdin.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Standard input ends as soon as those who write to it now are done.
    pub fn close_stdin(&self) {
        self.0.stdin.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Starts another instance in the container's context: same directories, environment, address and memory account.
    /// `command[0]` is a module of the image by its name along `PATH`, or else the container's own module sees the command as
    /// its arguments. It is killed when the container ends or the answer is dropped.
    pub async fn exec(&self, command: &[String]) -> Result<Exec, StartError> {
        Exec::start(self.0.context.clone(), command).await
    }

    /// The same with streams, for people.
    pub async fn spawn(&self, command: &[String], streams: Streams) -> Result<Process, StartError> {
        Process::start(self.0.context.clone(), command, streams).await
    }

    /// Connects streams to the container's own: to its output from now on, and to its input if that is open. `ends_input`: the
    /// container's input ends with these streams' (`stdinOnce`). Dropping the answer detaches them, and the container goes on.
    pub fn attach(&self, streams: Streams, ends_input: bool) -> Attached {
        Attached::new(self, streams, ends_input)
    }
}

/// The end of a container's task: by a bug of the node it may be a panic.
struct End {
    context: Arc<ExecContext>,
    log: Log,
    own: Vec<Scratch>,
}

impl Drop for End {
    fn drop(&mut self) {
        self.context.ended.send_if_modified(|ended| {
            let lost = ended.is_none();
            ended.get_or_insert_with(Ended::lost);
            lost
        });
        // Removing takes a while if it is full, and nobody has to wait for it.
        let own = std::mem::take(&mut self.own);
        if !own.is_empty() {
            self.context.engine.threads().spawn_blocking(move || drop(own));
        }
    }
}

/// What differs from instance to instance.
pub(crate) struct GuestParts<'a> {
    pub(crate) argv: &'a [String],
    pub(crate) stdio: Stdio,
    pub(crate) signals: Arc<Pending>,
    pub(crate) ready: watch::Sender<Option<bool>>,
}

impl ExecContext {
    /// The module and `argv` for a command.
    pub(crate) fn module(&self, command: &[String], args: &[String]) -> (&ModuleFile, Vec<String>) {
        let path = self.config.env.iter().find(|(name, _)| name == "PATH").map_or(DEFAULT_PATH, |(_, path)| path);
        self.config.image.resolve(command, args, path)
    }

    /// The data of an instance.
    pub(crate) fn guest(&self, parts: GuestParts<'_>) -> Result<Guest, StartError> {
        let wasi = wasi::context(Setting {
            argv: parts.argv,
            env: &self.config.env,
            working_dir: self.config.working_dir.as_deref(),
            mounts: &self.config.mounts,
            address: self.config.network.then_some(&self.address),
            stdio: parts.stdio,
        })?;
        Ok(Guest {
            wasi,
            meter: Meter::new(self.memory.clone()),
            handles: Lease::new(self.engine.0.handles.clone()),
            signals: parts.signals,
            ready: parts.ready,
            net: PodNet::new(self.address.clone()),
        })
    }

    /// Runs an instance, once it is to begin, until it ends or is stopped. When this returns nothing is left of it.
    pub(crate) async fn run(
        &self,
        program: Arc<Program>,
        guest: Guest,
        mut begin: watch::Receiver<bool>,
        mut stop: watch::Receiver<Option<i32>>,
    ) -> Ended {
        let (stopped, ended) = (stop.clone(), self.ended.subscribe());
        let running = async {
            if begin.wait_for(|begun| *begun).await.is_err() {
                // Nobody will start it any more: it was killed.
                std::future::pending::<()>().await;
            }
            let mut store = wasmtime::Store::new(&self.engine.0.wasm, guest);
            store.limiter_async(|guest| &mut guest.meter);
            store.call_hook_async(Asked { stop: stopped, ended });
            match self.meter(&mut store) {
                Ok(()) => program.run(&mut store).await,
                Err(error) => Ended::from_error(&error),
            }
        };
        tokio::select! {
            // Looked at before each turn of the guest, and by himself when he calls the host.
            biased;
            signal = signal::said(&mut stop) => Ended::signal(signal.unwrap_or(signal::KILL)),
            ended = self.seat.run(self.acting(running)) => ended,
        }
    }

    /// Sees to it that an instance can be stopped wherever it is.
    fn meter(&self, store: &mut wasmtime::Store<Guest>) -> wasmtime::Result<()> {
        match self.engine.0.metering {
            Metering::Fuel => {
                store.set_fuel(self.config.fuel_budget.unwrap_or(u64::MAX))?;
                store.fuel_async_yield_interval(Some(self.engine.0.slice))
            }
            Metering::Epochs => {
                store.set_epoch_deadline(1);
                store.epoch_deadline_async_yield_and_update(1);
                Ok(())
            }
        }
    }

    /// Polls an instance as the owner of its files.
    async fn acting<T>(&self, running: impl Future<Output = T>) -> T {
        match &self.acts_as {
            Some(owner) => owner.run(running).await,
            None => running.await,
        }
    }
}

/// Fills in what the image says, and what every container has.
fn complete(config: &mut ContainerConfig) {
    let image = config.image.clone();
    config.working_dir = config.working_dir.take().or_else(|| image.working_dir().map(String::from));
    let mut add = |name: &str, value: &str| {
        if !config.env.iter().any(|(known, _)| known == name) {
            config.env.push((name.to_string(), value.to_string()));
        }
    };
    image.env().iter().for_each(|(name, value)| add(name, value));
    add("PATH", DEFAULT_PATH);
    if !config.hostname.is_empty() {
        add("HOSTNAME", &config.hostname);
    }
    if let Some(directory) = &config.working_dir {
        add("PWD", directory);
    }
}

/// An id that no other instance of this node had, nor one of an earlier run of it.
fn new_id() -> String {
    use std::hash::{BuildHasher as _, RandomState};
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let random = RandomState::new();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("husk://{:016x}{:016x}", random.hash_one(count), random.hash_one(std::time::SystemTime::now()))
}
