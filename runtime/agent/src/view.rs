//! What is to be seen of a container beyond what the core knows of it.

use std::sync::Arc;

use husk_core::Instant;
use husk_core::spec::ProbeKind;
use k8s_openapi::api::core::v1::{
    Container, ContainerUser, LinuxContainerUser, PodSpec, PodStatus, VolumeMount, VolumeMountStatus,
};

use crate::debugging::ephemeral_containers;
use crate::pod::containers;

/// What people want to see of a container beyond its status.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ContainerView {
    /// Its name.
    pub name: String,
    /// Verdicts of its probes, those that are configured.
    pub verdicts: Vec<(ProbeKind, Option<bool>)>,
    /// When its back-off ends, if it waits for that.
    pub back_off_until: Option<Instant>,
    /// Whom its last instance acts as, as far as this agent knows.
    pub user: Option<LinuxContainerUser>,
    /// What it mounts.
    pub mounts: Vec<VolumeMountStatus>,
}

impl ContainerView {
    /// What is to be seen of containers of which nothing is left.
    pub(crate) fn of_ended(spec: Option<&PodSpec>) -> Arc<[Self]> {
        let all = containers(spec).cloned().chain(ephemeral_containers(spec));
        all.map(|container| Self { mounts: mounts(&container), name: container.name, ..Self::default() }).collect()
    }

    /// Puts `user` and `volumeMounts` into a status (STATE-05).
    pub fn complete(views: &[Self], status: &mut PodStatus) {
        let lists = [
            &mut status.init_container_statuses,
            &mut status.container_statuses,
            &mut status.ephemeral_container_statuses,
        ];
        for container in lists.into_iter().flatten().flatten() {
            let Some(view) = views.iter().find(|view| view.name == container.name) else { continue };
            container.volume_mounts = (!view.mounts.is_empty()).then(|| view.mounts.clone());
            // One that has no instance is nobody, as upstream.
            let user = view.user.clone().filter(|_| container.container_id.is_some());
            container.user = user.map(|linux| ContainerUser { linux: Some(linux) });
        }
    }
}

/// What a container mounts. As upstream, `recursiveReadOnly` says what was asked for; all read-only mounts are that all the way down.
pub(crate) fn mounts(container: &Container) -> Vec<VolumeMountStatus> {
    let mount = |mount: &VolumeMount| VolumeMountStatus {
        name: mount.name.clone(),
        mount_path: mount.mount_path.clone(),
        read_only: mount.read_only.filter(|read_only| *read_only),
        recursive_read_only: mount.read_only.unwrap_or(false).then(|| match mount.recursive_read_only.as_deref() {
            Some("Enabled" | "IfPossible") => "Enabled".to_owned(),
            _ => "Disabled".to_owned(),
        }),
        ..VolumeMountStatus::default()
    };
    container.volume_mounts.iter().flatten().map(mount).collect()
}
