//! Disruption budgets: how many pods may be evicted now? (DISR-01, DISR-02)

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::status::Word;
use crate::time::{Duration, Instant};

/// An eviction that didn't delete its pod within this time is forgotten.
const EVICTION_TIMEOUT: Duration = Duration::from_secs(120);

/// A number of pods, or a share of those there should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// So many.
    Count(i32),
    /// So many of a hundred, rounded up.
    Percent(u32),
}

/// What is to be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Budget {
    /// `minAvailable`.
    MinAvailable(Share),
    /// `maxUnavailable`.
    MaxUnavailable(Share),
}

/// A pod that the budget selects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BudgetedPod {
    /// Its name.
    pub name: String,
    /// Its controller, if it has one.
    pub owner: Option<String>,
    /// Its condition Ready is True.
    pub ready: bool,
    /// It is being deleted.
    pub deleting: bool,
    /// When an eviction of it was let through, if one was.
    pub evicted_at: Option<Instant>,
}

/// `status` of a budget.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BudgetStatus {
    /// `expectedPods`.
    pub expected_pods: i32,
    /// `desiredHealthy`.
    pub desired_healthy: i32,
    /// `currentHealthy`.
    pub current_healthy: i32,
    /// `disruptionsAllowed`.
    pub disruptions_allowed: i32,
    /// `disruptedPods`: evicted, but still there.
    pub disrupted_pods: BTreeMap<String, Instant>,
}

/// Why a budget can't be computed; nothing may be evicted then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BudgetError {
    /// Neither a number nor a percentage.
    NotAShare(String),
    /// The controllers of these pods are not known, so nobody can say how many pods there should be.
    NoController(Vec<String>),
}

impl Share {
    /// Reads `30%` or `3`.
    ///
    /// # Errors
    /// If it is neither.
    pub fn parse(text: &str) -> Result<Self, BudgetError> {
        let share = match text.strip_suffix('%') {
            Some(percent) => percent.parse().map(Self::Percent),
            None => text.parse().map(Self::Count),
        };
        share.map_err(|_| BudgetError::NotAShare(text.into()))
    }

    fn of(self, total: i32) -> i32 {
        match self {
            Self::Count(count) => count,
            Self::Percent(percent) => {
                let hundredths = i64::from(total) * i64::from(percent);
                i32::try_from(hundredths / 100 + i64::from(hundredths % 100 != 0)).unwrap_or(i32::MAX)
            }
        }
    }
}

/// The status of a budget over the pods it selects. `scale` says how many pods a controller wants.
///
/// A number of `minAvailable` counts the pods that are there. Everything else counts what the controllers want, so pods
/// without a controller are not expected, although they do count as healthy.
///
/// # Errors
/// If a controller is not known and has to be.
pub fn budget_status(
    budget: Budget,
    pods: &[BudgetedPod],
    scale: impl Fn(&str) -> Option<i32>,
    now: Instant,
) -> Result<BudgetStatus, BudgetError> {
    let (expected_pods, desired_healthy) = match budget {
        Budget::MinAvailable(Share::Count(count)) => (i32::try_from(pods.len()).unwrap_or(i32::MAX), count),
        Budget::MinAvailable(share) => {
            let expected = expected_scale(pods, scale)?;
            (expected, share.of(expected))
        }
        Budget::MaxUnavailable(share) => {
            let expected = expected_scale(pods, scale)?;
            (expected, (expected - share.of(expected)).max(0))
        }
    };
    let since_eviction = |pod: &BudgetedPod| pod.evicted_at.map(|at| now.saturating_since(at));
    let being_evicted =
        |pod: &&BudgetedPod| !pod.deleting && since_eviction(pod).is_some_and(|since| since <= EVICTION_TIMEOUT);
    // At the very end of the time it is known as evicted, and counts again.
    let counts = |pod: &BudgetedPod| since_eviction(pod).is_none_or(|since| since >= EVICTION_TIMEOUT);
    let healthy = pods.iter().filter(|pod| pod.ready && !pod.deleting && counts(pod)).count();
    let current_healthy = i32::try_from(healthy).unwrap_or(i32::MAX);
    let evicted = pods.iter().filter(being_evicted);
    Ok(BudgetStatus {
        expected_pods,
        desired_healthy,
        current_healthy,
        disruptions_allowed: if expected_pods > 0 { (current_healthy - desired_healthy).max(0) } else { 0 },
        disrupted_pods: evicted.filter_map(|pod| Some((pod.name.clone(), pod.evicted_at?))).collect(),
    })
}

