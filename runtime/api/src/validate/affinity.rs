//! Affinity to nodes and to other pods, and the selectors they use.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1 as k8s;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use super::errors::{Errors, Path};
use super::names;

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

pub(super) fn validate(affinity: Option<&k8s::Affinity>, path: &Path, errors: &mut Errors) {
    let Some(affinity) = affinity else { return };
    if let Some(affinity) = &affinity.node_affinity {
        node_affinity(affinity, &path.child("nodeAffinity"), errors);
    }
    if let Some(affinity) = &affinity.pod_affinity {
        let required = affinity.required_during_scheduling_ignored_during_execution.as_deref();
        let preferred = affinity.preferred_during_scheduling_ignored_during_execution.as_deref();
        pod_terms(required, preferred, &path.child("podAffinity"), errors);
    }
    if let Some(affinity) = &affinity.pod_anti_affinity {
        let required = affinity.required_during_scheduling_ignored_during_execution.as_deref();
        let preferred = affinity.preferred_during_scheduling_ignored_during_execution.as_deref();
        pod_terms(required, preferred, &path.child("podAntiAffinity"), errors);
    }
}

fn node_affinity(affinity: &k8s::NodeAffinity, path: &Path, errors: &mut Errors) {
    if let Some(selector) = &affinity.required_during_scheduling_ignored_during_execution {
        let path = path.child(REQUIRED).child("nodeSelectorTerms");
        if selector.node_selector_terms.is_empty() {
            errors.required(&path, "must have at least one node selector term");
        }
        for (index, term) in selector.node_selector_terms.iter().enumerate() {
            node_term(term, true, &path.index(index), errors);
        }
    }
    let preferred = affinity.preferred_during_scheduling_ignored_during_execution.iter().flatten();
    for (index, term) in preferred.enumerate() {
        let path = path.child(PREFERRED).index(index);
        weight(term.weight, &path, errors);
        node_term(&term.preference, false, &path.child("preference"), errors);
    }
}

fn weight(weight: i32, path: &Path, errors: &mut Errors) {
    errors.invalid_if(!(1..=100).contains(&weight), &path.child("weight"), "must be in the range 1-100");
}

fn node_term(term: &k8s::NodeSelectorTerm, checks_values: bool, path: &Path, errors: &mut Errors) {
    for (index, requirement) in term.match_expressions.iter().flatten().enumerate() {
        node_requirement(requirement, checks_values, &path.child("matchExpressions").index(index), errors);
    }
    for (index, requirement) in term.match_fields.iter().flatten().enumerate() {
        field_requirement(requirement, &path.child("matchFields").index(index), errors);
    }
}

fn node_requirement(requirement: &k8s::NodeSelectorRequirement, checks_values: bool, path: &Path, errors: &mut Errors) {
    let values = requirement.values.as_deref().unwrap_or_default();
    let values_path = path.child("values");
    match requirement.operator.as_str() {
        "Gt" | "Lt" if values.len() != 1 => {
            errors.required(&values_path, "must be specified single value when `operator` is 'Lt' or 'Gt'");
        }
        "Gt" | "Lt" => {}
        operator => set_operator(operator, values.len(), path, errors),
    }
    errors.invalid_all(&path.child("key"), names::qualified(&requirement.key));
    for (index, value) in values.iter().enumerate().filter(|_| checks_values) {
        errors.invalid_all(&values_path.index(index), names::label_value(value));
    }
}

