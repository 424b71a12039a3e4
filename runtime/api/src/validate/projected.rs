//! Projected volumes: several sources in one directory.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1 as k8s;

use super::errors::{Errors, Path};
use super::pod::text;
use super::{affinity, names, paths, sources};

/// What a token lasts at least and at most, in seconds.
const MIN_EXPIRATION: i64 = 10 * 60;
const MAX_EXPIRATION: i64 = 1 << 32;
/// The same for a certificate; those of Kubernetes' own signers end earlier.
const MIN_CERTIFICATE: i32 = 60 * 60;
const MAX_CERTIFICATE: i32 = 91 * 24 * 60 * 60;
const MAX_OWN_CERTIFICATE: i32 = 24 * 60 * 60;
const KEY_TYPES: [&str; 6] = ["RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"];

pub(super) fn validate(volume: &k8s::Volume, path: &Path, errors: &mut Errors) {
    let Some(projected) = &volume.projected else { return };
    paths::file_mode(projected.default_mode, &path.child("defaultMode"), errors);
    let mut known = BTreeSet::new();
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
        if let Some(written) = &source.service_account_token {
            token(written, &at.child("serviceAccountToken"), path, errors);
        }
        for place in places(source) {
            if !known.insert(place) {
                errors.invalid(path, "conflicting duplicate paths");
            }
        }
        let has_several = kinds.iter().filter(|is_set| **is_set).count() > 1;
        errors.forbidden_if(has_several, &at, "may not specify more than 1 volume type per source");
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
    if let Some(bundle) = &source.cluster_trust_bundle {
        trust_bundle(bundle, &path.child("clusterTrustBundle"), errors);
    }
    if let Some(certificate) = &source.pod_certificate {
        self::certificate(certificate, &path.child("podCertificate"), errors);
    }
}

/// (Where the token's path is looked at upstream names the volume, not the token.)
fn token(token: &k8s::ServiceAccountTokenProjection, path: &Path, volume: &Path, errors: &mut Errors) {
    let seconds = token.expiration_seconds.unwrap_or(3600);
    let expiration = path.child("expirationSeconds");
    errors.invalid_if(seconds < MIN_EXPIRATION, &expiration, "may not specify a duration less than 10 minutes");
    errors.invalid_if(seconds > MAX_EXPIRATION, &expiration, "may not specify a duration larger than 2^32 seconds");
    if token.path.is_empty() {
        errors.required(&volume.child("path"), "");
    } else {
        paths::not_reserved(&token.path, &volume.child("path"), errors);
    }
}

fn trust_bundle(bundle: &k8s::ClusterTrustBundleProjection, path: &Path, errors: &mut Errors) {
    let selector = bundle.label_selector.as_ref();
    match (&bundle.name, &bundle.signer_name) {
        (Some(_), Some(_)) => errors.invalid(path, "only one of name and signerName may be used"),
        (None, None) => errors.required(path, "either name or signerName must be specified"),
        (Some(name), None) => {
            let name_path = path.child("name");
            errors.required_text(Some(name), &name_path, "must be a valid object name");
            for rule in bundle_name(name) {
                errors.invalid(&name_path, format!("not a valid clustertrustbundlename: {rule}"));
            }
            let rule = "labelSelector must be unset if name is specified";
            errors.invalid_if(selector.is_some(), &path.child("labelSelector"), rule);
        }
        (None, Some(signer)) => {
            errors.required_text(Some(signer), &path.child("signerName"), "must be a valid signer name");
            signer_name(signer, &path.child("signerName"), errors);
            affinity::label_selector(selector, &path.child("labelSelector"), errors);
        }
    }
    errors.required_text(Some(&bundle.path), &path.child("path"), "");
    paths::not_reserved(&bundle.path, &path.child("path"), errors);
}

/// Bundles of a signer begin with its name.
fn bundle_name(name: &str) -> Vec<String> {
    names::subdomain(name.rsplit_once(':').map_or(name, |(_, own)| own))
}

