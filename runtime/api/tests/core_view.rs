//! What the core sees of a pod, and how its status comes back.

use husk_api::{Wall, core_meta, core_spec, k8s, pod_from_json, status_object};
use husk_core::Instant;
use husk_core::spec::{ExitCodeOperator, Handler, PullPolicy, RestartAction, RestartPolicy};
use husk_core::status::{Condition, ContainerState, ContainerStatus, Phase, PodStatus, Terminated};
use jiff::Timestamp;
use serde_json::{Value, json};

fn pod(spec: Value) -> k8s::Pod {
    let metadata = json!({"name": "p", "namespace": "d", "uid": "u", "generation": 3});
    pod_from_json(&json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})).unwrap()
}

#[test]
fn a_full_container_comes_over() {
    let spec = core_spec(&pod(json!({
        "restartPolicy": "OnFailure",
        "terminationGracePeriodSeconds": 5,
        "activeDeadlineSeconds": 60,
        "readinessGates": [{"conditionType": "ex.com/g"}],
        "os": {"name": "linux"},
        "containers": [{
            "name": "c",
            "image": "web:1",
            "restartPolicy": "Never",
            "restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "NotIn", "values": [0, 42]}}],
            "readinessProbe": {"httpGet": {"port": 80}, "periodSeconds": 3, "successThreshold": 2},
            "lifecycle": {"preStop": {"sleep": {"seconds": 7}}, "stopSignal": "SIGUSR1"},
            "resources": {"limits": {"memory": "64Mi"}},
        }],
    })));
    assert_eq!(spec.restart_policy, RestartPolicy::OnFailure);
    assert_eq!((spec.termination_grace_period_seconds, spec.active_deadline_seconds), (Some(5), Some(60)));
    assert_eq!((spec.readiness_gates.as_slice(), spec.os.as_deref()), (&["ex.com/g".to_owned()][..], Some("linux")));
    let container = &spec.containers[0];
    assert_eq!(container.restart_policy, Some(RestartPolicy::Never));
    let rule = &container.restart_policy_rules[0];
    assert_eq!((rule.action, rule.operator), (RestartAction::Restart, ExitCodeOperator::NotIn));
    assert_eq!(rule.values, [0, 42]);
    let probe = container.readiness_probe.as_ref().unwrap();
    assert_eq!((probe.handler, probe.period_seconds, probe.timeout_seconds), (Handler::HttpGet, 3, 1));
    assert_eq!((probe.success_threshold, probe.failure_threshold), (2, 3));
    assert_eq!(container.pre_stop, Some(Handler::Sleep(7)));
    assert_eq!(container.stop_signal.as_deref(), Some("SIGUSR1"));
    assert_eq!(container.resources.limits["memory"].value(), 64 << 20);
    assert_eq!(container.image_pull_policy, PullPolicy::IfNotPresent);
}

#[test]
fn a_cut_down_pod_comes_over_too() {
    let spec = core_spec(&pod(json!({"containers": [{"name": "c", "livenessProbe": {}}]})));
    assert_eq!(spec.restart_policy, RestartPolicy::Always);
    assert_eq!(spec.containers[0].liveness_probe.as_ref().unwrap().failure_threshold, 3);
    assert_eq!(core_spec(&k8s::Pod::default()).containers, []);
    let meta = core_meta(&pod(json!({"containers": []})));
    assert_eq!((meta.name.as_str(), meta.namespace.as_str(), meta.uid.as_str(), meta.generation), ("p", "d", "u", 3));
}

#[test]
fn the_hash_changes_with_the_definition_but_not_with_resources() {
    let hash = |container: Value| core_spec(&pod(json!({"containers": [container]}))).containers[0].hash;
    let base = hash(json!({"name": "c", "image": "i"}));
    assert_eq!(base, hash(json!({"image": "i", "name": "c"})), "the order of keys does not matter");
    assert_eq!(base, hash(json!({"name": "c", "image": "i", "resources": {"limits": {"cpu": "1"}}})));
    let others = [
        json!({"name": "c", "image": "j"}),
        json!({"name": "c", "image": "i", "args": ["x"]}),
        json!({"name": "c", "image": "i", "env": [{"name": "A", "value": "1"}]}),
    ];
    for other in others {
        assert_ne!(base, hash(other.clone()), "{other}");
    }
}

#[test]
fn a_status_comes_back_with_wall_clock_seconds() {
    let wall = Wall("2026-03-01T12:00:00.9Z".parse::<Timestamp>().unwrap());
    let at = |seconds| Instant::from_secs(seconds);
    let status = PodStatus {
        observed_generation: 2,
        phase: Phase::Running,
        pod_ips: vec!["127.1.0.1".into()],
        start_time: Some(at(0)),
        conditions: vec![Condition {
            kind: "Ready".into(),
            status: true.into(),
            reason: "".into(),
            message: String::new(),
            last_transition_time: Some(at(5)),
            observed_generation: 0,
        }],
        container_statuses: vec![ContainerStatus {
            name: "c".into(),
            state: ContainerState::Running { started_at: at(4) },
            last_state: Some(Terminated { exit_code: 3, reason: "Error".into(), ..Terminated::default() }),
            ready: true,
            started: true,
            restart_count: 1,
            ..ContainerStatus::default()
        }],
        ..PodStatus::default()
    };
    let json = serde_json::to_value(status_object(&status, &wall)).unwrap();
    let expected = json!({
        "observedGeneration": 2,
        "phase": "Running",
        "podIP": "127.1.0.1",
        "podIPs": [{"ip": "127.1.0.1"}],
        "startTime": "2026-03-01T12:00:00Z",
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-03-01T12:00:05Z"}],
        "containerStatuses": [{
            "name": "c", "image": "", "imageID": "", "ready": true, "started": true, "restartCount": 1,
            "state": {"running": {"startedAt": "2026-03-01T12:00:04Z"}},
            "lastState": {"terminated": {"exitCode": 3, "reason": "Error"}},
        }],
    });
    assert_eq!(json, expected);
}
