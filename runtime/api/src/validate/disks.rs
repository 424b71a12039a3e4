//! Volumes of storage systems that Kubernetes names itself.

use k8s_openapi::api::core::v1 as k8s;

use super::errors::{Errors, Path};
use super::names;
use super::pod::text;

const MAX_TENANT_BYTES: usize = 64;
const MANAGED_DISK: &str =
    "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}";
const BLOB_DISK: &str = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd";

pub(super) fn gce_disk(volume: &k8s::Volume, path: &Path, errors: &mut Errors) {
    let Some(source) = &volume.gce_persistent_disk else { return };
    errors.required_text(Some(&source.pd_name), &path.child("pdName"), "");
    partition(source.partition, path, errors);
}

pub(super) fn aws_disk(volume: &k8s::Volume, path: &Path, errors: &mut Errors) {
    let Some(source) = &volume.aws_elastic_block_store else { return };
    errors.required_text(Some(&source.volume_id), &path.child("volumeID"), "");
    partition(source.partition, path, errors);
}

fn partition(number: Option<i32>, path: &Path, errors: &mut Errors) {
    // 0 is the whole disk, though the rule does not say so.
    let fits = (0..=255).contains(&number.unwrap_or_default());
    errors.invalid_if(!fits, &path.child("partition"), "must be between 1 and 255, inclusive");
}

pub(super) fn nfs(volume: &k8s::Volume, path: &Path, errors: &mut Errors) {
    let Some(source) = &volume.nfs else { return };
    errors.required_text(Some(&source.server), &path.child("server"), "");
    errors.required_text(Some(&source.path), &path.child("path"), "");
    errors.invalid_if(!source.path.starts_with('/'), &path.child("path"), "must be an absolute path");
}

pub(super) fn iscsi(volume: &k8s::Volume, path: &Path, errors: &mut Errors) {
    let Some(source) = &volume.iscsi else { return };
    errors.required_text(Some(&source.target_portal), &path.child("targetPortal"), "");
    match source.iqn.as_str() {
        "" => errors.required(&path.child("iqn"), ""),
        name => iscsi_name(name, &path.child("iqn"), errors),
    }
    if let Some(name) = &source.initiator_name {
        iscsi_name(name, &path.child("initiatorname"), errors);
    }
    errors.in_range(i64::from(source.lun), 0, 255, &path.child("lun"));
    let has_chap = source.chap_auth_discovery == Some(true) || source.chap_auth_session == Some(true);
    if has_chap && source.secret_ref.is_none() {
        errors.required(&path.child("secretRef"), "");
    }
}

/// The three forms that names have in iSCSI.
fn iscsi_name(name: &str, path: &Path, errors: &mut Errors) {
    let id = |text: &str, length| {
        let mut characters = text.chars();
        characters.next().is_some_and(|separator| separator != '\n')
            && characters.as_str().len() == length
            && characters.all(|c| c.is_ascii_alphanumeric())
    };
    let fits = match (name.get(..3), name.get(3..)) {
        (Some("iqn"), _) => name.match_indices("iqn.").any(|(at, _)| is_qualified_iscsi_name(&name[at + 4..])),
        (Some("eui"), Some(rest)) => id(rest, 16),
        (Some("naa"), Some(rest)) => id(rest, 32),
        _ => return errors.invalid(path, "must be valid format starting with iqn, eui, or naa"),
    };
    errors.invalid_if(!fits, path, "must be valid format");
}

/// `2001-04.com.example:target`.
fn is_qualified_iscsi_name(text: &str) -> bool {
    let Some((date_and_authority, target)) = text.split_once(':') else { return false };
    let is_date = date_and_authority.bytes().take(8).enumerate().all(|(at, byte)| match at {
        4 => byte == b'-',
        7 => byte == b'.',
        _ => byte.is_ascii_digit(),
    });
    let authority = date_and_authority.get(8..).unwrap_or_default();
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
    let is_odd = |c: char| matches!(c, ',' | ';' | '*' | '&' | '$' | '|' | ' ' | '\t' | '\n' | '\r' | '\u{c}');
    is_date && !authority.is_empty() && authority.bytes().all(fits) && !target.is_empty() && !target.contains(is_odd)
}

