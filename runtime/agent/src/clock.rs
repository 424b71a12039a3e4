//! The node's time: it goes on from the last run's, with a clock that no one sets (RESTART-12).

use std::time::Duration;

use husk_core::Instant;
use husk_store::Boot;
use rustix::time::{ClockId, clock_gettime};

/// Tells the node's time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// The node's time when this began.
    begins: Instant,
    /// The boot's clock then.
    uptime: Duration,
}

impl Clock {
    /// A clock that shows this time now.
    pub(crate) fn starting_at(now: Instant) -> Self {
        Self { begins: now, uptime: uptime() }
    }

    /// The node's time.
    pub(crate) fn now(&self) -> Instant {
        self.begins + uptime().saturating_sub(self.uptime)
    }

    /// How long it is until then; zero if it is past.
    pub(crate) fn until(&self, at: Instant) -> Duration {
        at.since_epoch().saturating_sub(self.now().since_epoch())
    }
}

/// The present boot of the machine.
pub(crate) fn boot() -> Boot {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    Boot { id: id.trim().to_owned(), uptime: uptime() }
}

/// Time since the machine was started, sleep included.
fn uptime() -> Duration {
    let time = clock_gettime(ClockId::Boottime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or_default(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_on_from_where_it_was() {
        let before = Instant::from_secs(1_000);
        let clock = Clock::starting_at(before);
        let (one, other) = (clock.now(), clock.now());
        assert!(before <= one && one <= other);
        assert_eq!(clock.until(before), Duration::ZERO);
        assert!(clock.until(other + Duration::from_secs(100)) <= Duration::from_secs(100));
        assert!(!boot().id.is_empty());
    }
}
