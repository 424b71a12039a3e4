//! What people's clocks say at an instant of the node's time.

use std::sync::Mutex;
use std::sync::PoisonError;

use husk_api::Wall;
use jiff::{SignedDuration, Timestamp};

use crate::clock::Clock;

/// The wall clock wanders a little without having been set.
const SET: SignedDuration = SignedDuration::from_secs(2);

/// The wall clock beside the node's. When somebody sets it, as after the start of a board without a clock of its own, all that is
/// shown from then on follows; no delay ever depends on it (RESTART-12).
pub(crate) struct WallClock {
    clock: Clock,
    zero: Mutex<Timestamp>,
}

impl WallClock {
    pub(crate) fn new(clock: Clock) -> Self {
        Self { clock, zero: Mutex::new(zero(&clock)) }
    }

    /// How instants are shown now.
    pub(crate) fn now(&self) -> Wall {
        let present = zero(&self.clock);
        let mut known = self.zero.lock().unwrap_or_else(PoisonError::into_inner);
        if present.duration_since(*known).abs() > SET {
            *known = present;
        }
        Wall(*known)
    }
}

/// When the node's time was zero, by the wall clock as it is now.
fn zero(clock: &Clock) -> Timestamp {
    Timestamp::now().checked_sub(clock.now().since_epoch()).unwrap_or(Timestamp::MIN)
}
