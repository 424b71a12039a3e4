//! Defaults of objects other than pods.

use k8s_openapi::api::apps::v1::{
    DaemonSet, DaemonSetUpdateStrategy, Deployment, DeploymentStrategy, ReplicaSet, RollingUpdateDaemonSet,
    RollingUpdateDeployment, RollingUpdateStatefulSetStrategy, StatefulSet,
    StatefulSetPersistentVolumeClaimRetentionPolicy, StatefulSetUpdateStrategy,
};
use k8s_openapi::api::batch::v1::{CronJob, Job, JobSpec};
use k8s_openapi::api::core::v1 as k8s;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;

use super::container::set_text;
use super::pod::{fill_pod, fill_template};
use super::{default_pod, default_template, volumes};
use crate::Object;

const ROLLING_UPDATE: &str = "RollingUpdate";
/// Old versions of a workload that are kept.
const REVISIONS: i32 = 10;

/// Fills in an object as Kubernetes does when it is created.
pub fn default_object(object: &mut Object) {
    match object {
        Object::Pod(pod) => default_pod(pod),
        Object::Job(object) => job(object),
        Object::Deployment(object) => deployment(object),
        Object::ReplicaSet(object) => replica_set(object),
        Object::DaemonSet(object) => daemon_set(object),
        Object::StatefulSet(object) => stateful_set(object),
        Object::ConfigMap(_) => {}
        Object::Secret(object) => secret(object),
    }
    object.template_mut().into_iter().for_each(default_template);
}

/// The same for JSON, for more kinds, and without the older names that fields also have. An object of a kind without defaults comes back as it is; none if a value has
/// the wrong type.
pub fn default_json(json: &Json) -> Option<Json> {
    match json["kind"].as_str().unwrap_or_default() {
        "Pod" => {
            let mut pod = crate::pod_from_json(json).ok()?;
            fill_pod(&mut pod);
            serde_json::to_value(pod).ok()
        }
        "Job" => with(json, job),
        "CronJob" => with(json, cron_job),
        "Deployment" => with(json, deployment),
        "ReplicaSet" => with(json, replica_set),
        "DaemonSet" => with(json, daemon_set),
        "StatefulSet" => with(json, stateful_set).map(|object| without_added_types(object, json)),
        "Service" => with(json, service),
        "PersistentVolumeClaim" => with(json, claim),
        "Secret" => with(json, secret),
        _ => Some(json.clone()),
    }
}

fn with<T: DeserializeOwned + Serialize>(json: &Json, apply: impl FnOnce(&mut T)) -> Option<Json> {
    let mut object: T = serde_json::from_value(json.clone()).ok()?;
    apply(&mut object);
    serde_json::to_value(object).ok()
}

fn secret(secret: &mut k8s::Secret) {
    set_text(&mut secret.type_, "Opaque");
}

/// Claims inside a StatefulSet are written without `apiVersion` and `kind` unless they came with them.
fn without_added_types(mut object: Json, written: &Json) -> Json {
    const CLAIMS: &str = "/spec/volumeClaimTemplates";
    let written = written.pointer(CLAIMS).and_then(Json::as_array).cloned().unwrap_or_default();
    let claims = object.pointer_mut(CLAIMS).and_then(Json::as_array_mut);
    for (claim, written) in claims.into_iter().flatten().zip(&written) {
        if let Some(claim) = claim.as_object_mut() {
            claim.retain(|key, _| !matches!(key.as_str(), "apiVersion" | "kind") || written.get(key).is_some());
        }
    }
    object
}

fn job(job: &mut Job) {
    let spec = job.spec.get_or_insert_default();
    if spec.completions.is_none() && spec.parallelism.is_none() {
        (spec.completions, spec.parallelism) = (Some(1), Some(1));
    }
    spec.parallelism.get_or_insert(1);
    let per_index = spec.backoff_limit_per_index.is_some();
    spec.backoff_limit.get_or_insert(if per_index { i32::MAX } else { 6 });
    spec.completion_mode.get_or_insert_with(|| "NonIndexed".into());
    spec.suspend.get_or_insert(false);
    spec.manual_selector.get_or_insert(false);
    let policy = if spec.pod_failure_policy.is_some() { "Failed" } else { "TerminatingOrFailed" };
    spec.pod_replacement_policy.get_or_insert_with(|| policy.into());
    failure_policy(spec);
    // Labels of the template are the job's, if it has none of its own.
    let labels = spec.template.metadata.as_ref().and_then(|metadata| metadata.labels.clone());
    if job.metadata.labels.as_ref().is_none_or(|labels| labels.is_empty()) {
        job.metadata.labels = labels.or(job.metadata.labels.take());
    }
    fill_template(&mut spec.template);
}

fn failure_policy(spec: &mut JobSpec) {
    let rules = spec.pod_failure_policy.iter_mut().flat_map(|policy| &mut policy.rules);
    for pattern in rules.flat_map(|rule| rule.on_pod_conditions.iter_mut().flatten()) {
        set_text(&mut pattern.status, "True");
    }
}

fn cron_job(cron_job: &mut CronJob) {
    let spec = &mut cron_job.spec;
    set_text(&mut spec.concurrency_policy, "Allow");
    spec.suspend.get_or_insert(false);
    spec.successful_jobs_history_limit.get_or_insert(3);
    spec.failed_jobs_history_limit.get_or_insert(1);
    // Jobs get theirs when they are made; only their parts are looked at now.
    if let Some(spec) = &mut spec.job_template.spec {
        failure_policy(spec);
        fill_template(&mut spec.template);
    }
}

