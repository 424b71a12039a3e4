//! So much in each period.

use crate::time::{Duration, Instant};

/// Length of a period, as the kubelet's `cpuCFSQuotaPeriod` has it by default.
pub const PERIOD: Duration = Duration::from_millis(100);

const PERIOD_NANOS: u64 = 100_000_000;

/// What became of a limit, as a cgroup's `cpu.stat` has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuotaStats {
    /// Periods in which anything was used (`nr_periods`).
    pub periods: u64,
    /// Those of them in which it was used up while somebody wanted more (`nr_throttled`).
    pub throttled_periods: u64,
    /// How long somebody waited because it was used up (`throttled_usec`).
    pub throttled: Duration,
}

impl core::ops::Add for QuotaStats {
    type Output = Self;

    fn add(self, more: Self) -> Self {
        Self {
            periods: self.periods + more.periods,
            throttled_periods: self.throttled_periods + more.throttled_periods,
            throttled: self.throttled + more.throttled,
        }
    }
}

/// A bound of a pod or a container.
#[derive(Clone, Debug)]
pub(super) struct Quota {
    /// Nanoseconds in a period.
    per_period: i64,
    /// Of this one. Less than nothing if more was used than there was: turns end a little late, and that is made up for.
    left: i64,
    /// Which period that is.
    period: u64,
    /// Something was used of it.
    is_counted: bool,
    /// Somebody waits for the next one, since then.
    waits_since: Option<Instant>,
    stats: QuotaStats,
}

impl Quota {
    pub(super) fn new(now: Instant, per_period: Duration) -> Self {
        let per_period = nanos(per_period);
        Self {
            per_period,
            left: per_period,
            period: period(now),
            is_counted: false,
            waits_since: None,
            stats: QuotaStats::default(),
        }
    }

    /// Another bound from now on. What was used of this period stays used.
    pub(super) fn change(&mut self, now: Instant, per_period: Duration) {
        self.refill(now);
        let used = self.per_period.saturating_sub(self.left);
        self.per_period = nanos(per_period);
        self.left = self.per_period.saturating_sub(used);
    }

    pub(super) fn spend(&mut self, now: Instant, used: Duration) {
        self.refill(now);
        self.left = self.left.saturating_sub(nanos(used));
        self.stats.periods += u64::from(!self.is_counted);
        self.is_counted = true;
    }

    /// Nothing is left for now.
    pub(super) fn is_used_up(&mut self, now: Instant) -> bool {
        self.refill(now);
        let is_used_up = self.left <= 0;
        if !is_used_up && let Some(since) = self.waits_since.take() {
            self.stats.throttled += now.saturating_since(since);
        }
        is_used_up
    }

    /// Somebody wants what there isn't.
    pub(super) fn wait(&mut self, now: Instant) {
        if self.waits_since.is_none() {
            self.waits_since = Some(now);
            self.stats.throttled_periods += 1;
        }
    }

    /// When there is something again.
    pub(super) fn refills_at(&self) -> Instant {
        let missing = self.left.saturating_neg().max(0).cast_unsigned();
        let periods = missing / self.per_period.cast_unsigned() + 1;
        Instant::from_nanos((self.period.saturating_add(periods)).saturating_mul(PERIOD_NANOS))
    }

    pub(super) fn stats(&self) -> QuotaStats {
        self.stats
    }

    fn refill(&mut self, now: Instant) {
        let now = period(now);
        let passed = now.saturating_sub(self.period);
        if passed == 0 {
            return;
        }
        self.period = now;
        self.is_counted = false;
        // Who owes more than a period has lets periods pass.
        let owed = self.left.saturating_neg().max(0) / self.per_period;
        let in_debt = owed.cast_unsigned().min(passed);
        self.stats.periods += in_debt;
        if self.waits_since.is_some() {
            self.stats.throttled_periods += in_debt;
        }
        let passed = i64::try_from(passed).unwrap_or(i64::MAX);
        self.left = self.left.saturating_add(self.per_period.saturating_mul(passed)).min(self.per_period);
    }
}

fn period(at: Instant) -> u64 {
    at.as_nanos() / PERIOD_NANOS
}

fn nanos(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX).max(0)
}
