//! Orders about a container: its image, its start, its probes and hooks.

use std::time;

use husk_core::Input;
use husk_core::io::{Hook, InstanceRef, PodUid, ProbeOutcome};
use husk_core::memory::Throttle;
use husk_core::spec::{ProbeKind, PullPolicy, Resources};
use husk_engine::{Container, StartError};

use super::{Answer, Driver, Slot};
use crate::images::NoImage;
use crate::local::pod_folder;
use crate::pod::LocalPod;
use crate::probes::Target;
use crate::start::Prepared;
use crate::target_view::TargetView;
use crate::{hooks, probes, shares, start};

impl Driver {
    pub(super) fn pull(&mut self, instance: InstanceRef) {
        let Some(local) = self.pods.get(&instance.pod) else { return };
        let image = local.container(&instance.container).and_then(|c| c.image.clone()).unwrap_or_default();
        let (images, engine, base) = (self.ground.images.clone(), self.engine.clone(), local.base.clone());
        let policy = self.pull_policy(&instance).unwrap_or_default();
        self.answer_async(async move {
            let found = match images.ensure(&image, &base, policy).await {
                Ok(found) => match engine.prepare(&found.image).await {
                    Ok(()) => Ok(found),
                    // The image is here. That no container can be made of it is said when one is to be made.
                    Err(error) if error.is_of_compiler() => Ok(found),
                    Err(error) => Err(error.into()),
                },
                Err(error) => Err(error),
            };
            match found {
                Ok(found) => Answer::Image { instance, found },
                Err(NoImage { reason, message }) => {
                    Answer::Fact(Input::ImageFailed { instance, reason: reason.into(), message })
                }
            }
        });
    }

    /// Removes images that the disk has no room for, but none that a pod of this node may need.
    pub(super) fn collect_images(&self) {
        let wanted = self.pods.values().flat_map(LocalPod::image_names).collect();
        let images = self.ground.images.clone();
        self.answer_async(async move { Answer::Collected(images.collect_and_tell(wanted).await) });
    }

    pub(super) fn pull_policy(&self, instance: &InstanceRef) -> Option<PullPolicy> {
        let spec = self.node.spec(&instance.pod)?;
        spec.container(&instance.container).map(|(_, container)| container.image_pull_policy)
    }

    pub(super) fn start(&mut self, instance: InstanceRef) {
        let Some(local) = self.pods.get(&instance.pod) else { return };
        let target = local.target_of(&instance.container).and_then(|target| {
            let folder = pod_folder(&self.config.data_dir, &instance.pod).join("targets").join(&*instance.container);
            let output = self.logs.output(&instance.pod, &target.name)?;
            Some(start::Target { container: target.clone(), output, folder })
        });
        let allocated = self.node.allocated(&instance.pod, &instance.container);
        let throttle = allocated.and_then(|resources| self.throttle(&instance.pod, resources));
        let start = match local.start(&instance, allocated, throttle, target) {
            Ok(start) => start,
            Err(message) => {
                let (reason, message) = ("CreateContainerConfigError".into(), message.to_owned());
                return self.fact(Input::StartFailed { instance, reason, message });
            }
        };
        let log = local.logs.get(&*instance.container).cloned().unwrap_or_default();
        let (engine, ground) = (self.engine.clone(), self.ground.clone());
        self.instances.insert(instance.clone(), Slot::Starting { kill: false });
        self.answer_async(async move {
            let version = ground.version();
            let config = tokio::task::spawn_blocking(move || start.config(&ground)).await;
            let config = config
                .unwrap_or_else(|error| Err(StartError { reason: "CreateContainerError", message: error.to_string() }));
            let result = match config {
                Ok(Prepared { config, view, user }) => engine.create(config, log).await.map(|container| {
                    if let Some(view) = view {
                        tokio::spawn(shown_while(container.clone(), view));
                    }
                    (container, user)
                }),
                Err(error) => Err(error),
            };
            Answer::Created { instance, version, result }
        });
    }

