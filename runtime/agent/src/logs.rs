//! The logs of all pods: one per container, over all its instances and all changes of its pod.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use husk_core::io::PodUid;
use husk_engine::Log;
use k8s_openapi::api::core::v1::Pod;

use crate::pod::containers;

/// By pod, then by container. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Logs(Arc<Mutex<HashMap<PodUid, BTreeMap<String, Log>>>>);

impl Logs {
    /// The logs of a pod; those it had before stay.
    pub(crate) fn of(&self, uid: &PodUid, pod: &Pod) -> BTreeMap<String, Log> {
        let mut all = self.lock();
        let logs = all.entry(uid.clone()).or_default();
        for container in containers(pod.spec.as_ref()) {
            logs.entry(container.name.clone()).or_default();
        }
        logs.clone()
    }

    /// The pod is no more. Who has its logs keeps them.
    pub(crate) fn forget(&self, uid: &PodUid) {
        self.lock().remove(uid);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<PodUid, BTreeMap<String, Log>>> {
        // A map is whole between any two changes.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
