//! Family `validation`: everything that is wrong with a pod that is created.

use husk_api::{FieldError, Gates, default_pod, drop_disabled_fields, pod_from_json, validate_pod_with};
use serde_json::{Value, json};

pub(super) fn answer(input: &Value) -> Value {
    let Ok(mut pod) = pod_from_json(&input["pod"]) else { return json!({"decodeError": true}) };
    let mut gates = Gates::UPSTREAM;
    for gate in input["gates"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        assert!(gates.enable(gate), "the gate {gate} is not known");
    }
    default_pod(&mut pod);
    drop_disabled_fields(&mut pod, &gates);
    json!({"errors": errors(&validate_pod_with(&pod, &gates))})
}

/// Sorted by field, type and detail, as the cases are.
pub(super) fn errors(errors: &[FieldError]) -> Value {
    let mut errors: Vec<_> = errors.iter().map(|e| (e.field.as_str(), e.kind.as_str(), e.detail.as_str())).collect();
    errors.sort_unstable();
    errors.into_iter().map(|(field, kind, detail)| json!({"type": kind, "field": field, "detail": detail})).collect()
}
