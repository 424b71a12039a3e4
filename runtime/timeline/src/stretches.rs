//! What probes say: mostly the same again and again, which is one stretch however long it lasts.

use husk_core::Instant;
use husk_core::spec::ProbeKind;

use crate::change::Change;

/// The stretches that go on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stretches(Vec<Stretch>);

#[derive(Clone, Copy, Debug)]
struct Stretch {
    from: Instant,
    to: Instant,
    count: u32,
    lane: u16,
    kind: ProbeKind,
    ok: bool,
}

impl Stretches {
    /// A probe said something; gives the stretch that ended with it, if one did.
    pub(crate) fn probed(&mut self, now: Instant, lane: u16, kind: ProbeKind, ok: bool) -> Option<(Instant, Change)> {
        let new = Stretch { from: now, to: now, count: 1, lane, kind, ok };
        match self.0.iter_mut().find(|stretch| stretch.lane == lane && stretch.kind == kind) {
            Some(stretch) if stretch.ok == ok => {
                stretch.to = now;
                stretch.count = stretch.count.saturating_add(1);
                None
            }
            Some(stretch) => Some(std::mem::replace(stretch, new).written()),
            None => {
                self.0.reserve_exact(1);
                self.0.push(new);
                None
            }
        }
    }

    /// The instance that was probed is no more; gives the stretches that ended with it.
    pub(crate) fn ended(&mut self, lane: u16) -> Vec<(Instant, Change)> {
        let ended = self.0.iter().filter(|stretch| stretch.lane == lane).map(Stretch::written).collect();
        self.0.retain(|stretch| stretch.lane != lane);
        ended
    }

    /// Those that go on, as far as they have come.
    pub(crate) fn going_on(&self) -> impl Iterator<Item = (Instant, Change)> {
        self.0.iter().map(Stretch::written)
    }

    /// Bytes that they take.
    pub(crate) fn size(&self) -> usize {
        self.0.capacity() * size_of::<Stretch>()
    }
}

impl Stretch {
    fn written(&self) -> (Instant, Change) {
        let Self { from, to, count, lane, kind, ok } = *self;
        let micros = u64::try_from((to - from).as_micros()).unwrap_or(u64::MAX);
        (from, Change::Probes { lane, kind, ok, count, micros })
    }
}
