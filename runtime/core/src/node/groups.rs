//! Pods that get their places together or not at all (META-11).

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::Node;
use super::seats::{Obstacle, charge_of};
use crate::admission;
use crate::group::{Group, GroupKind, GroupName};
use crate::io::PodUid;
use crate::pod::Pod;
use crate::reasons;
use crate::spec::ResourceList;
use crate::time::Instant;

/// The groups, and who belongs to them whether they exist or not.
#[derive(Debug, Default)]
pub(super) struct Groups {
    known: BTreeMap<GroupName, Group>,
    /// Pods by the name of their PodGroup.
    members: BTreeMap<GroupName, BTreeSet<(u64, PodUid)>>,
    /// PodGroups by the name of the CompositePodGroup above them.
    children: BTreeMap<GroupName, BTreeSet<GroupName>>,
}

impl Groups {
    pub(super) fn join(&mut self, pod: &Pod) {
        if let Some(name) = group_of(pod) {
            self.members.entry(name).or_default().insert((pod.accepted, pod.uid.clone()));
        }
    }

    pub(super) fn leave(&mut self, pod: &Pod) {
        let Some(name) = group_of(pod) else { return };
        let Some(members) = self.members.get_mut(&name) else { return };
        members.remove(&(pod.accepted, pod.uid.clone()));
        if members.is_empty() {
            self.members.remove(&name);
        }
    }

    pub(super) fn forget(&mut self, name: &GroupName) {
        if let Some(parent) = self.known.remove(name).as_ref().and_then(parent_of)
            && let Some(children) = self.children.get_mut(&parent)
        {
            children.remove(name);
        }
    }

    fn remember(&mut self, group: Group) {
        self.forget(&group.name);
        if let Some(parent) = parent_of(&group) {
            self.children.entry(parent).or_default().insert(group.name.clone());
        }
        self.known.insert(group.name.clone(), group);
    }

    fn members(&self, name: &GroupName) -> impl Iterator<Item = &PodUid> {
        self.members.get(name).into_iter().flatten().map(|(_, uid)| uid)
    }

    /// The first group that is missing above a pod.
    fn missing(&self, name: &GroupName) -> Option<GroupName> {
        let mut name = name.clone();
        // Deeper hierarchies can only be circles.
        for _ in 0..self.known.len() {
            let Some(group) = self.known.get(&name) else { return Some(name) };
            match parent_of(group) {
                Some(parent) => name = parent,
                None => return None,
            }
        }
        (!self.known.contains_key(&name)).then_some(name)
    }
}

fn group_of(pod: &Pod) -> Option<GroupName> {
    let name = pod.spec.placement.group.clone()?;
    Some(GroupName { kind: GroupKind::Pods, namespace: pod.meta.namespace.clone(), name })
}

fn parent_of(group: &Group) -> Option<GroupName> {
    let name = group.parent.clone()?;
    Some(GroupName { kind: GroupKind::Groups, namespace: group.name.namespace.clone(), name })
}

/// What would become of the waiting members of a group.
struct Plan {
    /// Who would get a place.
    seated: Vec<PodUid>,
    /// Who would not, and why.
    left: Vec<(PodUid, Obstacle)>,
    /// The group would have as many as it needs.
    enough: bool,
    /// So many it would have, and needs.
    count: (usize, usize),
}

impl Node {
    pub(super) fn apply_group(&mut self, _now: Instant, group: Group) {
        self.groups.remember(group);
        self.seats.make_room();
    }

    /// Gives the waiting pods of a pod's group their places, if enough of them can have one.
    pub(super) fn try_seat_group_of(&mut self, now: Instant, uid: &PodUid) {
        let Some(name) = self.pods.get(uid).and_then(group_of) else { return };
        if let Some(missing) = self.groups.missing(&name) {
            let kind = match missing.kind {
                GroupKind::Pods => "PodGroup",
                GroupKind::Groups => "CompositePodGroup",
            };
            let message = format!("waiting for {kind} {:?} to be created", missing.name);
            return self.wait(now, uid, reasons::UNSCHEDULABLE, message);
        }
        let parent = self.groups.known.get(&name).and_then(parent_of);
        let gang_of_groups = parent.and_then(|parent| {
            let min = self.groups.known.get(&parent)?.gang?;
            Some((min, self.groups.children.get(&parent)?.iter().cloned().collect::<Vec<_>>()))
        });
        match gang_of_groups {
            None => {
                let plan = self.plan(&name, &mut ResourceList::new(), &mut Vec::new());
                let message =
                    format!("{} of the {} pods that PodGroup {:?} needs", plan.count.0, plan.count.1, name.name);
                self.carry_out(now, plan, true, &message);
            }
            Some((min, children)) => {
                let (mut taken, mut company) = (ResourceList::new(), Vec::new());
                let plans: Vec<Plan> =
                    children.iter().map(|child| self.plan(child, &mut taken, &mut company)).collect();
                let enough = plans.iter().filter(|plan| plan.enough).count();
                let message = format!("{enough} of the {min} groups that have to be placed together");
                for plan in plans {
                    self.carry_out(now, plan, enough >= min, &message);
                }
            }
        }
    }

    /// Who of a group could have a place, given what others of the same plan have taken.
    fn plan(&self, name: &GroupName, taken: &mut ResourceList, company: &mut Vec<PodUid>) -> Plan {
        let gang = self.groups.known.get(name).and_then(|group| group.gang);
        let (taken_before, company_before) = (taken.clone(), company.len());
        let (mut have, mut seated, mut left) = (0, Vec::new(), Vec::new());
        for pod in self.groups.members(name).filter_map(|uid| self.pods.get(uid)) {
            if pod.is_seated() {
                have += 1;
            } else if pod.is_waiting() && !pod.is_ending() {
                let mut used = self.seats.used_or_kept(pod);
                admission::charge(&mut used, taken);
                match self.obstacle(pod, &used, company) {
                    Some(obstacle) => left.push((pod.uid.clone(), obstacle)),
                    None => {
                        admission::charge(taken, &charge_of(pod));
                        company.push(pod.uid.clone());
                        seated.push(pod.uid.clone());
                    }
                }
            }
        }
        // Under policy basic everybody is on his own.
        let need = gang.unwrap_or(1);
        let count = (have + seated.len(), need);
        let enough = count.0 >= need;
        if !enough {
            *taken = taken_before;
            company.truncate(company_before);
        }
        Plan { seated, left, enough, count }
    }

    fn carry_out(&mut self, now: Instant, plan: Plan, parent_agrees: bool, message: &String) {
        let go = plan.enough && parent_agrees;
        for uid in plan.seated {
            if go {
                self.seat(now, &uid);
            } else {
                let message = admission::unschedulable(Vec::from([format!("node(s) had room for only {message}")]));
                self.wait(now, &uid, reasons::UNSCHEDULABLE, message);
            }
        }
        for (uid, obstacle) in plan.left {
            match obstacle {
                // No room is made for a part of a group.
                Obstacle::NoRoom(lacking) => {
                    let reasons: Vec<String> = lacking.iter().map(admission::Insufficient::reason).collect();
                    self.wait(now, &uid, reasons::UNSCHEDULABLE, admission::unschedulable(reasons));
                }
                other => self.keep_waiting(now, &uid, other),
            }
        }
    }
}
