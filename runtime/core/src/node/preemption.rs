//! Less important pods make room for a more important one (RES-08).

use alloc::collections::BTreeSet;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::cmp::Reverse;

use super::Node;
use super::seats::charge_of;
use crate::admission;
use crate::io::PodUid;
use crate::pod::Pod;
use crate::spec::ResourceList;
use crate::time::Instant;

impl Node {
    /// Makes less important pods end if that makes room. Returns true if room is on its way.
    pub(super) fn make_room_for(&mut self, now: Instant, uid: &PodUid) -> bool {
        let leaves = |uid: &PodUid| self.pods.get(uid).is_some_and(Pod::holds_resources);
        let Some(pod) = self.pods.get(uid) else { return false };
        if pod.nomination.as_ref().is_some_and(|leaving| leaving.iter().any(leaves)) {
            return true;
        }
        let (chosen, leaving) = match self.victims(pod) {
            Some(Victims { chosen, leaving }) => (chosen, Some(leaving)),
            None => (Vec::new(), None),
        };
        let coming = leaving.is_some();
        self.with_pod(now, uid, |pod, _| pod.nomination = leaving);
        let preemptor = uid.to_string();
        for victim in chosen {
            self.with_pod(now, &victim, |pod, out| pod.preempt(&preemptor, out));
        }
        coming
    }

    /// The fewest that have to go: as if all less important ones went, and then as many as possible stayed, the most important
    /// first.
    fn victims(&self, pod: &Pod) -> Option<Victims> {
        if pod.spec.placement.never_preempts {
            return None;
        }
        let priority = pod.spec.priority();
        let mut used = self.seats.used_or_kept(pod);
        let charge = charge_of(pod);
        let fits = |used: &ResourceList| admission::insufficient(&self.state, used, &charge).is_empty();
        let holders = self.seats.that_may_go(priority).filter_map(|uid| self.pods.get(uid));
        let mut leaving = BTreeSet::new();
        let mut candidates: Vec<&Pod> = Vec::new();
        for holder in holders {
            if holder.is_ending() {
                leaving.insert(holder.uid.clone());
            } else if !holder.meta.is_static {
                candidates.push(holder);
            } else {
                continue;
            }
            if let Some(charge) = &holder.charged {
                admission::release(&mut used, charge);
            }
        }
        if !fits(&used) {
            return None;
        }
        candidates.sort_by_key(|other| (Reverse(other.spec.priority()), other.status.start_time, other.accepted));
        let mut chosen = Vec::new();
        for candidate in candidates {
            let Some(charge) = &candidate.charged else { continue };
            let mut with = used.clone();
            admission::charge(&mut with, charge);
            if fits(&with) {
                used = with;
            } else {
                chosen.push(candidate.uid.clone());
            }
        }
        leaving.extend(chosen.iter().cloned());
        (!leaving.is_empty()).then_some(Victims { chosen, leaving })
    }
}

struct Victims {
    /// Who has to be told.
    chosen: Vec<PodUid>,
    /// Who has to end, those that end already included.
    leaving: BTreeSet<PodUid>,
}
