//! `husk run`: runs pods in the foreground, from the first image to the last exit.

mod data;
mod happening;
mod interrupts;
mod json;
mod lines;
mod live;
mod printer;
mod session;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use husk_agent::{
    AgentConfig, AgentConfiguration, AgentError, ImageTable, ImagesConfig, LocalNode, MemoryReferences, NodeLimits,
    Trouble,
};
use husk_core::backoff::BackoffConfig;
use husk_engine::EngineError;

use self::data::Data;
use self::happening::Reporter;
use self::interrupts::Interrupts;
use self::live::Live;
use self::printer::Printer;
use self::session::{Ending, Session};
use crate::manifest::{self, Found, Manifests};
use crate::out::err;
use crate::{BAD_INPUT, INTERNAL, check, compile, style};
use husk_sim::Span;

/// Exit code when time is up, as `timeout` has it.
const TIMED_OUT: u8 = 124;
/// A preflight that takes longer is compiling.
const LONG: Duration = Duration::from_millis(500);

/// What `husk run` is asked.
#[derive(Args)]
pub(crate) struct Run {
    /// Manifests: Pods, or what has a pod template (Job, Deployment, …: one replica), and the ConfigMaps and Secrets that they
    /// refer to; `-` reads standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// What an image is: a .wasm file or a folder with one; also adds to the well-known names or replaces one
    #[arg(short, long = "image", value_name = "NAME=PATH", value_parser = image)]
    images: Vec<(String, PathBuf)>,
    /// Delete the pods after this time, as in 90s or 1h; the exit code is 124 then
    #[arg(short, long, value_name = "TIME")]
    timeout: Option<Span>,
    /// How it is shown; without it a live view on a terminal, otherwise a line for each thing that happens
    #[arg(short, long, value_enum, value_name = "FORMAT")]
    output: Option<Output>,
    /// The longest delay before a container is restarted, 1s to 300s
    #[arg(long, value_name = "TIME", value_parser = restart_period)]
    max_container_restart_period: Option<Span>,
    /// Where emptyDir volumes live; without it a folder that goes with the command
    #[arg(long, value_name = "FOLDER")]
    data_dir: Option<PathBuf>,
    /// Where compiled modules are kept; without it husk's folder in the user's cache
    #[arg(long, value_name = "FOLDER", env = "HUSK_CACHE")]
    cache_dir: Option<PathBuf>,
}

/// How a run is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    /// Containers, probes and back-off at the bottom of the terminal, logs and events above
    Live,
    /// A line for each event and each line of a log
    Lines,
    /// A JSON object for each of them
    Json,
}

