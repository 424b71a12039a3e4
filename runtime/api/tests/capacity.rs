//! What a manifest says about room, place and class, and what of it comes back in the status.

use husk_api::{Gates, Subresource, Wall, core_meta, core_spec, default_pod, k8s, pod_from_json, status_object};
use husk_api::{validate_pod, validate_pod_update};
use husk_core::admission::NodeState;
use husk_core::io::PodUid;
use husk_core::node::{Node, NodeConfig};
use husk_core::quantity::Quantity;
use husk_core::{Input, Instant};
use jiff::Timestamp;
use serde_json::{Value, json};

fn pod(spec: Value) -> k8s::Pod {
    let metadata = json!({"name": "p", "namespace": "d", "uid": "u", "resourceVersion": "1", "labels": {"app": "web"}});
    let mut pod = pod_from_json(&json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}))
        .expect("a pod that can be read");
    default_pod(&mut pod);
    pod
}

fn container(resources: Value) -> Value {
    json!({"name": "a0", "image": "i", "resources": resources})
}

/// Status of the pod on a node that has only one CPU and a relay.
fn on_a_small_node(pod: &k8s::Pod) -> k8s::PodStatus {
    let amount = |text| Quantity::parse(text).expect("an amount");
    let allocatable = [("cpu".to_owned(), amount("1")), ("gpio.husk.dev/relay-1".to_owned(), amount("1"))];
    let state = NodeState {
        allocatable: Some(allocatable.into()),
        labels: [("zone".to_owned(), "a".to_owned())].into(),
        ..NodeState::default()
    };
    let mut node = Node::new(NodeConfig::default());
    node.handle(Instant::ZERO, Input::NodeChanged { state: Box::new(state) });
    node.handle(Instant::ZERO, Input::Applied { meta: core_meta(pod), spec: Box::new(core_spec(pod)) });
    let status = node.status(&PodUid::from("u")).expect("it is there");
    status_object(status, &Wall(Timestamp::UNIX_EPOCH))
}

fn waits_for(spec: Value) -> Option<String> {
    let conditions = on_a_small_node(&pod(spec)).conditions.expect("there are conditions");
    let scheduled = conditions.into_iter().find(|condition| condition.type_ == "PodScheduled").expect("always there");
    (scheduled.status == "False").then(|| scheduled.message.unwrap_or_default())
}

// spec: RES-07
#[test]
fn the_class_is_in_the_status() {
    let all = json!({"cpu": "100m", "memory": "64Mi"});
    for (resources, class) in
        [(json!({"limits": all}), "Guaranteed"), (json!({"requests": all}), "Burstable"), (json!({}), "BestEffort")]
    {
        let status = on_a_small_node(&pod(json!({"containers": [container(resources)]})));
        assert_eq!(status.qos_class.as_deref(), Some(class));
    }
    let whole = json!({"resources": {"limits": all}, "containers": [container(json!({}))]});
    assert_eq!(on_a_small_node(&pod(whole)).qos_class.as_deref(), Some("Guaranteed"), "as the pod says as a whole");
}

#[test]
fn granted_resources_are_in_the_status() {
    let spec = json!({"containers": [container(json!({"limits": {"cpu": "200m"}}))]});
    let status = on_a_small_node(&pod(spec)).container_statuses.expect("a status").remove(0);
    let granted = status.allocated_resources.expect("what is granted");
    assert_eq!(granted["cpu"].0, "200m", "requests follow from limits");
    let resources = status.resources.expect("what it has");
    assert_eq!(resources.limits.expect("limits")["cpu"].0, "200m");
}

// spec: RES-14
#[test]
fn a_device_is_asked_for_in_limits() {
    let claims = |device: &str| json!({"containers": [container(json!({"limits": {device: 1}}))]});
    assert_eq!(waits_for(claims("gpio.husk.dev/relay-1")), None);
    let reason = "0/1 nodes are available: 1 Insufficient gpio.husk.dev/relay-2.";
    assert_eq!(waits_for(claims("gpio.husk.dev/relay-2")).as_deref(), Some(reason));
    let half = pod(json!({"containers": [container(json!({"limits": {"gpio.husk.dev/relay-1": "500m"}}))]}));
    let errors = validate_pod(&half);
    assert!(errors.iter().all(|error| error.detail == "must be an integer") && !errors.is_empty(), "{errors:?}");
}

