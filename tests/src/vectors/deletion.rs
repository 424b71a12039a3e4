//! Family `deletion`: what does a request to delete a pod do?

use husk_core::Instant;
use husk_core::deletion::{Deletion, Target, Verdict, decide};
use serde_json::{Value, json};

use super::objects::{flag, phase, seconds};

/// Late enough that everything that happened before is after the epoch.
const NOW_SECONDS: u64 = 10_000;

pub(super) fn answer(input: &Value) -> Value {
    let now = Instant::from_secs(NOW_SECONDS);
    let since_first = seconds(&input["secondsSinceFirstDelete"]).as_secs();
    let deletion = input["pendingGraceSeconds"].as_i64().map(|grace_seconds| Deletion {
        grace_seconds,
        timestamp: Instant::from_secs(NOW_SECONDS - since_first + grace_seconds.unsigned_abs()),
    });
    let target = Target {
        deletion,
        spec_grace_seconds: input["terminationGracePeriodSeconds"].as_i64(),
        scheduled: flag(&input["scheduled"]),
        phase: phase(&input["phase"]),
    };
    let verdict = decide(&target, input["requestGraceSeconds"].as_i64(), now);
    let (graceful, pending, in_force) = match verdict {
        Verdict::Begin(new) | Verdict::Shorten(new) => (true, false, Some(new)),
        Verdict::Pending => (false, true, deletion),
        Verdict::RemoveNow => (false, false, deletion),
    };
    json!({
        "graceful": graceful,
        "pending": pending,
        "generation": if matches!(verdict, Verdict::Begin(_)) { 2 } else { 1 },
        "deletionGracePeriodSeconds": in_force.map(|deletion| deletion.grace_seconds),
        "deletionTimestampInSeconds": in_force.map(|deletion| {
            (deletion.timestamp.as_nanos() / 1_000_000_000) as i64 - NOW_SECONDS as i64
        }),
    })
}
