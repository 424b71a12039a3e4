//! May a running pod have other resources? (RES-11)

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::Node;
use super::seats::with_itself;
use crate::admission;
use crate::io::PodUid;
use crate::pod::{Pending, Pod};
use crate::spec::ResourceList;
use crate::time::Instant;

impl Node {
    /// Decides on the resize that a pod asks for, if it does.
    pub(super) fn try_resize(&mut self, now: Instant, uid: &PodUid) {
        let Some(pod) = self.pods.get(uid) else { return };
        let Some(wanted) = pod.resize_wanted() else { return };
        match self.against_resize(pod, wanted) {
            Some((pending, message)) => self.with_pod(now, uid, |pod, out| pod.refuse_resize(pending, message, out)),
            None => {
                self.with_pod(now, uid, |pod, out| pod.grant_resize(out));
                if let Some(pod) = self.pods.get_mut(uid) {
                    self.seats.recharge(pod);
                }
            }
        }
    }

    /// Tries the deferred ones again, in their order.
    pub(super) fn retry_resizes(&mut self, now: Instant) {
        let deferred: Vec<PodUid> = self.deferred.iter().map(|place| place.pod.clone()).collect();
        for uid in deferred {
            self.try_resize(now, &uid);
        }
    }

    fn against_resize(&self, pod: &Pod, wanted: ResourceList) -> Option<(Pending, String)> {
        if pod.meta.is_static {
            return Some((Pending::Infeasible, String::from("In-place resize of static-pods is not supported")));
        }
        let allocatable = self.state.allocatable.as_ref()?;
        for resource in ["memory", "cpu"] {
            let (Some(asked), Some(capacity)) = (wanted.get(resource), admission::capacity(allocatable, resource))
            else {
                continue;
            };
            if *asked > capacity {
                let amount = |amount: &crate::quantity::Quantity| match resource {
                    "cpu" => amount.milli_value(),
                    _ => amount.value(),
                };
                let (asked, capacity) = (amount(asked), amount(&capacity));
                let message =
                    format!("Node didn't have enough capacity: {resource}, requested: {asked}, capacity: {capacity}");
                return Some((Pending::Infeasible, message));
            }
        }
        let mut used = self.seats.used().clone();
        if let Some(charged) = &pod.charged {
            admission::release(&mut used, charged);
        }
        let lacking = admission::insufficient(&self.state, &used, &with_itself(wanted));
        lacking.first().map(|lacking| (Pending::Deferred, lacking.message()))
    }
}
