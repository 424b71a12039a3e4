//! Container-level restart policies and their rules.

use k8s_openapi::api::core::v1 as k8s;

use super::errors::{Errors, Path};
use crate::gates::{Gate, Gates};

const NEEDS_POLICY: &str = "must specify restartPolicy when restart rules are used";
const MAX_RULES: usize = 20;
const MAX_EXIT_CODES: usize = 255;

/// Rules of an init container without a policy are not looked at.
pub(super) fn validate_init(container: &k8s::Container, gates: &Gates, path: &Path, errors: &mut Errors) {
    let has_rules = container.restart_policy_rules.as_ref().is_some_and(|rules| !rules.is_empty());
    match &container.restart_policy {
        None if has_rules => errors.required(&path.child("restartPolicy"), NEEDS_POLICY),
        None => {}
        Some(_) => validate(container, gates, path, errors),
    }
}

pub(super) fn validate(container: &k8s::Container, gates: &Gates, path: &Path, errors: &mut Errors) {
    let policy_path = path.child("restartPolicy");
    if let Some(policy) = &container.restart_policy {
        errors.one_of(policy, &policy_path, &["Always", "Never", "OnFailure"]);
    }
    let rules = container.restart_policy_rules.as_deref().unwrap_or_default();
    if !rules.is_empty() && container.restart_policy.is_none() {
        errors.required(&policy_path, NEEDS_POLICY);
    }
    let path = path.child("restartPolicyRules");
    if rules.len() > MAX_RULES {
        errors.too_many(&path, MAX_RULES);
    }
    let actions: &[&str] = match gates.has(Gate::RestartAllContainersOnContainerExits) {
        true => &["Restart", "RestartAllContainers"],
        false => &["Restart"],
    };
    for (index, rule) in rules.iter().enumerate() {
        let path = path.index(index);
        errors.one_of(&rule.action, &path.child("action"), actions);
        let codes_path = path.child("exitCodes");
        let Some(codes) = &rule.exit_codes else {
            errors.required(&codes_path, "must be specified");
            continue;
        };
        errors.one_of(&codes.operator, &codes_path.child("operator"), &["In", "NotIn"]);
        if codes.values.as_ref().is_some_and(|values| values.len() > MAX_EXIT_CODES) {
            errors.too_many(&codes_path.child("values"), MAX_EXIT_CODES);
        }
    }
}
