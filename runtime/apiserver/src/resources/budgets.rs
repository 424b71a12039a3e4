//! PodDisruptionBudgets.

use jiff::Timestamp;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use serde_json::{Value, json};

use super::typed::{self, CREATED, age, text};
use crate::resource::{ALL_VERBS, Column, Door, ListMerge, Resource, Strategy, Subresource};

pub(crate) static BUDGETS: Resource = Resource {
    group: "policy",
    version: "v1",
    kind: "PodDisruptionBudget",
    plural: "poddisruptionbudgets",
    singular: "poddisruptionbudget",
    short_names: &["pdb"],
    namespaced: true,
    categories: &[],
    verbs: ALL_VERBS,
    subresources: &[Subresource { name: "status", door: Door::Status, kind: None, verbs: &["get", "patch", "update"] }],
    strategy: Strategy {
        prepare_create: |budget| {
            budget["metadata"]["generation"] = 1.into();
            // Until it is computed nothing may be evicted.
            budget["status"] =
                json!({"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0});
        },
        prepare_update: typed::keep_status,
        ..typed::plain::<PodDisruptionBudget>()
    },
    lists: &[("status.conditions", ListMerge::ByKey("type"))],
    columns: &[
        Column::text("Name", "Name of the budget"),
        Column::text("Min Available", "What must stay"),
        Column::text("Max Unavailable", "What may be missing"),
        Column::number("Allowed Disruptions", "How many pods may be evicted now"),
        Column::text("Age", "Since it was created"),
    ],
    row,
    selectable: &[],
};

fn row(budget: &Value, now: Timestamp) -> Vec<Value> {
    let share = |field: &str| match &budget["spec"][field] {
        Value::Null => "N/A".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    vec![
        json!(text(budget, "/metadata/name", "")),
        json!(share("minAvailable")),
        json!(share("maxUnavailable")),
        json!(budget["status"]["disruptionsAllowed"].as_i64().unwrap_or(0)),
        json!(age(budget, CREATED, now)),
    ]
}
