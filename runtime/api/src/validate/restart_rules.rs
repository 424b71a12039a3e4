//! Container-level restart policies and their rules.

use k8s_openapi::api::core::v1 as k8s;

use super::errors::{Errors, Path};

const MAX_RULES: usize = 20;
const MAX_EXIT_CODES: usize = 255;

pub(super) fn validate(container: &k8s::Container, path: &Path, errors: &mut Errors) {
    let policy_path = path.child("restartPolicy");
    if let Some(policy) = &container.restart_policy {
        errors.one_of(policy, &policy_path, &["Always", "Never", "OnFailure"]);
    }
    let rules = container.restart_policy_rules.as_deref().unwrap_or_default();
    if !rules.is_empty() && container.restart_policy.is_none() {
        errors.required(&policy_path, "must specify restartPolicy when restart rules are used");
    }
    let path = path.child("restartPolicyRules");
    if rules.len() > MAX_RULES {
        errors.too_many(&path, MAX_RULES);
    }
    for (index, rule) in rules.iter().enumerate() {
        let path = path.index(index);
        errors.one_of(&rule.action, &path.child("action"), &["Restart", "RestartAllContainers"]);
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
