//! Volumes of a pod: their names, and that each has one source.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1 as k8s;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::errors::{ErrorKind, Errors, Path};
use super::pod::text;
use super::{names, sources};

const MAX_ISCSI_NAME: usize = 64;

/// Gives the volumes that are sound by name: a mount of a broken one is reported as well, as upstream does.
pub(super) fn validate<'a>(
    spec: &'a k8s::PodSpec,
    metadata: &ObjectMeta,
    path: &Path,
    errors: &mut Errors,
) -> BTreeMap<&'a str, &'a k8s::Volume> {
    let mut sound = BTreeMap::new();
    for (index, volume) in spec.volumes.iter().flatten().enumerate() {
        let path = path.index(index);
        let before = errors.len();
        source(volume, metadata, &path, errors);
        if volume.name.is_empty() {
            errors.required(&path.child("name"), "");
        } else {
            errors.invalid_all(&path.child("name"), names::label(&volume.name));
        }
        if sound.contains_key(volume.name.as_str()) {
            errors.push(ErrorKind::Duplicate, &path.child("name"), "");
        }
        if errors.len() == before {
            sound.insert(volume.name.as_str(), volume);
        }
    }
    claims_are_apart(spec, text(&metadata.name), path, errors);
    sound
}

fn source(volume: &k8s::Volume, metadata: &ObjectMeta, path: &Path, errors: &mut Errors) {
    let mut first = None;
    for source in sources::of(volume) {
        if first.is_some() {
            errors.forbidden(&path.child(source.in_others_way), "may not specify more than 1 volume type");
        } else {
            first = Some(source.field);
            (source.check)(volume, &path.child(source.checked_as), errors);
        }
    }
    if first.is_none() {
        errors.required(path, "must specify a volume type");
    }
    names_with(volume, first == Some("ephemeral"), text(&metadata.name), path, errors);
}

/// The volume's name becomes part of other names.
fn names_with(volume: &k8s::Volume, makes_claim: bool, pod: &str, path: &Path, errors: &mut Errors) {
    let name = volume.name.as_str();
    if makes_claim && !pod.is_empty() && !name.is_empty() {
        let claim = format!("{pod}-{name}");
        for rule in names::subdomain(&claim) {
            errors.invalid(&path.child("name"), format!("PVC name \"{claim}\": {rule}"));
        }
    }
    let named = volume.iscsi.as_ref().filter(|iscsi| iscsi.initiator_name.is_some());
    let is_long = named.is_some_and(|iscsi| name.len() + 1 + iscsi.target_portal.len() > MAX_ISCSI_NAME);
    let rule = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName \
        is specified.";
    errors.invalid_if(is_long, &path.child("name"), rule);
}

/// A claim that is made for the pod can't be one that the pod refers to as well.
fn claims_are_apart(spec: &k8s::PodSpec, pod: &str, path: &Path, errors: &mut Errors) {
    if pod.is_empty() {
        return;
    }
    let volumes = || spec.volumes.iter().flatten();
    let made: BTreeSet<String> =
        volumes().filter(|volume| volume.ephemeral.is_some()).map(|volume| format!("{pod}-{}", volume.name)).collect();
    for (index, volume) in volumes().enumerate() {
        let Some(claim) = &volume.persistent_volume_claim else { continue };
        let path = path.index(index).child("persistentVolumeClaim").child("claimName");
        let rule = "must not reference a PVC that gets created for an ephemeral volume";
        errors.invalid_if(made.contains(&claim.claim_name), &path, rule);
    }
}