pub(super) fn glusterfs(volume: &k8s::Volume, path: &Path, errors: &mut Errors) {
    let Some(source) = &volume.glusterfs else { return };
    errors.required_text(Some(&source.endpoints), &path.child("endpoints"), "");
    errors.required_text(Some(&source.path), &path.child("path"), "");
}

pub(super) fn flocker(volume: &k8s::Volume, path: &Path, errors: &mut Errors) {
    let Some(source) = &volume.flocker else { return };
    let (name, uuid) = (text(&source.dataset_name), text(&source.dataset_uuid));
    match (name.is_empty(), uuid.is_empty()) {
        (true, true) => errors.required(path, "one of datasetName and datasetUUID is required"),
        (false, false) => errors.invalid(path, "datasetName and datasetUUID can not be specified simultaneously"),
        _ => {}
    }
    errors.invalid_if(name.contains('/'), &path.child("datasetName"), "must not contain '/'");
}

pub(super) fn rbd(volume: &k8s::Volume, path: &Path, errors: &mut Errors) {
    let Some(source) = &volume.rbd else { return };
    if source.monitors.is_empty() {
        errors.required(&path.child("monitors"), "");
    }
    errors.required_text(Some(&source.image), &path.child("image"), "");
}

pub(super) fn cinder(volume: &k8s::Volume, path: &Path, errors: &mut Errors) {
    let Some(source) = &volume.cinder else { return };
    errors.required_text(Some(&source.volume_id), &path.child("volumeID"), "");
    secret_name(source.secret_ref.as_ref(), &path.child("secretRef"), errors);
}

pub(super) fn cephfs(volume: &k8s::Volume, path: &Path, errors: &mut Errors) {
    let Some(source) = &volume.cephfs else { return };
    if source.monitors.is_empty() {
        errors.required(&path.child("monitors"), "");
    }
}

pub(super) fn quobyte(volume: &k8s::Volume, path: &Path, errors: &mut Errors) {
    let Some(source) = &volume.quobyte else { return };
    let rule = "must be a host:port pair or multiple pairs separated by commas";
    let registry = path.child("registry");
    if source.registry.is_empty() {
        errors.required(&registry, rule);
    } else if text(&source.tenant).len() > MAX_TENANT_BYTES {
        errors.required(&path.child("tenant"), "must be a UUID and may not exceed a length of 64 characters");
    } else {
        for _ in source.registry.split(',').filter(|pair| !is_host_and_port(pair)) {
            errors.invalid(&registry, rule);
        }
    }
    errors.required_text(Some(&source.volume), &path.child("volume"), "");
}

/// `host:port`, `[host]:port`; either part may be empty.
fn is_host_and_port(text: &str) -> bool {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => match rest.split_once("]:") {
            Some(parts) => parts,
            None => return false,
        },
        None => match text.rsplit_once(':') {
            Some((host, _)) if host.contains(':') => return false,
            Some(parts) => parts,
            None => return false,
        },
    };
    let brackets = ['[', ']'];
    !host.contains(brackets) && !port.contains(brackets) && !port.contains(':')
}

pub(super) fn fibre_channel(volume: &k8s::Volume, path: &Path, errors: &mut Errors) {
    let Some(source) = &volume.fc else { return };
    let has = |names: &Option<Vec<String>>| names.as_ref().is_some_and(|names| !names.is_empty());
    let (targets, ids) = (has(&source.target_wwns), has(&source.wwids));
    let targets_path = path.child("targetWWNs");
    match (targets, ids) {
        (false, false) => errors.required(&targets_path, "must specify either targetWWNs or wwids, but not both"),
        (true, true) => errors.invalid(&targets_path, "targetWWNs and wwids can not be specified simultaneously"),
        _ => {}
    }
    match source.lun {
        None if targets => errors.required(&path.child("lun"), "lun is required if targetWWNs is specified"),
        Some(lun) if targets => errors.in_range(i64::from(lun), 0, 255, &path.child("lun")),
        _ => {}
    }
}

