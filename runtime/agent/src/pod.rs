//! A pod as its agent holds it: the object, and what was made for it.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;

use husk_core::io::{Hook, InstanceRef};
use husk_core::memory::Throttle;
use husk_core::spec::{ProbeKind, Resources};
use husk_engine::Log;
use k8s_openapi::api::core::v1::{Container, HostIP, LifecycleHandler, LinuxContainerUser, Pod, PodIP, PodSpec, Probe};

use crate::addresses::Address;
use crate::debugging::ephemeral_containers;
use crate::images::Found;
use crate::sandbox::Sandbox;
use crate::start::{Start, Target};
use crate::static_pods::FILE;
use crate::upkeep::Kept;

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
    /// Whom its containers act as, by container, since this agent has started them.
    pub(crate) users: BTreeMap<String, LinuxContainerUser>,
    /// The address that it had before the agent started.
    pub(crate) reserved: Option<Address>,
    /// What was made for it.
    pub(crate) sandbox: Option<Arc<Sandbox>>,
    /// What its containers share, for as long as it has a sandbox.
    pub(crate) share: Option<husk_engine::Pod>,
    /// Something of it could not be made or started: maybe for want of an object that it refers to.
    pub(crate) wants: bool,
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
            users: BTreeMap::new(),
            reserved: None,
            sandbox: None,
            share: None,
            wants: false,
            work: Work::None,
        }
    }

    /// The object changed. What was made for the pod stays.
    pub(crate) fn update(&mut self, new: Self) {
        let mut pod = new.pod;
        Arc::make_mut(&mut pod).status.clone_from(&self.pod.status);
        (self.pod, self.ephemeral, self.base, self.logs) = (pod, new.ephemeral, new.base, new.logs);
    }

    /// The file that it comes from, if it comes from one.
    pub(crate) fn file(&self) -> Option<&str> {
        file(&self.pod)
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
        let volumes = spec.into_iter().flat_map(|spec| spec.volumes.iter().flatten());
        let mounted = volumes.filter_map(|volume| volume.image.as_ref()?.reference.clone());
        all.filter_map(|container| container.image).chain(mounted)
    }

    /// What is kept up to date of it, if there is such a thing.
    pub(crate) fn kept(&self) -> Option<Kept> {
        let sandbox = self.sandbox.as_ref().filter(|sandbox| sandbox.volumes.follow_objects())?;
        Some((self.pod.clone(), sandbox.clone()))
    }

    /// The container of that name.
    pub(crate) fn container(&self, name: &str) -> Option<&Container> {
        containers(self.pod.spec.as_ref()).chain(&self.ephemeral).find(|container| container.name == name)
    }

    /// The container that an ephemeral one looks into.
    pub(crate) fn target_of(&self, name: &str) -> Option<&Container> {
        let mut ephemeral = self.pod.spec.iter().flat_map(|spec| spec.ephemeral_containers.iter().flatten());
        self.container(ephemeral.find(|container| container.name == name)?.target_container_name.as_deref()?)
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

    /// An instance of a container to be started, with what the node gave it. The error is for a person.
    pub(crate) fn start(
        &self,
        instance: &InstanceRef,
        allocated: Option<&Resources>,
        throttle: Option<Throttle>,
        target: Option<Target>,
    ) -> Result<Start, &'static str> {
        let name = &*instance.container;
        Ok(Start {
            pod: self.pod.clone(),
            container: self.container(name).ok_or("the pod has no such container")?.clone(),
            image: self.images.get(name).ok_or("its image is not there")?.image.clone(),
            sandbox: self.sandbox.clone().ok_or("the pod has no address yet")?,
            allocated: allocated.cloned(),
            throttle,
            share: self.share.clone(),
            target,
        })
    }
}

/// The file that a pod comes from, if it comes from one.
pub(crate) fn file(pod: &Pod) -> Option<&str> {
    pod.metadata.annotations.as_ref()?.get(FILE).map(String::as_str)
}

/// The init and app containers of a pod, in this order. Those that are ephemeral are no `Container`s.
pub(crate) fn containers(spec: Option<&PodSpec>) -> impl Iterator<Item = &Container> {
    let init = spec.into_iter().flat_map(|spec| spec.init_containers.iter().flatten());
    init.chain(spec.into_iter().flat_map(|spec| &spec.containers))
}

/// The names of all containers of a pod.
pub(crate) fn container_names(spec: Option<&PodSpec>) -> impl Iterator<Item = &str> {
    let ephemeral = spec.into_iter().flat_map(|spec| spec.ephemeral_containers.iter().flatten());
    containers(spec).map(|container| container.name.as_str()).chain(ephemeral.map(|container| container.name.as_str()))
}