impl Run {
    /// Runs the pods; the exit code says how they ended.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let mut manifests = manifest::read(&self.files);
        if !manifests.errors.is_empty() {
            return Ok(refuse(&manifests));
        }
        let runtime = tokio::runtime::Runtime::new().context("can't start")?;
        runtime.block_on(async {
            let mut interrupts = Interrupts::catch();
            let data = Data::new(self.data_dir.clone())?;
            let references = MemoryReferences::default();
            manifests.config_maps.drain(..).for_each(|object| references.put_config_map(object));
            manifests.secrets.drain(..).for_each(|object| references.put_secret(object));
            let node = self.node(data.path(), references)?;
            for found in &manifests.pods {
                let troubles = tokio::select! {
                    troubles = self.preflight(&node, found) => troubles,
                    signal = interrupts.next() => {
                        err("nothing was started");
                        return Ok(ExitCode::from(128 + signal));
                    }
                };
                for trouble in troubles {
                    manifests.errors.push(found.problem(&trouble.field, trouble.message));
                }
            }
            if !manifests.errors.is_empty() {
                return Ok(refuse(&manifests));
            }
            check::report(&manifests);
            let reporter = self.reporter(&node, &manifests.pods)?;
            let printer = Printer::start(reporter).context("can't start a thread")?;
            let session = Session::begin(node, manifests.pods, printer, interrupts, self.timeout);
            Ok(match session.finish().await {
                Ending::Succeeded => ExitCode::SUCCESS,
                Ending::Failed => ExitCode::FAILURE,
                Ending::TimedOut => ExitCode::from(TIMED_OUT),
                Ending::Lost => ExitCode::from(INTERNAL),
            })
        })
    }

    fn node(&self, data: &Path, references: MemoryReferences) -> Result<LocalNode> {
        let config = AgentConfig {
            data_dir: data.to_owned(),
            cache_dir: self.cache_dir.clone().or_else(cache_folder),
            images: ImageTable::new(self.images.clone()),
            images_config: ImagesConfig {
                compiler: compile::compiler(&AgentConfiguration::default()),
                ..ImagesConfig::default()
            },
            references: Arc::new(references),
            node_name: "husk".into(),
            limits: NodeLimits {
                crash_loop: BackoffConfig::standard(self.max_container_restart_period.map(|span| span.0)),
                ..NodeLimits::default()
            },
        };
        match LocalNode::start(config.clone()) {
            // A cache that nobody asked for is no reason not to run.
            Err(error @ AgentError::Engine(EngineError::Cache(_)))
                if self.cache_dir.is_none() && config.cache_dir.is_some() =>
            {
                let node = LocalNode::start(AgentConfig { cache_dir: None, ..config })?;
                let warning = style::yellow("warning");
                err(format_args!("{warning}: {error}; going on without, so modules are compiled on each run"));
                Ok(node)
            }
            started => Ok(started?),
        }
    }

    /// Compiling takes seconds the first time: says so, or it looks as if nothing happened.
    async fn preflight(&self, node: &LocalNode, found: &Found) -> Vec<Trouble> {
        let mut preflight = pin!(node.preflight(&found.pod, &found.base));
        tokio::select! {
            troubles = &mut preflight => return troubles,
            () = tokio::time::sleep(LONG) => {}
        }
        if self.output != Some(Output::Json) || std::io::stderr().is_terminal() {
            let kept = self.cache_dir.clone().or_else(cache_folder);
            let once = kept.map(|folder| format!(" (once; kept in {})", folder.display())).unwrap_or_default();
            err(format_args!("compiling {}{once}", found.images().join(", ")));
        }
        preflight.await
    }

    fn reporter(&self, node: &LocalNode, pods: &[Found]) -> Result<Box<dyn Reporter>> {
        let terminal = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
        let output = match self.output {
            Some(output) => output,
            None if terminal => match Live::new(pods, node.epoch()) {
                Ok(live) => return Ok(Box::new(live)),
                // A terminal that doesn't say where its cursor is.
                Err(_) => Output::Lines,
            },
            None => Output::Lines,
        };
        Ok(match output {
            Output::Live => Box::new(Live::new(pods, node.epoch()).context("no live view here: use -o lines")?),
            Output::Lines => Box::new(lines::Lines::new(pods.len())),
            Output::Json => Box::new(json::Json::new(node.epoch())?),
        })
    }
}

fn refuse(manifests: &Manifests) -> ExitCode {
    check::report(manifests);
    err("nothing was started");
    ExitCode::from(BAD_INPUT)
}

fn cache_folder() -> Option<PathBuf> {
    let folder = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = folder("XDG_CACHE_HOME").or_else(|| folder("HOME").map(|home| home.join(".cache")));
    cache.map(|cache| cache.join("husk/modules"))
}

/// `NAME=PATH` of an image.
pub(crate) fn image(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, path)) if !name.is_empty() && !path.is_empty() => Ok((name.into(), path.into())),
        _ => Err("write NAME=PATH, as in redis=./redis.wasm".into()),
    }
}

fn restart_period(text: &str) -> Result<Span, String> {
    let span: Span = text.parse()?;
    if (Span::secs(1)..=Span::secs(300)).contains(&span) {
        return Ok(span);
    }
    Err("must be from 1s to 300s".into())
}
