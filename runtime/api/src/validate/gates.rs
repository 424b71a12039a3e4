//! Feature gates that change what is valid.

use k8s_openapi::api::core::v1 as k8s;

/// Features of Kubernetes that are off by default and add or change a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gates {
    /// `lifecycle.stopSignal`.
    pub container_stop_signals: bool,
    /// `schedulingGroup`.
    pub generic_workload: bool,
    /// Operators `Lt` and `Gt` of tolerations.
    pub taint_toleration_comparison_operators: bool,
    /// `hostNetwork` together with `hostUsers: false`.
    pub user_namespaces_host_network_support: bool,
    /// Trust bundles in projected volumes.
    pub cluster_trust_bundle_projection: bool,
    /// Certificates in projected volumes.
    pub pod_certificate_request: bool,
}

impl Gates {
    /// As Kubernetes has them by default.
    pub const UPSTREAM: Self = Self {
        container_stop_signals: false,
        generic_workload: false,
        taint_toleration_comparison_operators: false,
        user_namespaces_host_network_support: false,
        cluster_trust_bundle_projection: false,
        pod_certificate_request: false,
    };

    /// Turns on the gate of that name; false if there is none that matters here.
    pub fn enable(&mut self, name: &str) -> bool {
        let gate = match name {
            "ContainerStopSignals" => &mut self.container_stop_signals,
            "GenericWorkload" => &mut self.generic_workload,
            "TaintTolerationComparisonOperators" => &mut self.taint_toleration_comparison_operators,
            "UserNamespacesHostNetworkSupport" => &mut self.user_namespaces_host_network_support,
            "ClusterTrustBundleProjection" => &mut self.cluster_trust_bundle_projection,
            "PodCertificateRequest" => &mut self.pod_certificate_request,
            _ => return false,
        };
        *gate = true;
        true
    }
}

impl Default for Gates {
    /// As Husk runs: it delivers stop signals.
    fn default() -> Self {
        Self { container_stop_signals: true, ..Self::UPSTREAM }
    }
}

/// Removes the fields of features that are off, as if they had not been written.
pub fn drop_disabled_fields(pod: &mut k8s::Pod, gates: &Gates) {
    let Some(spec) = &mut pod.spec else { return };
    if !gates.generic_workload {
        spec.scheduling_group = None;
    }
    let projected = spec.volumes.iter_mut().flatten().filter_map(|volume| volume.projected.as_mut());
    for source in projected.flat_map(|projected| projected.sources.iter_mut().flatten()) {
        if !gates.cluster_trust_bundle_projection {
            source.cluster_trust_bundle = None;
        }
        if !gates.pod_certificate_request {
            source.pod_certificate = None;
        }
    }
    if !gates.container_stop_signals {
        let containers = spec.containers.iter_mut().chain(spec.init_containers.iter_mut().flatten());
        let ephemeral = spec.ephemeral_containers.iter_mut().flatten();
        let lifecycles = containers.map(|c| &mut c.lifecycle).chain(ephemeral.map(|c| &mut c.lifecycle));
        for lifecycle in lifecycles.flatten() {
            lifecycle.stop_signal = None;
        }
    }
}
