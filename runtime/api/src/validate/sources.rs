//! Sources of volumes, kind by kind.

use k8s_openapi::api::core::v1 as k8s;

use super::container::pull_policy;
use super::errors::{Errors, Path};
use super::pod::text;
use super::{env, names, paths, projected};
use crate::amount;

/// The rules for one kind of source.
pub(super) type Check = fn(&k8s::Volume, &Path, &mut Errors);

/// Fields of the downward API that files can show.
const VOLUME_FIELDS: [&str; 5] =
    ["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];

/// The sources that are set, in the order that counts when there are several, with their rules.
pub(super) fn of(volume: &k8s::Volume) -> impl Iterator<Item = (&'static str, Check)> {
    let table: [(bool, &str, Check); 30] = [
        (volume.empty_dir.is_some(), "emptyDir", empty_dir),
        (volume.host_path.is_some(), "hostPath", host_path),
        (volume.git_repo.is_some(), "gitRepo", git_repo),
        (volume.gce_persistent_disk.is_some(), "gcePersistentDisk", gce_disk),
        (volume.aws_elastic_block_store.is_some(), "awsElasticBlockStore", aws_disk),
        (volume.secret.is_some(), "secret", secret),
        (volume.nfs.is_some(), "nfs", nfs),
        (volume.iscsi.is_some(), "iscsi", iscsi),
        (volume.glusterfs.is_some(), "glusterfs", glusterfs),
        (volume.flocker.is_some(), "flocker", flocker),
        (volume.persistent_volume_claim.is_some(), "persistentVolumeClaim", claim),
        (volume.rbd.is_some(), "rbd", rbd),
        (volume.cinder.is_some(), "cinder", cinder),
        (volume.cephfs.is_some(), "cephfs", cephfs),
        (volume.quobyte.is_some(), "quobyte", quobyte),
        (volume.downward_api.is_some(), "downwardAPI", downward_api),
        (volume.fc.is_some(), "fc", fibre_channel),
        (volume.flex_volume.is_some(), "flexVolume", flex),
        (volume.config_map.is_some(), "configMap", config_map),
        (volume.azure_file.is_some(), "azureFile", azure_file),
        (volume.vsphere_volume.is_some(), "vsphereVolume", vsphere),
        (volume.photon_persistent_disk.is_some(), "photonPersistentDisk", photon),
        (volume.portworx_volume.is_some(), "portworxVolume", portworx),
        (volume.azure_disk.is_some(), "azureDisk", azure_disk),
        (volume.storageos.is_some(), "storageos", storage_os),
        (volume.projected.is_some(), "projected", projected::validate),
        (volume.scale_io.is_some(), "scaleIO", scale_io),
        (volume.csi.is_some(), "csi", csi),
        (volume.ephemeral.is_some(), "ephemeral", ephemeral),
        (volume.image.is_some(), "image", image),
    ];
    table.into_iter().filter(|(is_set, ..)| *is_set).map(|(_, field, check)| (field, check))
}

fn empty_dir(volume: &k8s::Volume, path: &Path, errors: &mut Errors) {
    let limit = volume.empty_dir.as_ref().and_then(|dir| dir.size_limit.as_ref());
    let is_negative = limit.is_some_and(|limit| amount::of(limit).is_negative());
    errors.forbidden_if(is_negative, &path.child("sizeLimit"), "SizeLimit field must be a valid resource quantity");
}

fn host_path(volume: &k8s::Volume, path: &Path, errors: &mut Errors) {
    let Some(source) = &volume.host_path else { return };
    if source.path.is_empty() {
        return errors.required(&path.child("path"), "");
    }
    paths::no_backsteps(&source.path, &path.child("path"), errors);
    let types = ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];
    errors.one_of(text(&source.type_), &path.child("type"), &types);
}