// spec: META-10
#[test]
fn wishes_of_place_come_over() {
    let with = |field: &str, value: Value| {
        let mut spec = json!({"containers": [container(json!({}))]});
        spec[field] = value;
        waits_for(spec)
    };
    assert_eq!(with("nodeSelector", json!({"zone": "a"})), None);
    assert!(with("nodeSelector", json!({"zone": "b"})).is_some());
    assert!(with("schedulingGates", json!([{"name": "ex.com/g"}])).is_some());
    let term = |app: &str| {
        let selector = json!({"matchLabels": {"app": app}});
        json!({"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone", "labelSelector": selector}]})
    };
    assert_eq!(with("affinity", json!({"podAffinity": term("web")})), None, "it is one itself");
    assert!(with("affinity", json!({"podAffinity": term("db")})).is_some());
    assert_eq!(with("affinity", json!({"podAntiAffinity": term("web")})), None, "there is no other one");
    let spread = |min_domains: i32, action: &str| {
        json!([{"maxSkew": 1, "minDomains": min_domains, "topologyKey": "zone", "whenUnsatisfiable": action,
                "labelSelector": {"matchLabels": {"app": "web"}}}])
    };
    assert_eq!(with("topologySpreadConstraints", spread(2, "DoNotSchedule")), None, "the first one");
    let nowhere = json!([{"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule"}]);
    assert!(with("topologySpreadConstraints", nowhere).is_some());
    assert!(with("schedulingGroup", json!({"podGroupName": "g"})).is_some(), "there is no such group");
}

fn resized(resources: Value) -> Vec<String> {
    let before = json!({"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "200m", "memory": "64Mi"}});
    let (old, new) =
        (pod(json!({"containers": [container(before)]})), pod(json!({"containers": [container(resources)]})));
    let errors = validate_pod_update(&old, &new, Subresource::Resize, &Gates::default());
    errors.into_iter().map(|error| error.to_string()).collect()
}

// spec: RES-11
#[test]
fn a_resize_may_not_change_the_class() {
    let fine = json!({"requests": {"cpu": "150m", "memory": "64Mi"}, "limits": {"cpu": "200m", "memory": "64Mi"}});
    assert_eq!(resized(fine), [""; 0]);
    let guaranteed = json!({"limits": {"cpu": "200m", "memory": "64Mi"}});
    let errors = resized(guaranteed);
    assert!(errors[0].contains("Pod QOS Class may not change as a result of resizing"), "{errors:?}");
    let above = json!({"requests": {"cpu": "300m", "memory": "64Mi"}, "limits": {"cpu": "200m", "memory": "64Mi"}});
    assert!(!resized(above).is_empty(), "a request above its limit");
}

// spec: EPH-03
#[test]
fn ephemeral_containers_have_no_ports_probes_hooks_or_resources() {
    for (field, value) in [
        ("ports", json!([{"containerPort": 80}])),
        ("livenessProbe", json!({"tcpSocket": {"port": 80}})),
        ("readinessProbe", json!({"tcpSocket": {"port": 80}})),
        ("startupProbe", json!({"tcpSocket": {"port": 80}})),
        ("lifecycle", json!({"preStop": {"sleep": {"seconds": 1}}})),
        ("resources", json!({"limits": {"cpu": "1"}})),
    ] {
        let mut debugger = json!({"name": "debugger", "image": "toolbox"});
        let spec = |debugger: &Value| json!({"containers": [container(json!({}))], "ephemeralContainers": [debugger]});
        let without = pod(json!({"containers": [container(json!({}))]}));
        let added = |debugger: &Value| {
            let new = pod(spec(debugger));
            validate_pod_update(&without, &new, Subresource::EphemeralContainers, &Gates::default())
        };
        assert!(added(&debugger).is_empty());
        debugger[field] = value;
        let errors = added(&debugger);
        let path = format!("spec.ephemeralContainers[0].{field}");
        assert!(errors.iter().any(|error| error.field == path), "{field}: {errors:?}");
    }
}
