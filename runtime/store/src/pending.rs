//! Which pod records wait to be written, and when they are: the bound on what a device's flash has to bear.
//!
//! A transaction costs some pages whatever is in it. So records wait for each other for a moment, and who changed several
//! times meanwhile is written once, as it was last. What is only nice to have (a condition that flaps) is written at most once per
//! [`Limits::calm`] and pod. When a whole node changes so much that it uses up its [`Limits::bytes_per_hour`], everything that
//! nobody waits for is written in a slower rhythm.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use husk_core::Instant;
use husk_core::io::Urgency;

/// How often is written, and how much is remembered.
#[derive(Clone, Debug)]
pub struct Limits {
    /// How long a record waits for others to be written with it.
    pub window: Duration,
    /// The same when the bytes of the hour are used up.
    pub slow_window: Duration,
    /// How often a pod's record is written at most if only [`Urgency::Calm`] changes happen.
    pub calm: Duration,
    /// Bytes on flash per hour that are written in the usual rhythm; what is not used in an hour is lost.
    pub bytes_per_hour: u64,
    /// Changes that watches can go back.
    pub history_changes: usize,
    /// Bytes of objects that are kept for that.
    pub history_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            window: Duration::from_millis(250),
            slow_window: Duration::from_secs(5),
            calm: Duration::from_secs(60),
            bytes_per_hour: 32 << 20,
            history_changes: 4096,
            history_bytes: 2 << 20,
        }
    }
}

const RETRY_FIRST: Duration = Duration::from_secs(1);
const RETRY_LAST: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) struct Pending {
    limits: Limits,
    due: BTreeMap<Arc<str>, Due>,
    /// When a pod's record was last written, for as long as that matters.
    written: HashMap<Arc<str>, Instant>,
    budget: Budget,
    failures: u32,
    retry_at: Option<Instant>,
}

/// When a record is written at the latest, and whether anybody minds if it isn't.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Due {
    at: Instant,
    urgency: Urgency,
}

impl Pending {
    pub(crate) fn new(now: Instant, limits: Limits) -> Self {
        let budget = Budget { left: limits.bytes_per_hour.cast_signed(), per_hour: limits.bytes_per_hour, at: now };
        Self { limits, due: BTreeMap::new(), written: HashMap::new(), budget, failures: 0, retry_at: None }
    }

    /// The pod's record changed.
    pub(crate) fn mark(&mut self, now: Instant, uid: Arc<str>, urgency: Urgency) {
        let soon = now + self.window(now);
        let at = match urgency {
            Urgency::Soon => soon,
            Urgency::Calm => self.written.get(&uid).map_or(soon, |written| soon.max(*written + self.limits.calm)),
        };
        self.mark_due(uid, Due { at, urgency });
    }

    /// Records to write with a transaction that is made anyway: those whose time comes within the window. They wait no more.
    pub(crate) fn take(&mut self, now: Instant) -> Vec<(Arc<str>, Due)> {
        let until = now + self.window(now);
        self.due.extract_if(.., |_, due| due.at <= until).collect()
    }

    /// Everything, however long it could wait.
    pub(crate) fn take_all(&mut self) -> Vec<(Arc<str>, Due)> {
        std::mem::take(&mut self.due).into_iter().collect()
    }

    /// The pod's record is written otherwise.
    pub(crate) fn unmark(&mut self, uid: &str) -> Option<(Arc<str>, Due)> {
        self.due.remove_entry(uid)
    }

    pub(crate) fn is_marked(&self, uid: &str) -> bool {
        self.due.contains_key(uid)
    }

    pub(crate) fn is_urgent(&self, uid: &str) -> bool {
        self.due.get(uid).is_some_and(|due| due.urgency == Urgency::Soon)
    }

    /// The transaction with these records took `bytes` of flash.
    pub(crate) fn succeeded(&mut self, now: Instant, uids: impl Iterator<Item = (Arc<str>, bool)>, bytes: u64) {
        self.failures = 0;
        self.retry_at = None;
        self.budget.spend(now, bytes);
        self.written.retain(|_, written| *written + self.limits.calm > now);
        for (uid, exists) in uids {
            match exists {
                true => self.written.insert(uid, now),
                false => self.written.remove(&uid),
            };
        }
    }

    /// The transaction with these records failed: they are due as before, but not before a pause.
    pub(crate) fn failed(&mut self, now: Instant, taken: Vec<(Arc<str>, Due)>) {
        let pause = RETRY_FIRST.saturating_mul(1 << self.failures.min(16)).min(RETRY_LAST);
        self.failures += 1;
        self.retry_at = Some(now + pause);
        for (uid, due) in taken {
            self.mark_due(uid, due);
        }
    }

    /// When the next record is due.
    pub(crate) fn next_wake(&self) -> Option<Instant> {
        let due = self.due.values().map(|due| due.at).min()?;
        Some(self.retry_at.map_or(due, |retry| due.max(retry)))
    }

    /// When anything can be tried again after a failure.
    pub(crate) fn retry_at(&self) -> Option<Instant> {
        self.retry_at
    }

    fn mark_due(&mut self, uid: Arc<str>, due: Due) {
        let sooner = |before: &mut Due| {
            *before = Due { at: due.at.min(before.at), urgency: due.urgency.min(before.urgency) };
        };
        self.due.entry(uid).and_modify(sooner).or_insert(due);
    }

    fn window(&self, now: Instant) -> Duration {
        match self.budget.is_spent(now) {
            true => self.limits.slow_window,
            false => self.limits.window,
        }
    }
}

/// Bytes per hour, as a bucket that fills evenly.
#[derive(Debug)]
struct Budget {
    left: i64,
    per_hour: u64,
    at: Instant,
}

impl Budget {
    fn spend(&mut self, now: Instant, bytes: u64) {
        let left = self.left_at(now).saturating_sub(i64::try_from(bytes).unwrap_or(i64::MAX));
        // An hour of rest makes good whatever was.
        self.left = left.max(-i64::try_from(self.per_hour).unwrap_or(i64::MAX));
        self.at = now;
    }

    fn is_spent(&self, now: Instant) -> bool {
        self.left_at(now) < 0
    }

    fn left_at(&self, now: Instant) -> i64 {
        let millis = now.saturating_since(self.at).as_millis();
        let refill = u128::from(self.per_hour) * millis / 3_600_000;
        let full = i64::try_from(self.per_hour).unwrap_or(i64::MAX);
        self.left.saturating_add(i64::try_from(refill).unwrap_or(i64::MAX)).min(full)
    }
}
