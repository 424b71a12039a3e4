//! What running pods use, looked at from time to time.

use std::collections::HashMap;

use husk_core::io::{InstanceRef, PodUid};
use husk_engine::Container;
use tokio::time::{Instant, Interval, MissedTickBehavior};

use super::{Driver, Slot};
use crate::measures::{ContainerUse, PERIOD, PodUse};

/// When to look.
pub(super) fn measurements() -> Interval {
    let mut measurements = tokio::time::interval_at(Instant::now() + PERIOD, PERIOD);
    measurements.set_missed_tick_behavior(MissedTickBehavior::Delay);
    measurements
}

impl Driver {
    /// Containers that run.
    pub(super) fn running(&self) -> impl Iterator<Item = (&InstanceRef, &Container)> {
        self.instances.iter().filter_map(|(instance, slot)| match slot {
            Slot::Running(container) => Some((instance, container)),
            Slot::Starting { .. } => None,
        })
    }

    /// Looks what pods use now.
    pub(super) fn measure(&self) {
        let with_address = self.pods.iter().filter_map(|(uid, local)| Some((uid, local, local.share.as_ref()?)));
        let mut pods: HashMap<PodUid, PodUse> = with_address
            .map(|(uid, local, share)| {
                (uid.clone(), PodUse { pod: local.pod.clone(), cpu: share.cpu(), containers: Vec::new() })
            })
            .collect();
        for (instance, container) in self.running() {
            let Some(pod) = pods.get_mut(&instance.pod) else { continue };
            pod.containers.push(ContainerUse {
                name: instance.container.to_string(),
                cpu: container.cpu(),
                memory: container.memory(),
                cores: 0.0,
            });
        }
        pods.values_mut().for_each(|pod| pod.containers.sort_unstable_by(|one, other| one.name.cmp(&other.name)));
        self.measures.take(self.now(), pods);
        self.bound_memory();
    }
}
