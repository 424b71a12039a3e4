//! Edge cases with a history that the objects decide.

use husk_api::{Gate, Gates, core_spec, default_pod, drop_disabled_fields, k8s, pod_from_json, validate_pod_with};
use serde_json::{Value, json};

const NAMES: [&str; 4] = [
    "ContainerStopSignals",
    "GenericWorkload",
    "TaintTolerationComparisonOperators",
    "UserNamespacesHostNetworkSupport",
];

fn pod(spec: Value) -> k8s::Pod {
    let mut pod = pod_from_json(&json!({"metadata": {"name": "p", "namespace": "d"}, "spec": spec})).expect("a pod");
    default_pod(&mut pod);
    pod
}

/// Every combination of gates.
fn all_gates() -> Vec<Gates> {
    let enabled = |bits: usize| {
        let mut gates = Gates::UPSTREAM;
        for (bit, name) in NAMES.iter().enumerate() {
            assert!(bits & (1 << bit) == 0 || gates.enable(name), "{name} is a gate");
        }
        gates
    };
    (0..1 << NAMES.len()).map(enabled).collect()
}

#[test]
fn edge_32_a_feature_that_is_off_changes_nothing() {
    let lifecycle = json!({"preStop": {"sleep": {"seconds": 3}}});
    let plain = json!({
        "os": {"name": "linux"},
        "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}],
        "initContainers": [{"name": "s", "image": "i", "restartPolicy": "Always", "lifecycle": lifecycle}],
        "containers": [{"name": "a", "image": "i", "lifecycle": lifecycle}],
    });
    // A pod that does not use a feature is the same whatever is on.
    let untouched = pod(plain.clone());
    for gates in all_gates() {
        let mut same = untouched.clone();
        drop_disabled_fields(&mut same, &gates);
        assert_eq!(same, untouched, "{gates:?}");
        assert_eq!(validate_pod_with(&same, &gates), [], "{gates:?}");
    }
    // A pod that does is the same as if it did not, once the feature is off.
    let mut wishes = plain;
    wishes["schedulingGroup"] = json!({"podGroupName": "g"});
    for list in ["initContainers", "containers"] {
        wishes[list][0]["lifecycle"]["stopSignal"] = json!("SIGUSR1");
    }
    for gates in all_gates() {
        let mut dropped = pod(wishes.clone());
        drop_disabled_fields(&mut dropped, &gates);
        let (spec, without) = (core_spec(&dropped), core_spec(&untouched));
        if !gates.has(Gate::ContainerStopSignals) {
            assert_eq!(spec.containers, without.containers, "{gates:?}");
            assert_eq!(spec.init_containers, without.init_containers, "{gates:?}");
        }
        if !gates.has(Gate::GenericWorkload) {
            assert_eq!(spec.placement, without.placement, "{gates:?}");
        }
        if gates == Gates::UPSTREAM {
            assert_eq!(dropped, untouched);
        }
    }
    // And it does something when it is on.
    let on = core_spec(&pod(wishes));
    assert_eq!(on.containers[0].stop_signal.as_deref(), Some("SIGUSR1"));
    assert_ne!(on.placement, core_spec(&untouched).placement);
}
