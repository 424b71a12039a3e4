//! Defaults of containers, their environment, probes and hooks.

use k8s_openapi::api::core::v1 as k8s;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::has_latest_tag;
use crate::amount;

/// The fields that all three kinds of container have.
pub(super) struct Fields<'a> {
    pub(super) image: &'a Option<String>,
    pub(super) image_pull_policy: &'a mut Option<String>,
    pub(super) termination_message_path: &'a mut Option<String>,
    pub(super) termination_message_policy: &'a mut Option<String>,
    pub(super) ports: &'a mut Option<Vec<k8s::ContainerPort>>,
    pub(super) env: &'a mut Option<Vec<k8s::EnvVar>>,
    pub(super) resources: &'a mut Option<k8s::ResourceRequirements>,
    pub(super) probes: [&'a mut Option<k8s::Probe>; 3],
    pub(super) lifecycle: &'a mut Option<k8s::Lifecycle>,
}

/// Gives the common fields of a container or an ephemeral container.
macro_rules! fields {
    ($container:expr) => {
        $crate::defaults::container::Fields {
            image: &$container.image,
            image_pull_policy: &mut $container.image_pull_policy,
            termination_message_path: &mut $container.termination_message_path,
            termination_message_policy: &mut $container.termination_message_policy,
            ports: &mut $container.ports,
            env: &mut $container.env,
            resources: &mut $container.resources,
            probes: [&mut $container.liveness_probe, &mut $container.readiness_probe, &mut $container.startup_probe],
            lifecycle: &mut $container.lifecycle,
        }
    };
}
pub(super) use fields;

pub(super) fn apply(fields: Fields<'_>) {
    let image = fields.image.as_deref().unwrap_or_default();
    set_text(fields.image_pull_policy, if has_latest_tag(image) { "Always" } else { "IfNotPresent" });
    set_text(fields.termination_message_path, "/dev/termination-log");
    set_text(fields.termination_message_policy, "File");
    for port in fields.ports.iter_mut().flatten() {
        set_text(&mut port.protocol, "TCP");
    }
    for source in fields.env.iter_mut().flatten().filter_map(|variable| variable.value_from.as_mut()) {
        if let Some(field) = &mut source.field_ref {
            set_text(&mut field.api_version, "v1");
        }
        if let Some(resource) = &mut source.resource_field_ref {
            divisor(&mut resource.divisor);
        }
        if let Some(file) = &mut source.file_key_ref {
            file.optional.get_or_insert(false);
        }
    }
    if let Some(resources) = fields.resources {
        requirements(resources);
    }
    for probe in fields.probes.into_iter().flatten() {
        apply_to_probe(probe);
    }
    if let Some(lifecycle) = fields.lifecycle {
        for hook in [&mut lifecycle.post_start, &mut lifecycle.pre_stop].into_iter().flatten() {
            hook.http_get.iter_mut().for_each(http_get);
        }
    }
}

fn apply_to_probe(probe: &mut k8s::Probe) {
    for (number, default) in [
        (&mut probe.timeout_seconds, 1),
        (&mut probe.period_seconds, 10),
        (&mut probe.success_threshold, 1),
        (&mut probe.failure_threshold, 3),
    ] {
        if number.unwrap_or_default() == 0 {
            *number = Some(default);
        }
    }
    probe.http_get.iter_mut().for_each(http_get);
    if let Some(grpc) = &mut probe.grpc {
        grpc.service.get_or_insert_default();
    }
}

fn http_get(action: &mut k8s::HTTPGetAction) {
    set_text(&mut action.path, "/");
    set_text(&mut action.scheme, "HTTP");
}

/// A divisor that is not given is written as 0.
pub(super) fn divisor(divisor: &mut Option<Quantity>) {
    amount::canonical(divisor.get_or_insert_with(|| Quantity("0".into())));
}

/// Amounts are kept in milli units, rounded up.
pub(super) fn requirements(resources: &mut k8s::ResourceRequirements) {
    for amount in
        [&mut resources.limits, &mut resources.requests].into_iter().flatten().flat_map(|list| list.values_mut())
    {
        amount::round_to_milli(amount);
    }
}

/// What is limited and not requested is requested as it is limited.
pub(super) fn requests_from_limits(resources: &mut k8s::ResourceRequirements) {
    let Some(limits) = &resources.limits else { return };
    let requests = resources.requests.get_or_insert_default();
    for (name, amount) in limits {
        requests.entry(name.clone()).or_insert_with(|| amount.clone());
    }
    if requests.is_empty() {
        resources.requests = None;
    }
}

/// Sets a text that is missing or empty.
pub(super) fn set_text(text: &mut Option<String>, default: &str) {
    if text.as_deref().unwrap_or_default().is_empty() {
        *text = Some(default.into());
    }
}
