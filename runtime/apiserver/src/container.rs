//! Which container a request is about, and whether that can be asked of it.

use serde_json::Value;

use crate::api::Api;
use crate::objects::api_error;
use crate::route::Place;
use crate::status::ApiError;
use crate::storage::Shared;

/// Lists of containers with the lists of their statuses.
const LISTS: [(&str, &str); 3] = [
    ("containers", "containerStatuses"),
    ("initContainers", "initContainerStatuses"),
    ("ephemeralContainers", "ephemeralContainerStatuses"),
];
/// Says which container is meant if none is named.
const DEFAULT_CONTAINER: &str = "kubectl.kubernetes.io/default-container";

/// The pod that a request is about.
pub(crate) async fn pod(api: &Api, place: &Place) -> Result<Shared, ApiError> {
    let name = place.name.as_deref().unwrap_or_default();
    let found = api.objects().get(&place.resource.key(place.namespace(), name)).await;
    found
        .map_err(|error| api_error(error, place.resource, name))?
        .ok_or_else(|| ApiError::not_found(place.resource, name))
}

/// The container of that name, or the only one.
pub(crate) fn named(pod: &Value, name: Option<&str>) -> Result<String, ApiError> {
    let names = |list: &str| {
        let containers = pod["spec"][list].as_array().into_iter().flatten();
        containers.filter_map(|container| container["name"].as_str()).collect::<Vec<_>>()
    };
    let pod_name = pod["metadata"]["name"].as_str().unwrap_or_default();
    let apps = names("containers");
    let Some(name) = name else {
        let annotated = pod["metadata"]["annotations"][DEFAULT_CONTAINER].as_str();
        return match (annotated.filter(|name| apps.contains(name)), apps.as_slice()) {
            (Some(name), _) => Ok(name.into()),
            (None, [only]) => Ok((*only).into()),
            (None, _) => {
                let mut message = format!(
                    "a container name must be specified for pod {pod_name}, choose one of: [{}]",
                    apps.join(" ")
                );
                for (list, what) in [("initContainers", "init"), ("ephemeralContainers", "ephemeral")] {
                    let names = names(list);
                    if !names.is_empty() {
                        message.push_str(&format!(" or one of the {what} containers: [{}]", names.join(" ")));
                    }
                }
                Err(ApiError::bad_request(message))
            }
        };
    };
    if LISTS.iter().any(|(list, _)| names(list).contains(&name)) {
        Ok(name.into())
    } else {
        Err(ApiError::bad_request(format!("container {name} is not valid for pod {pod_name}")))
    }
}

/// Has the container written anything that can be shown?
pub(crate) fn has_log(pod: &Value, name: &str, previous: bool) -> Result<(), ApiError> {
    let pod_name = pod["metadata"]["name"].as_str().unwrap_or_default();
    let status = status(pod, name);
    let last_ended = status.is_some_and(|status| !status["lastState"]["terminated"].is_null());
    if previous {
        let message = format!("previous terminated container \"{name}\" in pod \"{pod_name}\" not found");
        return if last_ended { Ok(()) } else { Err(ApiError::bad_request(message)) };
    }
    let waiting = status.map(|status| &status["state"]["waiting"]).filter(|waiting| !waiting.is_null());
    let reason = match (status, waiting) {
        // Between two instances there is the output of the last one.
        (Some(_), Some(_)) if last_ended => return Ok(()),
        (Some(_), Some(waiting)) => waiting["reason"].as_str().unwrap_or("ContainerCreating"),
        (Some(_), None) => return Ok(()),
        (None, _) => "ContainerCreating",
    };
    let message = match reason {
        "ErrImagePull" | "ImagePullBackOff" => "trying and failing to pull image".to_owned(),
        "InvalidImageName" => "image can't be pulled: its name is invalid".into(),
        reason => reason.into(),
    };
    Err(ApiError::bad_request(format!("container \"{name}\" in pod \"{pod_name}\" is waiting to start: {message}")))
}

/// Can a process be started in it, or connected to?
pub(crate) fn is_running(pod: &Value, name: &str) -> Result<(), ApiError> {
    let phase = pod["status"]["phase"].as_str().unwrap_or_default();
    if matches!(phase, "Succeeded" | "Failed") {
        let message = format!("cannot exec into a container in a completed pod; current phase is {phase}");
        return Err(ApiError::bad_request(message));
    }
    match status(pod, name) {
        Some(status) if !status["state"]["running"].is_null() => Ok(()),
        _ => Err(ApiError::new(500, "InternalError", format!("container not found (\"{name}\")"))),
    }
}

fn status<'a>(pod: &'a Value, name: &str) -> Option<&'a Value> {
    let statuses = LISTS.iter().flat_map(|(_, statuses)| pod["status"][*statuses].as_array().into_iter().flatten());
    statuses.into_iter().find(|status| status["name"] == name)
}
