//! Projected volumes: several sources in one directory.

use k8s_openapi::api::core::v1 as k8s;

use super::errors::{Errors, Path};
use super::pod::text;
use super::{names, paths, sources};

/// What a token lasts at least and at most, in seconds.
const MIN_EXPIRATION: i64 = 10 * 60;
const MAX_EXPIRATION: i64 = 1 << 32;

pub(super) fn validate(volume: &k8s::Volume, path: &Path, errors: &mut Errors) {
    let Some(projected) = &volume.projected else { return };
    paths::file_mode(projected.default_mode, &path.child("defaultMode"), errors);
    let mut known = Vec::new();
    for (index, source) in projected.sources.iter().flatten().enumerate() {
        let at = path.child("sources").index(index);
        let kinds = [
            source.secret.is_some(),
            source.config_map.is_some(),
            source.downward_api.is_some(),
            source.service_account_token.is_some(),
            source.cluster_trust_bundle.is_some(),
            source.pod_certificate.is_some(),
        ];
        contents(source, &at, errors);
        for place in places(source) {
            if known.contains(&place) {
                errors.invalid(path, "conflicting duplicate paths");
            } else {
                known.push(place);
            }
        }
        let has_several = kinds.iter().filter(|is_set| **is_set).count() > 1;
        errors.forbidden_if(has_several, &at, "may not specify more than 1 volume type");
    }
}

fn contents(source: &k8s::VolumeProjection, path: &Path, errors: &mut Errors) {
    if let Some(secret) = &source.secret {
        let path = path.child("secret");
        errors.required_text(Some(&secret.name), &path.child("name"), "");
        sources::keys(secret.items.as_deref().unwrap_or_default(), &path.child("items"), errors);
    }
    if let Some(map) = &source.config_map {
        let path = path.child("configMap");
        errors.required_text(Some(&map.name), &path.child("name"), "");
        sources::keys(map.items.as_deref().unwrap_or_default(), &path.child("items"), errors);
    }
    if let Some(downward) = &source.downward_api {
        for file in downward.items.iter().flatten() {
            sources::downward_file(file, &path.child("downwardAPI"), errors);
        }
    }
    if let Some(token) = &source.service_account_token {
        self::token(token, &path.child("serviceAccountToken"), errors);
    }
    if let Some(bundle) = &source.cluster_trust_bundle {
        trust_bundle(bundle, &path.child("clusterTrustBundle"), errors);
    }
    if let Some(certificate) = &source.pod_certificate {
        let path = path.child("podCertificate");
        errors.required_text(Some(&certificate.signer_name), &path.child("signerName"), "");
        errors.required_text(Some(&certificate.key_type), &path.child("keyType"), "");
    }
}

fn token(token: &k8s::ServiceAccountTokenProjection, path: &Path, errors: &mut Errors) {
    let seconds = token.expiration_seconds.unwrap_or(3600);
    let expiration = path.child("expirationSeconds");
    errors.invalid_if(seconds < MIN_EXPIRATION, &expiration, "may not specify a duration less than 10 minutes");
    errors.invalid_if(seconds > MAX_EXPIRATION, &expiration, "may not specify a duration larger than 2^32 seconds");
    if token.path.is_empty() {
        errors.required(&path.child("path"), "");
    } else {
        paths::not_reserved(&token.path, &path.child("path"), errors);
    }
}

fn trust_bundle(bundle: &k8s::ClusterTrustBundleProjection, path: &Path, errors: &mut Errors) {
    let (name, signer) = (text(&bundle.name), text(&bundle.signer_name));
    match (name.is_empty(), signer.is_empty()) {
        (false, false) => errors.invalid(path, "only one of name and signerName may be used"),
        (true, true) => errors.required(path, "either name or signerName must be specified"),
        (false, true) => errors.invalid_all(&path.child("name"), names::subdomain(name)),
        (true, false) => {}
    }
    errors.required_text(Some(&bundle.path), &path.child("path"), "");
    paths::not_reserved(&bundle.path, &path.child("path"), errors);
}

/// The files that a source makes, where the manifest names them.
fn places(source: &k8s::VolumeProjection) -> Vec<&str> {
    let secret = source.secret.iter().flat_map(|secret| secret.items.iter().flatten()).map(|item| &item.path);
    let map = source.config_map.iter().flat_map(|map| map.items.iter().flatten()).map(|item| &item.path);
    let downward = source.downward_api.iter().flat_map(|files| files.items.iter().flatten()).map(|file| &file.path);
    let token = source.service_account_token.iter().map(|token| &token.path);
    let bundle = source.cluster_trust_bundle.iter().map(|bundle| &bundle.path);
    let all = secret.chain(map).chain(downward).chain(token).chain(bundle);
    all.map(String::as_str).filter(|path| !path.is_empty()).collect()
}
