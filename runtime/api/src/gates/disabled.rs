//! Fields of features that are off are taken as if they had not been written.

use k8s_openapi::api::core::v1 as k8s;

use super::{Gate, Gates};

/// Removes the fields of features that are off. Gives the path of each field that was there, with its gate.
pub fn drop_disabled_fields(pod: &mut k8s::Pod, gates: &Gates) -> Vec<(String, Gate)> {
    let Some(spec) = &mut pod.spec else { return Vec::new() };
    let mut dropping = Dropping { gates: *gates, dropped: Vec::new() };
    dropping.field(Gate::GenericWorkload, "spec.schedulingGroup", &mut spec.scheduling_group);
    dropping.field(Gate::HostnameOverride, "spec.hostnameOverride", &mut spec.hostname_override);
    dropping.field(Gate::PodLevelResources, "spec.resources", &mut spec.resources);
    dropping.field(Gate::UserNamespacesSupport, "spec.hostUsers", &mut spec.host_users);
    dropping.image_volumes(spec);
    dropping.projected(spec);
    dropping.containers("spec.initContainers", spec.init_containers.as_deref_mut().unwrap_or_default(), true);
    dropping.containers("spec.containers", &mut spec.containers, false);
    for (index, container) in spec.ephemeral_containers.iter_mut().flatten().enumerate() {
        let path = format!("spec.ephemeralContainers[{index}]");
        dropping.environment(&path, container.env.as_deref_mut().unwrap_or_default());
        dropping.stop_signal(&path, container.lifecycle.as_mut());
    }
    dropping.dropped
}

/// The gates with those on that a pod uses already: what was taken once stays.
pub fn gates_with_used(old: &k8s::Pod, gates: &Gates) -> Gates {
    let dropped = drop_disabled_fields(&mut old.clone(), gates).into_iter().map(|(_, gate)| gate);
    dropped.chain(values_in_use(old)).fold(*gates, |gates, gate| gates.with(gate, true))
}

/// Gates that allow values of fields that are there without them.
fn values_in_use(pod: &k8s::Pod) -> impl Iterator<Item = Gate> {
    let empty = k8s::PodSpec::default();
    let spec = pod.spec.as_ref().unwrap_or(&empty);
    let containers = spec.containers.iter().chain(spec.init_containers.iter().flatten());
    let mut rules = containers.flat_map(|container| container.restart_policy_rules.iter().flatten());
    let mut tolerations = spec.tolerations.iter().flatten();
    let used = [
        (Gate::RestartAllContainersOnContainerExits, rules.any(|rule| rule.action == "RestartAllContainers")),
        (
            Gate::TaintTolerationComparisonOperators,
            tolerations.any(|toleration| matches!(toleration.operator.as_deref(), Some("Lt" | "Gt"))),
        ),
        (Gate::UserNamespacesHostNetworkSupport, spec.host_users == Some(false) && spec.host_network == Some(true)),
    ];
    used.into_iter().filter_map(|(gate, is_used)| is_used.then_some(gate))
}

struct Dropping {
    gates: Gates,
    dropped: Vec<(String, Gate)>,
}

impl Dropping {
    fn field<T>(&mut self, gate: Gate, path: &str, field: &mut Option<T>) {
        if !self.gates.has(gate) && field.take().is_some() {
            self.dropped.push((path.to_owned(), gate));
        }
    }

    /// With the places where they are mounted.
    fn image_volumes(&mut self, spec: &mut k8s::PodSpec) {
        if self.gates.has(Gate::ImageVolume) {
            return;
        }
        let volumes = spec.volumes.iter().flatten().enumerate().filter(|(_, volume)| volume.image.is_some());
        let (places, names): (Vec<_>, Vec<_>) =
            volumes.map(|(index, volume)| (format!("spec.volumes[{index}].image"), volume.name.clone())).unzip();
        if names.is_empty() {
            return;
        }
        self.dropped.extend(places.into_iter().map(|path| (path, Gate::ImageVolume)));
        if let Some(volumes) = &mut spec.volumes {
            volumes.retain(|volume| volume.image.is_none());
        }
        let containers = spec.containers.iter_mut().chain(spec.init_containers.iter_mut().flatten());
        let ephemeral = spec.ephemeral_containers.iter_mut().flatten().map(|container| &mut container.volume_mounts);
        for mounts in containers.map(|container| &mut container.volume_mounts).chain(ephemeral).flatten() {
            mounts.retain(|mount| !names.contains(&mount.name));
        }
    }

    fn projected(&mut self, spec: &mut k8s::PodSpec) {
        for (volume, about) in spec.volumes.iter_mut().flatten().enumerate() {
            let sources = about.projected.as_mut().and_then(|projected| projected.sources.as_mut());
            for (source, about) in sources.into_iter().flatten().enumerate() {
                let path = format!("spec.volumes[{volume}].projected.sources[{source}]");
                let bundle = &mut about.cluster_trust_bundle;
                self.field(Gate::ClusterTrustBundleProjection, &format!("{path}.clusterTrustBundle"), bundle);
                let certificate = &mut about.pod_certificate;
                self.field(Gate::PodCertificateRequest, &format!("{path}.podCertificate"), certificate);
            }
        }
    }

    fn containers(&mut self, list: &str, containers: &mut [k8s::Container], are_init: bool) {
        for (index, container) in containers.iter_mut().enumerate() {
            let path = format!("{list}[{index}]");
            self.field(
                Gate::ContainerRestartRules,
                &format!("{path}.restartPolicyRules"),
                &mut container.restart_policy_rules,
            );
            let is_sidecar = are_init && container.restart_policy.as_deref() == Some("Always");
            if !is_sidecar {
                let policy = &mut container.restart_policy;
                self.field(Gate::ContainerRestartRules, &format!("{path}.restartPolicy"), policy);
            }
            self.environment(&path, container.env.as_deref_mut().unwrap_or_default());
            self.stop_signal(&path, container.lifecycle.as_mut());
            let probes = [
                ("livenessProbe", &mut container.liveness_probe),
                ("readinessProbe", &mut container.readiness_probe),
                ("startupProbe", &mut container.startup_probe),
            ];
            for (name, probe) in probes {
                if let Some(action) = probe.as_mut().and_then(|probe| probe.http_get.as_mut()) {
                    let path = format!("{path}.{name}.httpGet.protocol");
                    self.field(Gate::H2CContainerProbe, &path, &mut action.protocol);
                }
            }
        }
    }

    fn environment(&mut self, path: &str, environment: &mut [k8s::EnvVar]) {
        for (index, variable) in environment.iter_mut().enumerate() {
            if let Some(source) = &mut variable.value_from {
                let path = format!("{path}.env[{index}].valueFrom.fileKeyRef");
                self.field(Gate::EnvFiles, &path, &mut source.file_key_ref);
            }
        }
    }

    fn stop_signal(&mut self, path: &str, lifecycle: Option<&mut k8s::Lifecycle>) {
        if let Some(lifecycle) = lifecycle {
            let path = format!("{path}.lifecycle.stopSignal");
            self.field(Gate::ContainerStopSignals, &path, &mut lifecycle.stop_signal);
        }
    }
}
