//! Which events become objects of their own (NODE-02). As upstream's correlator has it, those that differ only in what they say become
//! one after a while, and who has very much to say is heard from time to time: no pod pushes out what there is to say of others.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// So many that differ only in their messages, with no longer a pause between them than [`PAUSE`], are combined.
const SIMILAR: usize = 10;
const PAUSE: Duration = Duration::from_mins(10);
/// So many events of an object are heard at once, ...
const BURST: u32 = 25;
/// ... and one more each time this has passed.
const REFILL: Duration = Duration::from_mins(5);
/// So many objects, and so many kinds of events, are remembered: the ones heard of last.
const MOST_REMEMBERED: usize = 4096;

/// What becomes of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// An object for all that say the same.
    Own,
    /// An object for all that are similar.
    Combined,
    /// Nothing.
    Dropped,
}

/// What is compared of an event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Compared<'a> {
    /// Who says it, and of which object.
    pub(crate) object: &'a [&'a str],
    /// Type and reason.
    pub(crate) what: [&'a str; 2],
    /// In words.
    pub(crate) message: &'a str,
}

/// Remembers what was heard.
#[derive(Debug, Default)]
pub(crate) struct Correlator {
    /// Messages of similar events.
    similar: Latest<Vec<u64>>,
    /// When everything that an object may say at once has been refilled.
    refilled: Latest<Option<Instant>>,
}

impl Correlator {
    /// Takes an event.
    pub(crate) fn take(&mut self, now: Instant, event: Compared<'_>) -> Verdict {
        let group = hash(event.object.iter().chain(&event.what).copied());
        let verdict = self.compare(now, group, hash([event.message]));
        if self.may_say(now, hash(event.object.iter().copied())) { verdict } else { Verdict::Dropped }
    }

    fn compare(&mut self, now: Instant, group: u64, message: u64) -> Verdict {
        let (before, messages) = self.similar.of(now, group);
        if now.saturating_duration_since(before) > PAUSE {
            messages.clear();
        }
        if messages.contains(&message) {
            return Verdict::Own;
        }
        if messages.len() + 1 == SIMILAR {
            return Verdict::Combined;
        }
        messages.push(message);
        Verdict::Own
    }

    fn may_say(&mut self, now: Instant, object: u64) -> bool {
        let (_, refilled) = self.refilled.of(now, object);
        let then = refilled.unwrap_or(now).max(now) + REFILL;
        let may = then.saturating_duration_since(now) <= REFILL * BURST;
        if may {
            *refilled = Some(then);
        }
        may
    }
}

/// The same for the same words (FNV-1a).
pub(crate) fn hash<'a>(words: impl IntoIterator<Item = &'a str>) -> u64 {
    let bytes = words.into_iter().flat_map(|word| word.bytes().chain([0]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Something of many, of which those are remembered that were asked for last.
#[derive(Debug, Default)]
struct Latest<T>(HashMap<u64, (Instant, T)>);

impl<T: Default> Latest<T> {
    /// When it was asked for before, if it was, and what is remembered.
    fn of(&mut self, now: Instant, key: u64) -> (Instant, &mut T) {
        if self.0.len() >= MOST_REMEMBERED
            && !self.0.contains_key(&key)
            && let Some(oldest) = self.0.iter().min_by_key(|(_, (asked, _))| *asked).map(|(key, _)| *key)
        {
            self.0.remove(&oldest);
        }
        let (asked, known) = self.0.entry(key).or_insert_with(|| (now, T::default()));
        (std::mem::replace(asked, now), known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(correlator: &mut Correlator, now: Instant, pod: &str, reason: &str, message: &str) -> Verdict {
        correlator.take(now, Compared { object: &["kubelet", pod], what: ["Warning", reason], message })
    }

    #[test]
    fn similar_ones_are_combined_from_the_tenth_on_until_there_was_a_pause() {
        let (mut correlator, mut now) = (Correlator::default(), Instant::now());
        let mut say = |correlator: &mut Correlator, after: Duration, reason: &str, message: &str| {
            now += after;
            take(correlator, now, "pod", reason, message)
        };
        for n in 0..9 {
            assert_eq!(say(&mut correlator, REFILL, "Unhealthy", &n.to_string()), Verdict::Own, "{n}");
        }
        for n in 9..100 {
            assert_eq!(say(&mut correlator, REFILL, "Unhealthy", &n.to_string()), Verdict::Combined, "{n}");
        }
        assert_eq!(say(&mut correlator, REFILL, "Unhealthy", "0"), Verdict::Own, "what was said before is no other");
        assert_eq!(say(&mut correlator, REFILL, "BackOff", "x"), Verdict::Own, "what isn't similar isn't combined");
        assert_eq!(say(&mut correlator, PAUSE + REFILL, "Unhealthy", "x"), Verdict::Own);
    }

    #[test]
    fn who_says_much_is_heard_from_time_to_time_and_others_all_the_same() {
        let (mut correlator, now) = (Correlator::default(), Instant::now());
        let said = |correlator: &mut Correlator, now, pod: &str, times: u32| {
            (0..times).filter(|_| take(correlator, now, pod, "Pulled", "x") != Verdict::Dropped).count()
        };
        assert_eq!(said(&mut correlator, now, "noisy", 1000), 25);
        assert_eq!(said(&mut correlator, now, "quiet", 1), 1);
        assert_eq!(said(&mut correlator, now + REFILL * 3, "noisy", 1000), 3);
        assert_eq!(said(&mut correlator, now + REFILL * 1000, "noisy", 1000), 25);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let (mut correlator, now) = (Correlator::default(), Instant::now());
        for n in 0..2 * MOST_REMEMBERED {
            let now = now + Duration::from_nanos(u64::try_from(n).expect("small"));
            assert_eq!(take(&mut correlator, now, &n.to_string(), "Pulled", "x"), Verdict::Own);
        }
        assert_eq!((correlator.similar.0.len(), correlator.refilled.0.len()), (MOST_REMEMBERED, MOST_REMEMBERED));
    }
}
