//! What is made for a pod before its first container starts: volumes, an address, files of the node.

use std::io;
use std::path::Path;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;

use crate::addresses::Address;
use crate::images::Images;
use crate::machine::ThisMachine;
use crate::node_files::NodeFiles;
use crate::references::References;
use crate::users::{UserRange, Users, VolumeOwner};
use crate::volumes::{Memory, Mounted, Volumes, World};

/// What names of pods end in.
pub(crate) const CLUSTER_DOMAIN: &str = "cluster.local";

/// A pod's address and volumes.
#[derive(Debug)]
pub(crate) struct Sandbox {
    /// The address.
    pub(crate) address: Address,
    /// The volumes.
    pub(crate) volumes: Volumes,
    /// Images whose files it mounts.
    _images: Mounted,
    /// Its ids of users, if it has its own.
    pub(crate) users: Option<UserRange>,
    /// Hosts and the like.
    pub(crate) files: NodeFiles,
}

/// What the agent knows that pods are made from.
#[derive(Clone)]
pub(crate) struct Ground {
    /// ConfigMaps, Secrets, Services.
    pub(crate) references: Arc<dyn References>,
    /// Images.
    pub(crate) images: Images,
    /// What the machine has.
    pub(crate) machine: ThisMachine,
    /// Whom files belong to.
    pub(crate) users: Users,
    /// Where volumes in memory are.
    pub(crate) memory: Memory,
}

impl Ground {
    /// What the volumes of a pod are made from.
    pub(crate) fn world<'a>(&'a self, pod: &'a Pod, images: &'a Mounted) -> World<'a> {
        World { pod, images, references: &*self.references, machine: &self.machine, memory: &self.memory }
    }

    /// Grows with what pods refer to.
    pub(crate) fn version(&self) -> u64 {
        *self.references.changes().borrow()
    }
}

impl Sandbox {
    /// Makes it, in a folder of the pod. An error is the reason and the message of an event.
    pub(crate) fn make(
        pod: &Pod,
        images: Mounted,
        ground: &Ground,
        address: impl FnOnce() -> io::Result<Address>,
        folder: &Path,
    ) -> Result<Self, (&'static str, String)> {
        let failed = |what: String| ("FailedCreatePodSandBox", what);
        let users = ground.users.range(pod, folder);
        let users = users.map_err(|error| failed(format!("no ids of users for the pod: {error}")))?;
        let (world, owner) = (ground.world(pod, &images), VolumeOwner::of(pod, users));
        let volumes = Volumes::make(world, &folder.join("volumes"), owner)
            .map_err(|error| ("FailedMount", error.event_message()))?;
        let address = address().map_err(|error| failed(format!("no address for the pod: {error}")))?;
        let files = NodeFiles::write(folder.join("node"), pod, address.ip(), CLUSTER_DOMAIN)
            .map_err(|error| failed(format!("can't write the files of the node into {}: {error}", folder.display())))?;
        Ok(Self { address, volumes, _images: images, users, files })
    }
}
