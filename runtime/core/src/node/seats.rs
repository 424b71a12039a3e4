//! Who has a place on the node, who waits for one, and what is given away (RES-08, META-10).

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;

use super::Node;
use crate::admission::{self, Insufficient};
use crate::eviction::Pressure;
use crate::io::PodUid;
use crate::placement::{self, Placement, Site};
use crate::pod::Pod;
use crate::qos::QosClass;
use crate::quantity::{Notation, Quantity};
use crate::reasons;
use crate::resources;
use crate::scheduling::Taint;
use crate::spec::ResourceList;
use crate::time::Instant;

/// Sums and indexes, so that no decision has to look at pods that it isn't about.
#[derive(Debug, Default)]
pub(super) struct Seats {
    /// Sum of what is given away.
    used: ResourceList,
    /// Who waits for a place, the most important first.
    queue: BTreeSet<(Reverse<i32>, u64, PodUid)>,
    /// Of those the ones that want to be near others.
    seeking: BTreeSet<PodUid>,
    /// Seated pods that keep others away.
    guarded: BTreeSet<PodUid>,
    /// Who has a place, by priority.
    seated: BTreeSet<(i32, PodUid)>,
    /// Of those the ones that end.
    leaving: BTreeSet<PodUid>,
    /// For whom room is being made: priority, and what is kept.
    nominated: BTreeMap<PodUid, (i32, ResourceList)>,
    /// There may be room for somebody who waits.
    room: bool,
}

/// Why a pod can't have a place now.
#[derive(Debug)]
pub(super) enum Obstacle {
    /// Never: status reason and message.
    Refused(String, String),
    /// It has scheduling gates.
    Gated,
    /// The node or the pods on it don't suit.
    Unsuitable(String),
    /// There is not enough of something.
    NoRoom(Vec<Insufficient>),
}

impl Seats {
    pub(super) fn used(&self) -> &ResourceList {
        &self.used
    }

    /// Nobody gets a place before all who had one have it again.
    pub(super) fn wait_for_records(&mut self) {
        self.room = false;
    }

    /// Who waits should be looked at again.
    pub(super) fn make_room(&mut self) {
        self.room = true;
    }

    /// The pods on the node, or their labels, changed: who wants company should be looked at again.
    pub(super) fn company_changed(&mut self) {
        self.room |= !self.seeking.is_empty();
    }

    /// Brings sums and indexes in line with a pod.
    pub(super) fn keep(&mut self, pod: &mut Pod) {
        let queued = pod.is_waiting() && !pod.is_ending();
        if queued != pod.queued {
            pod.queued = queued;
            if queued {
                self.queue.insert(place_in_queue(pod));
                if !pod.spec.placement.affinity.is_empty() {
                    self.seeking.insert(pod.uid.clone());
                }
            } else {
                self.dequeue(pod);
            }
        }
        if queued && pod.nomination.is_some() {
            let kept = (pod.spec.priority(), charge_of(pod));
            self.nominated.insert(pod.uid.clone(), kept);
        } else if !self.nominated.is_empty() && self.nominated.remove(&pod.uid).is_some() && queued {
            self.room = true;
        }
        match (pod.holds_resources(), pod.charged.is_some()) {
            (true, false) => {
                let charge = charge_of(pod);
                admission::charge(&mut self.used, &charge);
                pod.charged = Some(charge);
                self.seated.insert((pod.spec.priority(), pod.uid.clone()));
                if !pod.spec.placement.anti_affinity.is_empty() {
                    self.guarded.insert(pod.uid.clone());
                }
                self.company_changed();
            }
            (false, true) => self.release(pod),
            (true, true) | (false, false) => {}
        }
        if pod.charged.is_some() && pod.is_ending() {
            self.leaving.insert(pod.uid.clone());
        }
    }

    /// A seated pod has more or less from now on.
    pub(super) fn recharge(&mut self, pod: &mut Pod) {
        let Some(before) = pod.charged.take() else { return };
        admission::release(&mut self.used, &before);
        let charge = charge_of(pod);
        admission::charge(&mut self.used, &charge);
        pod.charged = Some(charge);
        self.room = true;
    }

    fn release(&mut self, pod: &mut Pod) {
        if let Some(charge) = pod.charged.take() {
            admission::release(&mut self.used, &charge);
            self.seated.remove(&(pod.spec.priority(), pod.uid.clone()));
            self.leaving.remove(&pod.uid);
            self.room = true;
        }
        self.guarded.remove(&pod.uid);
    }

    fn dequeue(&mut self, pod: &Pod) {
        self.queue.remove(&place_in_queue(pod));
        self.seeking.remove(&pod.uid);
        if self.nominated.remove(&pod.uid).is_some() {
            self.room = true;
        }
    }

