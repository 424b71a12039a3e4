//! Pods as a manifest, so that `husk simulate` can play them.

use husk_core::quantity::Quantity;
use husk_core::spec::{
    ContainerSpec, ExitCodeOperator, Handler, PodSpec, Probe, PullPolicy, ResizeRestartPolicy, ResourceList, Resources,
    RestartAction, RestartPolicy,
};
use serde_json::{Map, Value, json};

use crate::scenario::Subject;

/// The annotation that says where a pod comes from.
const CONFIG_SOURCE: &str = "kubernetes.io/config.source";

/// The pods, each a document.
pub fn manifest(subjects: &[Subject]) -> String {
    // Fails for maps whose keys aren't scalars: there are none.
    let documents = subjects.iter().map(|subject| serde_saphyr::to_string(&pod(subject)).unwrap_or_default());
    documents.collect::<Vec<_>>().join("---\n")
}

fn pod(subject: &Subject) -> Value {
    let mut metadata = json!({"name": subject.meta.name});
    if subject.meta.is_static {
        metadata["annotations"] = json!({CONFIG_SOURCE: "file"});
    }
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec(&subject.spec)})
}

fn spec(spec: &PodSpec) -> Value {
    let list = |containers: &[ContainerSpec]| containers.iter().map(container).collect::<Vec<_>>();
    let names = |key: &str, names: &[String]| names.iter().map(|name| json!({key: name})).collect::<Vec<_>>();
    let placement = &spec.placement;
    let toleration = |toleration: &husk_core::scheduling::Toleration| {
        sparse([
            ("key", json!(toleration.key)),
            ("operator", json!("Exists")),
            ("effect", json!(toleration.effect)),
            ("tolerationSeconds", json!(toleration.seconds)),
        ])
    };
    sparse([
        ("restartPolicy", json!(policy(spec.restart_policy))),
        ("initContainers", json!(list(&spec.init_containers))),
        ("containers", json!(list(&spec.containers))),
        ("terminationGracePeriodSeconds", json!(spec.termination_grace_period_seconds)),
        ("activeDeadlineSeconds", json!(spec.active_deadline_seconds)),
        ("readinessGates", json!(names("conditionType", &spec.readiness_gates))),
        ("os", spec.os.as_ref().map_or(Value::Null, |name| json!({"name": name}))),
        ("priority", json!(spec.priority)),
        ("schedulingGates", json!(names("name", &placement.gates))),
        ("tolerations", json!(placement.tolerations.iter().map(toleration).collect::<Vec<_>>())),
        ("schedulingGroup", placement.group.as_ref().map_or(Value::Null, |name| json!({"podGroupName": name}))),
        ("preemptionPolicy", if placement.never_preempts { json!("Never") } else { Value::Null }),
    ])
}

fn container(container: &ContainerSpec) -> Value {
    let rule = |rule: &husk_core::spec::RestartRule| {
        let action = match rule.action {
            RestartAction::Restart => "Restart",
            RestartAction::RestartAllContainers => "RestartAllContainers",
        };
        let operator = match rule.operator {
            ExitCodeOperator::In => "In",
            ExitCodeOperator::NotIn => "NotIn",
        };
        json!({"action": action, "exitCodes": {"operator": operator, "values": rule.values}})
    };
    let resize = |(resource, policy): (&String, &ResizeRestartPolicy)| {
        let policy = match policy {
            ResizeRestartPolicy::NotRequired => "NotRequired",
            ResizeRestartPolicy::RestartContainer => "RestartContainer",
        };
        json!({"resourceName": resource, "restartPolicy": policy})
    };
    let lifecycle = sparse([
        ("postStart", container.post_start.map_or(Value::Null, handler)),
        ("preStop", container.pre_stop.map_or(Value::Null, handler)),
        ("stopSignal", json!(container.stop_signal)),
    ]);
    let pull_policy = match container.image_pull_policy {
        PullPolicy::Always => "Always",
        PullPolicy::IfNotPresent => "IfNotPresent",
        PullPolicy::Never => "Never",
    };
    sparse([
        ("name", json!(container.name)),
        ("image", json!(container.image)),
        ("imagePullPolicy", json!(pull_policy)),
        ("restartPolicy", json!(container.restart_policy.map(policy))),
        ("restartPolicyRules", json!(container.restart_policy_rules.iter().map(rule).collect::<Vec<_>>())),
        ("livenessProbe", json!(container.liveness_probe.as_ref().map(probe))),
        ("readinessProbe", json!(container.readiness_probe.as_ref().map(probe))),
        ("startupProbe", json!(container.startup_probe.as_ref().map(probe))),
        ("lifecycle", lifecycle),
        ("resources", resources(&container.resources)),
        ("resizePolicy", json!(container.resize_policy.iter().map(resize).collect::<Vec<_>>())),
    ])
}

fn probe(probe: &Probe) -> Value {
    let mut value = handler(probe.handler);
    value["initialDelaySeconds"] = json!(probe.initial_delay_seconds);
    value["periodSeconds"] = json!(probe.period_seconds);
    value["timeoutSeconds"] = json!(probe.timeout_seconds);
    value["successThreshold"] = json!(probe.success_threshold);
    value["failureThreshold"] = json!(probe.failure_threshold);
    if let Some(seconds) = probe.termination_grace_period_seconds {
        value["terminationGracePeriodSeconds"] = json!(seconds);
    }
    value
}

fn handler(handler: Handler) -> Value {
    match handler {
        Handler::Exec => json!({"exec": {"command": ["true"]}}),
        Handler::HttpGet => json!({"httpGet": {"port": 80}}),
        Handler::TcpSocket => json!({"tcpSocket": {"port": 80}}),
        Handler::Grpc => json!({"grpc": {"port": 80}}),
        Handler::Sleep(seconds) => json!({"sleep": {"seconds": seconds}}),
    }
}

fn resources(resources: &Resources) -> Value {
    let amounts = |list: &ResourceList| {
        let amount = |(name, amount): (&String, &Quantity)| (name.clone(), json!(amount.to_string()));
        Value::Object(list.iter().map(amount).collect())
    };
    sparse([("requests", amounts(&resources.requests)), ("limits", amounts(&resources.limits))])
}

const fn policy(policy: RestartPolicy) -> &'static str {
    match policy {
        RestartPolicy::Always => "Always",
        RestartPolicy::OnFailure => "OnFailure",
        RestartPolicy::Never => "Never",
    }
}

/// An object without what is empty.
fn sparse<const N: usize>(entries: [(&str, Value); N]) -> Value {
    let says_something = |value: &Value| match value {
        Value::Null => false,
        Value::Array(list) => !list.is_empty(),
        Value::Object(map) => !map.is_empty(),
        Value::String(text) => !text.is_empty(),
        Value::Bool(_) | Value::Number(_) => true,
    };
    let entries = entries.into_iter().filter(|(_, value)| says_something(value));
    Value::Object(entries.map(|(key, value)| (key.to_owned(), value)).collect::<Map<_, _>>())
}
