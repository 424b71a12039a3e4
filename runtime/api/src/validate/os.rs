//! `os`: what can't be asked of Linux and of Windows.

use k8s_openapi::api::core::v1 as k8s;

use super::errors::{Errors, Path};
use super::names;

const NOT_ON_WINDOWS: &str = "cannot be set for a windows pod";
const NOT_ON_LINUX: &str = "windows options cannot be set for a linux pod";
/// The largest credential spec of a group managed service account.
const MAX_CREDENTIAL_BYTES: usize = 64 << 10;

pub(super) fn validate(spec: &k8s::PodSpec, path: &Path, errors: &mut Errors) {
    match spec.os.as_ref().map(|os| os.name.as_str()) {
        None => {}
        Some("") => errors.required(&path.child("os").child("name"), ""),
        Some("linux") => linux(spec, path, errors),
        Some("windows") => windows(spec, path, errors),
        Some(_) => errors.not_supported(&path.child("os"), &["linux", "windows"]),
    }
}

fn linux(spec: &k8s::PodSpec, path: &Path, errors: &mut Errors) {
    let has_options = spec.security_context.as_ref().is_some_and(|context| context.windows_options.is_some());
    errors.forbidden_if(has_options, &path.child("securityContext").child("windowsOptions"), NOT_ON_LINUX);
    for (path, context) in contexts(spec, path) {
        errors.forbidden_if(context.windows_options.is_some(), &path.child("windowsOptions"), NOT_ON_LINUX);
    }
}

fn windows(spec: &k8s::PodSpec, path: &Path, errors: &mut Errors) {
    let table = [
        (spec.host_users.is_some(), "hostUsers"),
        (spec.host_pid == Some(true), "hostPID"),
        (spec.host_ipc == Some(true), "hostIPC"),
        (spec.share_process_namespace.is_some(), "shareProcessNamespace"),
    ];
    for (is_set, field) in table {
        errors.forbidden_if(is_set, &path.child(field), NOT_ON_WINDOWS);
    }
    if let Some(context) = &spec.security_context {
        let path = path.child("securityContext");
        let table = [
            (context.app_armor_profile.is_some(), "appArmorProfile"),
            (context.se_linux_options.is_some(), "seLinuxOptions"),
            (context.seccomp_profile.is_some(), "seccompProfile"),
            (context.fs_group.is_some(), "fsGroup"),
            (context.fs_group_change_policy.is_some(), "fsGroupChangePolicy"),
            (context.sysctls.as_ref().is_some_and(|sysctls| !sysctls.is_empty()), "sysctls"),
            (context.run_as_user.is_some(), "runAsUser"),
            (context.run_as_group.is_some(), "runAsGroup"),
            (context.supplemental_groups.is_some(), "supplementalGroups"),
            (context.supplemental_groups_policy.is_some(), "supplementalGroupsPolicy"),
            (context.se_linux_change_policy.is_some(), "seLinuxChangePolicy"),
        ];
        for (is_set, field) in table {
            errors.forbidden_if(is_set, &path.child(field), NOT_ON_WINDOWS);
        }
    }
    for (path, context) in contexts(spec, path) {
        let table = [
            (context.app_armor_profile.is_some(), "appArmorProfile"),
            (context.se_linux_options.is_some(), "seLinuxOptions"),
            (context.seccomp_profile.is_some(), "seccompProfile"),
            (context.capabilities.is_some(), "capabilities"),
            (context.read_only_root_filesystem.is_some(), "readOnlyRootFilesystem"),
            (context.privileged.is_some(), "privileged"),
            (context.allow_privilege_escalation.is_some(), "allowPrivilegeEscalation"),
            (context.proc_mount.is_some(), "procMount"),
            (context.run_as_user.is_some(), "runAsUser"),
            (context.run_as_group.is_some(), "runAsGroup"),
        ];
        for (is_set, field) in table {
            errors.forbidden_if(is_set, &path.child(field), NOT_ON_WINDOWS);
        }
    }
}

/// The security contexts of all containers.
fn contexts<'a>(spec: &'a k8s::PodSpec, path: &Path) -> Vec<(Path, &'a k8s::SecurityContext)> {
    let init = spec.init_containers.iter().flatten().map(|container| &container.security_context);
    let apps = spec.containers.iter().map(|container| &container.security_context);
    let ephemeral = spec.ephemeral_containers.iter().flatten().map(|container| &container.security_context);
    let lists = [
        ("initContainers", init.collect::<Vec<_>>()),
        ("containers", apps.collect()),
        ("ephemeralContainers", ephemeral.collect()),
    ];
    let mut all = Vec::new();
    for (list, contexts) in lists {
        for (index, context) in contexts.into_iter().enumerate() {
            let path = path.child(list).index(index).child("securityContext");
            all.extend(context.as_ref().map(|context| (path, context)));
        }
    }
    all
}

