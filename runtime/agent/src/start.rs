//! What an instance of a container is started with.

use std::path::PathBuf;
use std::sync::Arc;

use husk_core::memory::Throttle;
use husk_core::spec::Resources;
use husk_engine::{ContainerConfig, Image, StartError};
use k8s_openapi::api::core::v1::{Container, LinuxContainerUser, Pod};

use crate::logs::Output;
use crate::node_files;
use crate::process::{Process, Sources};
use crate::sandbox::{CLUSTER_DOMAIN, Ground, Sandbox};
use crate::security;
use crate::shares;
use crate::target_view::TargetView;

/// An instance to be.
pub(crate) struct Start {
    /// Its pod, with its address.
    pub(crate) pod: Arc<Pod>,
    /// Its container.
    pub(crate) container: Container,
    /// Its image.
    pub(crate) image: Image,
    /// What was made for the pod.
    pub(crate) sandbox: Arc<Sandbox>,
    /// What the node gave it.
    pub(crate) allocated: Option<Resources>,
    /// What slows its growth.
    pub(crate) throttle: Option<Throttle>,
    /// What it shares with the others of its pod.
    pub(crate) share: Option<husk_engine::Pod>,
    /// The container that it looks into, if it is a debugger.
    pub(crate) target: Option<Target>,
}

/// All that a start needs, looked up.
pub(crate) struct Prepared {
    pub(crate) config: ContainerConfig,
    /// What it is shown of its target.
    pub(crate) view: Option<TargetView>,
    /// Whom it acts as, as people see it.
    pub(crate) user: LinuxContainerUser,
}

/// A container that another one looks into.
pub(crate) struct Target {
    pub(crate) container: Container,
    pub(crate) output: Output,
    /// For what is shown of it.
    pub(crate) folder: PathBuf,
}

impl Start {
    /// Looks up all that it needs, on disk as well.
    pub(crate) fn config(self, ground: &Ground) -> Result<Prepared, StartError> {
        self.find(ground).map_err(|message| StartError { reason: "CreateContainerConfigError", message })
    }

    fn find(self, ground: &Ground) -> Result<Prepared, String> {
        let Self { pod, container, image, sandbox, allocated, throttle, share, target } = self;
        let whom = ground.users.whom(&pod, &container, image.user(), sandbox.users)?;
        let ip = sandbox.address.ip();
        let (said, hostname) = node_files::identity(&pod, CLUSTER_DOMAIN)?;
        let sources = Sources::new(&pod, ground, Some(&sandbox.volumes));
        let process = Process::of(&pod, &container, &sources)?;
        let mut mounts = sandbox.volumes.mounts(&container, &process.env)?;
        mounts.extend(sandbox.files.mounts(&mounts));
        let view = target.map(|Target { container, output, folder }| {
            // A target whose environment can't be made doesn't run, and has no process to be shown.
            let process = Process::of(&pod, &container, &sources).unwrap_or_default();
            TargetView::make(folder, &container.name, process, output)
        });
        let view = view.transpose().map_err(|error| format!("can't show its target: {error}"))?;
        mounts.extend(view.iter().flat_map(|view| view.mounts(&mounts)).collect::<Vec<_>>());
        let mut config = ContainerConfig::new(image);
        config.mounts = mounts;
        config.owner = whom.owner;
        config.command = process.command;
        config.args = process.args;
        config.env = process.env;
        config.working_dir = container.working_dir.clone().filter(|folder| !folder.is_empty());
        config.read_only_root = security::has_read_only_root(&container);
        config.network = security::has_network(&container);
        config.ip = ip;
        config.hosts = node_files::names(&pod, &hostname, ip);
        config.hostname = said;
        config.last_words = container.termination_message_path.clone().filter(|path| !path.is_empty());
        config.stdin = container.stdin.unwrap_or(false);
        config.tty = container.tty.unwrap_or(false);
        config.cpu = allocated.as_ref().map(shares::of_container).unwrap_or_default();
        config.pod = share;
        config.fuel_budget = allocated.as_ref().and_then(shares::fuel_budget);
        config.memory_limit = allocated.as_ref().and_then(shares::memory_limit);
        config.memory_throttle = throttle;
        Ok(Prepared { config, view, user: whom.shown })
    }
}
