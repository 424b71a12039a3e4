//! Drawing: a small generator of random numbers that never changes, so that a seed means the same for ever.

use std::time::Duration;

use crate::span::Span;

/// Spans that are drawn. Few and round, so that things happen at the same time.
const MILLIS: [u64; 14] = [0, 0, 1, 50, 500, 1000, 1000, 2000, 5000, 10_000, 30_000, 61_000, 300_000, 660_000];

/// Draws.
pub(super) struct Dice(u64);

impl Dice {
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// SplitMix64.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number less than the bound.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    /// True once in so many times.
    pub(super) fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// One of these; there must be some.
    pub(super) fn pick<'t, T>(&mut self, these: &'t [T]) -> &'t T {
        let place = self.below(these.len() as u64);
        &these[usize::try_from(place).unwrap_or_default()]
    }

    /// Once in so many times, one of these.
    pub(super) fn maybe<T: Clone>(&mut self, times: u64, these: &[T]) -> Option<T> {
        self.one_in(times).then(|| self.pick(these).clone())
    }

    /// A span of time.
    pub(super) fn span(&mut self) -> Span {
        Span::millis(*self.pick(&MILLIS))
    }

    /// A span of time that isn't longer than that.
    pub(super) fn span_up_to(&mut self, seconds: u64) -> Span {
        Span(self.span().0.min(Duration::from_secs(seconds)))
    }

    /// A time within so many seconds, mostly a whole second.
    pub(super) fn time(&mut self, within: u64) -> Span {
        match self.one_in(3) {
            true => Span::millis(self.below(within * 1000)),
            false => Span::secs(self.below(within)),
        }
    }
}
