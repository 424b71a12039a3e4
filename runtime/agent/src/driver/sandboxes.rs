//! Orders about a pod as a whole: its sandbox, and the volumes in it, from the start to the teardown.

use std::path::Path;
use std::sync::Arc;

use husk_core::Input;
use husk_core::io::PodUid;
use husk_core::quantity::Quantity;
use husk_core::resources::pod_limits;
use husk_core::spec::ResourceList;

use super::{Answer, Driver};
use crate::local::pod_folder;
use crate::pod::{LocalPod, Work};
use crate::sandbox::Sandbox;
use crate::shares;
use crate::upkeep::{self, Kept, Updating};
use crate::volumes::{Limits, Mounted};

impl Driver {
    pub(super) fn set_up(&mut self, pod: PodUid, attempt: u32) {
        let Some(local) = self.pods.get_mut(&pod) else { return };
        local.work = Work::SettingUp { then_tear_down: None };
        let (object, base) = (local.pod.clone(), local.base.clone());
        let (addresses, reserved) = (self.addresses.clone(), local.reserved.take());
        let (folder, ground) = (pod_folder(&self.config.data_dir, &pod), self.ground.clone());
        self.answer_async(async move {
            let version = ground.version();
            let images = match &object.spec {
                Some(spec) => Mounted::find(spec, &base, &ground.images).await,
                None => Mounted::default(),
            };
            let make = move || {
                let address = || reserved.map_or_else(|| addresses.take(), Ok);
                Sandbox::make(&object, images, &ground, address, &folder)
            };
            let result = tokio::task::spawn_blocking(make).await;
            let result = result.unwrap_or_else(|error| Err(("FailedCreatePodSandBox", error.to_string())));
            Answer::SetUp { pod, attempt, version, result }
        });
    }

    pub(super) fn tear_down(&mut self, pod: PodUid, attempt: u32) {
        let Some(local) = self.pods.get_mut(&pod) else { return };
        if let Work::SettingUp { then_tear_down } = &mut local.work {
            *then_tear_down = Some(attempt);
            return;
        }
        local.work = Work::TearingDown;
        let sandbox = local.sandbox.take();
        local.share = None;
        let (folder, memory) = (pod_folder(&self.config.data_dir, &pod), self.ground.memory.clone());
        self.answer_blocking(move || {
            if let Some(sandbox) = &sandbox {
                sandbox.volumes.close();
            }
            memory.remove(&pod);
            remove(&folder);
            // The address is free only now that nothing of the pod is left.
            drop(sandbox);
            Answer::Fact(Input::TornDown { pod, attempt })
        });
    }

    pub(super) fn was_set_up(
        &mut self,
        pod: PodUid,
        attempt: u32,
        version: u64,
        result: Result<Sandbox, (&'static str, String)>,
    ) {
        // Forgotten only once it is torn down, which waits for this.
        let Some(local) = self.pods.get_mut(&pod) else { return };
        let work = std::mem::take(&mut local.work);
        local.wants = result.is_err();
        let input = match result {
            Ok(sandbox) => {
                let ips = vec![sandbox.address.ip().to_string()];
                local.set_up(sandbox);
                local.share = self.node.spec(&pod).map(|spec| {
                    let share = self.engine.pod(shares::of_pod(spec), shares::memory_of_pod(spec));
                    share.keep_memory(self.config.limits.memory_qos.reservation(spec));
                    share
                });
                Input::SandboxReady { pod: pod.clone(), attempt, ips }
            }
            Err((reason, message)) => {
                Input::SandboxFailed { pod: pod.clone(), attempt, reason: reason.into(), message }
            }
        };
        match work {
            Work::SettingUp { then_tear_down: Some(attempt) } => return self.tear_down(pod, attempt),
            _ => self.fact(input),
        }
        self.watch_limits(&pod);
        if version != self.ground.version() {
            self.references_changed();
        }
    }

    /// Ends the pod when its volumes hold more than they may.
    fn watch_limits(&self, pod: &PodUid) {
        let Some(local) = self.pods.get(pod) else { return };
        let Some(sandbox) = &local.sandbox else { return };
        let spec = local.pod.spec.as_ref();
        // Each for itself: memory goes fast, and many files on a disk take long.
        for limits in [Limits::on_disk(spec), Limits::in_memory(spec, self.memory_of(pod).as_ref())] {
            if limits.is_empty() {
                continue;
            }
            let (overflow, answer, pod) =
                (upkeep::overflow(limits, Arc::downgrade(sandbox)), self.answer.clone(), pod.clone());
            tokio::spawn(async move {
                if let Some(message) = overflow.await {
                    let _ = answer.send(Answer::Fact(Input::LimitExceeded { pod, message }));
                }
            });
        }
    }

    /// The most memory that a pod may have: what it is limited to if all its containers are, and never more than the node has for pods.
    fn memory_of(&self, pod: &PodUid) -> Option<Quantity> {
        let memory = |list: &ResourceList| list.get("memory").cloned().filter(|amount| *amount > Quantity::ZERO);
        let limit = self.node.spec(pod).and_then(|spec| {
            let is_limited = spec.resources.as_ref().is_some_and(|own| memory(&own.limits).is_some())
                || spec.all_containers().all(|(_, container)| memory(&container.resources.limits).is_some());
            memory(&pod_limits(spec)).filter(|_| is_limited)
        });
        limit.into_iter().chain(memory(&self.ground.machine.allocatable())).min()
    }

    /// ConfigMaps, Secrets or Services are others: files follow, and who waited for one is tried again.
    pub(super) fn references_changed(&mut self) {
        let waiting: Vec<PodUid> =
            self.pods.iter().filter(|(_, local)| local.wants).map(|(pod, _)| pod.clone()).collect();
        for pod in waiting {
            self.fact(Input::TryAgain { pod });
        }
        self.update_volumes();
    }

    pub(super) fn update_volumes(&mut self) {
        if self.updating != Updating::No {
            self.updating = Updating::AndAgain;
            return;
        }
        let pods: Vec<Kept> = self.pods.values().filter_map(LocalPod::kept).collect();
        if pods.is_empty() {
            return;
        }
        self.updating = Updating::Once;
        let ground = self.ground.clone();
        self.answer_blocking(move || {
            upkeep::update(&ground, &pods);
            Answer::Updated
        });
    }
}

/// What of a pod is on the disk goes.
pub(crate) fn remove(folder: &Path) {
    if let Err(error) = husk_engine::remove_tree(folder)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        tracing::warn!(folder = %folder.display(), %error, "can't remove the pod's folder");
    }
}
