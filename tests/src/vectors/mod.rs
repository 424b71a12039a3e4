//! Judged from outside: the same questions that upstream's own functions were asked, put to the functions that Husk runs.
//!
//! A family is a file of cases, one JSON object `{"id", "in", "out"}` a line. To answer one more family: write a file with an
//! `answer` function next to this one, add it to [`FAMILIES`], and pack the cases with `vectors --dir DIR --pack FAMILY`.

mod actions;
mod api_status;
mod backoff;
mod cases;
mod conditions;
mod container_env;
mod defaults;
mod deletion;
mod eviction_rank;
mod exclusions;
mod expansion;
mod grace;
mod hostname;
mod objects;
mod pdb;
mod phase;
mod pod_table;
mod prober;
mod qos;
mod quantity;
mod report;
mod scheduling;
mod selectors;
mod status_manager;
mod termination_order;
mod validation;
mod validation_update;

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::Value;

pub use cases::{Case, Source, pack};
pub use exclusions::Exclusions;
pub use report::{Difference, Report};

/// Answers a case's `in`; what it gives is compared with the case's `out`.
pub type Answer = fn(&Value) -> Value;

/// Removes from an answer what does not count, given the case's `in`.
type Ignore = fn(&Value, &mut Value);

/// Every family that is answered, by the name of its file.
pub const FAMILIES: &[(&str, Answer)] = &[
    ("api_status", api_status::answer),
    ("backoff", backoff::answer),
    ("conditions", conditions::answer),
    ("container_env", container_env::answer),
    ("defaults", defaults::answer),
    ("deletion", deletion::answer),
    ("downward_api", container_env::downward_api),
    ("effective_grace", grace::effective_grace),
    ("env_file", container_env::env_file),
    ("eviction_rank", eviction_rank::answer),
    ("expansion", expansion::answer),
    ("hostname", hostname::answer),
    ("kill_grace", grace::kill_grace),
    ("pdb", pdb::answer),
    ("phase", phase::answer),
    ("pod_table", pod_table::answer),
    ("prober", prober::answer),
    ("qos", qos::answer),
    ("quantity", quantity::answer),
    ("resize_actions", actions::answer_resize),
    ("restart_actions", actions::answer),
    ("restart_all_trigger", actions::answer_trigger),
    ("scheduling", scheduling::answer),
    ("selectors", selectors::answer),
    ("service_env", container_env::service_env),
    ("status_manager", status_manager::answer),
    ("termination_order", termination_order::answer),
    ("validation", validation::answer),
    ("validation_update", validation_update::answer),
];

/// What upstream computes but nobody asks for: removed from both sides of a case before they are compared.
const DONT_CARE: &[(&str, Ignore)] = &[("restart_actions", actions::ignore)];

/// Puts all cases of a family to the function that answers it.
///
/// # Errors
/// If the cases can't be read.
pub fn run(family: &str, answer: Answer, source: &Source, exclusions: &Exclusions) -> anyhow::Result<Report> {
    let ignore = DONT_CARE.iter().find(|(name, _)| *name == family).map(|(_, ignore)| *ignore);
    let mut report = Report::default();
    for case in source.cases(family)? {
        let mut expected = case.out.clone();
        let mut got = match catch_unwind(AssertUnwindSafe(|| answer(&case.input))) {
            Ok(got) => got,
            Err(_) => Value::from("the function panicked"),
        };
        for side in [&mut expected, &mut got] {
            ignore.inspect(|ignore| ignore(&case.input, side));
            drop_defaults(side);
        }
        let excluded = exclusions.reason(family, &case.id).is_some();
        report.count(case, expected, got, excluded);
    }
    Ok(report)
}

/// Absent means default in the vectors: false, 0, "", null and empty are the same as not there.
fn drop_defaults(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(drop_defaults),
        Value::Object(members) => {
            members.values_mut().for_each(drop_defaults);
            members.retain(|key, value| !is_default(key, value));
        }
        _ => {}
    }
}

fn is_default(key: &str, value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        // `{"waiting": {}}` says something, as does every member that is one of several alternatives.
        Value::Object(members) => members.is_empty() && !["waiting", "running", "terminated"].contains(&key),
    }
}
