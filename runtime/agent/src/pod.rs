//! A pod as its agent holds it: the object, and what was made for it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use husk_core::io::{Hook, InstanceRef};
use husk_core::quantity::Quantity;
use husk_core::spec::ProbeKind;
use husk_engine::{ContainerConfig, Image, Log};
use k8s_openapi::api::core::v1::{Container, LifecycleHandler, Pod, PodSpec, Probe};

use crate::addresses::Address;
use crate::process::{Place, Process};
use crate::volumes::Volumes;

/// Host names are DNS labels: at most so long.
const MOST_HOSTNAME: usize = 63;

/// A pod on this node.
pub(crate) struct LocalPod {
    /// The object.
    pub(crate) pod: Arc<Pod>,
    /// The folder that its images are relative to.
    pub(crate) base: PathBuf,
    /// One log per container, over all its instances.
    pub(crate) logs: BTreeMap<String, Log>,
    /// Images that are there, by container.
    pub(crate) images: BTreeMap<String, Image>,
    /// What was made for it.
    pub(crate) sandbox: Option<Arc<Sandbox>>,
}

/// A pod's address and volumes.
#[derive(Debug)]
pub(crate) struct Sandbox {
    /// The address.
    pub(crate) address: Address,
    /// The volumes.
    pub(crate) volumes: Volumes,
}

impl LocalPod {
    /// A pod for which nothing is made yet.
    pub(crate) fn new(pod: Pod, base: PathBuf) -> Self {
        let logs = containers(pod.spec.as_ref()).map(|c| (c.name.clone(), Log::default())).collect();
        Self { pod: Arc::new(pod), base, logs, images: BTreeMap::new(), sandbox: None }
    }

    /// The container of that name.
    pub(crate) fn container(&self, name: &str) -> Option<&Container> {
        containers(self.pod.spec.as_ref()).find(|container| container.name == name)
    }

    /// The probe of a container.
    pub(crate) fn probe(&self, name: &str, kind: ProbeKind) -> Option<&Probe> {
        let container = self.container(name)?;
        match kind {
            ProbeKind::Liveness => container.liveness_probe.as_ref(),
            ProbeKind::Readiness => container.readiness_probe.as_ref(),
            ProbeKind::Startup => container.startup_probe.as_ref(),
        }
    }

    /// The hook of a container.
    pub(crate) fn hook(&self, name: &str, hook: Hook) -> Option<&LifecycleHandler> {
        let lifecycle = self.container(name)?.lifecycle.as_ref()?;
        match hook {
            Hook::PostStart => lifecycle.post_start.as_ref(),
            Hook::PreStop => lifecycle.pre_stop.as_ref(),
        }
    }

    /// How an instance is to be started. The error is for a person.
    pub(crate) fn config(&self, instance: &InstanceRef, node: &str) -> Result<ContainerConfig, String> {
        let name = &*instance.container;
        let container = self.container(name).ok_or("the pod has no such container")?;
        let image = self.images.get(name).ok_or("its image is not there")?.clone();
        let sandbox = self.sandbox.as_ref().ok_or("the pod has no address yet")?;
        let ip = sandbox.address.ip();
        let place = Place { ip, node: node.to_owned(), hostname: hostname(&self.pod) };
        let process = Process::of(&self.pod, container, &place)?;
        let mut config = ContainerConfig::new(image);
        config.command = process.command;
        config.args = process.args;
        config.env = process.env;
        config.working_dir = container.working_dir.clone().filter(|folder| !folder.is_empty());
        config.mounts =
            sandbox.volumes.mounts(container).map_err(|error| format!("{}: {}", error.field, error.message))?;
        config.ip = ip;
        config.hosts = vec![(place.hostname.clone(), ip)];
        config.hostname = place.hostname;
        config.memory_limit = memory_limit(container)?;
        Ok(config)
    }
}

/// All containers of a pod, init containers first.
pub(crate) fn containers(spec: Option<&PodSpec>) -> impl Iterator<Item = &Container> {
    let init = spec.into_iter().flat_map(|spec| spec.init_containers.iter().flatten());
    init.chain(spec.into_iter().flat_map(|spec| &spec.containers))
}

/// The name that guests see.
pub(crate) fn hostname(pod: &Pod) -> String {
    let said = pod.spec.as_ref().and_then(|spec| spec.hostname.clone());
    let name = said.or_else(|| pod.metadata.name.clone()).unwrap_or_else(|| "pod".into());
    let cut: String = name.chars().take(MOST_HOSTNAME).collect();
    cut.trim_end_matches(['-', '.']).to_owned()
}

fn memory_limit(container: &Container) -> Result<Option<u64>, String> {
    let limits = container.resources.as_ref().and_then(|resources| resources.limits.as_ref());
    let Some(limit) = limits.and_then(|limits| limits.get("memory")) else { return Ok(None) };
    let amount = Quantity::parse(&limit.0).map_err(|error| format!("resources.limits.memory: {error}"))?;
    Ok(u64::try_from(amount.value()).ok())
}
