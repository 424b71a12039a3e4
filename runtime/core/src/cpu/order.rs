//! In which order those who compete come next.

use alloc::collections::BTreeSet;

use super::QUANTUM;
use crate::time::Duration;

/// Time that was used, by weight: who has used the least comes next. In nanoseconds of weight 1024.
type VirtualTime = u128;

/// Who was away for a moment goes on where he was, for what he left to others meanwhile is what their turns are too long by. Who was away
/// for longer, or could not use his share because he computes one thing only, has so much of a claim and no more.
const CREDIT: VirtualTime = 20_000_000;

/// One of those who compete.
#[derive(Clone, Debug)]
pub(super) struct Competitor {
    weight: u64,
    used: VirtualTime,
    is_ready: bool,
}

impl Competitor {
    pub(super) fn new(weight: u64) -> Self {
        Self { weight, used: 0, is_ready: false }
    }

    /// How long a turn may be: [`QUANTUM`] at most, and not so long that those who are away for a moment lose their claim by it.
    pub(super) fn quantum(&self) -> Duration {
        let nanos = CREDIT * VirtualTime::from(self.weight) / 1024;
        QUANTUM.min(Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)))
    }

    fn in_virtual_time(&self, used: Duration) -> VirtualTime {
        used.as_nanos() * 1024 / VirtualTime::from(self.weight)
    }

    /// Not more than a burst, whatever the weight.
    fn credit(&self) -> VirtualTime {
        CREDIT * 1024 / VirtualTime::from(self.weight.max(1024))
    }

    /// Another weight from now on.
    pub(super) fn change(&mut self, weight: u64) {
        self.weight = weight;
    }
}

/// Those who wait for a turn at one level.
#[derive(Clone, Debug)]
pub(super) struct Order<K> {
    ready: BTreeSet<(VirtualTime, K)>,
    /// How far those are who had the last turns. It never goes back.
    clock: VirtualTime,
}

impl<K> Default for Order<K> {
    fn default() -> Self {
        Self { ready: BTreeSet::new(), clock: 0 }
    }
}

impl<K: Copy + Ord> Order<K> {
    /// It wants a turn.
    pub(super) fn add(&mut self, key: K, competitor: &mut Competitor) {
        if !competitor.is_ready {
            competitor.is_ready = true;
            competitor.used = competitor.used.max(self.clock.saturating_sub(competitor.credit()));
            self.ready.insert((competitor.used, key));
        }
    }

    /// It doesn't want any, or may not have any.
    pub(super) fn remove(&mut self, key: K, competitor: &mut Competitor) {
        if competitor.is_ready {
            competitor.is_ready = false;
            self.ready.remove(&(competitor.used, key));
        }
    }

    /// Whose turn it is. It stays in the order.
    pub(super) fn first(&mut self) -> Option<K> {
        let (used, key) = self.ready.first().copied()?;
        self.clock = self.clock.max(used);
        Some(key)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ready.is_empty()
    }

    /// Does somebody want a turn who would have had this one, had he wanted it when it began? `so_far` is what was used of it.
    pub(super) fn has_better(&self, competitor: &Competitor, so_far: Duration) -> bool {
        let began = competitor.used.saturating_sub(competitor.in_virtual_time(so_far));
        self.ready.first().is_some_and(|(used, _)| *used < began)
    }

    /// It has used so much.
    pub(super) fn spend(&mut self, key: K, competitor: &mut Competitor, used: Duration) {
        let was_ready = competitor.is_ready;
        self.remove(key, competitor);
        competitor.used = competitor.used.saturating_add(competitor.in_virtual_time(used));
        if was_ready {
            self.add(key, competitor);
        } else if self.ready.is_empty() {
            // Nobody wanted what it used: nobody has more of a claim than it has for that.
            self.clock = self.clock.max(competitor.used);
        }
    }
}