fn secret(volume: &k8s::Volume, path: &Path, errors: &mut Errors) {
    let Some(source) = &volume.secret else { return };
    errors.required_text(source.secret_name.as_deref(), &path.child("secretName"), "");
    paths::file_mode(source.default_mode, &path.child("defaultMode"), errors);
    keys(source.items.as_deref().unwrap_or_default(), &path.child("items"), errors);
}

fn config_map(volume: &k8s::Volume, path: &Path, errors: &mut Errors) {
    let Some(source) = &volume.config_map else { return };
    errors.required_text(Some(&source.name), &path.child("name"), "");
    paths::file_mode(source.default_mode, &path.child("defaultMode"), errors);
    keys(source.items.as_deref().unwrap_or_default(), &path.child("items"), errors);
}

/// Also in projected volumes.
pub(super) fn keys(items: &[k8s::KeyToPath], path: &Path, errors: &mut Errors) {
    for (index, item) in items.iter().enumerate() {
        let path = path.index(index);
        errors.required_text(Some(&item.key), &path.child("key"), "");
        errors.required_text(Some(&item.path), &path.child("path"), "");
        paths::not_reserved(&item.path, &path.child("path"), errors);
        paths::file_mode(item.mode, &path.child("mode"), errors);
    }
}

fn downward_api(volume: &k8s::Volume, path: &Path, errors: &mut Errors) {
    let Some(source) = &volume.downward_api else { return };
    paths::file_mode(source.default_mode, &path.child("defaultMode"), errors);
    for file in source.items.iter().flatten() {
        downward_file(file, path, errors);
    }
}

/// Also in projected volumes. (The path without the item is upstream's.)
pub(super) fn downward_file(file: &k8s::DownwardAPIVolumeFile, path: &Path, errors: &mut Errors) {
    errors.required_text(Some(&file.path), &path.child("path"), "");
    paths::not_reserved(&file.path, &path.child("path"), errors);
    match (&file.field_ref, &file.resource_field_ref) {
        (Some(field), resource) => {
            env::object_field(field, &VOLUME_FIELDS, &path.child("fieldRef"), errors);
            let rule = "fieldRef and resourceFieldRef can not be specified simultaneously";
            errors.invalid_if(resource.is_some(), path, rule);
        }
        (None, Some(resource)) => env::container_resource(resource, true, &path.child("resourceFieldRef"), errors),
        (None, None) => errors.required(path, "one of fieldRef and resourceFieldRef is required"),
    }
    paths::file_mode(file.mode, &path.child("mode"), errors);
}

fn claim(volume: &k8s::Volume, path: &Path, errors: &mut Errors) {
    let Some(source) = &volume.persistent_volume_claim else { return };
    errors.required_text(Some(&source.claim_name), &path.child("claimName"), "");
}

fn ephemeral(volume: &k8s::Volume, path: &Path, errors: &mut Errors) {
    let path = path.child("volumeClaimTemplate");
    let Some(template) = volume.ephemeral.as_ref().and_then(|source| source.volume_claim_template.as_ref()) else {
        return errors.required(&path, "");
    };
    let path = path.child("spec");
    let modes = template.spec.access_modes.as_deref().unwrap_or_default();
    if modes.is_empty() {
        errors.required(&path.child("accessModes"), "at least 1 access mode is required");
    }
    for mode in modes {
        let modes = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
        errors.one_of(mode, &path.child("accessModes"), &modes);
    }
    let storage_path = path.child("resources").key("storage");
    let requests = template.spec.resources.as_ref().and_then(|resources| resources.requests.as_ref());
    match requests.and_then(|requests| requests.get("storage")).map(amount::of) {
        None => errors.required(&storage_path, ""),
        Some(amount) => {
            let is_positive = !amount.is_negative() && !amount.is_zero();
            errors.invalid_if(!is_positive, &storage_path, "must be greater than zero");
        }
    }
}

fn image(volume: &k8s::Volume, path: &Path, errors: &mut Errors) {
    let Some(source) = &volume.image else { return };
    errors.required_text(source.reference.as_deref(), &path.child("reference"), "");
    pull_policy(source.pull_policy.as_deref(), &path.child("pullPolicy"), errors);
}

