//! Changes with their times, a few bytes each, and never more than there is room for.

use std::mem::discriminant;
use std::time::Duration;

use husk_core::Instant;

use crate::change::Change;

/// Changes in the order in which they were noted. Times are microseconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    bytes: Vec<u8>,
    /// Time of the last one.
    last: u64,
    /// The most bytes.
    limit: Option<usize>,
    /// When it forgot something: of the time before, what is known isn't all.
    complete_since: Option<Instant>,
}

impl Log {
    /// Forgets the older half when there are more bytes, but for what is still so.
    pub(crate) fn bounded(limit: Option<usize>) -> Self {
        Self { limit, ..Self::default() }
    }

    pub(crate) fn push(&mut self, at: Instant, change: &Change) {
        self.write(micros(at), change);
        if self.limit.is_some_and(|limit| self.bytes.len() > limit) {
            self.forget();
        }
    }

    /// Of the time before, what is known isn't all.
    pub(crate) const fn complete_since(&self) -> Option<Instant> {
        self.complete_since
    }

    pub(crate) fn set_complete_since(&mut self, at: Instant) {
        self.complete_since = self.complete_since.max(Some(noted(at)));
    }

    /// Bytes that it takes.
    pub(crate) fn size(&self) -> usize {
        self.bytes.capacity()
    }

    /// All of them.
    pub(crate) fn changes(&self) -> Vec<(Instant, Change)> {
        self.sized().map(|(at, change, _)| (at, change)).collect()
    }

    /// Nothing will follow for some time.
    pub(crate) fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
    }

    fn write(&mut self, at: u64, change: &Change) {
        // Those that are noted later may be earlier.
        let step = at.cast_signed().wrapping_sub(self.last.cast_signed());
        let length = self.bytes.len();
        let room = self.bytes.capacity() - length;
        let entry = postcard::to_allocvec(&(step, change)).unwrap_or_default();
        if room < entry.len() {
            // A vector that doubles would be half empty, in each of a thousand pods.
            self.bytes.reserve_exact(entry.len().max(64));
        }
        self.bytes.extend_from_slice(&entry);
        self.last = at;
    }

    /// With the bytes that each takes.
    fn sized(&self) -> impl Iterator<Item = (Instant, Change, usize)> {
        let (mut rest, mut time) = (self.bytes.as_slice(), 0_i64);
        std::iter::from_fn(move || {
            // What it wrote it can read.
            let ((step, change), after) = postcard::take_from_bytes::<(i64, Change)>(rest).ok()?;
            let size = rest.len() - after.len();
            rest = after;
            time = time.wrapping_add(step);
            let at = Instant::ZERO + Duration::from_micros(time.cast_unsigned());
            Some((at, change, size))
        })
    }

    /// Makes room: half of it stays, the newer one. Of the older one what is still so is kept, in an eighth at most.
    fn forget(&mut self) {
        let Some(limit) = self.limit else { return };
        let all: Vec<_> = self.sized().collect();
        let mut size = 0;
        let newer = all.iter().rev().take_while(|(.., bytes)| {
            size += bytes;
            size <= limit / 2
        });
        let (older, newer) = all.split_at(all.len() - newer.count());
        let mut kept = Vec::new();
        let mut size = 0;
        for (n, (at, change, bytes)) in older.iter().enumerate().rev() {
            let is_over = older[n + 1..].iter().any(|(_, later, _)| replaces(later, change));
            if lasts(change) && !is_over && size + bytes <= limit / 8 {
                size += bytes;
                kept.push((*at, change));
            } else {
                self.complete_since = self.complete_since.max(Some(*at));
            }
        }
        let mut log = Self { bytes: Vec::new(), last: 0, ..*self };
        let newer = newer.iter().map(|(at, change, _)| (*at, change));
        kept.into_iter().rev().chain(newer).for_each(|(at, change)| log.write(micros(at), change));
        *self = log;
    }
}

/// Is it so until something else is?
fn lasts(change: &Change) -> bool {
    matches!(change, Change::Phase(_) | Change::State { .. } | Change::Condition { .. } | Change::Deleted)
}

/// Is what a change said no longer so after another?
fn replaces(later: &Change, change: &Change) -> bool {
    match (later, change) {
        (Change::State { lane: later, .. }, Change::State { lane, .. }) => later == lane,
        (Change::Condition { kind: later, .. }, Change::Condition { kind, .. }) => later == kind,
        _ => discriminant(later) == discriminant(change),
    }
}

/// An instant as it is noted: what is to be the same as one that was noted has to be as coarse.
pub(crate) fn noted(at: Instant) -> Instant {
    Instant::from_nanos(micros(at) * 1_000)
}

fn micros(at: Instant) -> u64 {
    at.as_nanos() / 1_000
}

#[cfg(test)]
mod tests {
    use husk_core::status::Phase;

    use super::*;
    use crate::change::LaneState;

    fn event(n: u64) -> Change {
        let message = format!("event {n}");
        Change::Event { container: None, warning: false, reason: "Pulled".into(), message, count: 1 }
    }

    #[test]
    fn what_is_written_is_read() {
        let mut log = Log::default();
        let changes = [
            (5, Change::Phase(Phase::Pending)),
            (7, Change::State { lane: 0, state: LaneState::Waiting("PodInitializing".into()) }),
            (7, Change::State { lane: 1, state: LaneState::Failed(-1, "Strange".into()) }),
            // Known later, and earlier.
            (6, Change::Exit { lane: 1, code: 137, reason: "OOMKilled".into() }),
            (9, Change::Deleted),
        ]
        .map(|(second, change)| (Instant::from_secs(second), change));
        changes.iter().for_each(|(at, change)| log.push(*at, change));
        assert_eq!(log.changes(), changes);
        assert_eq!(log.complete_since(), None);
    }

    #[test]
    fn the_newer_half_stays_and_what_is_still_so() {
        let mut log = Log::bounded(Some(1000));
        log.push(Instant::from_secs(1), &Change::Phase(Phase::Pending));
        log.push(Instant::from_secs(2), &Change::Phase(Phase::Running));
        log.push(Instant::from_secs(3), &Change::State { lane: 0, state: LaneState::Ready });
        for n in 10..10_000 {
            log.push(Instant::from_secs(n), &event(n));
            assert!(log.size() <= 1064);
        }
        let changes = log.changes();
        assert_eq!(changes[0], (Instant::from_secs(2), Change::Phase(Phase::Running)));
        assert_eq!(changes[1].1, Change::State { lane: 0, state: LaneState::Ready });
        assert_eq!(changes.last(), Some(&(Instant::from_secs(9999), event(9999))));
        let first = changes[2].0;
        assert_eq!(log.complete_since(), Some(Instant::from_secs(first.since_epoch().as_secs() - 1)));
    }
}