pub(super) fn flex(volume: &k8s::Volume, path: &Path, errors: &mut Errors) {
    let Some(source) = &volume.flex_volume else { return };
    errors.required_text(Some(&source.driver), &path.child("driver"), "");
    for key in source.options.iter().flatten().map(|(key, _)| key) {
        let namespace = key.split_once('/').map_or(key.as_str(), |(namespace, _)| namespace);
        let namespace = format!(".{}", namespace.to_lowercase());
        let is_reserved = namespace.ends_with(".kubernetes.io") || namespace.ends_with(".k8s.io");
        let rule = "kubernetes.io and k8s.io namespaces are reserved";
        errors.invalid_if(is_reserved, &path.child("options").key(key), rule);
    }
}

pub(super) fn azure_file(volume: &k8s::Volume, path: &Path, errors: &mut Errors) {
    let Some(source) = &volume.azure_file else { return };
    errors.required_text(Some(&source.secret_name), &path.child("secretName"), "");
    errors.required_text(Some(&source.share_name), &path.child("shareName"), "");
}

pub(super) fn vsphere(volume: &k8s::Volume, path: &Path, errors: &mut Errors) {
    let Some(source) = &volume.vsphere_volume else { return };
    errors.required_text(Some(&source.volume_path), &path.child("volumePath"), "");
}

pub(super) fn photon(volume: &k8s::Volume, path: &Path, errors: &mut Errors) {
    let Some(source) = &volume.photon_persistent_disk else { return };
    errors.required_text(Some(&source.pd_id), &path.child("pdID"), "");
}

pub(super) fn portworx(volume: &k8s::Volume, path: &Path, errors: &mut Errors) {
    let Some(source) = &volume.portworx_volume else { return };
    errors.required_text(Some(&source.volume_id), &path.child("volumeID"), "");
}

pub(super) fn azure_disk(volume: &k8s::Volume, path: &Path, errors: &mut Errors) {
    let Some(source) = &volume.azure_disk else { return };
    errors.required_text(Some(&source.disk_name), &path.child("diskName"), "");
    errors.required_text(Some(&source.disk_uri), &path.child("diskURI"), "");
    if let Some(mode) = &source.caching_mode {
        errors.one_of(mode, &path.child("cachingMode"), &["None", "ReadOnly", "ReadWrite"]);
    }
    if let Some(kind) = &source.kind {
        errors.one_of(kind, &path.child("kind"), &["Dedicated", "Managed", "Shared"]);
        let (start, form) = match kind.as_str() {
            "Managed" => ("/subscriptions/", MANAGED_DISK),
            _ => ("https://", BLOB_DISK),
        };
        if !source.disk_uri.starts_with(start) {
            errors.not_supported(&path.child("diskURI"), &[form]);
        }
    }
}

pub(super) fn storage_os(volume: &k8s::Volume, path: &Path, errors: &mut Errors) {
    let Some(source) = &volume.storageos else { return };
    match text(&source.volume_name) {
        "" => errors.required(&path.child("volumeName"), ""),
        name => errors.invalid_all(&path.child("volumeName"), names::label(name)),
    }
    if let Some(namespace) = source.volume_namespace.as_deref().filter(|namespace| !namespace.is_empty()) {
        errors.invalid_all(&path.child("volumeNamespace"), names::label(namespace));
    }
    secret_name(source.secret_ref.as_ref(), &path.child("secretRef"), errors);
}

pub(super) fn scale_io(volume: &k8s::Volume, path: &Path, errors: &mut Errors) {
    let Some(source) = &volume.scale_io else { return };
    errors.required_text(Some(&source.gateway), &path.child("gateway"), "");
    errors.required_text(Some(&source.system), &path.child("system"), "");
    errors.required_text(source.volume_name.as_deref(), &path.child("volumeName"), "");
}

fn secret_name(secret: Option<&k8s::LocalObjectReference>, path: &Path, errors: &mut Errors) {
    if let Some(secret) = secret {
        errors.required_text(Some(&secret.name), &path.child("name"), "");
    }
}
