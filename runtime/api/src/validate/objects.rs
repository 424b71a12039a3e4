//! Objects other than pods: namespaces, nodes, ConfigMaps, Secrets, events, disruption budgets.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1 as k8s;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::errors::{Errors, FieldError, Path};
use super::{metadata, names, update};
use crate::label_selector;

/// All data of a ConfigMap or Secret together.
const MAX_DATA_BYTES: usize = 1 << 20;
const IMMUTABLE: &str = "field is immutable when `immutable` is set";

/// What Kubernetes asks of an object of a kind.
pub trait ObjectRules: Sized {
    /// Everything that keeps it from being created.
    fn validate(&self) -> Vec<FieldError> {
        let mut errors = Errors::default();
        metadata_of(self.object_meta(), &mut errors);
        self.rules(&mut Report(&mut errors));
        errors.into_sorted()
    }

    /// Everything that keeps it from taking the place of `old`.
    fn validate_update(&self, old: &Self) -> Vec<FieldError> {
        let mut errors = Errors::default();
        update::object_meta(old.object_meta(), self.object_meta(), &Path::new("metadata"), &mut errors);
        self.rules(&mut Report(&mut errors));
        self.update_rules(old, &mut Report(&mut errors));
        errors.into_sorted()
    }

    /// Its metadata.
    fn object_meta(&self) -> &ObjectMeta;

    /// What is asked of it at all times, beyond its metadata.
    fn rules(&self, _report: &mut Report<'_>) {}

    /// What is asked of a change.
    fn update_rules(&self, _old: &Self, _report: &mut Report<'_>) {}
}

/// Where broken rules are reported.
pub struct Report<'a>(&'a mut Errors);

/// Objects without a namespace are as good as ones in some namespace: whether one is needed is asked by who knows the resource.
fn metadata_of(metadata: &ObjectMeta, errors: &mut Errors) {
    let mut metadata = metadata.clone();
    metadata.namespace.get_or_insert_with(|| crate::DEFAULT_NAMESPACE.into());
    metadata::validate(&metadata, &Path::new("metadata"), errors);
}

impl ObjectRules for k8s::Namespace {
    fn object_meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn rules(&self, Report(errors): &mut Report<'_>) {
        let name = self.metadata.name.as_deref().unwrap_or_default();
        // What is no subdomain either was said already.
        if !name.is_empty() && names::subdomain(name).is_empty() {
            errors.invalid_all(&Path::new("metadata.name"), names::label(name));
        }
    }
}

impl ObjectRules for k8s::Node {
    fn object_meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn rules(&self, Report(errors): &mut Report<'_>) {
        let taints = self.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
        let mut known = Vec::new();
        for (index, taint) in taints.enumerate() {
            let path = Path::new("spec.taints").index(index);
            errors.invalid_all(&path.child("key"), names::qualified(&taint.key));
            errors.invalid_all(&path.child("value"), names::label_value(taint.value.as_deref().unwrap_or_default()));
            let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
            errors.required_one_of(Some(&taint.effect), &path.child("effect"), &effects);
            let identity = (&taint.key, &taint.effect);
            if known.contains(&identity) {
                errors.duplicate(&path);
            }
            known.push(identity);
        }
    }
}

impl ObjectRules for k8s::ConfigMap {
    fn object_meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn rules(&self, Report(errors): &mut Report<'_>) {
        let (empty, no_binary) = (BTreeMap::new(), BTreeMap::new());
        let data = self.data.as_ref().unwrap_or(&empty);
        let binary = self.binary_data.as_ref().unwrap_or(&no_binary);
        for key in data.keys() {
            let path = Path::new("data").key(key);
            errors.invalid_all(&path, names::config_key(key));
            errors.invalid_if(binary.contains_key(key), &path, "duplicate of key present in binaryData");
        }
        for key in binary.keys() {
            errors.invalid_all(&Path::new("binaryData").key(key), names::config_key(key));
        }
        let bytes = data.values().map(String::len).chain(binary.values().map(|value| value.0.len())).sum::<usize>();
        if bytes > MAX_DATA_BYTES {
            errors.too_long(&Path::new(""), MAX_DATA_BYTES);
        }
    }

