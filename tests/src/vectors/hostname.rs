//! Family `hostname`: the name of a pod on its network.

use husk_api::{hostname, k8s};
use serde_json::{Value, json};

pub(super) fn answer(input: &Value) -> Value {
    let pod: k8s::Pod = serde_json::from_value(json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": input["name"], "namespace": "d"},
        "spec": {
            "containers": [],
            "hostname": input["hostname"],
            "subdomain": input["subdomain"],
            "hostnameOverride": input["hostnameOverride"],
        },
    }))
    .expect("a pod of the case");
    match hostname(&pod, "cluster.local") {
        Ok(hostname) => json!({"hostname": hostname.name, "domain": hostname.domain}),
        Err(_) => json!({"error": true}),
    }
}
