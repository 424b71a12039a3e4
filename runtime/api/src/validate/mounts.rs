//! Volume mounts and block devices of a container.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1 as k8s;

use super::container::Scope;
use super::errors::{Errors, Path};
use super::paths;
use super::pod::text;

pub(super) fn volume_mounts(container: &k8s::Container, scope: &Scope<'_>, path: &Path, errors: &mut Errors) {
    let devices = container.volume_devices.as_deref().unwrap_or_default();
    let mut mount_paths: BTreeSet<&str> = BTreeSet::new();
    let names: BTreeSet<&str> = devices.iter().map(|device| device.name.as_str()).collect();
    let places = last_of_names(devices.iter().map(|device| (device.name.as_str(), device.device_path.as_str())));
    for (index, mount) in container.volume_mounts.iter().flatten().enumerate() {
        let at = path.index(index);
        errors.required_text(Some(&mount.name), &at.child("name"), "");
        if !scope.volumes.contains_key(mount.name.as_str()) {
            errors.not_found(&at.child("name"));
        }
        errors.required_text(Some(&mount.mount_path), &at.child("mountPath"), "");
        errors.invalid_if(!mount_paths.insert(&mount.mount_path), &at.child("mountPath"), "must be unique");
        errors.invalid_if(names.contains(&*mount.name), &at.child("name"), "must not already exist in volumeDevices");
        let placed = places.contains(&*mount.mount_path);
        errors.invalid_if(placed, &at.child("mountPath"), "must not already exist as a path in volumeDevices");
        // From here on upstream names the field without the index.
        let (sub_path, expression) = (text(&mount.sub_path), text(&mount.sub_path_expr));
        paths::descending(sub_path, &path.child("subPath"), errors);
        let both = !sub_path.is_empty() && !expression.is_empty();
        errors.invalid_if(both, &at.child("subPathExpr"), "subPathExpr and subPath are mutually exclusive");
        paths::descending(expression, &path.child("subPathExpr"), errors);
        propagation(mount, container, &path.child("mountPropagation"), errors);
        recursive_read_only(mount, &path.child("recursiveReadOnly"), errors);
    }
}

/// The places, as upstream keeps them: by name, so that a later one of a name hides those before.
fn last_of_names<'a>(places: impl Iterator<Item = (&'a str, &'a str)>) -> BTreeSet<&'a str> {
    places.collect::<BTreeMap<_, _>>().into_values().collect()
}

fn propagation(mount: &k8s::VolumeMount, container: &k8s::Container, path: &Path, errors: &mut Errors) {
    let Some(mode) = mount.mount_propagation.as_deref() else { return };
    errors.one_of(mode, path, &["Bidirectional", "HostToContainer", "None"]);
    let privileged = container.security_context.as_ref().and_then(|context| context.privileged).unwrap_or_default();
    let rule = "Bidirectional mount propagation is available only to privileged containers";
    errors.forbidden_if(mode == "Bidirectional" && !privileged, path, rule);
}

fn recursive_read_only(mount: &k8s::VolumeMount, path: &Path, errors: &mut Errors) {
    match mount.recursive_read_only.as_deref() {
        None | Some("Disabled") => {}
        Some("Enabled" | "IfPossible") => {
            let read_only = mount.read_only.unwrap_or_default();
            errors.forbidden_if(!read_only, path, "may only be specified when readOnly is true");
            let propagates = !matches!(mount.mount_propagation.as_deref(), None | Some("None"));
            errors.forbidden_if(
                propagates,
                path,
                "may only be specified when mountPropagation is None or not specified",
            );
        }
        Some(_) => errors.not_supported(path, &["Disabled", "Enabled", "IfPossible"]),
    }
}

pub(super) fn volume_devices(container: &k8s::Container, scope: &Scope<'_>, path: &Path, errors: &mut Errors) {
    let mounts = container.volume_mounts.as_deref().unwrap_or_default();
    let (mut names, mut places): (BTreeSet<&str>, BTreeSet<&str>) = Default::default();
    let mounted: BTreeSet<&str> = mounts.iter().map(|mount| mount.name.as_str()).collect();
    let mount_paths = last_of_names(mounts.iter().map(|mount| (mount.name.as_str(), mount.mount_path.as_str())));
    for (index, device) in container.volume_devices.iter().flatten().enumerate() {
        let at = path.index(index);
        let (name_path, place_path) = (at.child("name"), at.child("devicePath"));
        let (name, place) = (device.name.as_str(), device.device_path.as_str());
        errors.required_text(Some(name), &name_path, "");
        errors.invalid_if(names.contains(name), &name_path, "must be unique");
        match scope.volumes.get(name) {
            None => errors.not_found(&name_path),
            Some(volume) => {
                let is_claim = volume.persistent_volume_claim.is_some() || volume.ephemeral.is_some();
                let rule = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
                errors.invalid_if(!is_claim, &name_path, rule);
            }
        }
        errors.required_text(Some(place), &place_path, "");
        errors.invalid_if(places.contains(place), &place_path, "must be unique");
        if paths::has_backsteps(place) {
            errors.invalid(&place_path, "can not contain backsteps ('..')");
        } else {
            places.insert(place);
        }
        errors.invalid_if(mounted.contains(name), &name_path, "must not already exist in volumeMounts");
        let placed = mount_paths.contains(place);
        errors.invalid_if(placed, &place_path, "must not already exist as a path in volumeMounts");
        if !name.is_empty() {
            names.insert(name);
        }
    }
}
