//! Who waits for a turn, and who gets it.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};

use super::order::{Competitor, Order};
use super::quota::Quota;
use super::{CpuShare, QuotaStats};
use crate::time::{Duration, Instant};

/// A pod in a [`RunQueue`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pod(u64);

/// A container in a [`RunQueue`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Member {
    pod: u64,
    number: u64,
}

/// Who computes now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn<T> {
    /// Of which container.
    pub member: Member,
    /// What was said of him when he began to wait.
    pub task: T,
}

/// What a pod or container has used since it is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Processor time (`usage_usec`).
    pub cpu: Duration,
    /// What became of its limit; nothing if it has none.
    pub quota: QuotaStats,
}

/// Those who want to compute. `T` is how to let one do so.
#[derive(Clone, Debug)]
pub struct RunQueue<T> {
    pods: BTreeMap<u64, Group<T>>,
    order: Order<u64>,
    /// Those who have used up what they may, and until when: a pod, or a container of it.
    throttled: BTreeSet<(Instant, u64, Option<u64>)>,
    /// Numbers that were given: none is given twice.
    numbers: u64,
}

impl<T> Default for RunQueue<T> {
    fn default() -> Self {
        Self { pods: BTreeMap::new(), order: Order::default(), throttled: BTreeSet::new(), numbers: 0 }
    }
}

#[derive(Clone, Debug)]
struct Group<T> {
    account: Account,
    order: Order<u64>,
    members: BTreeMap<u64, Container<T>>,
}

#[derive(Clone, Debug)]
struct Container<T> {
    account: Account,
    waiting: VecDeque<T>,
}

/// What both levels have.
#[derive(Clone, Debug)]
struct Account {
    competitor: Competitor,
    quota: Option<Quota>,
    is_throttled: bool,
    used: Duration,
    /// What became of limits that it had before.
    before: QuotaStats,
}

impl Account {
    fn new(now: Instant, share: CpuShare) -> Self {
        Self {
            competitor: Competitor::new(share.weight()),
            quota: share.quota().map(|quota| Quota::new(now, quota)),
            is_throttled: false,
            used: Duration::ZERO,
            before: QuotaStats::default(),
        }
    }

    fn change(&mut self, now: Instant, share: CpuShare) {
        self.competitor.change(share.weight());
        match (&mut self.quota, share.quota()) {
            (Some(quota), Some(new)) => quota.change(now, new),
            (quota, new) => {
                self.before = self.before + quota.as_ref().map(Quota::stats).unwrap_or_default();
                *quota = new.map(|new| Quota::new(now, new));
            }
        }
    }

    /// Returns until when it may not go on, if it has used up what it may just now.
    fn spend(&mut self, now: Instant, used: Duration) -> Option<Instant> {
        self.used += used;
        let quota = self.quota.as_mut()?;
        quota.spend(now, used);
        if self.is_throttled || !quota.is_used_up(now) {
            return None;
        }
        self.is_throttled = true;
        Some(quota.refills_at())
    }

    /// Somebody has to wait if it may not go on.
    fn wait_if_throttled(&mut self, now: Instant) {
        if self.is_throttled
            && let Some(quota) = &mut self.quota
        {
            quota.wait(now);
        }
    }

    /// Lets it go on if it may. Returns until when it may not.
    fn release(&mut self, now: Instant) -> Option<Instant> {
        let quota = self.quota.as_mut().filter(|_| self.is_throttled);
        let until = quota.and_then(|quota| quota.is_used_up(now).then(|| quota.refills_at()));
        self.is_throttled = until.is_some();
        until
    }

    fn usage(&self) -> Usage {
        Usage { cpu: self.used, quota: self.before + self.quota.as_ref().map(Quota::stats).unwrap_or_default() }
    }
}

impl<T> RunQueue<T> {
    /// A pod, with what all its containers may use together.
    pub fn add_pod(&mut self, now: Instant, share: CpuShare) -> Pod {
        let pod = self.number();
        let group = Group { account: Account::new(now, share), order: Order::default(), members: BTreeMap::new() };
        self.pods.insert(pod, group);
        Pod(pod)
    }

    /// A container of a pod. None if the pod isn't there.
    pub fn add(&mut self, now: Instant, pod: Pod, share: CpuShare) -> Option<Member> {
        let number = self.number();
        let container = Container { account: Account::new(now, share), waiting: VecDeque::new() };
        self.pods.get_mut(&pod.0)?.members.insert(number, container);
        Some(Member { pod: pod.0, number })
    }

    /// The pod is gone, and those with it who wait in its containers.
    pub fn remove_pod(&mut self, pod: Pod) {
        if let Some(mut group) = self.pods.remove(&pod.0) {
            self.order.remove(pod.0, &mut group.account.competitor);
        }
    }

    /// The container is gone, and those with it who wait.
    pub fn remove(&mut self, member: Member) {
        let Some(group) = self.pods.get_mut(&member.pod) else { return };
        if let Some(mut container) = group.members.remove(&member.number) {
            group.order.remove(member.number, &mut container.account.competitor);
            if group.order.is_empty() {
                self.order.remove(member.pod, &mut group.account.competitor);
            }
        }
    }

    /// A pod has something else from now on (RES-11).
    pub fn change_pod(&mut self, now: Instant, pod: Pod, share: CpuShare) {
        if let Some(group) = self.pods.get_mut(&pod.0) {
            group.account.change(now, share);
            self.throttled.insert((now, pod.0, None));
        }
    }

