//! Family `pdb`: how many pods may be evicted?

use husk_core::Instant;
use husk_core::pdb::{Budget, BudgetError, BudgetStatus, BudgetedPod, Share, budget_status, condition_reason};
use serde_json::{Value, json};

use super::objects::{flag, list, text};

/// Late enough that everything that happened before is after the epoch.
const NOW_SECONDS: u64 = 10_000;

pub(super) fn answer(input: &Value) -> Value {
    let status = status(input);
    let reason = condition_reason(&status);
    let error = status.is_err();
    let status = status.unwrap_or_default();
    json!({
        "error": error,
        "expectedPods": status.expected_pods,
        "desiredHealthy": status.desired_healthy,
        "currentHealthy": status.current_healthy,
        "disruptionsAllowed": status.disruptions_allowed,
        "disruptedPods": status.disrupted_pods.keys().collect::<Vec<_>>(),
        "condition": {
            "type": "DisruptionAllowed",
            "status": if status.disruptions_allowed > 0 { "True" } else { "False" },
            "reason": reason,
        },
    })
}

fn status(input: &Value) -> Result<BudgetStatus, BudgetError> {
    let budget = match (&input["maxUnavailable"], &input["minAvailable"]) {
        (Value::Null, min) => Budget::MinAvailable(share(min)?),
        (max, _) => Budget::MaxUnavailable(share(max)?),
    };
    let pods: Vec<BudgetedPod> = list(&input["pods"], |pod| BudgetedPod {
        name: text(&pod["name"]),
        owner: pod["owner"].as_str().map(str::to_owned),
        ready: flag(&pod["ready"]),
        deleting: flag(&pod["deleting"]),
        evicted_at: pod["disruptedSecondsAgo"].as_u64().map(|ago| Instant::from_secs(NOW_SECONDS - ago)),
    });
    let scale = |owner: &str| input["scales"][owner].as_i64().and_then(|scale| scale.try_into().ok());
    budget_status(budget, &pods, scale, Instant::from_secs(NOW_SECONDS))
}

fn share(value: &Value) -> Result<Share, BudgetError> {
    Share::parse(&value.as_str().map_or_else(|| value.to_string(), str::to_owned))
}
