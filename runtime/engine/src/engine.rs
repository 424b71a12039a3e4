//! The engine of a node: one wasmtime, one set of linkers, one cache, the threads that guests run on.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use husk_core::cpu::CpuShare;
use rustix::process::{Resource, Rlimit};
use tokio::runtime::Handle;
use tokio::sync::{OnceCell, Semaphore, watch};
use wasmtime_wasi::{I32Exit, p1, p2};

use crate::account::Account;
use crate::cache::Cache;
use crate::compiler::{CodeConfig, Compiler};
use crate::container::{Container, ContainerConfig, StartError};
use crate::guest::Guest;
use crate::handles::Handles;
use crate::image::{Image, ImageError, ModuleFile};
use crate::log::Log;
use crate::net::Ports;
use crate::owner::Owners;
use crate::pod::Pod;
use crate::program::{Linkers, Program};
use crate::remove::Scratch;
use crate::threads::Threads;
use crate::ticker::Ticker;
use crate::turns::Turns;
use crate::{lifecycle, root, sockets};

/// Compiled modules that are kept in memory though no container uses them.
const MAX_IDLE_PROGRAMS: usize = 64;
/// Why a compiler was ended that nothing is wrong with.
const STOPPED: &str = "the node is short of memory; it is tried again in some minutes";
/// After which time the compiler is given again what it has failed at.
const TRY_AGAIN: Duration = Duration::from_secs(300);

/// How to build an [`Engine`]. Start from `EngineConfig::default()`.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// Where compiled code is kept, in a directory that is this user's alone; none keeps it in memory only. A directory
    /// that can't be used is an error of its own kind, [`EngineError::Cache`], for those who would rather go on without.
    pub cache_dir: Option<PathBuf>,
    /// Bytes of compiled code that are kept there. What was unused the longest goes first; the latest stays, however big it is.
    pub cache_bytes: u64,
    /// Where containers have their root directories. None makes a directory in the system's own for temporary files.
    pub scratch_dir: Option<PathBuf>,
    /// When what containers of engines that are gone left there is removed, from the start on.
    pub leftovers_after: Duration,
    /// Threads that guests run on.
    pub workers: usize,
    /// How modules are compiled. Without it that is done by this process, where nothing bounds it.
    pub compiler: Option<Compiler>,
    /// Modules that are compiled at the same time: each takes a multiple of its size in memory.
    pub compilers: usize,
    /// How guests are stopped.
    pub metering: Metering,
    /// Fuel (about one unit per Wasm instruction) after which a guest is looked at.
    pub slice: u64,
    /// Files, folders, sockets, streams and timers that an instance may hold open at once; to want more ends it.
    pub handles: usize,
    /// Address space reserved per linear memory. None is wasmtime's own choice, 4 GiB on 64-bit systems, which saves the
    /// compiled code its bounds checks; give a few MiB where address space is short.
    pub memory_reservation: Option<u64>,
    /// Bytes of stack for a guest's own frames; deeper recursion is a stack fault.
    pub stack: usize,
}

/// How guests are stopped that compute, so that others have their turns and they can be ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Metering {
    /// They count what they do, and are stopped after a slice of it.
    #[default]
    Fuel,
    /// They look at a clock that ticks each millisecond. Calls and branches cost less; there are no budgets of fuel, and nobody can say
    /// what a guest has done, only how long it took.
    Epochs,
}

impl Default for EngineConfig {
    fn default() -> Self {
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            cache_dir: None,
            cache_bytes: 256 << 20,
            scratch_dir: None,
            leftovers_after: Duration::ZERO,
            workers,
            compiler: None,
            compilers: workers.div_ceil(2),
            metering: Metering::Fuel,
            slice: 200_000,
            handles: 4096,
            memory_reservation: None,
            stack: 512 * 1024,
        }
    }
}

/// The engine could not be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// wasmtime doesn't run here.
    #[error("wasmtime could not be set up: {0}")]
    Wasmtime(String),
    /// `cache_dir` can't be used. Without it the engine would start.
    #[error("cache of compiled code: {0}")]
    Cache(String),
    /// `scratch_dir` can't be used.
    #[error("directory for containers: {0}")]
    Scratch(std::io::Error),
    /// The system gives no threads.
    #[error("threads for guests could not be started: {0}")]
    Threads(std::io::Error),
}

