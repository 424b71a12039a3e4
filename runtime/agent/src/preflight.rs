//! What can be known to go wrong before anything is started.

use std::path::Path;

use husk_core::spec::PullPolicy;
use husk_engine::Engine;
use k8s_openapi::api::core::v1::Pod;

use crate::images::Images;
use crate::pod::ephemeral_containers;
use crate::process::{Process, Sources, ThisMachine};
use crate::references::References;
use crate::volumes::Volumes;

/// A reason why a pod can't run here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// As in `spec.containers[0].image`.
    pub field: String,
    /// What is wrong and what to do.
    pub message: String,
}

/// All reasons why a pod can't run here.
pub(crate) async fn check(
    pod: &Pod,
    base: &Path,
    images: &Images,
    engine: &Engine,
    references: &dyn References,
    machine: &ThisMachine,
) -> Vec<Trouble> {
    let Some(spec) = &pod.spec else { return Vec::new() };
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let mut found: Vec<Trouble> =
        Volumes::check(spec).into_iter().map(|error| Trouble { field: error.field, message: error.message }).collect();
    let ephemeral: Vec<_> = ephemeral_containers(Some(spec)).collect();
    let lists = [
        ("initContainers", spec.init_containers.as_deref()),
        ("containers", Some(&spec.containers)),
        ("ephemeralContainers", Some(&ephemeral)),
    ];
    for (list, containers) in lists {
        for (n, container) in containers.into_iter().flatten().enumerate() {
            let field = format!("spec.{list}[{n}]");
            if let Err(message) = Process::of(pod, container, &Sources { namespace, references, machine }) {
                found.push(Trouble { field: format!("{field}.env"), message });
            }
            let name = container.image.as_deref().unwrap_or_default();
            if let Err(message) = check_image(name, base, images, engine).await {
                found.push(Trouble { field: format!("{field}.image"), message });
            }
        }
    }
    found
}

async fn check_image(name: &str, base: &Path, images: &Images, engine: &Engine) -> Result<(), String> {
    let found = images.ensure(name, base, PullPolicy::IfNotPresent).await.map_err(|error| error.to_string())?;
    engine.prepare(&found.image).await.map_err(|error| error.to_string())
}