/// Reason of condition `DisruptionAllowed`, which is True for the first of them only.
pub fn condition_reason(status: &Result<BudgetStatus, BudgetError>) -> Word {
    Word::Borrowed(match status {
        Ok(status) if status.disruptions_allowed > 0 => "SufficientPods",
        Ok(_) => "InsufficientPods",
        Err(_) => "SyncFailed",
    })
}

fn expected_scale(pods: &[BudgetedPod], scale: impl Fn(&str) -> Option<i32>) -> Result<i32, BudgetError> {
    let owners: BTreeSet<&str> = pods.iter().filter_map(|pod| pod.owner.as_deref()).collect();
    let (mut expected, mut unknown) = (0_i32, Vec::new());
    for owner in owners {
        match scale(owner) {
            Some(wanted) => expected = expected.saturating_add(wanted),
            None => unknown.push(owner.into()),
        }
    }
    if unknown.is_empty() { Ok(expected) } else { Err(BudgetError::NoController(unknown)) }
}

impl fmt::Display for BudgetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&match self {
            Self::NotAShare(text) => format!("{text:?} is neither a number nor a percentage such as 30%"),
            Self::NoController(owners) => format!("no such controllers: {}", owners.join(", ")),
        })
    }
}

impl core::error::Error for BudgetError {}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::from_secs(1_000);

    fn pods(ready: usize) -> Vec<BudgetedPod> {
        let pod = |n| BudgetedPod {
            name: format!("p{n}"),
            owner: Some("rs".into()),
            ready: n < ready,
            ..BudgetedPod::default()
        };
        (0..3).map(pod).collect()
    }

    fn allowed(budget: Budget, pods: &[BudgetedPod]) -> i32 {
        budget_status(budget, pods, |_| Some(3), NOW).unwrap().disruptions_allowed
    }

    #[test]
    fn what_is_above_the_budget_may_go() {
        assert_eq!(allowed(Budget::MinAvailable(Share::Count(2)), &pods(3)), 1);
        assert_eq!(allowed(Budget::MinAvailable(Share::Count(2)), &pods(2)), 0);
        assert_eq!(allowed(Budget::MaxUnavailable(Share::Percent(34)), &pods(3)), 2, "rounded up");
    }

    #[test]
    fn an_evicted_pod_does_not_count_for_two_minutes() {
        let mut pods = pods(3);
        pods[0].evicted_at = Some(Instant::from_secs(900));
        assert_eq!(allowed(Budget::MinAvailable(Share::Count(2)), &pods), 0);
        // After exactly that time it counts, though it is still listed.
        pods[0].evicted_at = Some(Instant::from_secs(880));
        let status = budget_status(Budget::MinAvailable(Share::Count(2)), &pods, |_| Some(3), NOW).unwrap();
        assert_eq!((status.disruptions_allowed, status.disrupted_pods.len()), (1, 1));
        pods[0].evicted_at = Some(Instant::from_secs(800));
        assert_eq!(allowed(Budget::MinAvailable(Share::Count(2)), &pods), 1);
    }

    #[test]
    fn an_unknown_controller_forbids_everything() {
        let status = budget_status(Budget::MaxUnavailable(Share::Count(1)), &pods(3), |_| None, NOW);
        assert_eq!(status, Err(BudgetError::NoController(alloc::vec!["rs".into()])));
        assert_eq!(condition_reason(&status), "SyncFailed");
    }
}
