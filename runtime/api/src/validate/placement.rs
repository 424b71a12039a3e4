//! Where and when a pod may run: gates, tolerations, spread.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1 as k8s;

use super::affinity::{label_keys, label_selector};
use super::errors::{Errors, Path};
use super::names;
use super::pod::{text, unique};
use crate::gates::{Gate, Gates};

pub(super) fn readiness_gates(spec: &k8s::PodSpec, path: &Path, errors: &mut Errors) {
    for (index, gate) in spec.readiness_gates.iter().flatten().enumerate() {
        errors.invalid_all(&path.index(index).child("conditionType"), names::qualified(&gate.condition_type));
    }
}

pub(super) fn scheduling_gates(spec: &k8s::PodSpec, path: &Path, errors: &mut Errors) {
    let mut known = BTreeSet::new();
    for (index, gate) in spec.scheduling_gates.iter().flatten().enumerate() {
        let path = path.index(index);
        errors.invalid_all(&path, names::qualified(&gate.name));
        unique(&gate.name, &mut known, &path, errors);
    }
}

pub(super) fn scheduling_group(spec: &k8s::PodSpec, path: &Path, errors: &mut Errors) {
    let Some(group) = &spec.scheduling_group else { return };
    let path = path.child("podGroupName");
    match &group.pod_group_name {
        None => errors.invalid(&path, "must specify one of: `podGroupName`"),
        Some(name) => errors.invalid_all(&path, names::subdomain(name)),
    }
}

/// Also on their own, when a pod gets more of them.
pub(super) fn tolerations(tolerations: &[k8s::Toleration], gates: &Gates, path: &Path, errors: &mut Errors) {
    for (index, toleration) in tolerations.iter().enumerate() {
        let path = path.index(index);
        let operator_path = path.child("operator");
        let (key, operator, value) = (text(&toleration.key), text(&toleration.operator), text(&toleration.value));
        if !key.is_empty() {
            errors.invalid_all(&path.child("key"), names::qualified(key));
        } else if operator != "Exists" {
            let rule = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            errors.invalid(&operator_path, rule);
        }
        let effect = text(&toleration.effect);
        let effect_path = path.child("effect");
        let is_odd = toleration.toleration_seconds.is_some() && effect != "NoExecute";
        errors.invalid_if(is_odd, &effect_path, "effect must be 'NoExecute' when `tolerationSeconds` is set");
        match operator {
            "Equal" | "" => {
                let broken = names::label_value(value);
                errors.invalid_if(!broken.is_empty(), &operator_path, &broken.join(";"));
            }
            "Exists" => {
                errors.invalid_if(!value.is_empty(), &operator_path, "value must be empty when `operator` is 'Exists'");
            }
            "Lt" | "Gt" if gates.has(Gate::TaintTolerationComparisonOperators) => {
                whole_number(value, &path.child("value"), errors);
            }
            "Lt" | "Gt" => errors.not_supported(&operator_path, &["Equal", "Exists", "Lt", "Gt"]),
            _ => errors.not_supported(&operator_path, &["Equal", "Exists"]),
        }
        if !effect.is_empty() {
            errors.one_of(effect, &effect_path, &["NoSchedule", "PreferNoSchedule", "NoExecute"]);
        }
    }
}

/// A number that fits 64 bits, written in the only way there is.
fn whole_number(text: &str, path: &Path, errors: &mut Errors) {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_canonical = text == "0" || !digits.starts_with('0') && is_digits(digits);
    errors.invalid_if(!is_canonical, path, "must be a valid decimal integer in canonical form");
    if text.parse::<i64>().is_err() {
        let is_number = is_digits(text.strip_prefix(['-', '+']).unwrap_or(text));
        let why = if is_number { "value out of range" } else { "invalid syntax" };
        errors.invalid(path, format!("strconv.ParseInt: parsing {text:?}: {why}"));
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

pub(super) fn topology_spread(spec: &k8s::PodSpec, path: &Path, errors: &mut Errors) {
    let constraints = spec.topology_spread_constraints.as_deref().unwrap_or_default();
    let what = |constraint: &k8s::TopologySpreadConstraint| {
        (constraint.topology_key.clone(), constraint.when_unsatisfiable.clone())
    };
    // A later one of the same is an error of those before it.
    let last: BTreeMap<_, usize> = constraints.iter().enumerate().map(|(index, one)| (what(one), index)).collect();
    for (index, constraint) in constraints.iter().enumerate() {
        let path = path.index(index);
        errors.invalid_if(constraint.max_skew <= 0, &path.child("maxSkew"), "must be greater than zero");
        errors.required_text(Some(&constraint.topology_key), &path.child("topologyKey"), "can not be empty");
        let action = constraint.when_unsatisfiable.as_str();
        errors.one_of(action, &path.child("whenUnsatisfiable"), &["DoNotSchedule", "ScheduleAnyway"]);
        if last.get(&what(constraint)) != Some(&index) {
            errors.duplicate(&path.child("{topologyKey, whenUnsatisfiable}"));
        }
        if let Some(domains) = constraint.min_domains {
            let path = path.child("minDomains");
            errors.invalid_if(domains <= 0, &path, "must be greater than zero");
            let rule = format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
            errors.invalid_if(action != "DoNotSchedule", &path, &rule);
        }
        let policies = [
            (&constraint.node_affinity_policy, "nodeAffinityPolicy"),
            (&constraint.node_taints_policy, "nodeTaintsPolicy"),
        ];
        for (policy, field) in policies {
            if let Some(policy) = policy {
                errors.one_of(policy, &path.child(field), &["Honor", "Ignore"]);
            }
        }
        let keys = constraint.match_label_keys.as_deref().unwrap_or_default();
        label_keys(keys, &[], constraint.label_selector.as_ref(), &path, errors);
        label_selector(constraint.label_selector.as_ref(), &path.child("labelSelector"), errors);
    }
}