    /// Gives a running instance what was granted (RES-11).
    pub(super) fn update_resources(&mut self, instance: InstanceRef, revision: u32, resources: &Resources) {
        // One that starts has what was granted when it was ordered; the core tries again.
        let changed = match self.instances.get(&instance) {
            Some(Slot::Running(running)) => {
                let changed = running.change_memory_limit(shares::memory_limit(resources));
                if changed.is_ok() {
                    running.change_memory_throttle(self.throttle(&instance.pod, resources));
                    running.change_cpu(shares::of_container(resources));
                }
                changed.map_err(|error| error.to_string())
            }
            _ => Err("the container is not running".to_owned()),
        };
        self.fact(match changed {
            Ok(()) => Input::ResourcesUpdated { instance, revision },
            Err(message) => Input::ResourcesFailed { instance, revision, message },
        });
    }

    /// What slows the growth of a container's memory that was granted this (RES-10).
    fn throttle(&self, pod: &PodUid, granted: &Resources) -> Option<Throttle> {
        let allocatable = self.ground.machine.memory_for_pods()?;
        self.config.limits.memory_qos.throttle(self.node.spec(pod)?, granted, allocatable)
    }

    /// Gives a pod as a whole what was granted: that is nobody's order, but its status says so.
    pub(super) fn grant(&self, pod: &PodUid) {
        let share = self.pods.get(pod).and_then(|local| local.share.as_ref());
        if let (Some(share), Some(spec)) = (share, self.node.spec(pod)) {
            share.change_cpu(shares::of_pod(spec));
            share.keep_memory(self.config.limits.memory_qos.reservation(spec));
            // Tried again with the next status; until then it has what it had.
            if let Err(error) = share.change_memory_limit(shares::memory_of_pod(spec)) {
                tracing::debug!(%pod, %error, "the pod holds more memory than it was granted");
            }
        }
    }

    pub(super) fn probe(&mut self, instance: InstanceRef, kind: ProbeKind, run: u32, timeout: time::Duration) {
        let found = self.pods.get(&instance.pod).and_then(|local| {
            let probe = local.probe(&instance.container, kind)?.clone();
            let container = local.container(&instance.container)?.clone();
            Some((probe, container, local.sandbox.as_ref()?.address.ip()))
        });
        let (Some((probe, container, ip)), Some(Slot::Running(running))) = (found, self.instances.get(&instance))
        else {
            // Its instance ended meanwhile: the core will hear of that and drop this answer.
            let (result, message) = (ProbeOutcome::Failure, "the container is not running".into());
            return self.fact(Input::ProbeResult { instance, kind, run, result, message });
        };
        let (running, turns, metrics) = (running.clone(), self.turns.clone(), self.metrics.clone());
        self.answer_async(async move {
            let target = Target { container: &container, running: &running, ip };
            let (result, message) = tokio::select! {
                (verdict, took) = turns.take(probes::run(&probe, target, timeout)) => {
                    metrics.probed(&instance, kind, verdict.0, took);
                    verdict
                }
                // What is asked of it now would be asked of whoever has its address next. The core drops this answer.
                _ = running.wait() => (ProbeOutcome::Failure, "the container is not running".into()),
            };
            Answer::Fact(Input::ProbeResult { instance, kind, run, result, message })
        });
    }

    pub(super) fn run_hook(&mut self, instance: InstanceRef, hook: Hook) {
        let found = self.pods.get(&instance.pod).and_then(|local| {
            let handler = local.hook(&instance.container, hook)?.clone();
            let container = local.container(&instance.container)?.clone();
            Some((handler, container, local.sandbox.as_ref()?.address.ip()))
        });
        let (Some((handler, container, ip)), Some(Slot::Running(running))) = (found, self.instances.get(&instance))
        else {
            let result = Err("the container is not running".into());
            return self.fact(Input::HookDone { instance, hook, result });
        };
        let (running, key) = (running.clone(), (instance.clone(), hook));
        let task = self.answer_async(async move {
            let target = Target { container: &container, running: &running, ip };
            Answer::Hook { instance, hook, result: hooks::run(&handler, target).await }
        });
        self.hooks.insert(key, task);
    }
}

/// What a debugger sees of its target is kept up to date while it runs.
async fn shown_while(container: Container, view: TargetView) {
    tokio::select! {
        _ = container.wait() => {}
        () = view.keep() => {}
    }
}
