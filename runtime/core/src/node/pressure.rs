//! The node runs short: somebody has to go (RES-09).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::Node;
use crate::disruption::Disruption;
use crate::event::EventKind;
use crate::eviction::{self, Candidate, PodUsage, Pressure, Shortage};
use crate::io::PodUid;
use crate::pod::{NodeVerdict, Pod};
use crate::reasons;
use crate::resources;
use crate::status::Word;
use crate::time::Instant;

impl Node {
    /// The node was looked at. One pod goes at a time, and the next one only by what was measured after the one before had set free all
    /// that it had.
    pub(super) fn feel_pressure(&mut self, now: Instant, pressure: Pressure, shortage: Option<&Shortage>) {
        let Some(shortage) = shortage else {
            if self.short_of.remove(&pressure) {
                self.seats.make_room();
            }
            return;
        };
        self.short_of.insert(pressure);
        let Some(grace) = shortage.grace_seconds else { return };
        if self.somebody_goes(now, pressure, grace) || shortage.as_of < self.freed_at || self.somebody_comes_back(now) {
            return;
        }
        let Some(uid) = self.first_to_go(pressure, shortage) else { return };
        self.victim = Some(uid.clone());
        let usage = shortage.usage.iter().find(|usage| usage.pod == uid);
        self.with_pod(now, &uid, |pod, out| {
            let message = eviction::message(pressure, shortage, &pod.spec, usage);
            let own = pod.spec.termination_grace_period_seconds.unwrap_or(0);
            pod.event(out, None, EventKind::Warning, reasons::EVICTED, message.clone());
            let verdict = NodeVerdict {
                reason: Word::Borrowed(reasons::EVICTED),
                message,
                disruption: Some(Disruption::TerminationByKubelet),
                grace_seconds: Some(own.min(grace)),
            };
            pod.terminate(verdict, out);
        });
    }

    /// Somebody ends already, for want of something or because a client wants it so, and isn't gone yet: nobody else has to go before
    /// him. If there is less time now than there was, that is his as well.
    fn somebody_goes(&mut self, now: Instant, pressure: Pressure, grace_seconds: i64) -> bool {
        let may_go = |uid: &&PodUid| self.pods.get(uid).is_some_and(|pod| !pod.spec.is_critical(&pod.meta));
        let going: Vec<PodUid> = self.seats.that_leave().filter(may_go).cloned().collect();
        for uid in &going {
            self.with_pod(now, uid, |pod, out| pod.cut_grace(grace_seconds, out));
        }
        going.iter().any(|uid| self.pods.get(uid).is_some_and(|pod| pod.will_set_free(now, pressure)))
    }

    /// Somebody was lost with the agent and has not begun again: what he uses isn't known, and those who have begun aren't to go for it.
    fn somebody_comes_back(&self, now: Instant) -> bool {
        self.pods.iter().any(|pod| pod.comes_back(now))
    }

    /// Notes that a pod has gone for want of something.
    pub(super) fn note_relief(&mut self, now: Instant, uid: &PodUid) {
        if self.pods.get(uid).is_some_and(|pod| pod.ended_by_node() == Some(reasons::EVICTED)) {
            self.freed_at = now;
        }
    }

    /// The first in order. Who holds nothing of what is short stays: his end would set nothing free.
    fn first_to_go(&self, pressure: Pressure, shortage: &Shortage) -> Option<PodUid> {
        let usages: BTreeMap<&PodUid, &PodUsage> = shortage.usage.iter().map(|usage| (&usage.pod, usage)).collect();
        let may_go = |pod: &&Pod| pod.is_seated() && !pod.is_ending() && !pod.spec.is_critical(&pod.meta);
        let mut candidates: Vec<Candidate<&PodUid>> = self
            .pods
            .iter()
            .filter(may_go)
            .map(|pod| {
                let usage = usages.get(&pod.uid);
                let request = resources::pod_requests(&pod.spec).remove(pressure.resource()).unwrap_or_default();
                let priority = pod.spec.priority();
                Candidate { pod: &pod.uid, priority, usage: usage.map(|usage| usage.total.clone()), request }
            })
            .filter(|candidate| candidate.usage.as_ref().is_none_or(|usage| !usage.is_zero()))
            .collect();
        eviction::rank(&mut candidates, pressure);
        candidates.first().map(|candidate| candidate.pod.clone())
    }
}
