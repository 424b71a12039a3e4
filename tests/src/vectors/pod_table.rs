//! Family `pod_table`: the columns of the table of pods.

use husk_api::PodRow;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::objects;

pub(super) fn answer(input: &Value) -> Value {
    let mut pod = json!({"spec": input["spec"], "status": input["status"]});
    if objects::flag(&input["deleting"]) {
        pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    }
    let pod: Pod = serde_json::from_value(pod).expect("a pod");
    let row = PodRow::of(&pod, Default::default());
    // Names and times are not part of the cases.
    let asked = |column: &&str| !["Name", "Age"].contains(column);
    let cells = PodRow::COLUMNS.into_iter().zip(row.cells()).filter(|(column, _)| asked(column));
    cells.map(|(column, cell)| (column.to_owned(), Value::from(cell))).collect()
}
