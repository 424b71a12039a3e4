//! Annotations of pods that mean something to Kubernetes.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1 as k8s;

use super::errors::{Errors, Path};
use super::pod::text;
use super::{paths, placement};
use crate::gates::Gates;

/// Of a pod that stands in the API for a file on a node.
pub(super) const MIRROR: &str = "kubernetes.io/config.mirror";
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
const TOLERATIONS: &str = "scheduler.alpha.kubernetes.io/tolerations";
/// Older ways to say what is in security contexts now; those of containers end in the container's name.
const SECCOMP: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_OF_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";
const LOCALHOST: &str = "localhost/";

type Annotations = BTreeMap<String, String>;

/// What holds at all times.
pub(super) fn validate(
    annotations: &Annotations,
    spec: &k8s::PodSpec,
    gates: &Gates,
    path: &Path,
    errors: &mut Errors,
) {
    if annotations.contains_key(MIRROR) && text(&spec.node_name).is_empty() {
        errors.invalid(&path.key(MIRROR), "must set spec.nodeName if mirror pod annotation is set");
    }
    if let Some(written) = annotations.get(TOLERATIONS).filter(|written| !written.is_empty()) {
        match serde_json::from_str::<Option<Vec<k8s::Toleration>>>(written) {
            Ok(list) => placement::tolerations(&list.unwrap_or_default(), gates, &path.child(TOLERATIONS), errors),
            Err(error) => errors.invalid(path, error.to_string()),
        }
    }
    if let Some(cost) = annotations.get(DELETION_COST) {
        // No plus, no zeros in front; what is behind a minus is not looked at.
        let begins_well = cost == "0" || cost.starts_with(['-', '1', '2', '3', '4', '5', '6', '7', '8', '9']);
        let is_number = begins_well && cost.parse::<i32>().is_ok();
        errors.invalid_if(!is_number, &path.key(DELETION_COST), "must be a 32bit integer");
    }
    for (key, profile) in annotations {
        if key == SECCOMP || key.starts_with(SECCOMP_OF_CONTAINER) {
            seccomp(profile, &path.child(key), errors);
        }
        if let Some(container) = key.strip_prefix(APP_ARMOR) {
            let exists = containers(spec, &Path::new("spec")).any(|(_, name, _)| name == container);
            errors.invalid_if(!exists, &path.key(key), "container not found");
            let is_known = matches!(profile.as_str(), "" | "runtime/default" | "unconfined");
            let rule = format!("invalid AppArmor profile name: {profile:?}");
            errors.invalid_if(!is_known && !profile.starts_with(LOCALHOST), &path.key(key), &rule);
        }
    }
}

fn seccomp(profile: &str, path: &Path, errors: &mut Errors) {
    match profile {
        "runtime/default" | "docker/default" | "unconfined" => {}
        _ => match profile.strip_prefix(LOCALHOST) {
            Some(file) => paths::descending(file, path, errors),
            None => errors.invalid(path, "must be a valid seccomp profile"),
        },
    }
}

/// What the annotations say must be what the fields say, when a pod is made.
pub(super) fn match_fields(annotations: &Annotations, spec: &k8s::PodSpec, path: &Path, errors: &mut Errors) {
    let of_pod = spec.security_context.as_ref();
    if let (Some(written), Some(profile)) =
        (annotations.get(SECCOMP), of_pod.and_then(|context| context.seccomp_profile.as_ref()))
    {
        let path = path.child("securityContext").child("seccompProfile");
        let (kind, file) = (profile.type_.as_str(), profile.localhost_profile.as_deref());
        same_profile(written, "seccomp", kind, file, &path, errors);
    }
    let on_windows = spec.os.as_ref().is_some_and(|os| os.name == "windows");
    for (path, name, context) in containers(spec, path) {
        let path = path.child("securityContext");
        let seccomp = context.and_then(|context| context.seccomp_profile.as_ref());
        if let (Some(written), Some(profile)) = (annotations.get(&format!("{SECCOMP_OF_CONTAINER}{name}")), seccomp) {
            let (kind, file) = (profile.type_.as_str(), profile.localhost_profile.as_deref());
            same_profile(written, "seccomp", kind, file, &path.child("seccompProfile"), errors);
        }
        let app_armor = context.and_then(|context| context.app_armor_profile.as_ref());
        let app_armor = app_armor.or(of_pod.and_then(|context| context.app_armor_profile.as_ref()));
        if let (Some(written), Some(profile), false) =
            (annotations.get(&format!("{APP_ARMOR}{name}")), app_armor, on_windows)
        {
            let (kind, file) = (profile.type_.as_str(), profile.localhost_profile.as_deref());
            same_profile(written, "apparmor", kind, file, &path.child("appArmorProfile"), errors);
        }
    }
}

fn same_profile(written: &str, what: &str, kind: &str, file: Option<&str>, path: &Path, errors: &mut Errors) {
    let is_same = match kind {
        "Unconfined" => written == "unconfined",
        "RuntimeDefault" => written == "runtime/default" || (what == "seccomp" && written == "docker/default"),
        "Localhost" => written.starts_with(LOCALHOST),
        _ => return,
    };
    if !is_same {
        errors.forbidden(&path.child("type"), format!("{what} type in annotation and field must match"));
    } else if kind == "Localhost" && written.strip_prefix(LOCALHOST) != file {
        let rule = format!("{what} profile in annotation and field must match");
        errors.forbidden(&path.child("localhostProfile"), rule);
    }
}

/// What may not change.
pub(super) fn changes(old: &Annotations, new: &Annotations, path: &Path, errors: &mut Errors) {
    for (key, _) in old.iter().filter(|(key, value)| new.get(*key) != Some(*value)) {
        let rule = match key.as_str() {
            MIRROR => "may not remove or update mirror pod annotation",
            key if key.starts_with(APP_ARMOR) => "may not remove or update AppArmor annotations",
            _ => continue,
        };
        errors.forbidden(&path.key(key), rule);
    }
    for key in new.keys().filter(|key| !old.contains_key(*key)) {
        let rule = match key.as_str() {
            MIRROR => "may not add mirror pod annotation",
            key if key.starts_with(APP_ARMOR) => "may not add AppArmor annotations",
            _ => continue,
        };
        errors.forbidden(&path.key(key), rule);
    }
}

/// All containers: where they stand, their names and security contexts.
fn containers<'a>(
    spec: &'a k8s::PodSpec,
    path: &Path,
) -> impl Iterator<Item = (Path, &'a str, Option<&'a k8s::SecurityContext>)> {
    let (init, apps, ephemeral) =
        (path.child("initContainers"), path.child("containers"), path.child("ephemeralContainers"));
    let init = spec.init_containers.iter().flatten().enumerate().map(move |(index, container)| {
        (init.index(index), container.name.as_str(), container.security_context.as_ref())
    });
    let apps = spec.containers.iter().enumerate().map(move |(index, container)| {
        (apps.index(index), container.name.as_str(), container.security_context.as_ref())
    });
    let ephemeral = spec.ephemeral_containers.iter().flatten().enumerate().map(move |(index, container)| {
        (ephemeral.index(index), container.name.as_str(), container.security_context.as_ref())
    });
    init.chain(apps).chain(ephemeral)
}
