//! What pods refer to beside themselves: ConfigMaps, Secrets and Services.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, RwLock, RwLockReadGuard};

use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use tokio::sync::watch;

/// Knows what pods refer to. It is asked on the agent's own task, so an answer must not wait for anything.
pub trait References: Send + Sync + 'static {
    /// A ConfigMap.
    fn config_map(&self, namespace: &str, name: &str) -> Option<Arc<ConfigMap>>;
    /// A Secret.
    fn secret(&self, namespace: &str, name: &str) -> Option<Arc<Secret>>;
    /// The Services of all namespaces.
    fn services(&self) -> Arc<[Service]>;
    /// Changes whenever one of them may have changed: then the volumes of running pods are brought up to date, and what waits for
    /// an object is tried again.
    fn changes(&self) -> watch::Receiver<u64>;
}

/// Objects in memory; none to begin with.
pub struct MemoryReferences {
    objects: RwLock<Objects>,
    changes: watch::Sender<u64>,
}

/// By namespace and name.
type ByName<T> = BTreeMap<(String, String), Arc<T>>;

#[derive(Default)]
struct Objects {
    config_maps: ByName<ConfigMap>,
    secrets: ByName<Secret>,
    services: Arc<[Service]>,
}

impl MemoryReferences {
    /// Adds a ConfigMap, or puts it in the place of the one it has the name of.
    pub fn put_config_map(&self, object: ConfigMap) {
        self.change(|objects| objects.config_maps.insert(key_of(&object.metadata), Arc::new(object)));
    }

    /// Adds a Secret, or puts it in the place of the one it has the name of.
    pub fn put_secret(&self, object: Secret) {
        self.change(|objects| objects.secrets.insert(key_of(&object.metadata), Arc::new(object)));
    }

    /// Removes a ConfigMap.
    pub fn remove_config_map(&self, namespace: &str, name: &str) {
        self.change(|objects| objects.config_maps.remove(&(namespace.to_owned(), name.to_owned())));
    }

    /// Removes a Secret.
    pub fn remove_secret(&self, namespace: &str, name: &str) {
        self.change(|objects| objects.secrets.remove(&(namespace.to_owned(), name.to_owned())));
    }

    /// Puts these in the place of all Services.
    pub fn set_services(&self, services: Vec<Service>) {
        self.change(|objects| objects.services = services.into());
    }

    fn read(&self) -> RwLockReadGuard<'_, Objects> {
        self.objects.read().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn change<T>(&self, change: impl FnOnce(&mut Objects) -> T) {
        change(&mut self.objects.write().unwrap_or_else(std::sync::PoisonError::into_inner));
        self.changes.send_modify(|version| *version += 1);
    }
}

impl Default for MemoryReferences {
    fn default() -> Self {
        Self { objects: RwLock::default(), changes: watch::channel(0).0 }
    }
}

/// Without what is in them: Secrets are nobody's business.
impl fmt::Debug for MemoryReferences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryReferences").field("version", &*self.changes.borrow()).finish_non_exhaustive()
    }
}

impl References for MemoryReferences {
    fn config_map(&self, namespace: &str, name: &str) -> Option<Arc<ConfigMap>> {
        self.read().config_maps.get(&(namespace.to_owned(), name.to_owned())).cloned()
    }

    fn secret(&self, namespace: &str, name: &str) -> Option<Arc<Secret>> {
        self.read().secrets.get(&(namespace.to_owned(), name.to_owned())).cloned()
    }

    fn services(&self) -> Arc<[Service]> {
        self.read().services.clone()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}

fn key_of(metadata: &ObjectMeta) -> (String, String) {
    let namespace = metadata.namespace.clone().filter(|namespace| !namespace.is_empty());
    let namespace = namespace.unwrap_or_else(|| husk_api::DEFAULT_NAMESPACE.into());
    (namespace, metadata.name.clone().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_known_by_namespace_and_name_and_every_change_is_told() {
        let known = MemoryReferences::default();
        let mut changes = known.changes();
        let metadata = ObjectMeta { name: Some("m".into()), ..ObjectMeta::default() };
        known.put_config_map(ConfigMap { metadata: metadata.clone(), ..ConfigMap::default() });
        assert!(changes.has_changed().expect("open"));
        changes.mark_unchanged();
        assert!(known.config_map("default", "m").is_some());
        assert!(known.config_map("other", "m").is_none() && known.secret("default", "m").is_none());
        known.remove_config_map("default", "m");
        assert!(changes.has_changed().expect("open") && known.config_map("default", "m").is_none());
        known.put_secret(Secret { metadata, ..Secret::default() });
        assert!(known.secret("default", "m").is_some());
        assert!(!format!("{known:?}").contains("Secret"));
    }
}
