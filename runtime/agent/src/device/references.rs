//! ConfigMaps and Secrets of the API, for the pods that refer to them.

use std::sync::Arc;

use husk_apiserver::{CONFIG_MAPS, Objects, SECRETS};
use husk_store::{ObjectKey, Store};
use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use crate::references::References;

/// Looks into the store.
pub(crate) struct StoredReferences {
    store: Arc<Store>,
    changes: watch::Sender<u64>,
}

impl StoredReferences {
    pub(crate) fn new(store: Arc<Store>) -> Self {
        Self { store, changes: watch::Sender::new(0) }
    }

    /// Tells of changes, for as long as the agent lives.
    pub(crate) async fn follow(self: Arc<Self>, objects: Objects) {
        let resources = [&CONFIG_MAPS, &SECRETS];
        loop {
            // What changes while those who are told look is told again.
            let watches = resources.map(|resource| {
                let scope = resource.scope(None);
                let since = objects.storage(&scope.resource).revision();
                objects.watch(scope, since)
            });
            self.changes.send_modify(|count| *count += 1);
            let [config_maps, secrets] = watches.map(async |watch| watch?.next().await);
            tokio::select! {
                _ = config_maps => {}
                _ = secrets => {}
            }
        }
    }

    fn object<T: DeserializeOwned>(&self, resource: &str, namespace: &str, name: &str) -> Option<Arc<T>> {
        let object = self.store.object(&ObjectKey::new(resource, namespace, name))?;
        match serde_json::from_slice(&object.body) {
            Ok(read) => Some(Arc::new(read)),
            Err(error) => {
                tracing::error!(object = %object.key, %error, "damaged in the store");
                None
            }
        }
    }
}

impl References for StoredReferences {
    fn config_map(&self, namespace: &str, name: &str) -> Option<Arc<ConfigMap>> {
        self.object("configmaps", namespace, name)
    }

    fn secret(&self, namespace: &str, name: &str) -> Option<Arc<Secret>> {
        self.object("secrets", namespace, name)
    }

    fn services(&self) -> Arc<[Service]> {
        Arc::from([])
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}
