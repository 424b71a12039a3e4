//! What is filled in, where the vectors don't reach.

use husk_api::{default_json, default_pod, pod_from_json};
use serde_json::{Value, json};

fn filled(object: &Value, pointer: &str) -> Value {
    default_json(object).unwrap().pointer(pointer).cloned().unwrap_or_default()
}

#[test]
fn objects() {
    let template = json!({"spec": {"containers": [{"name": "c", "image": "i"}]}});
    let rules = json!({"rules": [{"action": "Ignore", "onPodConditions": [{"type": "X"}]}]});
    let job = json!({"template": template, "podFailurePolicy": rules});
    let balancer = json!({
        "kind": "Service",
        "spec": {"type": "LoadBalancer"},
        "status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}, {"hostname": "h"}]}},
    });
    let service = |spec: Value| json!({"kind": "Service", "spec": spec});
    let set =
        json!({"kind": "StatefulSet", "spec": {"template": template, "updateStrategy": {"type": "RollingUpdate"}}});
    let config = json!({"clientIP": {"timeoutSeconds": 5}});
    let rows = [
        (
            "SetDefaults_PodFailurePolicyOnPodConditionsPattern, also in a CronJob",
            json!({"kind": "CronJob", "spec": {"jobTemplate": {"spec": job}}}),
            "/spec/jobTemplate/spec/podFailurePolicy/rules/0/onPodConditions/0/status",
            json!("True"),
        ),
        (
            "SetDefaults_Job: a CronJob's jobs wait",
            json!({"kind": "CronJob", "spec": {"jobTemplate": {"spec": job}}}),
            "/spec/jobTemplate/spec/backoffLimit",
            Value::Null,
        ),
        ("SetDefaults_Service", json!({"kind": "Service"}), "/spec/type", json!("ClusterIP")),
        (
            "SetDefaults_Service: only None has no configuration",
            service(json!({"sessionAffinity": "x", "sessionAffinityConfig": config})),
            "/spec/sessionAffinityConfig",
            config,
        ),
        (
            "SetDefaults_Service: the mode of addresses",
            balancer,
            "/status/loadBalancer/ingress",
            json!([{"ip": "1.2.3.4", "ipMode": "VIP"}, {"hostname": "h"}]),
        ),
        ("SetDefaults_StatefulSet: a type that is written", set, "/spec/updateStrategy/rollingUpdate", Value::Null),
        (
            "SetDefaults_PersistentVolumeClaim",
            json!({"kind": "PersistentVolumeClaim", "spec": {}}),
            "/status/phase",
            json!("Pending"),
        ),
        (
            "SetDefaults_PersistentVolumeClaimSpec",
            json!({"kind": "PersistentVolumeClaim"}),
            "/spec/volumeMode",
            json!("Filesystem"),
        ),
    ];
    for (function, object, pointer, expected) in rows {
        assert_eq!(filled(&object, pointer), expected, "{function}");
    }
}

#[test]
fn pods() {
    let pod = |spec: Value| json!({"kind": "Pod", "metadata": {"name": "p"}, "spec": spec});
    let half = json!({"name": "c", "image": "i", "resources": {"requests": {"cpu": "0.5m"}}});
    let negative =
        json!({"name": "c", "image": "i", "resources": {"requests": {"cpu": "-500u", "memory": "1.0005e0"}}});
    let rows = [
        (
            "SetDefaults_Pod: sums come before SetDefaults_ResourceList rounds",
            pod(json!({"containers": [half, half], "resources": {"limits": {"cpu": "1"}}})),
            "/spec/resources/requests/cpu",
            json!("1m"),
        ),
        (
            "SetDefaults_ResourceList: away from zero",
            pod(json!({"containers": [negative]})),
            "/spec/containers/0/resources/requests",
            json!({"cpu": "-1m", "memory": "1001e-3"}),
        ),
        (
            "Convert_core_PodSpec_To_v1_PodSpec is no default",
            pod(json!({"containers": [], "serviceAccountName": "a"})),
            "/spec/serviceAccount",
            Value::Null,
        ),
    ];
    for (function, object, pointer, expected) in rows {
        assert_eq!(filled(&object, pointer), expected, "{function}");
    }
    let mut pod = pod_from_json(&pod(json!({"containers": [], "serviceAccount": "a"}))).unwrap();
    default_pod(&mut pod);
    assert_eq!(pod.spec.unwrap().service_account_name.as_deref(), Some("a"), "Convert_v1_PodSpec_To_core_PodSpec");
}