    /// Who ends, and who is less important than that.
    pub(super) fn that_may_go(&self, priority: i32) -> impl Iterator<Item = &PodUid> {
        let less_important = self.seated.iter().take_while(move |(theirs, _)| *theirs < priority).map(|(_, uid)| uid);
        self.leaving.iter().chain(less_important.filter(|uid| !self.leaving.contains(*uid)))
    }

    /// Who has a place and ends.
    pub(super) fn that_leave(&self) -> impl Iterator<Item = &PodUid> {
        self.leaving.iter()
    }

    /// Has anybody a place whose priority is from here on, and below that, and doesn't end anyway?
    pub(super) fn any_stays(&self, from: i32, below: Option<i32>) -> bool {
        let seated = self.seated.range((from, PodUid::from(""))..);
        seated
            .take_while(|(priority, _)| below.is_none_or(|below| *priority < below))
            .any(|(_, uid)| !self.leaving.contains(uid))
    }

    /// A pod is no more.
    pub(super) fn remove(&mut self, pod: &mut Pod) {
        self.dequeue(pod);
        self.release(pod);
    }

    /// What is given away, or kept for those that are at least as important and for whom room is being made.
    pub(super) fn used_or_kept(&self, pod: &Pod) -> ResourceList {
        let mut used = self.used.clone();
        for (uid, (priority, charge)) in &self.nominated {
            if *uid != pod.uid && *priority >= pod.spec.priority() {
                admission::charge(&mut used, charge);
            }
        }
        used
    }
}

fn place_in_queue(pod: &Pod) -> (Reverse<i32>, u64, PodUid) {
    (Reverse(pod.spec.priority()), pod.accepted, pod.uid.clone())
}

/// What a pod takes of the node.
pub(super) fn charge_of(pod: &Pod) -> ResourceList {
    with_itself(resources::pod_requests(&pod.spec))
}

/// Requests, and the pod itself.
pub(super) fn with_itself(mut requests: ResourceList) -> ResourceList {
    requests.insert("pods".to_string(), Quantity::new(1, Notation::Decimal));
    requests
}

impl Node {
    /// Gives a waiting pod its place, if it can have one, or says why not.
    pub(super) fn try_seat(&mut self, now: Instant, uid: &PodUid) {
        let Some(pod) = self.pods.get(uid).filter(|pod| pod.is_waiting() && !pod.is_ending()) else { return };
        if pod.spec.placement.group.is_some() && pod.spec.placement.gates.is_empty() {
            return self.try_seat_group_of(now, uid);
        }
        match self.obstacle(pod, &self.seats.used_or_kept(pod), &[]) {
            None => self.seat(now, uid),
            Some(obstacle) => self.keep_waiting(now, uid, obstacle),
        }
    }

    /// Looks at all that wait, as long as there may be room for them: resizes first, then pods.
    pub(super) fn use_room(&mut self, now: Instant) {
        while core::mem::take(&mut self.seats.room) {
            self.retry_resizes(now);
            let queue: Vec<PodUid> = self.seats.queue.iter().map(|(.., uid)| uid.clone()).collect();
            for uid in queue {
                self.try_seat(now, &uid);
            }
        }
    }

    pub(super) fn seat(&mut self, now: Instant, uid: &PodUid) {
        let taints = self.state.taints.clone();
        self.with_pod(now, uid, |pod, out| {
            pod.take_seat(out);
            pod.mind_taints(&taints, out);
        });
    }

    /// It can't have a place: it waits, makes others go, or is refused.
    pub(super) fn keep_waiting(&mut self, now: Instant, uid: &PodUid, obstacle: Obstacle) {
        let Some(pod) = self.pods.get(uid) else { return };
        if pod.nomination.is_some() && !matches!(obstacle, Obstacle::NoRoom(_)) {
            // It isn't room that it lacks any more: what was kept for it is for others.
            self.with_pod(now, uid, |pod, _| pod.nomination = None);
        }
        let Some(pod) = self.pods.get(uid) else { return };
        let (is_static, critical) = (pod.meta.is_static, pod.spec.has_critical_priority());
        match obstacle {
            Obstacle::Refused(reason, message) => self.with_pod(now, uid, |pod, out| pod.refuse(reason, message, out)),
            Obstacle::Gated => self.wait(now, uid, reasons::SCHEDULING_GATED, reasons::SCHEDULING_GATED_MESSAGE.into()),
            Obstacle::Unsuitable(reason) => {
                self.wait(now, uid, reasons::UNSCHEDULABLE, admission::unschedulable(vec![reason]));
            }
            Obstacle::NoRoom(lacking) => {
                let coming = (!is_static || critical) && self.make_room_for(now, uid);
                match lacking.first() {
                    // One from a file on the node is the node's own affair, and there is nobody to wait for it.
                    Some(first) if is_static && !coming => {
                        let (reason, message) = (first.status_reason(), first.message());
                        self.with_pod(now, uid, |pod, out| pod.refuse(reason, message, out));
                    }
                    _ => {
                        let reasons = lacking.iter().map(Insufficient::reason).collect();
                        self.wait(now, uid, reasons::UNSCHEDULABLE, admission::unschedulable(reasons));
                    }
                }
            }
        }
    }

