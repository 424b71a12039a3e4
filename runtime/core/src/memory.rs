//! Memory quality of service: when growth is slowed, and what is kept for whom (RES-10).

use crate::qos::QosClass;
use crate::time::Duration;

/// `memoryThrottlingFactor` where none is configured.
pub const DEFAULT_THROTTLING_FACTOR: f64 = 0.9;

/// A container that holds more than `above` grows slowly (`memory.high`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Throttle {
    /// Bytes.
    pub above: u64,
    /// Bytes that it can't hold more than: its limit, or what the node can give away.
    pub limit: u64,
}

/// What slows a container's growth: it begins at request + factor × (limit − request), down to a whole page. Where there is no limit,
/// as for BestEffort, what the node can give away takes its place. None if nothing is to be slowed: the class is Guaranteed, or the
/// result would not be above the request.
pub fn throttle(
    class: QosClass,
    request: u64,
    limit: Option<u64>,
    allocatable: u64,
    factor: f64,
    page: u64,
) -> Option<Throttle> {
    if class == QosClass::Guaranteed || limit == Some(request) {
        return None;
    }
    let limit = limit.unwrap_or(allocatable);
    let growth = limit.saturating_sub(request) as f64 * factor;
    let above = request.saturating_add(growth as u64);
    let above = above - above % page.max(1);
    (above > request).then_some(Throttle { above, limit })
}

/// The longest that a growth waits, as with Linux' `memory.high`.
const LONGEST: Duration = Duration::from_secs(2);
/// A growth by less waits for less: many small ones are as slow as one that is big.
const WHOLE_GROWTH: u64 = 1 << 20;

impl Throttle {
    /// How long a container waits that has grown by so much and holds so much now: with the square of how near its limit is, so that who
    /// is a little over hardly notices, and who goes on is held up before the limit ends him.
    pub fn delay(self, used: u64, grown: u64) -> Duration {
        let over = used.saturating_sub(self.above);
        let span = self.limit.saturating_sub(self.above).max(1);
        let thousandths = |part: u64, whole: u64| u128::from(part.min(whole)) * 1000 / u128::from(whole);
        let share = thousandths(over, span).pow(2) * thousandths(grown, WHOLE_GROWTH);
        // Of 10^9: the cube of thousandths.
        let nanos = LONGEST.as_nanos() * share / 1_000_000_000;
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

/// `memoryReservationPolicy`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReservationPolicy {
    /// Nothing is kept.
    #[default]
    None,
    /// By class: kept in any case for Guaranteed, as far as possible for Burstable.
    TieredReservation,
}

/// Memory that is kept for a container.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reservation {
    /// Is never taken from it.
    pub hard: u64,
    /// Is taken from it last.
    pub soft: u64,
}

impl Reservation {
    /// As much less, at most all of it.
    #[must_use]
    pub const fn without(self, less: Self) -> Self {
        Self { hard: self.hard.saturating_sub(less.hard), soft: self.soft.saturating_sub(less.soft) }
    }

    /// As much more.
    #[must_use]
    pub const fn and(self, more: Self) -> Self {
        Self { hard: self.hard.saturating_add(more.hard), soft: self.soft.saturating_add(more.soft) }
    }
}

/// What is kept for a container that requests so much.
pub const fn reservation(policy: ReservationPolicy, class: QosClass, request: u64) -> Reservation {
    match (policy, class) {
        (ReservationPolicy::TieredReservation, QosClass::Guaranteed) => Reservation { hard: request, soft: 0 },
        (ReservationPolicy::TieredReservation, QosClass::Burstable) => Reservation { hard: 0, soft: request },
        (ReservationPolicy::TieredReservation, QosClass::BestEffort) | (ReservationPolicy::None, _) => {
            Reservation { hard: 0, soft: 0 }
        }
    }
}
