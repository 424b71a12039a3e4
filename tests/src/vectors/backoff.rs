//! Family `backoff`: when may a container start again?

use husk_core::Instant;
use husk_core::backoff::{Backoff, BackoffConfig, message};
use serde_json::{Value, json};

use super::objects::{list, seconds};

pub(super) fn answer(input: &Value) -> Value {
    let config = BackoffConfig { base: seconds(&input["baseSeconds"]), max: seconds(&input["maxSeconds"]) };
    match input["checks"].is_array() {
        true => json!({"checks": checks(&input["checks"], &config)}),
        false => json!({"delayMillis": delays(&input["runMillis"], &config)}),
    }
}

/// The container starts, runs so long, and is restarted as early as it may.
fn delays(runs: &Value, config: &BackoffConfig) -> Vec<u64> {
    let (mut backoff, mut now) = (Backoff::default(), 0);
    let mut delays = Vec::new();
    for run in list(runs, |run| run.as_u64().unwrap_or_default()) {
        let finished = now + run;
        let at = Instant::from_millis(finished);
        now = backoff.release_at(at).map_or(finished, |release| release.as_nanos() / 1_000_000);
        backoff.next(at, Instant::from_millis(now), config);
        delays.push(now - finished);
    }
    delays
}

fn checks(checks: &Value, config: &BackoffConfig) -> Vec<Value> {
    let mut backoff = Backoff::default();
    let mut answers = Vec::new();
    for check in checks.as_array().into_iter().flatten() {
        let at = |field: &str| Instant::from_millis(check[field].as_u64().unwrap_or_default());
        let (finished, now) = (at("finishedMillis"), at("nowMillis"));
        let held = backoff.release_at(finished).is_some_and(|release| now < release);
        if !held {
            backoff.next(finished, now, config);
        }
        let delay = backoff.delay().unwrap_or_default();
        let text = held.then(|| message(delay, "a0", "p", "d", "u"));
        answers.push(json!({"start": !held, "backoffMillis": delay.as_millis() as u64, "message": text}));
    }
    answers
}
