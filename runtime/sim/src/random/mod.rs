//! Random lives: pods of all shapes and what happens to them, from a seed.

mod dice;
mod facts;
mod pods;
mod scripts;

use husk_core::spec::{PodMeta, PodSpec};

use self::dice::Dice;
use crate::scenario::{Scenario, Subject};

/// Pods, and what happens to them.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// The pods.
    pub subjects: Vec<Subject>,
    /// What happens.
    pub scenario: Scenario,
}

/// The case of a seed; always the same.
pub fn case(seed: u64) -> Case {
    let mut dice = Dice::new(seed);
    let count = match dice.below(100) {
        0..25 => 1 + dice.below(3),
        25..85 => 4 + dice.below(9),
        85..98 => 13 + dice.below(48),
        _ => 61 + dice.below(240),
    };
    let seconds = *dice.pick(&[60, 300, 300, 900, 900, 3600, 20_000]);
    let mut pods: Vec<(PodMeta, PodSpec)> = Vec::new();
    for n in 0..count {
        // Some have the name of another, and have to wait for its end.
        let name = match dice.one_in(12) && n > 0 {
            true => dice.pick(&pods).0.name.clone(),
            false => format!("p{n}"),
        };
        let meta = PodMeta {
            namespace: "default".into(),
            name,
            generation: 1,
            is_static: dice.one_in(20),
            ..PodMeta::default()
        };
        pods.push((meta, dice.pod()));
    }
    let subjects = Subject::cast(pods);
    let scenario = dice.scenario(&subjects, seconds);
    Case { subjects, scenario }
}
