//! Mutants by name, and a sample of them.

use std::collections::BTreeMap;

/// One change of one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mutant {
    /// As cargo-mutants has it: `FILE:LINE:COLUMN: what changes`.
    pub(super) name: String,
    pub(super) file: String,
    what: String,
    /// Which of those of the same text in the file, from 1 on.
    nth: usize,
}

impl Mutant {
    /// Takes a list of names apart.
    pub(super) fn parse_all(names: &str) -> Vec<Self> {
        let mut seen: BTreeMap<(String, String), usize> = BTreeMap::new();
        let parse = |name: &str| {
            let (place, what) = name.split_once(": ")?;
            let (file, _) = place.split_once(':')?;
            let nth = seen.entry((file.to_owned(), what.to_owned())).or_default();
            *nth += 1;
            Some(Self { name: name.to_owned(), file: file.to_owned(), what: what.to_owned(), nth: *nth })
        };
        names.lines().filter_map(parse).collect()
    }

    /// Its name for people and lists, without what changes with every line that is added above it.
    pub(super) fn id(&self) -> String {
        match self.nth {
            1 => format!("{}: {}", self.file, self.what),
            nth => format!("{}: {} ({nth})", self.file, self.what),
        }
    }
}

/// So many of them, drawn by the seed, in their order. One that stays the same is drawn or not whatever else changes.
pub(super) fn sample(all: &[Mutant], seed: u64, size: usize) -> Vec<Mutant> {
    let mut lots: Vec<(u64, usize)> =
        all.iter().enumerate().map(|(at, mutant)| (lot(seed, &mutant.id()), at)).collect();
    lots.sort_unstable();
    lots.truncate(size);
    let mut drawn: Vec<usize> = lots.into_iter().map(|(_, at)| at).collect();
    drawn.sort_unstable();
    drawn.into_iter().map(|at| all[at].clone()).collect()
}

/// FNV-1a, and a last stir, for the ends of texts to reach the high bits.
fn lot(seed: u64, text: &str) -> u64 {
    let bytes = seed.to_le_bytes().into_iter().chain(text.bytes());
    let hash =
        bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    let stirred = (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    stirred ^ (stirred >> 29)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: &str =
        "a.rs:1:2: replace f -> bool with true\na.rs:3:4: replace == with != in f\na.rs:3:9: replace == with != in f";

    fn ids(mutants: Vec<Mutant>) -> Vec<String> {
        mutants.iter().map(Mutant::id).collect()
    }

    #[test]
    fn an_id_has_no_line_but_says_which_of_several_it_is() {
        let ids = ids(Mutant::parse_all(NAMES));
        assert_eq!(ids[1..], ["a.rs: replace == with != in f", "a.rs: replace == with != in f (2)"]);
    }

    #[test]
    fn a_seed_always_draws_the_same_and_the_larger_sample_contains_the_smaller() {
        let all = || Mutant::parse_all(NAMES);
        for seed in 0..20 {
            let (one, two) = (ids(sample(&all(), seed, 1)), ids(sample(&all(), seed, 2)));
            assert_eq!((one.len(), two.len()), (1, 2));
            assert!(two.contains(&one[0]));
            assert_eq!(one, ids(sample(&all(), seed, 1)));
        }
        assert_eq!(ids(sample(&all(), 1, 9)), ids(all()));
    }
}
