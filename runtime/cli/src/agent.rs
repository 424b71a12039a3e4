//! `husk agent`: runs pods from files and from the API, for years.

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use husk_agent::{
    AgentConfig, AgentConfiguration, Device, DeviceConfig, ImageTable, ImagesConfig, LocalNode, MemoryReferences,
    StaticPodsConfig, check_open_files, default_data_dir, default_socket,
};
use sd_notify::NotifyState;
use tokio::signal::unix::{SignalKind, signal};

use crate::out::err;
use crate::{INTERNAL, compile};

/// `shutdownGracePeriod` and `shutdownGracePeriodCriticalPods` where nothing is said.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(30);
const SHUTDOWN_GRACE_CRITICAL: Duration = Duration::from_secs(10);
/// `maxPods` where nothing is said.
const MAX_PODS: u32 = 1_000;
/// What is logged where `HUSK_LOG` doesn't say. wasmtime-wasi warns at each call that it doesn't have, which a guest can make without end.
const DEFAULT_LOG: &str = "info,wasmtime_wasi=off";

/// What `husk agent` is asked.
#[derive(Args)]
pub(crate) struct Agent {
    /// A KubeletConfiguration with what is Husk's under `husk`; flags win over it
    #[arg(long, value_name = "FILE", env = "HUSK_CONFIG")]
    config: Option<PathBuf>,
    /// What outlives the agent: its state, volumes, compiled modules
    #[arg(long, value_name = "FOLDER", env = "HUSK_DATA_DIR")]
    data_dir: Option<PathBuf>,
    /// The Unix socket of the API
    #[arg(long, value_name = "PATH", env = "HUSK_SOCKET")]
    socket: Option<PathBuf>,
    /// A loopback address where the API listens as well, as in 127.0.0.1:8001
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// A folder with manifests of pods that run as long as they are there
    #[arg(long, value_name = "FOLDER")]
    static_pods: Option<PathBuf>,
    /// Name of the node; without it the machine's
    #[arg(long, value_name = "NAME")]
    node_name: Option<String>,
    /// What an image is: a .wasm file or a folder with one
    #[arg(short, long = "image", value_name = "NAME=PATH", value_parser = crate::run::image)]
    images: Vec<(String, PathBuf)>,
    /// How its own log is written
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    log_format: LogFormat,
}

/// How the agent's own log is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LogFormat {
    /// Lines for people
    Text,
    /// A JSON object for each line
    Json,
}

impl Agent {
    /// Runs until it is told to end.
    pub(crate) fn run(self) -> Result<ExitCode> {
        self.log();
        // What it makes has the modes that it says, and what guests make those that they have everywhere, whoever started it.
        rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
        let file = self.file()?;
        file.gates().1.iter().for_each(|warning| tracing::warn!("{warning}"));
        let config = self.device(&file)?;
        check_open_files(config.max_pods);
        let runtime = tokio::runtime::Runtime::new().context("can't start")?;
        runtime.block_on(self.serve(file, config))
    }

    fn file(&self) -> Result<AgentConfiguration> {
        Ok(match &self.config {
            Some(path) => AgentConfiguration::read(path)?,
            None => AgentConfiguration::default(),
        })
    }

