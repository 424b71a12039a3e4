//! What is wrong with the files of static pods, as events: on the pod that goes on as it was, or on the node if nobody knows whose file
//! it is (META-12). There is one for each pod and one for all files of nobody's, however many there are; the log says more.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use husk_apiserver::{Involved, Objects};
use husk_core::event::EventKind;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{Instant, interval_at};

use crate::static_pods::{ManifestProblem, PodName};

/// As upstream has it for a pod of a file that isn't valid.
const REASON: &str = "FailedValidation";
/// What stays wrong is said again: events are kept for an hour.
const AGAIN: Duration = Duration::from_mins(30);

/// What there is to say, by pod; of none it is about the node.
type Complaints = BTreeMap<Option<PodName>, String>;

/// Says what is wrong for as long as the folder is looked at. What is mended is not mentioned.
pub(crate) async fn tell(mut problems: watch::Receiver<Vec<ManifestProblem>>, objects: Objects, node: String) {
    let mut again = interval_at(Instant::now() + AGAIN, AGAIN);
    let mut told = Complaints::new();
    loop {
        tokio::select! {
            changed = problems.changed() => match changed {
                Ok(()) => {}
                // Nobody looks any more.
                Err(_) => std::future::pending().await,
            },
            _ = again.tick() => told.clear(),
        }
        let complaints = complaints(&problems.borrow_and_update());
        for (pod, message) in &complaints {
            if told.get(pod) != Some(message) {
                record(&objects, &node, pod.as_ref(), message).await;
            }
        }
        told = complaints;
    }
}

/// The first of each, and how many more there are.
fn complaints(problems: &[ManifestProblem]) -> Complaints {
    let mut by_pod: BTreeMap<Option<&PodName>, Vec<&ManifestProblem>> = BTreeMap::new();
    for problem in problems {
        for pod in problem.pods.iter() {
            by_pod.entry(Some(pod)).or_default().push(problem);
        }
        if problem.pods.is_empty() {
            by_pod.entry(None).or_default().push(problem);
        }
    }
    by_pod.into_iter().map(|(pod, problems)| (pod.cloned(), message(pod, &problems))).collect()
}

fn message(pod: Option<&PodName>, problems: &[&ManifestProblem]) -> String {
    let files = problems.iter().map(|problem| &problem.problem.file).collect::<HashSet<_>>().len();
    let what = match (pod, files) {
        (Some(PodName { name, .. }), _) => format!("Error validating pod {name} from file, ignoring"),
        (None, 1) => "Error in a file of static pods, ignoring".into(),
        (None, files) => format!("Errors in {files} files of static pods, ignoring; the first"),
    };
    let first = problems.first().map(|problem| problem.to_string()).unwrap_or_default();
    match problems.len() {
        1 => format!("{what}: {first}"),
        all => format!("{what}: {first} (and {} more)", all - 1),
    }
}

async fn record(objects: &Objects, node: &str, pod: Option<&PodName>, message: &str) {
    let object = pod.map(
        |PodName { namespace, name, uid }| json!({"metadata": {"namespace": namespace, "name": name, "uid": uid}}),
    );
    let about = object.as_ref().map_or(Involved::Node, Involved::Pod);
    if let Err(error) = objects.record_remark(about, node, EventKind::Warning, REASON, message).await {
        tracing::warn!(%error, message, "an event about a static pod can't be recorded");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn however_many_files_are_wrong_there_is_one_to_say_of_each_pod_and_of_the_node() {
        let problem = |n: usize| husk_api::Problem {
            file: format!("{n}.yaml"),
            document: 1,
            line: None,
            path: String::new(),
            message: "is no manifest".into(),
        };
        let web = PodName { namespace: "default".into(), name: "web".into(), uid: "u".into() };
        let mut problems: Vec<_> =
            (0..10_000).map(|n| ManifestProblem { problem: problem(n), pods: [].into() }).collect();
        problems.push(ManifestProblem { problem: problem(0), pods: [web.clone()].into() });
        let said: Vec<_> = complaints(&problems).into_iter().collect();
        let of_node = "Errors in 10000 files of static pods, ignoring; the first: 0.yaml, document 1: is no manifest (and 9999 more)";
        let of_pod = "Error validating pod web from file, ignoring: 0.yaml, document 1: is no manifest";
        assert_eq!(said, [(None, of_node.to_owned()), (Some(web), of_pod.to_owned())]);
        assert_eq!(complaints(&[]), Complaints::new());
    }
}