fn certificate(certificate: &k8s::PodCertificateProjection, path: &Path, errors: &mut Errors) {
    signer_name(&certificate.signer_name, &path.child("signerName"), errors);
    errors.one_of(&certificate.key_type, &path.child("keyType"), &KEY_TYPES);
    if let Some(seconds) = certificate.max_expiration_seconds {
        let path = path.child("maxExpirationSeconds");
        errors.invalid_if(seconds < MIN_CERTIFICATE, &path, "if provided, maxExpirationSeconds must be >= 3600");
        let domain = certificate.signer_name.split('/').next().unwrap_or_default();
        let is_own = domain == "kubernetes.io" || domain.ends_with(".kubernetes.io");
        let most = if is_own { MAX_OWN_CERTIFICATE } else { MAX_CERTIFICATE };
        errors.invalid_if(seconds > most, &path, &format!("if provided, maxExpirationSeconds must be <= {most}"));
    }
    let files = [
        (&certificate.credential_bundle_path, "credentialBundlePath"),
        (&certificate.key_path, "keyPath"),
        (&certificate.certificate_chain_path, "certificateChainPath"),
    ];
    for (file, field) in files {
        paths::not_reserved(text(file), &path.child(field), errors);
    }
    if files.iter().all(|(file, _)| text(file).is_empty()) {
        let rule = "specify at least one of credentialBundlePath, keyPath, and certificateChainPath";
        errors.required(path, rule);
    }
}

/// `domain.example.com/path`.
fn signer_name(name: &str, path: &Path, errors: &mut Errors) {
    const MAX_DOMAIN: usize = 253;
    const MAX_NAME: usize = 571;
    if name.is_empty() {
        return errors.required(path, "");
    }
    let Some((domain, own)) = name.split_once('/').filter(|(_, own)| !own.contains('/')) else {
        let rule = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        return errors.invalid(path, rule);
    };
    if domain.len() > MAX_DOMAIN {
        errors.too_long(path, MAX_DOMAIN);
    }
    let rule = "should be a domain with at least two segments separated by dots";
    errors.invalid_if(!domain.contains('.'), path, rule);
    first_broken(domain, names::label, path, errors);
    if name.len() > MAX_NAME {
        errors.too_long(path, MAX_NAME);
    }
    first_broken(own, names::subdomain, path, errors);
}

fn first_broken(text: &str, form: fn(&str) -> Vec<String>, path: &Path, errors: &mut Errors) {
    let broken = text.split('.').map(|label| (label, form(label))).find(|(_, broken)| !broken.is_empty());
    for rule in broken.iter().flat_map(|(_, broken)| broken) {
        let label = broken.as_ref().map_or("", |(label, _)| label);
        errors.invalid(path, format!("validating label \"{label}\": {rule}"));
    }
}

/// The files that a source makes, where the manifest names them and upstream compares them.
fn places(source: &k8s::VolumeProjection) -> Vec<&str> {
    let secret = source.secret.iter().flat_map(|secret| secret.items.iter().flatten()).map(|item| &item.path);
    let map = source.config_map.iter().flat_map(|map| map.items.iter().flatten()).map(|item| &item.path);
    let downward = source.downward_api.iter().flat_map(|files| files.items.iter().flatten()).map(|file| &file.path);
    let bundle = source.cluster_trust_bundle.iter().map(|bundle| bundle.path.as_str());
    let certificate = source.pod_certificate.iter().flat_map(|certificate| {
        [&certificate.credential_bundle_path, &certificate.key_path, &certificate.certificate_chain_path]
    });
    let named = secret.chain(map).chain(downward).map(String::as_str);
    let certificate = certificate.map(text).filter(|path| !path.is_empty());
    named.filter(|path| !path.is_empty()).chain(bundle).chain(certificate).collect()
}