fn deployment(deployment: &mut Deployment) {
    let spec = &mut deployment.spec;
    spec.replicas.get_or_insert(1);
    spec.revision_history_limit.get_or_insert(REVISIONS);
    spec.progress_deadline_seconds.get_or_insert(600);
    let strategy = spec.strategy.get_or_insert_with(DeploymentStrategy::default);
    set_text(&mut strategy.type_, ROLLING_UPDATE);
    if strategy.type_.as_deref() == Some(ROLLING_UPDATE) {
        let rolling = strategy.rolling_update.get_or_insert_with(RollingUpdateDeployment::default);
        let quarter = || IntOrString::String("25%".into());
        rolling.max_surge.get_or_insert_with(quarter);
        rolling.max_unavailable.get_or_insert_with(quarter);
    }
    fill_template(&mut spec.template);
}

fn replica_set(replica_set: &mut ReplicaSet) {
    let spec = &mut replica_set.spec;
    spec.replicas.get_or_insert(1);
    fill_template(spec.template.get_or_insert_default());
}

fn daemon_set(daemon_set: &mut DaemonSet) {
    let spec = &mut daemon_set.spec;
    spec.revision_history_limit.get_or_insert(REVISIONS);
    let strategy = spec.update_strategy.get_or_insert_with(DaemonSetUpdateStrategy::default);
    set_text(&mut strategy.type_, ROLLING_UPDATE);
    if strategy.type_.as_deref() == Some(ROLLING_UPDATE) {
        let rolling = strategy.rolling_update.get_or_insert_with(RollingUpdateDaemonSet::default);
        rolling.max_unavailable.get_or_insert(IntOrString::Int(1));
        rolling.max_surge.get_or_insert(IntOrString::Int(0));
    }
    fill_template(&mut spec.template);
}

fn stateful_set(stateful_set: &mut StatefulSet) {
    let spec = &mut stateful_set.spec;
    spec.replicas.get_or_insert(1);
    spec.revision_history_limit.get_or_insert(REVISIONS);
    set_text(&mut spec.pod_management_policy, "OrderedReady");
    let strategy = spec.update_strategy.get_or_insert_with(StatefulSetUpdateStrategy::default);
    if strategy.type_.as_deref().unwrap_or_default().is_empty() {
        strategy.type_ = Some(ROLLING_UPDATE.into());
        strategy.rolling_update.get_or_insert_with(RollingUpdateStatefulSetStrategy::default);
    }
    if strategy.type_.as_deref() == Some(ROLLING_UPDATE) {
        strategy.rolling_update.iter_mut().for_each(|rolling| _ = rolling.partition.get_or_insert(0));
    }
    let retention = spec
        .persistent_volume_claim_retention_policy
        .get_or_insert_with(StatefulSetPersistentVolumeClaimRetentionPolicy::default);
    set_text(&mut retention.when_deleted, "Retain");
    set_text(&mut retention.when_scaled, "Retain");
    spec.volume_claim_templates.iter_mut().flatten().for_each(claim);
    fill_template(&mut spec.template);
}

fn claim(claim: &mut k8s::PersistentVolumeClaim) {
    set_text(&mut claim.status.get_or_insert_default().phase, "Pending");
    volumes::claim_spec(claim.spec.get_or_insert_default());
}

fn service(service: &mut k8s::Service) {
    let spec = service.spec.get_or_insert_default();
    set_text(&mut spec.session_affinity, "None");
    match spec.session_affinity.as_deref() {
        Some("ClientIP") => {
            let client = spec.session_affinity_config.get_or_insert_default().client_ip.get_or_insert_default();
            client.timeout_seconds.get_or_insert(3 * 60 * 60);
        }
        Some("None") => spec.session_affinity_config = None,
        _ => {}
    }
    set_text(&mut spec.type_, "ClusterIP");
    let kind = spec.type_.as_deref().unwrap_or_default();
    let takes_from_outside = matches!(kind, "NodePort" | "LoadBalancer")
        || (kind == "ClusterIP" && spec.external_ips.as_ref().is_some_and(|ips| !ips.is_empty()));
    if takes_from_outside {
        set_text(&mut spec.external_traffic_policy, "Cluster");
    }
    if matches!(kind, "NodePort" | "LoadBalancer" | "ClusterIP") {
        spec.internal_traffic_policy.get_or_insert_with(|| "Cluster".into());
    }
    if kind == "LoadBalancer" {
        spec.allocate_load_balancer_node_ports.get_or_insert(true);
        let status = service.status.as_mut().and_then(|status| status.load_balancer.as_mut());
        for ingress in status.and_then(|balancer| balancer.ingress.as_mut()).into_iter().flatten() {
            if ingress.ip.as_deref().is_some_and(|ip| !ip.is_empty()) {
                ingress.ip_mode.get_or_insert_with(|| "VIP".into());
            }
        }
    }
    for port in spec.ports.iter_mut().flatten() {
        set_text(&mut port.protocol, "TCP");
        let is_unset = match &port.target_port {
            None | Some(IntOrString::Int(0)) => true,
            Some(IntOrString::String(name)) => name.is_empty(),
            Some(IntOrString::Int(_)) => false,
        };
        if is_unset {
            port.target_port = Some(IntOrString::Int(port.port));
        }
    }
}
