//! Resources of a container: names, amounts, requests against limits, claims, how to resize.

use std::collections::{BTreeMap, BTreeSet};

use husk_core::quantity::Quantity;
use k8s_openapi::api::core::v1 as k8s;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::annotations::MIRROR;
use super::errors::{ErrorKind, Errors, Path};
use super::names;
use super::pod::text;
use crate::amount;

/// Rules for the name of a resource.
pub(super) type NameRules = fn(&str, &Path, &mut Errors);

/// Names without a domain that exist, for containers or elsewhere.
const STANDARD: [&str; 20] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "storage",
    "requests.storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "persistentvolumeclaims",
    "configmaps",
    "services.nodeports",
    "services.loadbalancers",
];
const FOR_CONTAINERS: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
/// Countable things.
const WHOLE: [&str; 9] = [
    "pods",
    "resourcequotas",
    "services",
    "services.nodeports",
    "services.loadbalancers",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
];

pub(super) fn validate(
    resources: &k8s::ResourceRequirements,
    name_rules: NameRules,
    claims: &BTreeSet<&str>,
    path: &Path,
    errors: &mut Errors,
) {
    let (limits, requests) = (amounts(resources.limits.as_ref()), amounts(resources.requests.as_ref()));
    let (limits_path, requests_path) = (path.child("limits"), path.child("requests"));
    for (name, amount) in &limits {
        let path = limits_path.key(name);
        name_rules(name, &path, errors);
        amount_rules(name, amount, &path, errors);
    }
    for (name, amount) in &requests {
        let path = requests_path.key(name);
        name_rules(name, &path, errors);
        amount_rules(name, amount, &path, errors);
        match limits.get(name) {
            Some(limit) if amount != limit && !may_overcommit(name) => {
                errors.invalid(&requests_path, format!("must be equal to {name} limit of {limit}"));
            }
            Some(limit) if amount > limit => {
                errors.invalid(&requests_path, format!("must be less than or equal to {name} limit of {limit}"));
            }
            None if !may_overcommit(name) => {
                errors.required(&limits_path, "Limit must be set for non overcommitable resources");
            }
            _ => {}
        }
    }
    let names = || limits.keys().chain(requests.keys()).copied();
    let has_compute = names().any(|name| matches!(name, "cpu" | "memory"));
    let rule = "HugePages require cpu or memory";
    errors.forbidden_if(!has_compute && names().any(is_huge_page), path, rule);
    claim_names(resources.claims.as_deref().unwrap_or_default(), claims, &path.child("claims"), errors);
}

fn amounts(
    written: Option<&BTreeMap<String, k8s_openapi::apimachinery::pkg::api::resource::Quantity>>,
) -> BTreeMap<&str, Quantity> {
    written.into_iter().flatten().map(|(name, written)| (name.as_str(), amount::of(written))).collect()
}

fn amount_rules(name: &str, amount: &Quantity, path: &Path, errors: &mut Errors) {
    errors.invalid_if(amount.is_negative(), path, "must be greater than or equal to 0");
    let is_fraction = amount.milli_value() % 1000 != 0;
    errors.invalid_if(is_whole(name) && is_fraction, path, "must be an integer");
    if is_huge_page(name) && !fills_pages(name, amount) {
        errors.invalid(path, format!("{amount} is not positive integer multiple of {name}"));
    }
}

fn fills_pages(name: &str, amount: &Quantity) -> bool {
    let page = name.strip_prefix("hugepages-").and_then(amount::parse);
    page.is_some_and(|page| {
        page.milli_value() > 0 && page.milli_value() % 1000 == 0 && amount.value() % page.value() == 0
    })
}

/// Rules for any resource.
pub(super) fn resource_name(name: &str, path: &Path, errors: &mut Errors) {
    let before = errors.len();
    errors.invalid_all(path, names::qualified(name));
    let is_standard = STANDARD.contains(&name) || is_huge_page(name) || name.starts_with("requests.hugepages-");
    if errors.len() == before && !name.contains('/') && !is_standard {
        errors.invalid(path, "must be a standard resource type or fully qualified");
    }
}

/// Rules for a resource of a container.
pub(super) fn container_resource_name(name: &str, path: &Path, errors: &mut Errors) {
    resource_name(name, path, errors);
    if !name.contains('/') {
        let fits = FOR_CONTAINERS.contains(&name) || is_huge_page(name);
        errors.invalid_if(!fits, path, "must be a standard resource for containers");
    } else if !is_native(name) && !is_extended(name) {
        errors.invalid(path, "doesn't follow extended resource name standard");
    }
}

