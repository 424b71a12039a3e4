//! Resources of a pod as a whole: they bound what its containers ask for.

use husk_core::resources::{is_pod_level, pod_limits, pod_requests};
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
    if written.claims.is_some() {
        errors.forbidden(&path.child("claims"), "claims may not be set for Resources at pod-level");
    }
    resources::validate(written, name_rules, scope.claims, path, errors);
    sums(written, scope.spec, path, errors);
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

/// Together the containers may not ask for more than the pod has; huge pages are never shared out twice.
fn sums(written: &k8s::ResourceRequirements, spec: &k8s::PodSpec, path: &Path, errors: &mut Errors) {
    let containers = of_containers(spec);
    let (requested, mut limited) = (pod_requests(&containers), pod_limits(&containers));
    limited.retain(|name, _| resources::is_huge_page(name));
    for (sums, bounds, field) in [(requested, &written.requests, "requests"), (limited, &written.limits, "limits")] {
        for (name, sum) in &sums {
            let Some(bound) = bounds.as_ref().and_then(|bounds| bounds.get(name)) else { continue };
            if *sum > amount::of(bound) {
                let rule = format!("must be greater than or equal to aggregate container {field} of {sum}");
                errors.invalid(&path.child(field).key(name), rule);
            }
        }
    }
}

fn name_rules(name: &str, path: &Path, errors: &mut Errors) {
    let before = errors.len();
    resources::resource_name(name, path, errors);
    if errors.len() == before && !is_pod_level(name) {
        errors.not_supported(path, &["cpu", "hugepages-", "memory"]);
    }
}
