//! Memory quality of service: when growth is slowed, and what is kept for whom (RES-10).

use crate::qos::QosClass;

/// `memoryThrottlingFactor` where none is configured.
pub const DEFAULT_THROTTLING_FACTOR: f64 = 0.9;

/// Memory above which a Burstable container's growth is slowed: request + factor × (limit − request), down to a whole page. Where
/// there is no limit, what the node can give away takes its place. None if nothing is to be slowed: the class isn't Burstable, or the
/// result would not be above the request.
pub fn throttle_above(
    class: QosClass,
    request: u64,
    limit: Option<u64>,
    allocatable: u64,
    factor: f64,
    page: u64,
) -> Option<u64> {
    if class != QosClass::Burstable || limit == Some(request) {
        return None;
    }
    let top = limit.unwrap_or(allocatable);
    let growth = top.saturating_sub(request) as f64 * factor;
    let high = request.saturating_add(growth as u64);
    let high = high - high % page.max(1);
    (high > request).then_some(high)
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
