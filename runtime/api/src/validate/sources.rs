//! Sources of volumes, kind by kind.

use k8s_openapi::api::core::v1 as k8s;

use super::container::pull_policy;
use super::errors::{Errors, Path};
use super::pod::text;
use super::{claims, disks, env, names, paths, projected};
use crate::amount;

/// The rules for one kind of source.
pub(super) type Check = fn(&k8s::Volume, &Path, &mut Errors);

const MAX_DRIVER_BYTES: usize = 63;
/// Fields of the downward API that files can show.
const VOLUME_FIELDS: [&str; 5] =
    ["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];

/// A kind of source that is set.
pub(super) struct Source {
    pub(super) field: &'static str,
    /// Where its own errors stand.
    pub(super) checked_as: &'static str,
    /// Where it stands that there is another one already.
    pub(super) in_others_way: &'static str,
    pub(super) check: Check,
}

/// The sources that are set, in the order that counts when there are several.
pub(super) fn of(volume: &k8s::Volume) -> impl Iterator<Item = Source> {
    let table: [(bool, &'static str, Check); 30] = [
        (volume.empty_dir.is_some(), "emptyDir", empty_dir),
        (volume.host_path.is_some(), "hostPath", host_path),
        (volume.git_repo.is_some(), "gitRepo", git_repo),
        (volume.gce_persistent_disk.is_some(), "gcePersistentDisk", disks::gce_disk),
        (volume.aws_elastic_block_store.is_some(), "awsElasticBlockStore", disks::aws_disk),
        (volume.secret.is_some(), "secret", secret),
        (volume.nfs.is_some(), "nfs", disks::nfs),
        (volume.iscsi.is_some(), "iscsi", disks::iscsi),
        (volume.glusterfs.is_some(), "glusterfs", disks::glusterfs),
        (volume.flocker.is_some(), "flocker", disks::flocker),
        (volume.persistent_volume_claim.is_some(), "persistentVolumeClaim", claim),
        (volume.rbd.is_some(), "rbd", disks::rbd),
        (volume.cinder.is_some(), "cinder", disks::cinder),
        (volume.cephfs.is_some(), "cephfs", disks::cephfs),
        (volume.quobyte.is_some(), "quobyte", disks::quobyte),
        (volume.downward_api.is_some(), "downwardAPI", downward_api),
        (volume.fc.is_some(), "fc", disks::fibre_channel),
        (volume.flex_volume.is_some(), "flexVolume", disks::flex),
        (volume.config_map.is_some(), "configMap", config_map),
        (volume.azure_file.is_some(), "azureFile", disks::azure_file),
        (volume.vsphere_volume.is_some(), "vsphereVolume", disks::vsphere),
        (volume.photon_persistent_disk.is_some(), "photonPersistentDisk", disks::photon),
        (volume.portworx_volume.is_some(), "portworxVolume", disks::portworx),
        (volume.azure_disk.is_some(), "azureDisk", disks::azure_disk),
        (volume.storageos.is_some(), "storageos", disks::storage_os),
        (volume.projected.is_some(), "projected", projected::validate),
        (volume.scale_io.is_some(), "scaleIO", disks::scale_io),
        (volume.csi.is_some(), "csi", csi),
        (volume.ephemeral.is_some(), "ephemeral", claims::ephemeral),
        (volume.image.is_some(), "image", image),
    ];
    table.into_iter().filter(|(is_set, ..)| *is_set).map(|(_, field, check)| {
        // Not all are called by their names: upstream's slips are part of its answers.
        let (checked_as, in_others_way) = match field {
            "gcePersistentDisk" => ("persistentDisk", field),
            "cephfs" => (field, "cephFS"),
            "downwardAPI" => (field, "downwarAPI"),
            _ => (field, field),
        };
        Source { field, checked_as, in_others_way, check }
    })
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

fn csi(volume: &k8s::Volume, path: &Path, errors: &mut Errors) {
    let Some(source) = &volume.csi else { return };
    let driver_path = path.child("driver");
    match source.driver.as_str() {
        "" => errors.required(&driver_path, ""),
        driver => {
            if driver.len() > MAX_DRIVER_BYTES {
                errors.too_long(&driver_path, MAX_DRIVER_BYTES);
            }
            errors.invalid_all(&driver_path, names::subdomain(&driver.to_lowercase()));
        }
    }
    match source.node_publish_secret_ref.as_ref().map(|secret| secret.name.as_str()) {
        None => {}
        Some("") => errors.required(&path.child("nodePublishSecretRef").child("name"), ""),
        // The path is upstream's.
        Some(name) => errors.invalid_all(&path.child("name"), names::subdomain(name)),
    }
}
