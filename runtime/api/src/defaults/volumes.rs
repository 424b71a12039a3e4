//! Defaults of volumes.

use k8s_openapi::api::core::v1 as k8s;

use super::container::{divisor, set_text};
use super::has_latest_tag;
use crate::amount;

/// Mode of files that are made from objects: rw-r--r--.
const FILE_MODE: i32 = 0o644;

pub(super) fn apply(volume: &mut k8s::Volume) {
    if !has_source(volume) {
        volume.empty_dir = Some(k8s::EmptyDirVolumeSource::default());
    }
    if let Some(limit) = volume.empty_dir.as_mut().and_then(|dir| dir.size_limit.as_mut()) {
        amount::canonical(limit);
    }
    if let Some(path) = &mut volume.host_path {
        path.type_.get_or_insert_default();
    }
    if let Some(map) = &mut volume.config_map {
        map.default_mode.get_or_insert(FILE_MODE);
    }
    if let Some(secret) = &mut volume.secret {
        secret.default_mode.get_or_insert(FILE_MODE);
    }
    if let Some(downward) = &mut volume.downward_api {
        downward.default_mode.get_or_insert(FILE_MODE);
        downward.items.iter_mut().flatten().for_each(downward_file);
    }
    if let Some(projected) = &mut volume.projected {
        projected.default_mode.get_or_insert(FILE_MODE);
        projected.sources.iter_mut().flatten().for_each(projection);
    }
    if let Some(image) = &mut volume.image {
        let newest = has_latest_tag(image.reference.as_deref().unwrap_or_default());
        set_text(&mut image.pull_policy, if newest { "Always" } else { "IfNotPresent" });
    }
    if let Some(claim) = volume.ephemeral.as_mut().and_then(|ephemeral| ephemeral.volume_claim_template.as_mut()) {
        claim_spec(&mut claim.spec);
    }
    network_disks(volume);
}

/// Volumes of storage systems.
fn network_disks(volume: &mut k8s::Volume) {
    if let Some(iscsi) = &mut volume.iscsi {
        set_text(&mut iscsi.iscsi_interface, "default");
    }
    if let Some(rbd) = &mut volume.rbd {
        set_text(&mut rbd.pool, "rbd");
        set_text(&mut rbd.user, "admin");
        set_text(&mut rbd.keyring, "/etc/ceph/keyring");
    }
    if let Some(disk) = &mut volume.azure_disk {
        disk.caching_mode.get_or_insert_with(|| "ReadWrite".into());
        disk.kind.get_or_insert_with(|| "Shared".into());
        disk.fs_type.get_or_insert_with(|| "ext4".into());
        disk.read_only.get_or_insert(false);
    }
    if let Some(scale_io) = &mut volume.scale_io {
        set_text(&mut scale_io.storage_mode, "ThinProvisioned");
        set_text(&mut scale_io.fs_type, "xfs");
    }
}

/// Also for the claim templates of StatefulSets.
pub(super) fn claim_spec(spec: &mut k8s::PersistentVolumeClaimSpec) {
    spec.volume_mode.get_or_insert_with(|| "Filesystem".into());
    if let Some(resources) = &mut spec.resources {
        let lists = [&mut resources.limits, &mut resources.requests];
        lists.into_iter().flatten().flat_map(|list| list.values_mut()).for_each(amount::round_to_milli);
    }
}

fn projection(projection: &mut k8s::VolumeProjection) {
    if let Some(token) = &mut projection.service_account_token {
        token.expiration_seconds.get_or_insert(3600);
    }
    if let Some(downward) = &mut projection.downward_api {
        downward.items.iter_mut().flatten().for_each(downward_file);
    }
}

fn downward_file(file: &mut k8s::DownwardAPIVolumeFile) {
    if let Some(field) = &mut file.field_ref {
        set_text(&mut field.api_version, "v1");
    }
    if let Some(resource) = &mut file.resource_field_ref {
        divisor(&mut resource.divisor);
    }
}

fn has_source(volume: &k8s::Volume) -> bool {
    *volume != k8s::Volume { name: volume.name.clone(), ..k8s::Volume::default() }
}