    fn update_rules(&self, old: &Self, Report(errors): &mut Report<'_>) {
        if old.immutable == Some(true) {
            errors.forbidden_if(self.immutable != Some(true), &Path::new("immutable"), IMMUTABLE);
            errors.forbidden_if(!same(&self.data, &old.data), &Path::new("data"), IMMUTABLE);
            errors.forbidden_if(!same(&self.binary_data, &old.binary_data), &Path::new("binaryData"), IMMUTABLE);
        }
    }
}

impl ObjectRules for k8s::Secret {
    fn object_meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn rules(&self, Report(errors): &mut Report<'_>) {
        let empty = BTreeMap::new();
        let data = self.data.as_ref().unwrap_or(&empty);
        for key in data.keys() {
            errors.invalid_all(&Path::new("data").key(key), names::config_key(key));
        }
        if data.values().map(|value| value.0.len()).sum::<usize>() > MAX_DATA_BYTES {
            errors.too_long(&Path::new("data"), MAX_DATA_BYTES);
        }
        let needs: &[&str] = match self.type_.as_deref().unwrap_or_default() {
            "kubernetes.io/tls" => &["tls.crt", "tls.key"],
            "kubernetes.io/ssh-auth" => &["ssh-privatekey"],
            "kubernetes.io/dockercfg" => &[".dockercfg"],
            "kubernetes.io/dockerconfigjson" => &[".dockerconfigjson"],
            "kubernetes.io/basic-auth" if !data.contains_key("password") => &["username"],
            _ => &[],
        };
        for key in needs.iter().filter(|key| !data.contains_key(**key)) {
            errors.required(&Path::new("data").key(key), "");
        }
        for key in [".dockercfg", ".dockerconfigjson"].iter().filter(|key| needs.contains(key)) {
            let is_json =
                |ByteString(bytes): &ByteString| serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok();
            let broken = data.get(*key).is_some_and(|value| !is_json(value));
            errors.invalid_if(broken, &Path::new("data").key(key), "<secret contents redacted>");
        }
    }

    fn update_rules(&self, old: &Self, Report(errors): &mut Report<'_>) {
        errors.invalid_if(self.type_ != old.type_, &Path::new("type"), "field is immutable");
        if old.immutable == Some(true) {
            errors.forbidden_if(self.immutable != Some(true), &Path::new("immutable"), IMMUTABLE);
            errors.forbidden_if(!same(&self.data, &old.data), &Path::new("data"), IMMUTABLE);
        }
    }
}

impl ObjectRules for k8s::Event {
    fn object_meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn rules(&self, Report(errors): &mut Report<'_>) {
        let about = self.involved_object.namespace.as_deref().filter(|namespace| !namespace.is_empty());
        // Events about objects without a namespace stand in the default one.
        let namespace = about.unwrap_or(crate::DEFAULT_NAMESPACE);
        let differs = self.metadata.namespace.as_deref().is_some_and(|own| own != namespace);
        errors.invalid_if(differs, &Path::new("involvedObject.namespace"), "does not match event.namespace");
    }
}

impl ObjectRules for Lease {
    fn object_meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn rules(&self, Report(errors): &mut Report<'_>) {
        let Some(spec) = &self.spec else { return };
        let path = Path::new("spec");
        let seconds = spec.lease_duration_seconds.unwrap_or(1);
        errors.invalid_if(seconds <= 0, &path.child("leaseDurationSeconds"), "must be greater than 0");
        errors.not_negative(i64::from(spec.lease_transitions.unwrap_or(0)), &path.child("leaseTransitions"));
    }
}

impl ObjectRules for PodDisruptionBudget {
    fn object_meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn rules(&self, Report(errors): &mut Report<'_>) {
        let Some(spec) = &self.spec else { return };
        let path = Path::new("spec");
        let both = spec.min_available.is_some() && spec.max_unavailable.is_some();
        errors.invalid_if(both, &path, "minAvailable and maxUnavailable cannot be both set");
        for (share, field) in [(&spec.min_available, "minAvailable"), (&spec.max_unavailable, "maxUnavailable")] {
            share_rules(share.as_ref(), &path.child(field), errors);
        }
        if let Err(error) = label_selector(spec.selector.as_ref()) {
            errors.invalid(&path.child("selector"), error.to_string());
        }
        if let Some(policy) = &spec.unhealthy_pod_eviction_policy {
            errors.one_of(policy, &path.child("unhealthyPodEvictionPolicy"), &["AlwaysAllow", "IfHealthyBudget"]);
        }
    }
}

fn share_rules(share: Option<&IntOrString>, path: &Path, errors: &mut Errors) {
    match share {
        None => {}
        Some(IntOrString::Int(count)) => errors.not_negative(i64::from(*count), path),
        Some(IntOrString::String(text)) => match text.strip_suffix('%').map(str::parse::<u32>) {
            Some(Ok(percent)) => errors.invalid_if(percent > 100, path, "must not be greater than 100%"),
            _ => {
                let rule = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or \
                    '93%', regex used for validation is '[0-9]+%')";
                errors.invalid(path, rule);
            }
        },
    }
}