/// Containers that are processes of a Windows host: all of a pod or none.
pub(super) fn host_processes(spec: &k8s::PodSpec, path: &Path, errors: &mut Errors) {
    let of_pod = spec.security_context.as_ref().and_then(|context| context.windows_options.as_ref());
    let of_pod = of_pod.and_then(|options| options.host_process);
    let containers = spec.containers.len()
        + spec.init_containers.as_ref().map_or(0, Vec::len)
        + spec.ephemeral_containers.as_ref().map_or(0, Vec::len);
    let mut on_host = if of_pod == Some(true) { containers } else { 0 };
    for (path, context) in contexts(spec, path) {
        let Some(own) = context.windows_options.as_ref().and_then(|options| options.host_process) else { continue };
        if let Some(of_pod) = of_pod.filter(|of_pod| *of_pod != own) {
            let rule = format!("pod hostProcess value must be identical if both are specified, was {of_pod}");
            errors.invalid(&path.child("windowsOptions").child("hostProcess"), rule);
        }
        match (of_pod == Some(true), own) {
            (true, false) => on_host -= 1,
            (false, true) => on_host += 1,
            _ => {}
        }
    }
    if on_host == 0 {
        return;
    }
    let rule = "If pod contains any hostProcess containers then all containers must be HostProcess containers";
    errors.invalid_if(on_host != containers, path, rule);
    let rule = "hostNetwork must be true if pod contains any hostProcess containers";
    errors.invalid_if(spec.host_network != Some(true), &path.child("hostNetwork"), rule);
    errors.forbidden(path, "hostProcess containers are disallowed by cluster policy");
}

/// `windowsOptions`, of a pod or a container.
pub(super) fn windows_options(options: Option<&k8s::WindowsSecurityContextOptions>, path: &Path, errors: &mut Errors) {
    let Some(options) = options else { return };
    if let Some(name) = &options.gmsa_credential_spec_name {
        errors.invalid_all(&path.child("gmsaCredentialSpecName"), names::subdomain(name));
    }
    if let Some(spec) = &options.gmsa_credential_spec {
        let path = path.child("gmsaCredentialSpec");
        errors.invalid_if(spec.is_empty(), &path, "gmsaCredentialSpec cannot be an empty string");
        errors.invalid_if(spec.len() > MAX_CREDENTIAL_BYTES, &path, "gmsaCredentialSpec size must be under 64 KiB");
    }
    if let Some(name) = &options.run_as_user_name {
        user_name(name, &path.child("runAsUserName"), errors);
    }
}

/// `DOMAIN\USER` or `USER`.
fn user_name(name: &str, path: &Path, errors: &mut Errors) {
    if name.is_empty() {
        return errors.invalid(path, "runAsUserName cannot be an empty string");
    }
    if name.chars().any(|c| c.is_ascii_control()) {
        return errors.invalid(path, "runAsUserName cannot contain control characters");
    }
    let (domain, user) = match name.split_once('\\') {
        Some((_, user)) if user.contains('\\') => {
            return errors.invalid(path, "runAsUserName cannot contain more than one backslash");
        }
        Some((domain, user)) => (Some(domain), user),
        None => (None, name),
    };
    let (has_long_domain, has_odd_domain) =
        domain.map_or((false, false), |domain| (domain.len() >= 256, !is_net_bios(domain) && !is_dns(domain)));
    let odd_characters = ['"', '/', '\\', ':', ';', '|', '=', ',', '+', '*', '?', '<', '>', '@', '[', ']'];
    let rules = [
        (has_long_domain, "runAsUserName's Domain length must be under 256 characters"),
        (has_odd_domain, "runAsUserName's Domain doesn't match the NetBios nor the DNS format"),
        (user.is_empty(), "runAsUserName's User cannot be empty"),
        (user.len() > 104, "runAsUserName's User length must not be longer than 104 characters"),
        (
            !user.is_empty() && user.chars().all(|c| matches!(c, '.' | ' ')),
            "runAsUserName's User cannot contain only periods or spaces",
        ),
        (
            user.contains(odd_characters),
            "runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]",
        ),
    ];
    for (broken, rule) in rules {
        errors.invalid_if(broken, path, rule);
    }
}

fn is_net_bios(domain: &str) -> bool {
    let odd_characters = ['\\', '/', ':', '*', '?', '"', '<', '>', '|'];
    (1..=15).contains(&domain.chars().count()) && !domain.starts_with('.') && !domain.contains(odd_characters)
}

fn is_dns(domain: &str) -> bool {
    let is_edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    domain.split('.').map(str::as_bytes).all(|label| {
        let inside = label.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-');
        inside && label.len() <= 63 && is_edge(label.first()) && is_edge(label.last())
    })
}
