//! The containers of a pod: which one is meant, and which there are.

use serde_json::Value;

use super::failure::Failure;
use super::output::{name_of, text};
use super::resources::items;
use crate::out::err;

/// Says which container is meant if none is named.
const DEFAULT_CONTAINER: &str = "kubectl.kubernetes.io/default-container";

/// Lists of containers with the lists of their statuses, in the order that they start in.
pub(crate) const LISTS: [(&str, &str); 3] = [
    ("initContainers", "initContainerStatuses"),
    ("containers", "containerStatuses"),
    ("ephemeralContainers", "ephemeralContainerStatuses"),
];

/// Names of all containers in the order that they start in.
pub(crate) fn names(pod: &Value) -> Vec<&str> {
    LISTS.iter().flat_map(|(list, _)| of_list(pod, list)).collect()
}

fn of_list<'a>(pod: &'a Value, list: &str) -> impl Iterator<Item = &'a str> {
    items(&pod["spec"][list]).iter().map(|container| text(&container["name"]))
}

/// The container that is meant if none is named. That one was chosen is told, unless `is_quiet`.
pub(crate) fn default(pod: &Value, is_quiet: bool) -> Result<&str, Failure> {
    let annotated = pod["metadata"]["annotations"][DEFAULT_CONTAINER].as_str();
    if let Some(annotated) = annotated.filter(|annotated| names(pod).contains(annotated)) {
        return Ok(annotated);
    }
    let Some(first) = of_list(pod, "containers").next() else {
        return Err(Failure::Other(format!("pod {} has no containers", name_of(pod))));
    };
    let all = names(pod);
    if all.len() > 1 && !is_quiet {
        let marked =
            |list: &'static str, mark: &'static str| of_list(pod, list).map(move |name| format!("{name}{mark}"));
        let listed = marked("containers", "").chain(marked("ephemeralContainers", " (ephem)"));
        let listed: Vec<String> = listed.chain(marked("initContainers", " (init)")).collect();
        err(format_args!("Defaulted container {first:?} out of: {}", listed.join(", ")));
    }
    Ok(first)
}

/// The status of a container; null if it has none.
pub(crate) fn status<'a>(pod: &'a Value, name: &str) -> &'a Value {
    let all = LISTS.iter().flat_map(|(_, list)| items(&pod["status"][list]));
    all.into_iter().find(|status| status["name"] == name).unwrap_or(&Value::Null)
}