fn git_repo(volume: &k8s::Volume, path: &Path, errors: &mut Errors) {
    let Some(source) = &volume.git_repo else { return };
    errors.required_text(Some(&source.repository), &path.child("repository"), "");
    paths::descending(text(&source.directory), &path.child("directory"), errors);
}

fn gce_disk(volume: &k8s::Volume, path: &Path, errors: &mut Errors) {
    let Some(source) = &volume.gce_persistent_disk else { return };
    errors.required_text(Some(&source.pd_name), &path.child("pdName"), "");
    errors.in_range(i64::from(source.partition.unwrap_or_default()), 0, 255, &path.child("partition"));
}

fn aws_disk(volume: &k8s::Volume, path: &Path, errors: &mut Errors) {
    let Some(source) = &volume.aws_elastic_block_store else { return };
    errors.required_text(Some(&source.volume_id), &path.child("volumeID"), "");
    errors.in_range(i64::from(source.partition.unwrap_or_default()), 0, 255, &path.child("partition"));
}

fn nfs(volume: &k8s::Volume, path: &Path, errors: &mut Errors) {
    let Some(source) = &volume.nfs else { return };
    errors.required_text(Some(&source.server), &path.child("server"), "");
    errors.required_text(Some(&source.path), &path.child("path"), "");
    errors.invalid_if(!source.path.starts_with('/'), &path.child("path"), "must be an absolute path");
}

fn iscsi(volume: &k8s::Volume, path: &Path, errors: &mut Errors) {
    let Some(source) = &volume.iscsi else { return };
    errors.required_text(Some(&source.target_portal), &path.child("targetPortal"), "");
    let is_known = ["iqn", "eui", "naa"].iter().any(|start| source.iqn.starts_with(start));
    match source.iqn.as_str() {
        "" => errors.required(&path.child("iqn"), ""),
        _ => errors.invalid_if(!is_known, &path.child("iqn"), "must be valid format starting with iqn, eui, or naa"),
    }
    errors.in_range(i64::from(source.lun), 0, 255, &path.child("lun"));
    let has_chap = source.chap_auth_discovery == Some(true) || source.chap_auth_session == Some(true);
    if has_chap && source.secret_ref.is_none() {
        errors.required(&path.child("secretRef"), "");
    }
}

fn glusterfs(volume: &k8s::Volume, path: &Path, errors: &mut Errors) {
    let Some(source) = &volume.glusterfs else { return };
    errors.required_text(Some(&source.endpoints), &path.child("endpoints"), "");
    errors.required_text(Some(&source.path), &path.child("path"), "");
}

fn flocker(volume: &k8s::Volume, path: &Path, errors: &mut Errors) {
    let Some(source) = &volume.flocker else { return };
    let (name, uuid) = (text(&source.dataset_name), text(&source.dataset_uuid));
    match (name.is_empty(), uuid.is_empty()) {
        (true, true) => errors.required(path, "one of datasetName and datasetUUID is required"),
        (false, false) => errors.invalid(path, "datasetName and datasetUUID can not be specified simultaneously"),
        _ => {}
    }
    errors.invalid_if(name.contains('/'), &path.child("datasetName"), "must not contain '/'");
}

fn rbd(volume: &k8s::Volume, path: &Path, errors: &mut Errors) {
    let Some(source) = &volume.rbd else { return };
    if source.monitors.is_empty() {
        errors.required(&path.child("monitors"), "");
    }
    errors.required_text(Some(&source.image), &path.child("image"), "");
}

fn cinder(volume: &k8s::Volume, path: &Path, errors: &mut Errors) {
    let Some(source) = &volume.cinder else { return };
    errors.required_text(Some(&source.volume_id), &path.child("volumeID"), "");
    secret_name(source.secret_ref.as_ref(), &path.child("secretRef"), errors);
}

