//! Looks after namespaces that are being deleted: what is in them goes first.

use crate::api::Api;
use crate::delete::{self, DeleteOptions};
use crate::objects::api_error;
use crate::resource::Resource;
use crate::resources::{NAMESPACES, RESOURCES};
use crate::status::ApiError;
use crate::storage::{Shared, StorageError};

/// Namespaces that are always there.
const ALWAYS: [&str; 2] = ["default", "kube-system"];

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
    for namespace in api.objects().list(&scope).await?.items {
        begin(api, &namespace);
    }
    loop {
        let change = changes.next().await?;
        // Once is enough: when the deletion begins.
        let was_ending = change.before.as_ref().is_some_and(is_ending);
        if let Some(namespace) = change.after.as_ref().filter(|_| !was_ending) {
            begin(api, namespace);
        }
    }
}

fn is_ending(namespace: &Shared) -> bool {
    !namespace["metadata"]["deletionTimestamp"].is_null()
}

fn begin(api: &Api, namespace: &Shared) {
    if !is_ending(namespace) {
        return;
    }
    let (api, namespace) = (api.clone(), namespace.clone());
    tokio::spawn(async move {
        tokio::select! {
            result = empty(&api, &namespace) => if let Err(error) = result {
                tracing::error!(namespace = %namespace["metadata"]["name"], %error, "can't empty a namespace");
            },
            () = api.ended() => {}
        }
    });
}

/// Deletes what is in a namespace, waits until all of it is gone, and removes the namespace.
async fn empty(api: &Api, namespace: &Shared) -> Result<(), ApiError> {
    let text = |field: &str| namespace["metadata"][field].as_str().unwrap_or_default();
    let name = text("name");
    for resource in RESOURCES.iter().filter(|resource| resource.namespaced) {
        clear(api, resource, name).await?;
    }
    let key = NAMESPACES.key("", name);
    api.objects().remove(&key, text("uid")).await.map_err(|error| api_error(error, &NAMESPACES, name))
}

async fn clear(api: &Api, resource: &Resource, namespace: &str) -> Result<(), ApiError> {
    let failed = |error| api_error(error, resource, "");
    let scope = resource.scope(Some(namespace));
    loop {
        let page = api.objects().list(&scope).await.map_err(failed)?;
        if page.items.is_empty() {
            return Ok(());
        }
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
