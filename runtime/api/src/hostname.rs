//! The name of a pod on its network (META-01).

use k8s_openapi::api::core::v1 as k8s;

use husk_core::names::{is_dns_label, is_dns_subdomain};

/// What a kernel takes.
const MAX_LENGTH: usize = 63;

/// Name and domain of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hostname {
    /// What `hostname` says.
    pub name: String,
    /// `SUBDOMAIN.NAMESPACE.svc.CLUSTER-DOMAIN`; empty without `subdomain`.
    pub domain: String,
}

/// The name of a pod: `hostnameOverride` or else `hostname` or else its own, cut to what a kernel takes.
///
/// # Errors
/// Which field is no name.
pub fn hostname(pod: &k8s::Pod, cluster_domain: &str) -> Result<Hostname, String> {
    let written = |field: &Option<String>| field.clone().filter(|text| !text.is_empty());
    let spec = pod.spec.as_ref();
    if let Some(name) = spec.and_then(|spec| spec.hostname_override.clone()) {
        return match is_dns_subdomain(&name) {
            true => Ok(Hostname { name: cut(&name)?, domain: String::new() }),
            false => Err(format!("spec.hostnameOverride: {name:?} is not a DNS subdomain")),
        };
    }
    let label = |field: &str, text: String| match is_dns_label(&text) {
        true => Ok(text),
        false => Err(format!("spec.{field}: {text:?} is not a DNS label")),
    };
    let name = match spec.and_then(|spec| written(&spec.hostname)) {
        Some(name) => label("hostname", name)?,
        None => pod.metadata.name.clone().unwrap_or_default(),
    };
    let name = cut(&name)?;
    let domain = match spec.and_then(|spec| written(&spec.subdomain)) {
        Some(subdomain) => {
            let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
            format!("{}.{namespace}.svc.{cluster_domain}", label("subdomain", subdomain)?)
        }
        None => String::new(),
    };
    Ok(Hostname { name, domain })
}

fn cut(name: &str) -> Result<String, String> {
    let Some(start) = name.get(..MAX_LENGTH).filter(|_| name.len() > MAX_LENGTH) else { return Ok(name.to_owned()) };
    match start.trim_end_matches(['-', '.']) {
        "" => Err(format!("hostname {name:?} is empty when cut to {MAX_LENGTH} characters")),
        cut => Ok(cut.to_owned()),
    }
}