/// `In` and `NotIn` need values, `Exists` and `DoesNotExist` can't have any.
fn set_operator(operator: &str, values: usize, path: &Path, errors: &mut Errors) {
    let values_path = path.child("values");
    match (operator, values) {
        ("In" | "NotIn", 0) => {
            errors.required(&values_path, "must be specified when `operator` is 'In' or 'NotIn'");
        }
        ("In" | "NotIn", _) | ("Exists" | "DoesNotExist", 0) => {}
        ("Exists" | "DoesNotExist", _) => {
            errors.forbidden(&values_path, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
        }
        _ => errors.invalid(&path.child("operator"), "not a valid selector operator"),
    }
}

fn field_requirement(requirement: &k8s::NodeSelectorRequirement, path: &Path, errors: &mut Errors) {
    let values = requirement.values.as_deref().unwrap_or_default();
    let values_path = path.child("values");
    match requirement.operator.as_str() {
        "In" | "NotIn" if values.len() == 1 => {}
        "In" | "NotIn" => {
            let rule = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
            errors.required(&values_path, rule);
        }
        _ => errors.invalid(&path.child("operator"), "not a valid selector operator"),
    }
    if requirement.key != "metadata.name" {
        return errors.invalid(&path.child("key"), "not a valid field selector key");
    }
    for (index, value) in values.iter().enumerate() {
        errors.invalid_all(&values_path.index(index), names::subdomain(value));
    }
}

fn pod_terms(
    required: Option<&[k8s::PodAffinityTerm]>,
    preferred: Option<&[k8s::WeightedPodAffinityTerm]>,
    path: &Path,
    errors: &mut Errors,
) {
    for (index, term) in required.into_iter().flatten().enumerate() {
        pod_term(term, &path.child(REQUIRED).index(index), errors);
    }
    for (index, term) in preferred.into_iter().flatten().enumerate() {
        let path = path.child(PREFERRED).index(index);
        weight(term.weight, &path, errors);
        pod_term(&term.pod_affinity_term, &path.child("podAffinityTerm"), errors);
    }
}

fn pod_term(term: &k8s::PodAffinityTerm, path: &Path, errors: &mut Errors) {
    label_selector(term.label_selector.as_ref(), &path.child("labelSelector"), errors);
    label_selector(term.namespace_selector.as_ref(), &path.child("namespaceSelector"), errors);
    for namespace in term.namespaces.iter().flatten() {
        errors.invalid_all(&path.child("namespace"), names::label(namespace));
    }
    let matching = term.match_label_keys.as_deref().unwrap_or_default();
    let mismatching = term.mismatch_label_keys.as_deref().unwrap_or_default();
    label_keys(matching, mismatching, term.label_selector.as_ref(), path, errors);
    if term.topology_key.is_empty() {
        errors.required(&path.child("topologyKey"), "can not be empty");
    }
    errors.invalid_all(&path.child("topologyKey"), names::qualified(&term.topology_key));
}

/// Labels of the pod itself that complete a selector; also of topology spread constraints.
pub(super) fn label_keys(
    matching: &[String],
    mismatching: &[String],
    selector: Option<&LabelSelector>,
    path: &Path,
    errors: &mut Errors,
) {
    for (keys, field) in [(matching, "matchLabelKeys"), (mismatching, "mismatchLabelKeys")] {
        let path = path.child(field);
        if selector.is_none() {
            errors.forbidden_if(!keys.is_empty(), &path, "must not be specified when labelSelector is not set");
            continue;
        }
        for (index, key) in keys.iter().enumerate() {
            errors.invalid_all(&path.index(index), names::qualified(key));
        }
    }
    if let Some(selector) = selector {
        let mut known: BTreeSet<&String> = selector.match_labels.iter().flatten().map(|(key, _)| key).collect();
        let last: BTreeMap<&String, usize> = matching.iter().enumerate().map(|(index, key)| (key, index)).collect();
        for expression in selector.match_expressions.iter().flatten() {
            // What the keys make of the selector may be there already; a second time is too much. (The path is upstream's.)
            if let Some(&index) = last.get(&expression.key) {
                let is_known = known.contains(&expression.key);
                errors.invalid_if(is_known, &path.index(index), "exists in both matchLabelKeys and labelSelector");
            }
            known.insert(&expression.key);
        }
    }
    let mismatching: BTreeSet<&String> = mismatching.iter().collect();
    for (index, key) in matching.iter().enumerate() {
        let both = mismatching.contains(key);
        let path = path.child("matchLabelKeys").index(index);
        errors.invalid_if(both, &path, "exists in both matchLabelKeys and mismatchLabelKeys");
    }
}

/// A label selector, wherever it stands.
pub(super) fn label_selector(selector: Option<&LabelSelector>, path: &Path, errors: &mut Errors) {
    let Some(selector) = selector else { return };
    super::metadata::labels(selector.match_labels.as_ref(), &path.child("matchLabels"), errors);
    for (index, requirement) in selector.match_expressions.iter().flatten().enumerate() {
        let path = path.child("matchExpressions").index(index);
        let values = requirement.values.as_deref().unwrap_or_default();
        set_operator(&requirement.operator, values.len(), &path, errors);
        errors.invalid_all(&path.child("key"), names::qualified(&requirement.key));
        for (index, value) in values.iter().enumerate() {
            errors.invalid_all(&path.child("values").index(index), names::label_value(value));
        }
    }
}
