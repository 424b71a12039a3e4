//! From objects to what the core decides on.
//!
//! Lenient: also specs that lack what a valid pod needs are taken, with Kubernetes' defaults for what is missing, so that
//! decisions can be asked about cut-down pods.

use husk_core::spec::{
    ContainerSpec, ExitCodeOperator, Handler, PodMeta, PodSpec, Probe, PullPolicy, ResizeRestartPolicy, Resources,
    RestartAction, RestartPolicy, RestartRule,
};
use k8s_openapi::api::core::v1 as k8s;

use crate::{amount, placement};

/// Annotation of the node agent upstream: where a pod comes from.
const CONFIG_SOURCE: &str = "kubernetes.io/config.source";

/// Who the pod is.
pub fn core_meta(pod: &k8s::Pod) -> PodMeta {
    let metadata = &pod.metadata;
    let source = metadata.annotations.as_ref().and_then(|annotations| annotations.get(CONFIG_SOURCE));
    PodMeta {
        namespace: metadata.namespace.clone().unwrap_or_default(),
        name: metadata.name.clone().unwrap_or_default(),
        uid: metadata.uid.clone().unwrap_or_default(),
        generation: metadata.generation.unwrap_or_default(),
        is_static: source.is_some_and(|source| source != "api"),
        labels: metadata.labels.clone().unwrap_or_default(),
    }
}

/// What the core needs to know of the pod's spec.
pub fn core_spec(pod: &k8s::Pod) -> PodSpec {
    let Some(spec) = &pod.spec else { return PodSpec::default() };
    let ephemeral = spec.ephemeral_containers.iter().flatten();
    PodSpec {
        restart_policy: restart_policy(spec.restart_policy.as_deref()).unwrap_or_default(),
        init_containers: spec.init_containers.iter().flatten().map(container).collect(),
        containers: spec.containers.iter().map(container).collect(),
        ephemeral_containers: ephemeral.map(ephemeral_container).collect(),
        termination_grace_period_seconds: spec.termination_grace_period_seconds,
        active_deadline_seconds: spec.active_deadline_seconds,
        readiness_gates: spec.readiness_gates.iter().flatten().map(|gate| gate.condition_type.clone()).collect(),
        priority: spec.priority,
        resources: spec.resources.as_ref().map(|written| resources(Some(written))),
        overhead: amount::list(spec.overhead.as_ref()),
        host_network: spec.host_network.unwrap_or_default(),
        os: spec.os.as_ref().map(|os| os.name.clone()),
        placement: placement::placement(spec),
    }
}

fn container(written: &k8s::Container) -> ContainerSpec {
    let lifecycle = written.lifecycle.as_ref();
    let image = written.image.clone().unwrap_or_default();
    ContainerSpec {
        name: written.name.clone(),
        image_pull_policy: pull_policy(written.image_pull_policy.as_deref(), &image),
        image,
        hash: definition_hash(written),
        restart_policy: restart_policy(written.restart_policy.as_deref()),
        restart_policy_rules: written.restart_policy_rules.iter().flatten().filter_map(restart_rule).collect(),
        liveness_probe: written.liveness_probe.as_ref().map(probe),
        readiness_probe: written.readiness_probe.as_ref().map(probe),
        startup_probe: written.startup_probe.as_ref().map(probe),
        post_start: lifecycle.and_then(|hooks| hooks.post_start.as_ref()).map(hook),
        pre_stop: lifecycle.and_then(|hooks| hooks.pre_stop.as_ref()).map(hook),
        stop_signal: lifecycle.and_then(|hooks| hooks.stop_signal.clone()),
        resources: resources(written.resources.as_ref()),
        resize_policy: written.resize_policy.iter().flatten().map(resize_policy).collect(),
        target_container_name: None,
    }
}

fn ephemeral_container(written: &k8s::EphemeralContainer) -> ContainerSpec {
    let target_container_name = written.target_container_name.clone();
    ContainerSpec { target_container_name, ..container(&as_container(written)) }
}