    fn log(&self) {
        let filter = tracing_subscriber::EnvFilter::try_from_env("HUSK_LOG").unwrap_or_else(|_| DEFAULT_LOG.into());
        let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false);
        // It may be a file on the disk that is full, where a line about that would be one too many: that panics.
        let log = log.log_internal_errors(false);
        // It is set once, here.
        let _ = match self.log_format {
            LogFormat::Text => log.with_ansi(std::io::stderr().is_terminal()).try_init(),
            LogFormat::Json => log.json().try_init(),
        };
    }

    fn device(&self, file: &AgentConfiguration) -> Result<DeviceConfig> {
        let own = &file.husk;
        let data_dir = self.data_dir.clone().or_else(|| own.data_dir.clone()).unwrap_or_else(default_data_dir);
        let data_dir = std::path::absolute(&data_dir).with_context(|| format!("{}: no place", data_dir.display()))?;
        let node_name = self.node_name.clone().or_else(|| own.node_name.clone());
        let images = own.images.clone().into_iter().chain(self.images.clone());
        let static_pods = self.static_pods.as_ref().or(file.static_pod_path.as_ref()).map(|folder| {
            let mut from = StaticPodsConfig::new(folder.clone());
            from.gates = file.gates().0;
            from.check = file.file_check_frequency.map_or(from.check, |span| span.0);
            from
        });
        let grace = file.shutdown_grace_period.map_or(SHUTDOWN_GRACE, |span| span.0);
        let critical = file.shutdown_grace_period_critical_pods.map_or(SHUTDOWN_GRACE_CRITICAL, |span| span.0);
        Ok(DeviceConfig {
            node: AgentConfig {
                cache_dir: Some(own.cache_dir.clone().unwrap_or_else(|| data_dir.join("modules"))),
                images: ImageTable::new(images),
                images_config: ImagesConfig { compiler: compile::compiler(file), ..file.images() },
                references: Arc::new(MemoryReferences::default()),
                node_name: node_name.unwrap_or_else(machine_name),
                limits: file.limits(),
                data_dir,
            },
            socket: self.socket.clone().or_else(|| own.socket.clone()).unwrap_or_else(default_socket),
            listen: self.listen.or(own.listen),
            static_pods,
            shutdown_grace: grace,
            shutdown_grace_critical: critical.min(grace),
            max_pods: file.max_pods.unwrap_or(MAX_PODS),
            gates: file.gates().0,
        })
    }

    async fn serve(&self, mut file: AgentConfiguration, config: DeviceConfig) -> Result<ExitCode> {
        let mut end = signal(SignalKind::terminate()).context("can't wait for signals")?;
        let mut interrupt = signal(SignalKind::interrupt()).context("can't wait for signals")?;
        let mut hang_up = signal(SignalKind::hangup()).context("can't wait for signals")?;
        let socket = config.socket.clone();
        let mut device = Device::start(config).await?;
        tracing::info!(socket = %socket.display(), "ready");
        tell_systemd(NotifyState::Ready);
        tokio::spawn(feed_watchdog(device.node().clone()));
        let broken = loop {
            tokio::select! {
                _ = end.recv() => break None,
                _ = interrupt.recv() => break None,
                _ = hang_up.recv() => self.reload(&mut file, &mut device),
                what = device.broken() => break Some(what),
            }
        };
        tracing::info!("ending the pods");
        tell_systemd(NotifyState::Stopping);
        device.shut_down().await?;
        match broken {
            None => Ok(ExitCode::SUCCESS),
            Some(what) => {
                err(format_args!("husk agent broke off: {what}"));
                Ok(ExitCode::from(INTERNAL))
            }
        }
    }

    /// Reads the configuration again, and looks at the folder of static pods.
    fn reload(&self, file: &mut AgentConfiguration, device: &mut Device) {
        device.look();
        let (new, config) = match self.file().and_then(|new| Ok((self.device(&new)?, new))) {
            Ok((config, new)) => (new, config),
            Err(error) => return tracing::error!("the configuration stays as it was: {error:#}"),
        };
        let differences = file.differences(&new);
        for (field, takes_effect) in &differences {
            match takes_effect {
                true => tracing::info!(field, "the configuration has another value: it takes effect now"),
                false => tracing::warn!(
                    field,
                    "the configuration has another value: it takes effect when the agent starts again"
                ),
            }
        }
        if differences.is_empty() {
            tracing::info!("the configuration is as it was");
        }
        device.reconfigure(config.reconfiguration());
        check_open_files(config.max_pods);
        // What waits for a start stays different from what runs: the next reload says so again.
        file.take_what_takes_effect(&new);
    }
}

fn tell_systemd(state: NotifyState<'_>) {
    // Nobody has to have started it.
    if let Err(error) = sd_notify::notify(&[state]) {
        tracing::debug!(%error, "systemd");
    }
}

/// Says that the agent is well as long as its node answers: one that hangs is started anew by whoever watches.
async fn feed_watchdog(node: Arc<LocalNode>) {
    let Some(patience) = sd_notify::watchdog_enabled() else { return };
    let mut turns = tokio::time::interval(patience / 3);
    loop {
        turns.tick().await;
        if matches!(tokio::time::timeout(patience / 3, node.answers()).await, Ok(true)) {
            tell_systemd(NotifyState::Watchdog);
        }
    }
}

/// The machine's name, as a node may be called.
fn machine_name() -> String {
    let name = std::fs::read_to_string(Path::new("/proc/sys/kernel/hostname")).unwrap_or_default();
    let name: String = name.trim().to_ascii_lowercase().chars().map(|c| if c == '_' { '-' } else { c }).collect();
    if name.is_empty() { "husk".into() } else { name }
}