/// The engine of a node. Cheap to clone; guests run for as long as one clone or [`Container`] lives.
#[derive(Clone)]
pub struct Engine(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) wasm: wasmtime::Engine,
    pub(crate) metering: Metering,
    pub(crate) slice: u64,
    ports: Ports,
    linkers: Linkers,
    cache: Option<Arc<Cache>>,
    compiler: Option<(Compiler, CodeConfig)>,
    /// Heard by those who wait for a process that compiles: it is to end.
    compiling: watch::Sender<()>,
    /// Modules that could not be compiled.
    failures: Mutex<HashMap<[u8; 32], Failure>>,
    compilers: Arc<Semaphore>,
    compiled: AtomicU64,
    programs: Mutex<HashMap<[u8; 32], Slot>>,
    scratch: Scratch,
    turns: Turns,
    pub(crate) handles: Arc<Handles>,
    memory: Arc<Account>,
    threads: Threads,
    owners: Owners,
}

/// Why a module could not be compiled.
enum Failure {
    /// It takes more than this.
    TooCostly(String),
    /// The compiler failed, for this reason, at that time.
    Compiler(String, std::time::Instant),
}

/// A program, or its compilation under way: who comes second waits for the first.
type Slot = Arc<OnceCell<Arc<Program>>>;

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("cache", &self.0.cache).finish_non_exhaustive()
    }
}

impl Engine {
    /// Builds the engine and starts its threads. Raises this process's limit of open files to what it may have: each directory
    /// and socket of each container is one.
    pub fn new(config: EngineConfig) -> Result<Self, EngineError> {
        let open_files = raise_open_files();
        let code = CodeConfig {
            metering: config.metering,
            stack: config.stack,
            memory_reservation: config.memory_reservation,
        };
        let failed = |error: wasmtime::Error| EngineError::Wasmtime(format!("{error:#}"));
        let wasm = wasmtime::Engine::new(&wasmtime_config(&config)).map_err(failed)?;
        let linkers = linkers(&wasm).map_err(failed)?;
        let cache = match &config.cache_dir {
            Some(directory) => {
                let opened = Cache::open(directory, config.cache_bytes, &wasm)
                    .map_err(|error| EngineError::Cache(error.to_string()))?;
                Some(Arc::new(opened))
            }
            None => None,
        };
        let scratch =
            root::scratch(config.scratch_dir.as_deref(), config.leftovers_after).map_err(EngineError::Scratch)?;
        let workers = config.workers.max(1);
        let threads = Threads::start(workers, || {}).map_err(EngineError::Threads)?;
        let ticker = match config.metering {
            Metering::Fuel => None,
            Metering::Epochs => Some(Ticker::start(wasm.clone()).map_err(EngineError::Threads)?),
        };
        let turns = Turns::new(workers, threads.handle(), ticker);
        Ok(Self(Arc::new(Inner {
            wasm,
            metering: config.metering,
            slice: config.slice.max(1),
            ports: Ports::default(),
            linkers,
            cache,
            compiler: config.compiler.map(|compiler| (compiler, code)),
            compiling: watch::Sender::new(()),
            failures: Mutex::default(),
            compilers: Arc::new(Semaphore::new(config.compilers.max(1))),
            compiled: AtomicU64::new(0),
            programs: Mutex::default(),
            scratch,
            turns,
            handles: Arc::new(Handles::new(config.handles, open_files)),
            memory: Arc::new(Account::of_node(None)),
            threads,
            owners: Owners::default(),
        })))
    }

    /// Compiles all modules of an image, or loads them from the cache. Says what is wrong with them, if anything. Containers of
    /// an image that is prepared start at once; of another one they wait for it.
    pub async fn prepare(&self, image: &Image) -> Result<(), ImageError> {
        for module in image.modules() {
            self.program(module).await?;
        }
        Ok(())
    }

    /// Makes a container, all but its first instruction: [`Container::start`] runs that.
    pub async fn create(&self, config: ContainerConfig, log: Log) -> Result<Container, StartError> {
        Container::create(self.clone(), config, log).await
    }

