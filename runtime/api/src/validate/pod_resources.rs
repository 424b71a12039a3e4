//! Resources of a pod as a whole: they bound what its containers ask for.

use husk_core::resources::{is_pod_level, pod_requests};
use k8s_openapi::api::core::v1 as k8s;

use super::container::Scope;
use super::errors::{Errors, Path};
use super::resources;
use crate::amount;
use crate::defaults::of_containers;

pub(super) fn validate(written: &k8s::ResourceRequirements, scope: &Scope<'_>, path: &Path, errors: &mut Errors) {
    if scope.spec.os.as_ref().is_some_and(|os| os.name == "windows") {
        return errors.forbidden(path, "may not be set for a windows pod");
    }
    if written.claims.as_ref().is_some_and(|claims| !claims.is_empty()) {
        errors.forbidden(&path.child("claims"), "claims may not be set for Resources at pod-level");
    }
    resources::validate(written, name_rules, scope.claims, path, errors);
    for (name, sum) in &pod_requests(&of_containers(scope.spec)) {
        let Some(request) = written.requests.as_ref().and_then(|requests| requests.get(name)) else { continue };
        if *sum > amount::of(request) {
            let rule = format!("must be greater than or equal to aggregate container requests of {sum}");
            errors.invalid(&path.child("requests").key(name), rule);
        }
    }
    for (index, container) in scope.spec.containers.iter().enumerate() {
        let limits = container.resources.iter().flat_map(|resources| resources.limits.iter().flatten());
        for (name, limit) in limits {
            let Some(most) = written.limits.as_ref().and_then(|limits| limits.get(name)) else { continue };
            if amount::of(limit) > amount::of(most) {
                let path = path.child("containers").index(index).key(name).child("limits");
                errors.invalid(&path, format!("must be less than or equal to pod limits of {}", amount::of(most)));
            }
        }
    }
}

fn name_rules(name: &str, path: &Path, errors: &mut Errors) {
    if !is_pod_level(name) {
        errors.not_supported(path, &["cpu", "hugepages-", "memory"]);
    }
}
