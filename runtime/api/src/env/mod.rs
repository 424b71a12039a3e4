//! The environment of a container (META-02, META-03, META-04).

mod downward;
mod file;
mod services;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use husk_core::expansion::{Room, TooLong, expand};
use husk_core::spec::ResourceList;
use k8s_openapi::api::core::v1 as k8s;

pub use downward::{field_value, resource_value};
pub use file::{EnvFileError, env_file_value};
pub use services::service_variables;

/// Where a container's environment comes from beside its pod.
pub trait EnvSources {
    /// A ConfigMap of the pod's namespace.
    fn config_map(&self, name: &str) -> Option<Arc<k8s::ConfigMap>>;
    /// A Secret of the pod's namespace.
    fn secret(&self, name: &str) -> Option<Arc<k8s::Secret>>;
    /// Text of a file in one of the pod's volumes.
    fn file(&self, volume: &str, path: &str) -> Option<String>;
    /// All Services.
    fn services(&self) -> Arc<[k8s::Service]>;
    /// What the node has to give; stands in for limits that are not set.
    fn allocatable(&self) -> &ResourceList;
}

/// There is nothing beside the pod.
impl EnvSources for () {
    fn config_map(&self, _: &str) -> Option<Arc<k8s::ConfigMap>> {
        None
    }

    fn secret(&self, _: &str) -> Option<Arc<k8s::Secret>> {
        None
    }

    fn file(&self, _: &str, _: &str) -> Option<String> {
        None
    }

    fn services(&self) -> Arc<[k8s::Service]> {
        Arc::default()
    }

    fn allocatable(&self) -> &ResourceList {
        const { &ResourceList::new() }
    }
}

/// Why there is no environment: the container waits with `CreateContainerConfigError`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvError(String);

/// Every variable of a container in the order of its origin, each name once.
///
/// Later entries win over earlier ones, `env` over `envFrom`, both over services. `$(NAME)` sees what came before, then the
/// services; values that come from elsewhere are not expanded.
///
/// # Errors
/// If something is referred to that isn't there and isn't optional, or there is more than a process can be given.
pub fn container_env(
    pod: &k8s::Pod,
    container: &k8s::Container,
    sources: &dyn EnvSources,
) -> Result<Vec<(String, String)>, EnvError> {
    let mut env = Env::default();
    for source in container.env_from.iter().flatten() {
        let prefix = source.prefix.as_deref().unwrap_or_default();
        for (key, value) in all_of(source, sources)? {
            env.set(format!("{prefix}{key}"), value);
        }
    }
    let services = visible_services(pod, sources);
    let mut room = Room::default();
    for variable in container.env.iter().flatten() {
        let written = variable.value.as_deref().unwrap_or_default();
        let value = match &variable.value_from {
            Some(origin) if written.is_empty() => match from_elsewhere(origin, pod, container, sources)? {
                Some(value) => value,
                None => continue,
            },
            _ => expand(written, |name| env.get(name).or(services.get(name)), &mut room).map_err(too_long)?,
        };
        env.set(variable.name.clone(), value);
    }
    for (name, value) in services.variables {
        if env.get(&name).is_none() {
            env.set(name, value);
        }
    }
    Ok(env.variables)
}

/// Variables in order.
#[derive(Default)]
struct Env {
    variables: Vec<(String, String)>,
    places: HashMap<String, usize>,
}

impl Env {
    fn get(&self, name: &str) -> Option<&str> {
        self.places.get(name).map(|&place| self.variables[place].1.as_str())
    }

    fn set(&mut self, name: String, value: String) {
        match self.places.get(&name) {
            Some(&place) => self.variables[place].1 = value,
            None => {
                self.places.insert(name.clone(), self.variables.len());
                self.variables.push((name, value));
            }
        }
    }
}

fn too_long(error: TooLong) -> EnvError {
    EnvError(error.to_string())
}