    /// Makes a container and starts it: returns when the guest's first instruction is about to run.
    pub async fn start(&self, config: ContainerConfig, log: Log) -> Result<Container, StartError> {
        let container = self.create(config, log).await?;
        container.start();
        Ok(container)
    }

    /// A pod, whose containers compete as one with those of other pods ([`ContainerConfig::pod`]), and hold so many bytes of memory
    /// together.
    pub fn pod(&self, cpu: CpuShare, memory_limit: Option<u64>) -> Pod {
        Pod::new(self, cpu, memory_limit)
    }

    /// Bytes of memory that all containers may hold together, from now on: more is nobody's, whatever his own limit
    /// (`enforceNodeAllocatable`).
    pub fn set_memory_limit(&self, limit: Option<u64>) {
        self.0.memory.set_limit(limit);
    }

    /// Bytes of memory that all containers hold together.
    pub fn memory_used(&self) -> u64 {
        self.0.memory.usage().used
    }

    /// Ends what compiles in processes of its own, for it is tried again later. False if nothing does.
    pub fn stop_compiling(&self) -> bool {
        let is_compiling = self.0.compiling.receiver_count() > 0;
        self.0.compiling.send_replace(());
        is_compiling
    }

    /// Modules that were compiled since the engine runs. Those that were loaded from the cache don't count.
    pub fn compiled(&self) -> u64 {
        self.0.compiled.load(Ordering::Relaxed)
    }

    /// Forgets compiled code that no container uses, on the disk and in memory. Bytes that are free now on the disk; waits for it.
    pub fn forget_unused_code(&self) -> u64 {
        let used = {
            let mut programs = self.0.programs.lock().unwrap_or_else(PoisonError::into_inner);
            programs.retain(|_, slot| is_used(slot));
            programs.keys().copied().collect()
        };
        self.0.cache.as_ref().map_or(0, |cache| cache.clear(&used))
    }

    /// The ports that guests can reach on the node's loopback addresses.
    pub(crate) fn ports(&self) -> &Ports {
        &self.0.ports
    }

    /// Where containers have their root directories.
    pub(crate) fn scratch(&self) -> &Path {
        self.0.scratch.path()
    }

    /// The threads that guests run on.
    pub(crate) fn threads(&self) -> &Handle {
        self.0.threads.handle()
    }

    /// Memory of all containers.
    pub(crate) fn memory(&self) -> &Arc<Account> {
        &self.0.memory
    }

    /// Whose turn it is on them.
    pub(crate) fn turns(&self) -> &Turns {
        &self.0.turns
    }

    /// Those who use files on behalf of guests.
    pub(crate) fn owners(&self) -> &Owners {
        &self.0.owners
    }

    /// The program of a module, compiled at most once however many ask for it at the same time.
    pub(crate) async fn program(&self, module: &ModuleFile) -> Result<Arc<Program>, ImageError> {
        let slot = self.slot(&module.digest);
        let program = slot.get_or_try_init(|| self.build(module)).await?;
        Ok(program.clone())
    }

    async fn build(&self, module: &ModuleFile) -> Result<Arc<Program>, ImageError> {
        if let Some(cache) = self.0.cache.clone() {
            let (inner, module) = (self.0.clone(), module.clone());
            let load = move || Program::load(&inner.wasm, &inner.linkers, &cache, &module);
            if let Some(loaded) = self.blocking(load).await {
                return loaded;
            }
        }
        if let Some(error) = self.known_failure(module) {
            return Err(error);
        }
        // The turn ends with the compilation, also when nobody waits for that any more. The semaphore is never closed.
        let turn = self.0.compilers.clone().acquire_owned().await.ok();
        self.0.compiled.fetch_add(1, Ordering::Relaxed);
        let code = match &self.0.compiler {
            Some((compiler, config)) => {
                let file = module.clone();
                let bytes = self.blocking(move || file.read()).await?;
                let mut stop = self.0.compiling.subscribe();
                let compiled = tokio::select! {
                    compiled = compiler.compile(config, module, bytes) => compiled,
                    _ = stop.changed() => Err(ImageError::Compiler { path: module.path.clone(), detail: STOPPED.into() }),
                };
                Some(compiled.inspect_err(|error| self.remember_failure(module, error))?)
            }
            None => None,
        };
        let (inner, module) = (self.0.clone(), module.clone());
        self.blocking(move || {
            let _turn = turn;
            let Inner { wasm, linkers, cache, .. } = &*inner;
            match code {
                Some(code) => Program::of_file(wasm, linkers, cache.as_deref(), code, &module),
                None => Program::compile(wasm, linkers, cache.as_deref(), &module),
            }
        })
        .await
    }