/// What is empty is as good as not there.
fn same<T: PartialEq>(a: &Option<BTreeMap<String, T>>, b: &Option<BTreeMap<String, T>>) -> bool {
    let full = |map: &Option<BTreeMap<String, T>>| map.as_ref().is_some_and(|map| !map.is_empty());
    if full(a) || full(b) { a == b } else { true }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<T: serde::de::DeserializeOwned>(kind: &str, version: &str, rest: serde_json::Value) -> T {
        let mut json = serde_json::json!({
            "apiVersion": version, "kind": kind,
            "metadata": {"name": "a", "namespace": "default", "resourceVersion": "1"},
        });
        for (key, value) in rest.as_object().expect("fields") {
            json[key] = value.clone();
        }
        serde_json::from_value(json).expect("an object")
    }

    fn told(errors: &[FieldError]) -> Vec<String> {
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn an_immutable_config_map_keeps_its_data() {
        let map = |rest| read::<k8s::ConfigMap>("ConfigMap", "v1", rest);
        let old = map(serde_json::json!({"immutable": true, "data": {"a": "1"}}));
        assert_eq!(told(&old.validate()), Vec::<String>::new());
        let new = map(serde_json::json!({"data": {"a": "2"}}));
        let fields: Vec<String> = new.validate_update(&old).into_iter().map(|error| error.field).collect();
        assert_eq!(fields, ["data", "immutable"]);
        let broken = map(serde_json::json!({"data": {"a/b": "1", "c": "2"}, "binaryData": {"c": ""}}));
        assert_eq!(broken.validate().len(), 2);
    }

    #[test]
    fn a_secret_has_what_its_type_says() {
        let secret = |rest| read::<k8s::Secret>("Secret", "v1", rest);
        let tls = secret(serde_json::json!({"type": "kubernetes.io/tls", "data": {"tls.crt": ""}}));
        assert_eq!(told(&tls.validate()), ["data[tls.key]: Required value"]);
        let plain = secret(serde_json::json!({"type": "Opaque"}));
        assert_eq!(told(&plain.validate_update(&tls)), ["type: Invalid value: field is immutable"]);
    }

    #[test]
    fn a_budget_has_one_limit() {
        let budget = |spec| {
            read::<PodDisruptionBudget>("PodDisruptionBudget", "policy/v1", serde_json::json!({"spec": spec}))
                .validate()
        };
        assert_eq!(budget(serde_json::json!({"minAvailable": "30%"})), []);
        assert_eq!(budget(serde_json::json!({"minAvailable": 1, "maxUnavailable": -1})).len(), 2);
        assert_eq!(budget(serde_json::json!({"maxUnavailable": "lots"})).len(), 1);
    }
}
