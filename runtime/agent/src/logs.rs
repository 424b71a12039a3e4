//! The output of all pods: a log per container, over all its instances and all changes of its pod, and where in it they began.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use husk_core::io::{InstanceRef, PodUid};
use husk_engine::{Container, Log};
use k8s_openapi::api::core::v1::Pod;
use tokio::sync::watch;

use crate::pod::container_names;

/// By pod, then by container. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Logs(Arc<Mutex<HashMap<PodUid, BTreeMap<String, Output>>>>);

/// The output of a container. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Output {
    /// What it wrote.
    pub(crate) log: Log,
    /// Whose that was.
    pub(crate) instances: watch::Sender<Instances>,
}

/// The instances of a container that can still be asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Instances {
    /// The one that runs, or ran last.
    pub(crate) last: Option<Instance>,
    /// The one before it.
    pub(crate) previous: Option<Instance>,
}

/// An instance and its part of the log.
#[derive(Clone, Debug)]
pub(crate) struct Instance {
    /// The container's instances are numbered from 0.
    number: u64,
    /// Number of its first line.
    pub(crate) first: u64,
    /// Whether it runs.
    pub(crate) state: State,
}

/// Whether an instance runs.
#[derive(Clone, Debug)]
pub(crate) enum State {
    /// It does.
    Running(Container),
    /// It doesn't: the number of the first line that isn't its own.
    Ended(u64),
}

impl Instances {
    /// The number of the first line that isn't of this instance, which is or was one of these, if it has ended.
    pub(crate) fn end_of(&self, instance: &Instance) -> Option<u64> {
        let oldest =
            [&self.previous, &self.last].into_iter().flatten().find(|known| known.number >= instance.number)?;
        match oldest.state {
            // It is forgotten: what is known began after its end.
            _ if oldest.number > instance.number => Some(oldest.first),
            State::Running(_) => None,
            State::Ended(end) => Some(end),
        }
    }

    /// The container of the last instance, if it runs.
    pub(crate) fn running(&self) -> Option<&Container> {
        match &self.last.as_ref()?.state {
            State::Running(container) => Some(container),
            State::Ended(_) => None,
        }
    }
}

impl Logs {
    /// The logs of a pod; those it had before stay.
    pub(crate) fn of(&self, uid: &PodUid, pod: &Pod) -> BTreeMap<String, Log> {
        let mut all = self.lock();
        let outputs = all.entry(uid.clone()).or_default();
        for name in container_names(pod.spec.as_ref()) {
            if !outputs.contains_key(name) {
                outputs.insert(name.to_owned(), Output::default());
            }
        }
        outputs.iter().map(|(name, output)| (name.clone(), output.log.clone())).collect()
    }

    /// The output of a container.
    pub(crate) fn output(&self, pod: &PodUid, container: &str) -> Option<Output> {
        self.lock().get(pod)?.get(container).cloned()
    }

    /// An instance has begun.
    pub(crate) fn started(&self, instance: &InstanceRef, container: &Container) {
        let Some(output) = self.output(&instance.pod, &instance.container) else { return };
        output.instances.send_modify(|instances| {
            let number = instances.last.as_ref().map_or(0, |last| last.number + 1);
            let new = Instance { number, first: container.first_line(), state: State::Running(container.clone()) };
            instances.previous = instances.last.replace(new);
        });
    }

    /// The last instance has ended, and all that it wrote is in the log.
    pub(crate) fn ended(&self, instance: &InstanceRef) {
        let Some(output) = self.output(&instance.pod, &instance.container) else { return };
        output.instances.send_modify(|instances| {
            if let Some(last) = &mut instances.last {
                last.state = State::Ended(output.log.written());
            }
        });
    }

    /// The pod is no more. Who has its logs keeps them.
    pub(crate) fn forget(&self, uid: &PodUid) {
        self.lock().remove(uid);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<PodUid, BTreeMap<String, Output>>> {
        // A map is whole between any two changes.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
