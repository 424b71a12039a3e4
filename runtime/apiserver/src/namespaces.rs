//! Looks after namespaces that are being deleted: what is in them goes first.

use std::time::Duration;

use serde_json::Value;
use tokio::task::JoinSet;

use crate::api::Api;
use crate::delete::{self, DeleteOptions};
use crate::objects::api_error;
use crate::resource::Resource;
use crate::resources::{NAMESPACES, RESOURCES};
use crate::status::ApiError;
use crate::storage::{Shared, StorageError};

/// Namespaces that are always there.
pub(crate) const ALWAYS: [&str; 3] = ["default", "kube-node-lease", "kube-system"];

/// After a failure that might repeat itself.
const PAUSE: Duration = Duration::from_millis(500);

/// Creates the namespaces that every client expects.
pub(crate) async fn create_default(api: &Api) -> Result<(), StorageError> {
    for name in ALWAYS {
        let mut namespace = serde_json::json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {
                "name": name,
                "uid": uuid::Uuid::new_v4().to_string(),
                "creationTimestamp": crate::incoming::now().to_string(),
            },
        });
        (NAMESPACES.strategy.prepare_create)(&mut namespace);
        (NAMESPACES.strategy.default)(&mut namespace);
        match api.objects().create(&NAMESPACES.key("", name), namespace).await {
            Ok(_) | Err(StorageError::Conflict) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Empties namespaces that are being deleted and removes them, until it is dropped.
pub(crate) async fn look_after(api: &Api) -> Result<(), StorageError> {
    let scope = NAMESPACES.scope(None);
    let mut changes = api.objects().watch(scope.clone(), api.objects().storage(&scope.resource).revision())?;
    let mut ending = JoinSet::new();
    let begin = |ending: &mut JoinSet<()>, namespace: &Shared| {
        if is_ending(namespace) {
            ending.spawn(end(api.clone(), namespace.clone()));
        }
    };
    for namespace in api.objects().list(&scope).await?.items {
        begin(&mut ending, &namespace);
    }
    loop {
        tokio::select! {
            change = changes.next() => {
                let change = change?;
                // Once is enough: when the deletion begins.
                let was_ending = change.before.as_ref().is_some_and(is_ending);
                if let Some(namespace) = change.after.as_ref().filter(|_| !was_ending) {
                    begin(&mut ending, namespace);
                }
            }
            Some(_) = ending.join_next() => {}
        }
    }
}

fn is_ending(namespace: &Shared) -> bool {
    !namespace["metadata"]["deletionTimestamp"].is_null()
}

/// Deletes what is in a namespace until nothing is found, and finishes the namespace. What fails is tried again.
async fn end(api: Api, namespace: Shared) {
    let text = |field: &str| namespace["metadata"][field].as_str().unwrap_or_default();
    let (name, uid) = (text("name"), text("uid"));
    loop {
        let result = match empty(&api, name).await {
            Ok(false) => continue,
            Ok(true) => finish(&api, name, uid).await,
            Err(error) => Err(error),
        };
        let Err(error) = result else { return };
        tracing::warn!(namespace = %name, %error, "emptying a namespace is tried again");
        tokio::time::sleep(PAUSE).await;
    }
}

/// Deletes what is in a namespace and waits until all of it is gone. Says whether nothing was found: something may have come to
/// one resource while another was waited for.
async fn empty(api: &Api, namespace: &str) -> Result<bool, ApiError> {
    let mut was_empty = true;
    let can_go = |resource: &&&Resource| resource.namespaced && resource.verbs.contains(&"delete");
    for resource in RESOURCES.iter().filter(can_go) {
        was_empty &= clear(api, resource, namespace).await?;
    }
    Ok(was_empty)
}

async fn clear(api: &Api, resource: &Resource, namespace: &str) -> Result<bool, ApiError> {
    let failed = |error| api_error(error, resource, "");
    let scope = resource.scope(Some(namespace));
    let mut was_empty = true;
    loop {
        let page = api.objects().list(&scope).await.map_err(failed)?;
        if page.items.is_empty() {
            return Ok(was_empty);
        }
        was_empty = false;
        for object in &page.items {
            let key = resource.key(namespace, object["metadata"]["name"].as_str().unwrap_or_default());
            match delete::remove(api, resource, &key, &DeleteOptions::default()).await {
                Ok(_) => {}
                Err(error) if error.code == 404 => {}
                Err(error) => return Err(error),
            }
        }
        match api.objects().watch(scope.clone(), page.revision).map_err(failed)?.next().await {
            Ok(_) | Err(StorageError::Expired { .. }) => {}
            Err(error) => return Err(failed(error)),
        }
    }
}

/// Nothing is in it any more: it goes, unless a finalizer of somebody else's keeps it. Then it goes with the last of those.
async fn finish(api: &Api, name: &str, uid: &str) -> Result<(), ApiError> {
    let key = NAMESPACES.key("", name);
    let failed = |error| api_error(error, &NAMESPACES, name);
    let emptied = |namespace: &mut Value| {
        let is_own = namespace["metadata"]["uid"] == uid && !namespace["spec"]["finalizers"].is_null();
        if let Some(spec) = namespace["spec"].as_object_mut().filter(|_| is_own) {
            spec.remove("finalizers");
        }
        is_own
    };
    match api.objects().update(&key, emptied).await.map_err(failed)? {
        Some(namespace) if delete::is_over(&namespace) => api.objects().remove(&key, uid).await.map_err(failed),
        _ => Ok(()),
    }
}