/// Services of the pod's own namespace unless it wants no links to them, and the API server's in any case.
fn visible_services(pod: &k8s::Pod, sources: &dyn EnvSources) -> Env {
    const MASTER: (&str, &str) = ("default", "kubernetes");
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let links = pod.spec.as_ref().and_then(|spec| spec.enable_service_links).unwrap_or(true);
    let mut by_name: BTreeMap<&str, &k8s::Service> = BTreeMap::new();
    let all = sources.services();
    for service in all.iter().filter(|service| services::has_address(service)) {
        let name = service.metadata.name.as_deref().unwrap_or_default();
        let its_namespace = service.metadata.namespace.as_deref().unwrap_or_default();
        if its_namespace == namespace && links {
            by_name.insert(name, service);
        } else if (its_namespace, name) == MASTER {
            by_name.entry(name).or_insert(service);
        }
    }
    let mut variables = Env::default();
    for (name, value) in service_variables(by_name.into_values()) {
        variables.set(name, value);
    }
    variables
}

/// Everything that an entry of `envFrom` stands for.
fn all_of(source: &k8s::EnvFromSource, sources: &dyn EnvSources) -> Result<Vec<(String, String)>, EnvError> {
    if let Some(reference) = &source.config_map_ref {
        let Some(map) = sources.config_map(&reference.name) else {
            return absent("configmaps", &reference.name, reference.optional).map(|()| Vec::new());
        };
        return Ok(map.data.clone().unwrap_or_default().into_iter().collect());
    }
    if let Some(reference) = &source.secret_ref {
        let Some(secret) = sources.secret(&reference.name) else {
            return absent("secrets", &reference.name, reference.optional).map(|()| Vec::new());
        };
        let data = secret.data.iter().flatten();
        return Ok(data.map(|(key, value)| (key.clone(), text_of(&value.0))).collect());
    }
    Ok(Vec::new())
}

/// The value of an entry of `env` that has none of its own; none if it is optional and not there.
fn from_elsewhere(
    origin: &k8s::EnvVarSource,
    pod: &k8s::Pod,
    container: &k8s::Container,
    sources: &dyn EnvSources,
) -> Result<Option<String>, EnvError> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    if let Some(field) = &origin.field_ref {
        return field_value(&field.field_path, pod).map(Some);
    }
    if let Some(field) = &origin.resource_field_ref {
        return resource_value(field, pod, container, sources.allocatable()).map(Some);
    }
    if let Some(reference) = &origin.config_map_key_ref {
        let Some(map) = sources.config_map(&reference.name) else {
            return absent("configmaps", &reference.name, reference.optional).map(|()| None);
        };
        let value = map.data.as_ref().and_then(|data| data.get(&reference.key)).cloned();
        return keyed(value, "ConfigMap", namespace, &reference.name, &reference.key, reference.optional);
    }
    if let Some(reference) = &origin.secret_key_ref {
        let Some(secret) = sources.secret(&reference.name) else {
            return absent("secrets", &reference.name, reference.optional).map(|()| None);
        };
        let value = secret.data.as_ref().and_then(|data| data.get(&reference.key)).map(|value| text_of(&value.0));
        return keyed(value, "Secret", namespace, &reference.name, &reference.key, reference.optional);
    }
    if let Some(reference) = &origin.file_key_ref {
        let optional = reference.optional.unwrap_or_default();
        let missing = |what: String| if optional { Ok(None) } else { Err(EnvError(what)) };
        let k8s::FileKeySelector { key, path, volume_name, .. } = reference;
        let Some(text) = sources.file(volume_name, path) else {
            return missing(format!("no file {path:?} in volume {volume_name:?}"));
        };
        return match env_file_value(&text, key) {
            Ok(Some(value)) => Ok(Some(value)),
            Ok(None) => missing(format!("environment variable key {key:?} not found in file {path:?}")),
            Err(error) => Err(EnvError(format!("file {path:?} in volume {volume_name:?}, {error}"))),
        };
    }
    Ok(Some(String::new()))
}

fn absent(kind: &str, name: &str, optional: Option<bool>) -> Result<(), EnvError> {
    if optional.unwrap_or_default() { Ok(()) } else { Err(EnvError(format!("{kind} {name:?} not found"))) }
}

fn keyed(
    value: Option<String>,
    kind: &str,
    namespace: &str,
    name: &str,
    key: &str,
    optional: Option<bool>,
) -> Result<Option<String>, EnvError> {
    match value {
        None if !optional.unwrap_or_default() => {
            Err(EnvError(format!("couldn't find key {key} in {kind} {namespace}/{name}")))
        }
        value => Ok(value),
    }
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl fmt::Display for EnvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for EnvError {}