    /// What is known to fail isn't tried again: a module that is too costly not at all, and one that the compiler failed at not at once.
    fn known_failure(&self, module: &ModuleFile) -> Option<ImageError> {
        let path = module.path.clone();
        match self.failures().get(&module.digest)? {
            Failure::TooCostly(most) => Some(ImageError::TooCostly { path, most: most.clone() }),
            Failure::Compiler(detail, since) if since.elapsed() < TRY_AGAIN => {
                Some(ImageError::Compiler { path, detail: detail.clone() })
            }
            Failure::Compiler(..) => None,
        }
    }

    fn remember_failure(&self, module: &ModuleFile, error: &ImageError) {
        let failure = match error {
            ImageError::TooCostly { most, .. } => Failure::TooCostly(most.clone()),
            ImageError::Compiler { detail, .. } => Failure::Compiler(detail.clone(), std::time::Instant::now()),
            _ => return,
        };
        let mut failures = self.failures();
        if failures.len() >= MAX_IDLE_PROGRAMS {
            failures.clear();
        }
        failures.insert(module.digest, failure);
    }

    fn failures(&self) -> MutexGuard<'_, HashMap<[u8; 32], Failure>> {
        self.0.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn blocking<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        let working = self.threads().spawn_blocking(work).await;
        working.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()))
    }

    fn slot(&self, digest: &[u8; 32]) -> Slot {
        let mut programs = self.0.programs.lock().unwrap_or_else(PoisonError::into_inner);
        if programs.len() > MAX_IDLE_PROGRAMS && !programs.contains_key(digest) {
            programs.retain(|_, slot| is_used(slot));
        }
        programs.entry(*digest).or_default().clone()
    }
}

/// By a container, or by somebody who waits for it.
fn is_used(slot: &Slot) -> bool {
    Arc::strong_count(slot) > 1 || slot.get().is_some_and(|program| Arc::strong_count(program) > 1)
}

/// Returns what this process may have open then.
fn raise_open_files() -> u64 {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, ..limit };
    let now = match rustix::process::setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(error) => {
            tracing::warn!("limit of open files stays at {:?}: {error}", limit.current);
            limit.current
        }
    };
    // None is no limit.
    now.unwrap_or(u64::MAX)
}

pub(crate) fn wasmtime_config(config: &EngineConfig) -> wasmtime::Config {
    let mut wasm = wasmtime::Config::new();
    wasm.consume_fuel(config.metering == Metering::Fuel)
        .epoch_interruption(config.metering == Metering::Epochs)
        .max_wasm_stack(config.stack)
        // Host calls run on the same stack, above the guest's frames.
        .async_stack_size(config.stack + 512 * 1024)
        .generate_address_map(false)
        .wasm_component_model(true);
    if let Some(bytes) = config.memory_reservation {
        wasm.memory_reservation(bytes).memory_reservation_for_growth(bytes).memory_guard_size(64 * 1024);
    }
    wasm
}

fn linkers(engine: &wasmtime::Engine) -> wasmtime::Result<Linkers> {
    let mut component = wasmtime::component::Linker::<Guest>::new(engine);
    p2::add_to_linker_async(&mut component)?;
    component.allow_shadowing(true);
    sockets::add_to_linker(&mut component)?;
    lifecycle::add_to_components(&mut component)?;

    let mut core = wasmtime::Linker::<Guest>::new(engine);
    p1::add_to_linker_async(&mut core, |guest: &mut Guest| &mut guest.wasi)?;
    core.allow_shadowing(true);
    // wasmtime-wasi's own takes 126 and above for a mistake; exit codes are to stay exact.
    core.func_wrap("wasi_snapshot_preview1", "proc_exit", |code: i32| -> wasmtime::Result<()> {
        Err(I32Exit(code).into())
    })?;
    lifecycle::add_to_modules(&mut core)?;
    Ok(Linkers { core, component })
}
