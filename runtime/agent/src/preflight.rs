//! What can be known to go wrong before anything is started.

use std::path::Path;

use husk_core::spec::PullPolicy;
use husk_engine::Engine;
use k8s_openapi::api::core::v1::{Container, EnvVarSource, Pod};

use crate::debugging::ephemeral_containers;
use crate::images::Images;
use crate::process::{Process, Sources};
use crate::sandbox::Ground;
use crate::volumes::{Mounted, VolumeError, Volumes};

/// A reason why a pod can't run here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// As in `spec.containers[0].image`.
    pub field: String,
    /// What is wrong and what to do.
    pub message: String,
}

/// All reasons why a pod can't run here.
pub(crate) async fn check(pod: &Pod, base: &Path, ground: &Ground, engine: &Engine) -> Vec<Trouble> {
    let Some(spec) = &pod.spec else { return Vec::new() };
    let mounted = Mounted::find(spec, base, &ground.images).await;
    let mut found: Vec<Trouble> = Volumes::check(ground.world(pod, &mounted)).into_iter().map(Trouble::from).collect();
    let ephemeral: Vec<_> = ephemeral_containers(Some(spec)).collect();
    let lists = [
        ("initContainers", spec.init_containers.as_deref()),
        ("containers", Some(&spec.containers)),
        ("ephemeralContainers", Some(&ephemeral)),
    ];
    for (list, containers) in lists {
        for (n, container) in containers.into_iter().flatten().enumerate() {
            let field = format!("spec.{list}[{n}]");
            let sources = Sources::new(pod, ground, None);
            if let Err(message) = Process::of(pod, &without_files(container), &sources) {
                found.push(Trouble { field: format!("{field}.env"), message });
            }
            let name = container.image.as_deref().unwrap_or_default();
            if let Err(message) = check_image(name, base, &ground.images, engine).await {
                found.push(Trouble { field: format!("{field}.image"), message });
            }
        }
    }
    found
}

/// Without the variables that come from files: nobody has written them yet.
fn without_files(container: &Container) -> Container {
    let mut container = container.clone();
    let is_file = |source: &EnvVarSource| source.file_key_ref.is_some();
    container.env.iter_mut().for_each(|env| env.retain(|variable| !variable.value_from.as_ref().is_some_and(is_file)));
    container
}

impl From<VolumeError> for Trouble {
    fn from(error: VolumeError) -> Self {
        Self { field: error.field, message: error.message }
    }
}

async fn check_image(name: &str, base: &Path, images: &Images, engine: &Engine) -> Result<(), String> {
    let found = images.ensure(name, base, PullPolicy::IfNotPresent).await.map_err(|error| error.to_string())?;
    engine.prepare(&found.image).await.map_err(|error| error.to_string())
}
