//! Name resolution.

use k8s_openapi::api::core::v1 as k8s;

use super::errors::{Errors, Path};
use super::names;
use super::pod::text;

const MAX_NAMESERVERS: usize = 3;
const MAX_SEARCHES: usize = 32;
const MAX_SEARCH_CHARACTERS: usize = 2048;

pub(super) fn dns_policy(spec: &k8s::PodSpec, path: &Path, errors: &mut Errors) {
    let policies = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    errors.required_one_of(spec.dns_policy.as_deref(), path, &policies);
}

pub(super) fn dns_config(spec: &k8s::PodSpec, path: &Path, errors: &mut Errors) {
    let is_none = text(&spec.dns_policy) == "None";
    let Some(config) = &spec.dns_config else {
        if is_none {
            errors.required(path, "must provide `dnsConfig` when `dnsPolicy` is None");
        }
        return;
    };
    let servers = config.nameservers.as_deref().unwrap_or_default();
    let servers_path = path.child("nameservers");
    if is_none && servers.is_empty() {
        return errors.required(&servers_path, "must provide at least one DNS nameserver when `dnsPolicy` is None");
    }
    if servers.len() > MAX_NAMESERVERS {
        errors.invalid(&servers_path, format!("must not have more than {MAX_NAMESERVERS} nameservers"));
    }
    for (index, server) in servers.iter().enumerate() {
        errors.invalid_all(&servers_path.index(index), names::ip(server));
    }
    searches(config.searches.as_deref().unwrap_or_default(), &path.child("searches"), errors);
    for (index, option) in config.options.iter().flatten().enumerate() {
        errors.required_text(option.name.as_deref(), &path.child("options").index(index), "must not be empty");
    }
}

fn searches(searches: &[String], path: &Path, errors: &mut Errors) {
    if searches.len() > MAX_SEARCHES {
        errors.invalid(path, format!("must not have more than {MAX_SEARCHES} search paths"));
    }
    if searches.join(" ").len() > MAX_SEARCH_CHARACTERS {
        let most = MAX_SEARCH_CHARACTERS;
        errors
            .invalid(path, format!("must not have more than {most} characters (including spaces) in the search list"));
    }
    for (index, search) in searches.iter().enumerate().filter(|(_, search)| *search != ".") {
        let name = search.strip_suffix('.').unwrap_or(search);
        errors.invalid_all(&path.index(index), names::subdomain_with_underscore(name));
    }
}

pub(super) fn host_aliases(spec: &k8s::PodSpec, path: &Path, errors: &mut Errors) {
    for (index, alias) in spec.host_aliases.iter().flatten().enumerate() {
        let path = path.index(index);
        errors.invalid_all(&path.child("ip"), names::ip(&alias.ip));
        for (index, hostname) in alias.hostnames.iter().flatten().enumerate() {
            errors.invalid_all(&path.child("hostnames").index(index), names::subdomain(hostname));
        }
    }
}