    pub(super) fn wait(&mut self, now: Instant, uid: &PodUid, reason: &'static str, message: String) {
        self.with_pod(now, uid, |pod, out| pod.wait_for_seat(reason, message, out));
    }

    /// Why a pod can't have a place, if so much is given away; `company` are pods that would come with it.
    pub(super) fn obstacle(&self, pod: &Pod, used: &ResourceList, company: &[PodUid]) -> Option<Obstacle> {
        if pod.meta.is_static && self.shutdown.is_some() {
            let (reason, message) = (reasons::NODE_SHUTDOWN, reasons::NODE_SHUTDOWN_MESSAGE);
            return Some(Obstacle::Refused(reason.into(), message.into()));
        }
        if pod.spec.os.as_ref().is_some_and(|os| !self.state.os.is_empty() && *os != self.state.os) {
            let (reason, message) = (reasons::POD_OS_NOT_SUPPORTED, reasons::POD_OS_NOT_SUPPORTED_MESSAGE);
            return Some(Obstacle::Refused(reason.into(), message.into()));
        }
        let unsuitable =
            if pod.meta.is_static { self.unsuitable_for_static(pod) } else { self.unsuitable(pod, company) };
        unsuitable.or_else(|| {
            let lacking = admission::insufficient(&self.state, used, &charge_of(pod));
            (!lacking.is_empty()).then_some(Obstacle::NoRoom(lacking))
        })
    }

    /// For a pod from a file on the node only the node itself has to suit.
    fn unsuitable_for_static(&self, pod: &Pod) -> Option<Obstacle> {
        let placement = Placement { demand: pod.spec.placement.demand.clone(), ..Placement::default() };
        let site = Site { taints: &[], cordoned: false, ..self.site() };
        if let Some(reason) = placement::node_obstacle(&placement, site) {
            let message = format!("Predicate NodeAffinity failed: {reason}");
            return Some(Obstacle::Refused("NodeAffinity".into(), message));
        }
        let short_of = self.pressure_against(pod).map(|pressure| pressure.condition())?;
        let message = format!("The node had condition: [{short_of}]. ");
        Some(Obstacle::Refused(reasons::EVICTED.into(), message))
    }

    fn unsuitable(&self, pod: &Pod, company: &[PodUid]) -> Option<Obstacle> {
        let placement = &pod.spec.placement;
        if !placement.gates.is_empty() {
            return Some(Obstacle::Gated);
        }
        if self.shutdown.is_some() {
            return Some(Obstacle::Unsuitable("node(s) had untolerated taint {node.kubernetes.io/not-ready: }".into()));
        }
        if let Some(reason) = placement::node_obstacle(placement, self.site()) {
            return Some(Obstacle::Unsuitable(reason));
        }
        if let Some(pressure) = self.pressure_against(pod) {
            return Some(Obstacle::Unsuitable(format!("node(s) had untolerated taint {{{}: }}", pressure.taint())));
        }
        let wants_or_minds =
            !placement.affinity.is_empty() || !placement.anti_affinity.is_empty() || !placement.spread.is_empty();
        let reason = if wants_or_minds {
            let all = self.pods.iter().filter(|peer| peer.holds_resources() || company.contains(&peer.uid));
            placement::peer_obstacle(pod.as_peer(), self.site(), all.map(Pod::as_peer))
        } else {
            // Only those that keep others away have a say.
            let guards = self.seats.guarded.iter().chain(company).filter_map(|uid| self.pods.get(uid));
            placement::peer_obstacle(pod.as_peer(), self.site(), guards.map(Pod::as_peer))
        };
        reason.map(|reason| Obstacle::Unsuitable(reason.into()))
    }

    fn site(&self) -> Site<'_> {
        let state = &self.state;
        Site { name: &self.config.node_name, labels: &state.labels, taints: &state.taints, cordoned: state.cordoned }
    }

    /// The shortage that keeps this pod off: of memory only those that ask for nothing, of anything else all but critical ones
    /// (RES-09).
    fn pressure_against(&self, pod: &Pod) -> Option<Pressure> {
        if pod.spec.is_critical(&pod.meta) {
            return None;
        }
        self.short_of.iter().copied().find(|pressure| {
            let taint =
                Taint { key: pressure.taint().into(), value: String::new(), effect: String::from("NoSchedule") };
            match pressure {
                Pressure::Memory => {
                    let tolerates = pod.spec.placement.tolerations.iter().any(|t| t.tolerates(&taint));
                    pod.status.qos_class == Some(QosClass::BestEffort) && !tolerates
                }
                Pressure::Disk | Pressure::Pid | Pressure::Inodes => true,
            }
        })
    }
}
