//! A pod as its agent holds it: the object, and what was made for it.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;

use husk_api::{as_container, hostname};
use husk_core::io::{Hook, InstanceRef};
use husk_core::spec::{ProbeKind, Resources};
use husk_engine::{ContainerConfig, Log};
use k8s_openapi::api::core::v1::{Container, HostIP, LifecycleHandler, Pod, PodIP, PodSpec, Probe};

use crate::addresses::Address;
use crate::images::Found;
use crate::process::{Process, Sources, ThisMachine};
use crate::references::References;
use crate::volumes::Volumes;

/// What names of pods end in.
const CLUSTER_DOMAIN: &str = "cluster.local";

/// A pod on this node.
pub(crate) struct LocalPod {
    /// The object.
    pub(crate) pod: Arc<Pod>,
    /// Its ephemeral containers, as containers.
    ephemeral: Vec<Container>,
    /// The folder that its images are relative to.
    pub(crate) base: PathBuf,
    /// One log per container, over all its instances.
    pub(crate) logs: BTreeMap<String, Log>,
    /// Images that are there, by container.
    pub(crate) images: BTreeMap<String, Found>,
    /// The address that it had before the agent started.
    pub(crate) reserved: Option<Address>,
    /// What was made for it.
    pub(crate) sandbox: Option<Arc<Sandbox>>,
    /// What is being done about its sandbox.
    pub(crate) work: Work,
}

/// Work on a sandbox that is not answered yet.
#[derive(Debug, Default)]
pub(crate) enum Work {
    /// None.
    #[default]
    None,
    /// It is being made, and maybe not wanted any more: then this attempt is torn down once it is there.
    SettingUp {
        /// Which.
        then_tear_down: Option<u32>,
    },
    /// It is being removed.
    TearingDown,
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
    pub(crate) fn new(mut pod: Pod, base: PathBuf, node_name: &str, logs: BTreeMap<String, Log>) -> Self {
        if let Some(spec) = &mut pod.spec {
            spec.node_name.get_or_insert_with(|| node_name.to_owned());
        }
        let ephemeral = ephemeral_containers(pod.spec.as_ref()).collect();
        Self {
            pod: Arc::new(pod),
            ephemeral,
            base,
            logs,
            images: BTreeMap::new(),
            reserved: None,
            sandbox: None,
            work: Work::None,
        }
    }

    /// The object changed. What was made for the pod stays.
    pub(crate) fn update(&mut self, new: Self) {
        let mut pod = new.pod;
        Arc::make_mut(&mut pod).status.clone_from(&self.pod.status);
        (self.pod, self.ephemeral, self.base, self.logs) = (pod, new.ephemeral, new.base, new.logs);
    }

    /// Address and volumes are there: the pod can be asked for its address from now on.
    pub(crate) fn set_up(&mut self, sandbox: Sandbox) {
        let ip = sandbox.address.ip().to_string();
        let host = Ipv4Addr::LOCALHOST.to_string();
        let status = Arc::make_mut(&mut self.pod).status.get_or_insert_default();
        status.pod_ips = Some(vec![PodIP { ip: ip.clone() }]);
        status.pod_ip = Some(ip);
        status.host_ips = Some(vec![HostIP { ip: host.clone() }]);
        status.host_ip = Some(host);
        self.sandbox = Some(Arc::new(sandbox));
    }

    /// The images that it needs, as written.
    pub(crate) fn image_names(&self) -> impl Iterator<Item = String> {
        let spec = self.pod.spec.as_ref();
        let all = containers(spec).cloned().chain(ephemeral_containers(spec));
        all.filter_map(|container| container.image)
    }

    /// The container of that name.
    pub(crate) fn container(&self, name: &str) -> Option<&Container> {
        containers(self.pod.spec.as_ref()).chain(&self.ephemeral).find(|container| container.name == name)
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

    /// How an instance is to be started, with what the node gave it. The error is for a person.
    pub(crate) fn config(
        &self,
        instance: &InstanceRef,
        references: &dyn References,
        machine: &ThisMachine,
        allocated: Option<&Resources>,
    ) -> Result<ContainerConfig, String> {
        let name = &*instance.container;
        let container = self.container(name).ok_or("the pod has no such container")?;
        let image = self.images.get(name).ok_or("its image is not there")?.image.clone();
        let sandbox = self.sandbox.as_ref().ok_or("the pod has no address yet")?;
        let ip = sandbox.address.ip();
        let hostname = hostname(&self.pod, CLUSTER_DOMAIN)?;
        let namespace = self.pod.metadata.namespace.as_deref().unwrap_or_default();
        let process = Process::of(&self.pod, container, &Sources { namespace, references, machine })?;
        let mut config = ContainerConfig::new(image);
        config.command = process.command;
        config.args = process.args;
        config.env = process.env;
        config.working_dir = container.working_dir.clone().filter(|folder| !folder.is_empty());
        config.mounts =
            sandbox.volumes.mounts(container).map_err(|error| format!("{}: {}", error.field, error.message))?;
        let security = container.security_context.as_ref();
        config.read_only_root = security.and_then(|context| context.read_only_root_filesystem).unwrap_or(false);
        config.ip = ip;
        if !hostname.domain.is_empty() {
            config.hosts = vec![(format!("{}.{}", hostname.name, hostname.domain), ip)];
        }
        config.hostname = hostname.name;
        config.last_words = container.termination_message_path.clone().filter(|path| !path.is_empty());
        config.stdin = container.stdin.unwrap_or(false);
        config.tty = container.tty.unwrap_or(false);
        config.memory_limit = allocated.and_then(memory_limit);
        Ok(config)
    }
}

/// The init and app containers of a pod, in this order. Those that are ephemeral are no `Container`s.
fn containers(spec: Option<&PodSpec>) -> impl Iterator<Item = &Container> {
    let init = spec.into_iter().flat_map(|spec| spec.init_containers.iter().flatten());
    init.chain(spec.into_iter().flat_map(|spec| &spec.containers))
}

/// The ephemeral containers of a pod, as containers.
pub(crate) fn ephemeral_containers(spec: Option<&PodSpec>) -> impl Iterator<Item = Container> {
    spec.into_iter().flat_map(|spec| spec.ephemeral_containers.iter().flatten()).map(as_container)
}

/// The names of all containers of a pod.
pub(crate) fn container_names(spec: Option<&PodSpec>) -> impl Iterator<Item = &str> {
    let ephemeral = spec.into_iter().flat_map(|spec| spec.ephemeral_containers.iter().flatten());
    containers(spec).map(|container| container.name.as_str()).chain(ephemeral.map(|container| container.name.as_str()))
}

/// In bytes. As everywhere in Kubernetes, 0 is no limit.
fn memory_limit(resources: &Resources) -> Option<u64> {
    let limit = resources.limits.get("memory")?;
    u64::try_from(limit.value()).ok().filter(|limit| *limit > 0)
}

#[cfg(test)]
mod tests {
    use husk_core::quantity::Quantity;

    use super::*;

    #[test]
    fn no_memory_limit_is_none_or_zero() {
        let limited = |amount: &str| {
            let amount = Quantity::parse(amount).expect("a quantity");
            memory_limit(&Resources { limits: [("memory".to_owned(), amount)].into(), ..Resources::default() })
        };
        assert_eq!(limited("64Mi"), Some(64 << 20));
        assert_eq!(limited("0"), None);
        assert_eq!(memory_limit(&Resources::default()), None);
    }
}
