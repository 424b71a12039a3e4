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
    /// The node was looked at. One pod goes per look, so that what it sets free is seen before the next one goes.
    pub(super) fn feel_pressure(&mut self, now: Instant, pressure: Pressure, shortage: Option<&Shortage>) {
        let Some(shortage) = shortage else {
            if self.short_of.remove(&pressure) {
                self.seats.make_room();
            }
            return;
        };
        self.short_of.insert(pressure);
        let Some(uid) = self.first_to_go(pressure, shortage) else { return };
        let usage = shortage.usage.iter().find(|usage| usage.pod == uid);
        self.with_pod(now, &uid, |pod, out| {
            let message = eviction::message(pressure, shortage, &pod.spec, usage);
            let own = pod.spec.termination_grace_period_seconds.unwrap_or(0);
            pod.event(out, None, EventKind::Warning, reasons::EVICTED, message.clone());
            let verdict = NodeVerdict {
                reason: Word::Borrowed(reasons::EVICTED),
                message,
                disruption: Some(Disruption::TerminationByKubelet),
                grace_seconds: Some(own.min(shortage.grace_seconds)),
            };
            pod.terminate(verdict, out);
        });
    }

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
            .collect();
        eviction::rank(&mut candidates, pressure);
        candidates.first().map(|candidate| candidate.pod.clone())
    }
}