/// An ephemeral container has the fields of a container, and one more.
pub fn as_container(written: &k8s::EphemeralContainer) -> k8s::Container {
    let k8s::EphemeralContainer {
        args,
        command,
        env,
        env_from,
        image,
        image_pull_policy,
        lifecycle,
        liveness_probe,
        name,
        ports,
        readiness_probe,
        resize_policy,
        resources,
        restart_policy,
        restart_policy_rules,
        security_context,
        startup_probe,
        stdin,
        stdin_once,
        target_container_name: _,
        termination_message_path,
        termination_message_policy,
        tty,
        volume_devices,
        volume_mounts,
        working_dir,
    } = written.clone();
    k8s::Container {
        args,
        command,
        env,
        env_from,
        image,
        image_pull_policy,
        lifecycle,
        liveness_probe,
        name,
        ports,
        readiness_probe,
        resize_policy,
        resources,
        restart_policy,
        restart_policy_rules,
        security_context,
        startup_probe,
        stdin,
        stdin_once,
        termination_message_path,
        termination_message_policy,
        tty,
        volume_devices,
        volume_mounts,
        working_dir,
    }
}

/// Stands for everything that makes a running instance out of date: the definition but for the resources, which can
/// change in place. FNV-1a over the JSON form, which has a fixed order.
fn definition_hash(written: &k8s::Container) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x100_0000_01b3;
    let definition = k8s::Container { resources: None, resize_policy: None, ..written.clone() };
    let json = serde_json::to_vec(&definition).unwrap_or_default();
    json.iter().fold(OFFSET, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME))
}

fn restart_policy(written: Option<&str>) -> Option<RestartPolicy> {
    match written? {
        "Always" => Some(RestartPolicy::Always),
        "OnFailure" => Some(RestartPolicy::OnFailure),
        "Never" => Some(RestartPolicy::Never),
        _ => None,
    }
}

fn pull_policy(written: Option<&str>, image: &str) -> PullPolicy {
    match written.unwrap_or_default() {
        "Always" => PullPolicy::Always,
        "Never" => PullPolicy::Never,
        "" if crate::defaults::has_latest_tag(image) => PullPolicy::Always,
        _ => PullPolicy::IfNotPresent,
    }
}

/// A rule that validation would refuse has no meaning and is left out.
fn restart_rule(written: &k8s::ContainerRestartRule) -> Option<RestartRule> {
    let action = match written.action.as_str() {
        "Restart" => RestartAction::Restart,
        "RestartAllContainers" => RestartAction::RestartAllContainers,
        _ => return None,
    };
    let codes = written.exit_codes.as_ref()?;
    let operator = match codes.operator.as_str() {
        "In" => ExitCodeOperator::In,
        "NotIn" => ExitCodeOperator::NotIn,
        _ => return None,
    };
    Some(RestartRule { action, operator, values: codes.values.clone().unwrap_or_default() })
}

fn probe(written: &k8s::Probe) -> Probe {
    let handler = match written {
        k8s::Probe { http_get: Some(_), .. } => Handler::HttpGet,
        k8s::Probe { tcp_socket: Some(_), .. } => Handler::TcpSocket,
        k8s::Probe { grpc: Some(_), .. } => Handler::Grpc,
        _ => Handler::Exec,
    };
    let or = |written: Option<i32>, default: u32| {
        written.and_then(|value| u32::try_from(value).ok()).filter(|value| *value > 0).unwrap_or(default)
    };
    Probe {
        handler,
        initial_delay_seconds: or(written.initial_delay_seconds, 0),
        period_seconds: or(written.period_seconds, 10),
        timeout_seconds: or(written.timeout_seconds, 1),
        success_threshold: or(written.success_threshold, 1),
        failure_threshold: or(written.failure_threshold, 3),
        termination_grace_period_seconds: written.termination_grace_period_seconds,
    }
}

fn hook(written: &k8s::LifecycleHandler) -> Handler {
    match written {
        k8s::LifecycleHandler { sleep: Some(sleep), .. } => {
            Handler::Sleep(u32::try_from(sleep.seconds.max(0)).unwrap_or(u32::MAX))
        }
        k8s::LifecycleHandler { http_get: Some(_), .. } => Handler::HttpGet,
        k8s::LifecycleHandler { tcp_socket: Some(_), .. } => Handler::TcpSocket,
        _ => Handler::Exec,
    }
}

fn resources(written: Option<&k8s::ResourceRequirements>) -> Resources {
    written.map_or_else(Resources::default, |written| Resources {
        requests: amount::list(written.requests.as_ref()),
        limits: amount::list(written.limits.as_ref()),
    })
}

fn resize_policy(written: &k8s::ContainerResizePolicy) -> (String, ResizeRestartPolicy) {
    let policy = match written.restart_policy.as_str() {
        "RestartContainer" => ResizeRestartPolicy::RestartContainer,
        _ => ResizeRestartPolicy::NotRequired,
    };
    (written.resource_name.clone(), policy)
}
