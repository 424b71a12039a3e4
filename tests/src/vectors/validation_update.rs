//! Family `validation_update`: everything that is wrong with a change of a pod.

use husk_api::{Gates, Subresource, default_pod, pod_from_json, validate_pod_update};
use serde_json::{Value, json};

use super::validation::errors;

pub(super) fn answer(input: &Value) -> Value {
    let pod = |json: &Value| {
        let mut pod = pod_from_json(json).expect("the case has a pod");
        default_pod(&mut pod);
        pod
    };
    let subresource = match input["subresource"].as_str().unwrap_or_default() {
        "ephemeralcontainers" => Subresource::EphemeralContainers,
        "resize" => Subresource::Resize,
        _ => Subresource::None,
    };
    let found = validate_pod_update(&pod(&input["old"]), &pod(&input["new"]), subresource, &Gates::UPSTREAM);
    json!({"errors": errors(&found)})
}
