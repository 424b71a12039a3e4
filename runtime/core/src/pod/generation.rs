//! `metadata.generation` and `status.observedGeneration` (POD-05).

use serde::{Deserialize, Serialize};

use super::Pod;
use crate::spec::{ContainerSpec, PodMeta, PodSpec};

/// What the status is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Generation {
    /// `status.observedGeneration`.
    observed: i64,
    /// The pod comes without a generation, as from a file: it is counted here.
    counted_here: bool,
}

impl Pod {
    pub(super) fn begin_generation(&mut self) {
        if self.meta.generation == 0 {
            self.generation.counted_here = true;
            self.meta.generation = 1;
        }
        self.generation.observed = self.meta.generation;
    }

    /// Takes the meta of a change. A change that is direct is observed at once; one that containers have to be restarted or resized
    /// for only once that was done.
    pub(super) fn number_generation(&mut self, mut meta: PodMeta, spec: &PodSpec) {
        let wanted = self.wanted_spec();
        if self.generation.counted_here && meta.generation == 0 {
            meta.generation = self.meta.generation.saturating_add(i64::from(wanted != *spec));
        }
        self.meta = meta;
        if direct(&wanted) != direct(spec) {
            self.generation.observed = self.meta.generation;
        }
    }

    /// A deletion counts as a change.
    pub(super) fn raise_generation(&mut self) {
        if self.generation.counted_here {
            self.meta.generation = self.meta.generation.saturating_add(1);
            self.generation.observed = self.meta.generation;
        }
    }

    pub(super) fn observe_generation(&mut self) {
        let replacing = self
            .slots
            .iter()
            .any(|slot| slot.is_live() && self.runtime.newest(&slot.name).is_some_and(|newest| newest.changed));
        if !replacing && !self.resize_in_progress() {
            self.generation.observed = self.meta.generation;
        }
    }

    pub(super) fn observed_generation(&self) -> i64 {
        self.generation.observed
    }
}

/// The spec without what takes effect by a restart or resize of containers.
fn direct(spec: &PodSpec) -> PodSpec {
    let mut spec = spec.clone();
    spec.resources = None;
    let PodSpec { init_containers, containers, ephemeral_containers, .. } = &mut spec;
    for container in init_containers.iter_mut().chain(containers).chain(ephemeral_containers) {
        *container = ContainerSpec { name: core::mem::take(&mut container.name), ..ContainerSpec::default() };
    }
    spec
}
