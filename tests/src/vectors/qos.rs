//! Family `qos`: class, effective requests and limits of a pod.

use husk_core::qos::qos_class;
use husk_core::resources::{pod_limits, pod_requests};
use serde_json::{Value, json};

use super::objects::pod_spec;

pub(super) fn answer(input: &Value) -> Value {
    let pod = pod_spec(input);
    json!({"qosClass": qos_class(&pod).as_str(), "requests": pod_requests(&pod), "limits": pod_limits(&pod)})
}
