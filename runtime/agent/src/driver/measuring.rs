//! What running pods use, looked at from time to time.

use std::collections::HashMap;

use husk_core::io::PodUid;
use tokio::time::{Interval, MissedTickBehavior};

use super::{Driver, Slot};
use crate::measures::{ContainerUse, PERIOD, PodUse};

/// When to look.
pub(super) fn measurements() -> Interval {
    let mut measurements = tokio::time::interval(PERIOD);
    measurements.set_missed_tick_behavior(MissedTickBehavior::Delay);
    measurements
}

impl Driver {
    /// Looks what pods use now.
    pub(super) fn measure(&self) {
        let with_address = self.pods.iter().filter_map(|(uid, local)| Some((uid, local, local.share.as_ref()?)));
        let mut pods: HashMap<PodUid, PodUse> = with_address
            .map(|(uid, local, share)| {
                (uid.clone(), PodUse { pod: local.pod.clone(), cpu: share.usage(), containers: Vec::new() })
            })
            .collect();
        for (instance, slot) in &self.instances {
            let (Slot::Running(container), Some(pod)) = (slot, pods.get_mut(&instance.pod)) else { continue };
            pod.containers.push(ContainerUse {
                name: instance.container.to_string(),
                cpu: container.cpu(),
                memory: container.memory(),
                cores: 0.0,
            });
        }
        pods.values_mut().for_each(|pod| pod.containers.sort_unstable_by(|one, other| one.name.cmp(&other.name)));
        self.measures.take(self.now(), pods);
    }
}
