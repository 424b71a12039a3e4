//! The container statuses that decide a pod's phase and conditions.

use crate::status::{ContainerStatus, PodStatus};

/// Statuses of a pod's init and app containers, to be found by name.
#[derive(Clone, Copy, Debug, Default)]
pub struct Statuses<'a> {
    /// Of init containers.
    pub init: &'a [ContainerStatus],
    /// Of app containers.
    pub app: &'a [ContainerStatus],
}

impl<'a> Statuses<'a> {
    /// The status of the container of that name.
    pub fn find(&self, name: &str) -> Option<&'a ContainerStatus> {
        self.init.iter().chain(self.app).find(|status| status.name == name)
    }
}

impl<'a> From<&'a PodStatus> for Statuses<'a> {
    fn from(status: &'a PodStatus) -> Self {
        Self { init: &status.init_container_statuses, app: &status.container_statuses }
    }
}