pub(super) fn is_huge_page(name: &str) -> bool {
    name.starts_with("hugepages-")
}

fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

fn is_extended(name: &str) -> bool {
    !is_native(name) && !name.starts_with("requests.") && names::qualified(&format!("requests.{name}")).is_empty()
}

fn is_whole(name: &str) -> bool {
    WHOLE.contains(&name) || is_extended(name)
}

/// Whether more may be used than was requested.
fn may_overcommit(name: &str) -> bool {
    is_native(name) && !is_huge_page(name)
}

/// So many names stand in a message at most.
const MOST_SHOWN: usize = 100;

fn claim_names(claims: &[k8s::ResourceClaim], of_pod: &BTreeSet<&str>, path: &Path, errors: &mut Errors) {
    let mut known: BTreeSet<(&str, &str)> = BTreeSet::new();
    for (index, claim) in claims.iter().enumerate() {
        let path = path.index(index);
        let (name, request) = (claim.name.as_str(), text(&claim.request));
        if name.is_empty() {
            errors.required(&path, "");
            continue;
        }
        // Naming the whole claim includes its parts.
        if known.contains(&(name, "")) {
            errors.duplicate(&path);
        } else {
            let overlaps = match request {
                "" => known.iter().filter(|(other, _)| *other == name).count(),
                request => {
                    errors.invalid_all(&path.child("request"), names::label(request));
                    usize::from(known.contains(&(name, request)))
                }
            };
            for _ in 0..overlaps {
                errors.duplicate(&path);
            }
            known.insert((name, request));
        }
        if !of_pod.contains(name) {
            // Not all of many, or many wrong names would fill the memory with right ones.
            let mut shown: Vec<&str> = of_pod.iter().copied().take(MOST_SHOWN).collect();
            shown.extend((of_pod.len() > MOST_SHOWN).then_some("…"));
            let which = if shown.is_empty() { " which is empty".into() } else { format!(": {}", shown.join(", ")) };
            let rule = format!("must be one of the names in pod.spec.resourceClaims{which}");
            errors.push(ErrorKind::NotFound, &path, rule);
        }
    }
}

/// `resourceClaims` of a pod; gives their names.
pub(super) fn pod_claims<'a>(
    spec: &'a k8s::PodSpec,
    metadata: &ObjectMeta,
    path: &Path,
    errors: &mut Errors,
) -> BTreeSet<&'a str> {
    let claims = spec.resource_claims.as_deref().unwrap_or_default();
    if metadata.annotations.as_ref().is_some_and(|annotations| annotations.contains_key(MIRROR)) {
        for _ in claims {
            errors.forbidden(&Path::new(""), "static pods do not support resource claims");
        }
        return claims.iter().map(|claim| claim.name.as_str()).filter(|name| !name.is_empty()).collect();
    }
    let mut known = BTreeSet::new();
    for (index, claim) in claims.iter().enumerate() {
        let path = path.index(index);
        let name_path = path.child("name");
        if claim.name.is_empty() {
            errors.required(&name_path, "");
        } else if known.contains(claim.name.as_str()) {
            errors.duplicate(&name_path);
        } else {
            errors.invalid_all(&name_path, names::label(&claim.name));
            known.insert(claim.name.as_str());
        }
        match (&claim.resource_claim_name, &claim.resource_claim_template_name) {
            (Some(_), Some(_)) => errors
                .invalid(&path, "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"),
            (None, None) => {
                errors.invalid(&path, "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`");
            }
            _ => {}
        }
        let table = [
            (&claim.resource_claim_name, "resourceClaimName"),
            (&claim.resource_claim_template_name, "resourceClaimTemplateName"),
        ];
        for (name, field) in table {
            if let Some(name) = name {
                errors.invalid_all(&path.child(field), names::subdomain(name));
            }
        }
    }
    known
}

/// What a change of resources does to a running container.
pub(super) fn resize_policy(container: &k8s::Container, spec: &k8s::PodSpec, path: &Path, errors: &mut Errors) {
    let mut known: BTreeSet<&str> = BTreeSet::new();
    for (index, policy) in container.resize_policy.iter().flatten().enumerate() {
        if !known.insert(&policy.resource_name) {
            errors.duplicate(&path.index(index));
        }
        errors.required_one_of(Some(&policy.resource_name), path, &["cpu", "memory"]);
        errors.required_one_of(Some(&policy.restart_policy), path, &["NotRequired", "RestartContainer"]);
        let never = text(&spec.restart_policy) == "Never" && policy.restart_policy != "NotRequired";
        errors.invalid_if(never, path, "must be 'NotRequired' when pod `restartPolicy` is 'Never'");
    }
}