    /// A container has something else from now on (RES-11).
    pub fn change(&mut self, now: Instant, member: Member, share: CpuShare) {
        if let Some(container) = self.container(member) {
            container.account.change(now, share);
            self.throttled.insert((now, member.pod, Some(member.number)));
        }
    }

    /// Somebody wants to compute. False if his container isn't there: he has no turn, ever.
    pub fn wait(&mut self, now: Instant, member: Member, task: T) -> bool {
        self.release(now);
        let Some(group) = self.pods.get_mut(&member.pod) else { return false };
        let Some(container) = group.members.get_mut(&member.number) else { return false };
        container.waiting.push_back(task);
        container.account.wait_if_throttled(now);
        group.account.wait_if_throttled(now);
        self.line_up(member.pod, member.number);
        true
    }

    /// Whose turn it is: who has used the least of what it may. He computes until he has nothing to do, or [may not go
    /// on](Self::may_go_on).
    pub fn next(&mut self, now: Instant) -> Option<Turn<T>> {
        self.release(now);
        let pod = self.order.first()?;
        let group = self.pods.get_mut(&pod)?;
        let number = group.order.first()?;
        let container = group.members.get_mut(&number)?;
        let task = container.waiting.pop_front()?;
        if container.waiting.is_empty() {
            group.order.remove(number, &mut container.account.competitor);
            if group.order.is_empty() {
                self.order.remove(pod, &mut group.account.competitor);
            }
        }
        Some(Turn { member: Member { pod, number }, task })
    }

    /// He has computed for so long.
    pub fn spend(&mut self, now: Instant, member: Member, used: Duration) {
        let Member { pod, number } = member;
        let Some(group) = self.pods.get_mut(&pod) else { return };
        let Some(container) = group.members.get_mut(&number) else { return };
        group.order.spend(number, &mut container.account.competitor, used);
        self.order.spend(pod, &mut group.account.competitor, used);
        if let Some(until) = container.account.spend(now, used) {
            group.order.remove(number, &mut container.account.competitor);
            if !container.waiting.is_empty() {
                container.account.wait_if_throttled(now);
            }
            self.throttled.insert((until, pod, Some(number)));
        }
        if let Some(until) = group.account.spend(now, used) {
            if group.members.values().any(|container| !container.waiting.is_empty()) {
                group.account.wait_if_throttled(now);
            }
            self.throttled.insert((until, pod, None));
        }
        if group.account.is_throttled || group.order.is_empty() {
            self.order.remove(pod, &mut group.account.competitor);
        }
    }

    /// May he go on without waiting for another turn? `so_far` is what he has used in this one.
    pub fn may_go_on(&mut self, now: Instant, member: Member, so_far: Duration) -> bool {
        self.release(now);
        let Some(group) = self.pods.get(&member.pod) else { return false };
        let Some(container) = group.members.get(&member.number) else { return false };
        if group.account.is_throttled || container.account.is_throttled {
            return false;
        }
        let (of_pod, of_container) = (&group.account.competitor, &container.account.competitor);
        let has_better = self.order.has_better(of_pod, so_far) || group.order.has_better(of_container, so_far);
        let is_over = so_far >= of_pod.quantum().min(of_container.quantum());
        !has_better && (!is_over || self.order.is_empty())
    }

    /// When somebody who has used up what he may can go on: [`next`](Self::next) may have a turn then.
    pub fn next_wake(&self) -> Option<Instant> {
        self.throttled.first().map(|(at, ..)| *at)
    }

    /// What a pod has used. None if it isn't there.
    pub fn usage_of_pod(&self, pod: Pod) -> Option<Usage> {
        self.pods.get(&pod.0).map(|group| group.account.usage())
    }

    /// What a container has used. None if it isn't there.
    pub fn usage(&self, member: Member) -> Option<Usage> {
        let group = self.pods.get(&member.pod)?;
        group.members.get(&member.number).map(|container| container.account.usage())
    }

    /// A new period may have begun for some.
    fn release(&mut self, now: Instant) {
        while let Some((at, pod, number)) = self.throttled.first().copied().filter(|(at, ..)| *at <= now) {
            self.throttled.remove(&(at, pod, number));
            let Some(group) = self.pods.get_mut(&pod) else { continue };
            let until = match number {
                None => group.account.release(now),
                Some(number) => group.members.get_mut(&number).and_then(|member| member.account.release(now)),
            };
            match (until, number) {
                (Some(until), _) => _ = self.throttled.insert((until, pod, number)),
                (None, Some(number)) => self.line_up(pod, number),
                (None, None) if !group.order.is_empty() => self.order.add(pod, &mut group.account.competitor),
                (None, None) => {}
            }
        }
    }

    /// Puts a container where it belongs, if somebody waits in it and it may go on.
    fn line_up(&mut self, pod: u64, number: u64) {
        let Some(group) = self.pods.get_mut(&pod) else { return };
        let Some(container) = group.members.get_mut(&number) else { return };
        if container.account.is_throttled || container.waiting.is_empty() {
            return;
        }
        group.order.add(number, &mut container.account.competitor);
        if !group.account.is_throttled {
            self.order.add(pod, &mut group.account.competitor);
        }
    }

    fn container(&mut self, member: Member) -> Option<&mut Container<T>> {
        self.pods.get_mut(&member.pod)?.members.get_mut(&member.number)
    }

    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }
}
