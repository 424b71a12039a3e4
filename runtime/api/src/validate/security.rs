//! Security contexts.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1 as k8s;

use super::errors::{Errors, Path};
use super::pod::text;
use super::{names, os, paths};

const PROFILE_TYPES: [&str; 3] = ["Localhost", "RuntimeDefault", "Unconfined"];
/// The longest name of an AppArmor profile.
const MAX_PROFILE_BYTES: usize = 4095;
const MAX_ID: i64 = i32::MAX as i64;

pub(super) fn of_pod(context: &k8s::PodSecurityContext, spec: &k8s::PodSpec, path: &Path, errors: &mut Errors) {
    let table =
        [(context.fs_group, "fsGroup"), (context.run_as_user, "runAsUser"), (context.run_as_group, "runAsGroup")];
    for (id, field) in table {
        user_or_group(id, &path.child(field), errors);
    }
    for (index, group) in context.supplemental_groups.iter().flatten().enumerate() {
        user_or_group(Some(*group), &path.child("supplementalGroups").index(index), errors);
    }
    let shares = spec.share_process_namespace == Some(true) && spec.host_pid == Some(true);
    let rule = "ShareProcessNamespace and HostPID cannot both be enabled";
    errors.invalid_if(shares, &path.child("shareProcessNamespace"), rule);
    sysctls(context, spec, &path.child("sysctls"), errors);
    let policies: [(_, _, &[&str]); 3] = [
        (&context.fs_group_change_policy, "fsGroupChangePolicy", &["Always", "OnRootMismatch"]),
        (&context.supplemental_groups_policy, "supplementalGroupsPolicy", &["Merge", "Strict"]),
        (&context.se_linux_change_policy, "seLinuxChangePolicy", &["Recursive"]),
    ];
    for (policy, field, values) in policies {
        if let Some(policy) = policy {
            errors.one_of(policy, &path.child(field), values);
        }
    }
    seccomp(context.seccomp_profile.as_ref(), &path.child("seccompProfile"), errors);
    app_armor(context.app_armor_profile.as_ref(), &path.child("appArmorProfile"), errors);
    os::windows_options(context.windows_options.as_ref(), &path.child("windowsOptions"), errors);
}

pub(super) fn of_container(context: &k8s::SecurityContext, spec: &k8s::PodSpec, path: &Path, errors: &mut Errors) {
    let privileged = context.privileged == Some(true);
    // No Husk node allows it; it is upstream's default too.
    errors.forbidden_if(privileged, &path.child("privileged"), "disallowed by cluster policy");
    user_or_group(context.run_as_user, &path.child("runAsUser"), errors);
    user_or_group(context.run_as_group, &path.child("runAsGroup"), errors);
    if let Some(mount) = &context.proc_mount {
        let path = path.child("procMount");
        errors.one_of(mount, &path, &["Default", "Unmasked"]);
        let host_users = spec.host_users.unwrap_or(true);
        errors.invalid_if(host_users && mount == "Unmasked", &path, "`hostUsers` must be false to use `Unmasked`");
    }
    seccomp(context.seccomp_profile.as_ref(), &path.child("seccompProfile"), errors);
    if context.allow_privilege_escalation == Some(false) {
        let rule = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
        errors.invalid_if(privileged, path, rule);
        let added = context.capabilities.iter().flat_map(|capabilities| capabilities.add.iter().flatten());
        let rule = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN";
        for _ in added.filter(|capability| *capability == "CAP_SYS_ADMIN") {
            errors.invalid(path, rule);
        }
    }
    os::windows_options(context.windows_options.as_ref(), &path.child("windowsOptions"), errors);
    app_armor(context.app_armor_profile.as_ref(), &path.child("appArmorProfile"), errors);
}

fn user_or_group(id: Option<i64>, path: &Path, errors: &mut Errors) {
    if let Some(id) = id {
        errors.in_range(id, 0, MAX_ID, path);
    }
}

fn sysctls(context: &k8s::PodSecurityContext, spec: &k8s::PodSpec, path: &Path, errors: &mut Errors) {
    let mut known: BTreeSet<&str> = BTreeSet::new();
    for (index, sysctl) in context.sysctls.iter().flatten().enumerate() {
        let path = path.index(index).child("name");
        let name = sysctl.name.as_str();
        if name.is_empty() {
            errors.required(&path, "");
        } else if !names::is_sysctl(name) {
            let form = r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";
            errors.invalid(&path, format!("must have at most 253 characters and match regex {form}"));
        } else if known.contains(name) {
            errors.duplicate(&path);
        }
        known.insert(name);
        // Without a namespace of its own the pod would change the host.
        let dotted = dotted(name);
        let of_network = dotted.starts_with("net.");
        let of_ipc = ["kernel.shm", "kernel.msg", "fs.mqueue."].iter().any(|start| dotted.starts_with(start))
            || dotted == "kernel.sem";
        let rule = "may not be specified when 'hostNetwork' is true";
        errors.invalid_if(of_network && spec.host_network == Some(true), &path, rule);
        let rule = "may not be specified when 'hostIPC' is true";
        errors.invalid_if(of_ipc && spec.host_ipc == Some(true), &path, rule);
    }
}

/// With dots between its parts: where the first thing between two parts is a slash, dots and slashes change places.
fn dotted(name: &str) -> String {
    let swap = |c| match c {
        '/' => '.',
        '.' => '/',
        other => other,
    };
    match name.find(['.', '/']) {
        Some(first) if name[first..].starts_with('/') => name.chars().map(swap).collect(),
        _ => name.into(),
    }
}

fn seccomp(profile: Option<&k8s::SeccompProfile>, path: &Path, errors: &mut Errors) {
    let Some(profile) = profile else { return };
    match profile.type_.as_str() {
        "" => errors.required(&path.child("type"), "type is required when seccompProfile is set"),
        kind => errors.one_of(kind, &path.child("type"), &PROFILE_TYPES),
    }
    let path = path.child("localhostProfile");
    match (profile.type_.as_str(), &profile.localhost_profile) {
        ("Localhost", None) => errors.required(&path, "must be set when seccomp type is Localhost"),
        ("Localhost", Some(file)) => paths::descending(file, &path, errors),
        (_, Some(_)) => errors.invalid(&path, "can only be set when seccomp type is Localhost"),
        (_, None) => {}
    }
}

fn app_armor(profile: Option<&k8s::AppArmorProfile>, path: &Path, errors: &mut Errors) {
    let Some(profile) = profile else { return };
    let name = text(&profile.localhost_profile);
    let name_path = path.child("localhostProfile");
    match profile.type_.as_str() {
        "Localhost" if profile.localhost_profile.is_some() && name.trim() != name => {
            errors.invalid(&name_path, "must not be padded with whitespace");
        }
        "Localhost" if name.is_empty() => {
            errors.required(&name_path, "must be set when AppArmor type is Localhost");
        }
        "Localhost" => {}
        "RuntimeDefault" | "Unconfined" => {
            let is_set = profile.localhost_profile.is_some();
            errors.invalid_if(is_set, &name_path, "can only be set when AppArmor type is Localhost");
        }
        "" => errors.required(&path.child("type"), "type is required when appArmorProfile is set"),
        _ => errors.not_supported(&path.child("type"), &PROFILE_TYPES),
    }
    if profile.type_ == "Localhost" && name.len() > MAX_PROFILE_BYTES {
        errors.too_long(&name_path, MAX_PROFILE_BYTES);
    }
}