fn cephfs(volume: &k8s::Volume, path: &Path, errors: &mut Errors) {
    let Some(source) = &volume.cephfs else { return };
    if source.monitors.is_empty() {
        errors.required(&path.child("monitors"), "");
    }
}

fn quobyte(volume: &k8s::Volume, path: &Path, errors: &mut Errors) {
    let Some(source) = &volume.quobyte else { return };
    let rule = "must be a host:port pair or multiple pairs separated by commas";
    errors.required_text(Some(&source.registry), &path.child("registry"), rule);
    if text(&source.tenant).len() >= 65 {
        errors.required(&path.child("tenant"), "must be a UUID and may not exceed a length of 64 characters");
    }
    errors.required_text(Some(&source.volume), &path.child("volume"), "");
}

fn fibre_channel(volume: &k8s::Volume, path: &Path, errors: &mut Errors) {
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

fn flex(volume: &k8s::Volume, path: &Path, errors: &mut Errors) {
    let Some(source) = &volume.flex_volume else { return };
    errors.required_text(Some(&source.driver), &path.child("driver"), "");
}

fn azure_file(volume: &k8s::Volume, path: &Path, errors: &mut Errors) {
    let Some(source) = &volume.azure_file else { return };
    errors.required_text(Some(&source.secret_name), &path.child("secretName"), "");
    errors.required_text(Some(&source.share_name), &path.child("shareName"), "");
}

fn vsphere(volume: &k8s::Volume, path: &Path, errors: &mut Errors) {
    let Some(source) = &volume.vsphere_volume else { return };
    errors.required_text(Some(&source.volume_path), &path.child("volumePath"), "");
}

fn photon(volume: &k8s::Volume, path: &Path, errors: &mut Errors) {
    let Some(source) = &volume.photon_persistent_disk else { return };
    errors.required_text(Some(&source.pd_id), &path.child("pdID"), "");
}

fn portworx(volume: &k8s::Volume, path: &Path, errors: &mut Errors) {
    let Some(source) = &volume.portworx_volume else { return };
    errors.required_text(Some(&source.volume_id), &path.child("volumeID"), "");
}

fn azure_disk(volume: &k8s::Volume, path: &Path, errors: &mut Errors) {
    let Some(source) = &volume.azure_disk else { return };
    errors.required_text(Some(&source.disk_name), &path.child("diskName"), "");
    errors.required_text(Some(&source.disk_uri), &path.child("diskURI"), "");
    if let Some(mode) = &source.caching_mode {
        errors.one_of(mode, &path.child("cachingMode"), &["None", "ReadOnly", "ReadWrite"]);
    }
    if let Some(kind) = &source.kind {
        errors.one_of(kind, &path.child("kind"), &["Dedicated", "Managed", "Shared"]);
    }
}

fn storage_os(volume: &k8s::Volume, path: &Path, errors: &mut Errors) {
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

fn scale_io(volume: &k8s::Volume, path: &Path, errors: &mut Errors) {
    let Some(source) = &volume.scale_io else { return };
    errors.required_text(Some(&source.gateway), &path.child("gateway"), "");
    errors.required_text(Some(&source.system), &path.child("system"), "");
    errors.required_text(source.volume_name.as_deref(), &path.child("volumeName"), "");
}

fn csi(volume: &k8s::Volume, path: &Path, errors: &mut Errors) {
    let Some(source) = &volume.csi else { return };
    let driver_path = path.child("driver");
    match source.driver.as_str() {
        "" => errors.required(&driver_path, ""),
        driver if driver.len() > 63 => errors.too_long(&driver_path, 63),
        driver => errors.invalid_all(&driver_path, names::subdomain(&driver.to_lowercase())),
    }
    secret_name(source.node_publish_secret_ref.as_ref(), &path.child("nodePublishSecretRef"), errors);
}

fn secret_name(secret: Option<&k8s::LocalObjectReference>, path: &Path, errors: &mut Errors) {
    if let Some(secret) = secret {
        errors.required_text(Some(&secret.name), &path.child("name"), "");
    }
}
