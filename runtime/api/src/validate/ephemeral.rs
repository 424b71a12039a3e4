//! Ephemeral containers: like others, but without anything that would make the pod depend on them.

use std::collections::BTreeSet;

use super::container::{self, Scope};
use super::errors::{Errors, Path};
use super::pod::{text, trimmed_image, unique};
use crate::core_spec::as_container;

const NOT_HERE: &str = "cannot be set for an Ephemeral Container";

pub(super) fn validate(scope: &Scope<'_>, path: &Path, errors: &mut Errors) {
    let spec = scope.spec;
    let others = spec.containers.iter().chain(spec.init_containers.iter().flatten());
    let others: BTreeSet<&str> = others.map(|container| container.name.as_str()).collect();
    let mut names = others.clone();
    for (index, ephemeral) in spec.ephemeral_containers.iter().flatten().enumerate() {
        let path = path.index(index);
        let container = as_container(ephemeral);
        container::common(&container, scope, &path, errors);
        trimmed_image(text(&container.image), &path, errors);
        unique(&ephemeral.name, &mut names, &path.child("name"), errors);
        let target = text(&ephemeral.target_container_name);
        if !target.is_empty() && !others.contains(target) {
            errors.not_found(&path.child("targetContainerName"));
        }
        let has_resources = container.resources.as_ref().is_some_and(|resources| *resources != Default::default());
        let table = [
            (container.ports.is_some(), "ports"),
            (has_resources, "resources"),
            (container.resize_policy.is_some(), "resizePolicy"),
            (container.restart_policy.is_some(), "restartPolicy"),
            (container.restart_policy_rules.is_some(), "restartPolicyRules"),
            (container.liveness_probe.is_some(), "livenessProbe"),
            (container.readiness_probe.is_some(), "readinessProbe"),
            (container.startup_probe.is_some(), "startupProbe"),
            (container.lifecycle.is_some(), "lifecycle"),
        ];
        for (is_set, field) in table {
            errors.forbidden_if(is_set, &path.child(field), NOT_HERE);
        }
        for (index, mount) in container.volume_mounts.iter().flatten().enumerate() {
            let path = path.child("volumeMounts").index(index);
            errors.forbidden_if(!text(&mount.sub_path).is_empty(), &path.child("subPath"), NOT_HERE);
            errors.forbidden_if(!text(&mount.sub_path_expr).is_empty(), &path.child("subPathExpr"), NOT_HERE);
        }
    }
}
