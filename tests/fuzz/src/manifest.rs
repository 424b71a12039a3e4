//! Manifests: any text is read, or it is said what is wrong with it; what is valid runs.

use std::fmt::Debug;

use husk_api::{Decoded, Document, Gates, Object, PodRow, Subresource, Wall, k8s};
use husk_core::io::{Action, Input};
use husk_core::node::Node;
use husk_core::time::Instant;
use jiff::Timestamp;

use crate::answer::answer;

const FILE: &str = "fuzz.yaml";
/// Several times as much as any message needs.
const LONGEST_MESSAGE: usize = 20_000;

/// Any text.
pub fn manifest(text: &str) {
    let decoded = husk_api::decode(text, FILE);
    said(&decoded, text);
    let checked = husk_api::check(text, FILE);
    said(&checked, text);
    assert_eq!(checked.documents.len(), decoded.documents.len());
    assert!(checked.errors.len() >= decoded.errors.len(), "a check says less than a reading");
    for document in &decoded.documents {
        object(document, checked.errors.is_empty());
    }
    if let Ok(json) = serde_json::from_str(text) {
        let _ = husk_api::pod_from_json(&json);
        let _ = husk_api::default_json(&json);
    }
}

/// Every problem is one that a person can find: with its place and a message of one line.
fn said(decoded: &Decoded, text: &str) {
    // YAML ends a line by either of them.
    let lines = text.matches(['\n', '\r']).count() + 2;
    for problem in decoded.errors.iter().chain(&decoded.warnings) {
        assert!(!problem.message.is_empty() && !problem.message.contains('\n'), "{problem:?}");
        assert!(problem.message.len() < LONGEST_MESSAGE + text.len(), "{} bytes", problem.message.len());
        assert!(problem.line.is_none_or(|line| (1..=lines).contains(&line)), "{problem:?} of {lines} lines");
        let _ = problem.to_string();
    }
}

fn object(document: &Document, valid: bool) {
    let object = &document.object;
    written_and_read_again(object);
    let Some(mut pod) = husk_api::pod_of(object) else { return };
    husk_api::default_pod(&mut pod);
    let once = pod.clone();
    husk_api::default_pod(&mut pod);
    same(&once, &pod, "defaults of what has its defaults");
    for gates in [Gates::default(), Gates::UPSTREAM] {
        let errors = husk_api::validate_pod_with(&pod, &gates);
        assert!(!valid || gates != Gates::default() || errors.is_empty(), "a checked pod has {errors:?}");
        for error in &errors {
            let _ = error.message();
        }
    }
    let mut known = pod.clone();
    known.metadata.resource_version = Some("1".into());
    let doors = [Subresource::None, Subresource::EphemeralContainers, Subresource::Resize];
    for door in doors {
        let errors = husk_api::validate_pod_update(&known, &known, door, &Gates::default());
        assert!(!valid || door != Subresource::None || errors.is_empty(), "no change is refused: {errors:?}");
    }
    look_at(&pod);
    if valid {
        run(&pod);
    } else {
        let _ = husk_api::core_spec(&pod);
    }
}

/// An object keeps everything on its way through JSON.
fn written_and_read_again(object: &Object) {
    let Object::Pod(pod) = object else { return };
    let json = serde_json::to_value(pod).unwrap_or_else(|error| panic!("not written: {error}"));
    match husk_api::pod_from_json(&json) {
        Ok(again) => same(&**pod, &again, "a pod that was written and read"),
        Err(problem) => panic!("{json} is not read: {problem}"),
    }
}

fn same<T: PartialEq + Debug>(before: &T, after: &T, what: &str) {
    assert!(before == after, "{what} is another one: {before:?} {after:?}");
}

/// What is computed from a pod, valid or not.
fn look_at(pod: &k8s::Pod) {
    let _ = husk_api::hostname(pod, "cluster.local");
    let _ = PodRow::of(pod, Timestamp::UNIX_EPOCH);
    let Some(spec) = &pod.spec else { return };
    let _ = husk_api::node_demand(spec);
    for container in spec.init_containers.iter().flatten().chain(&spec.containers) {
        let _ = husk_api::container_env(pod, container, &());
    }
}

/// A valid pod is taken by a node and its life begins and ends.
fn run(pod: &k8s::Pod) {
    let mut meta = husk_api::core_meta(pod);
    meta.uid = "u".into();
    let uid = husk_core::io::PodUid::from("u");
    let spec = husk_api::core_spec(pod);
    assert_eq!(spec.containers.len(), pod.spec.as_ref().map_or(0, |spec| spec.containers.len()));
    let mut node = Node::default();
    let mut now = Instant::from_secs(1);
    node.handle(now, Input::Applied { meta, spec: Box::new(spec) });
    let mut gone = false;
    for step in 0..40 {
        let orders: Vec<_> = std::iter::from_fn(|| node.poll_action()).collect();
        gone |= orders.iter().any(|order| matches!(order, Action::Gone { .. }));
        if let Some(status) = node.status(&uid) {
            let _ = husk_api::status_object(status, &Wall(Timestamp::UNIX_EPOCH));
        }
        let answers: Vec<_> = orders.into_iter().filter_map(|order| answer(order, true)).collect();
        let idle = answers.is_empty();
        for input in answers {
            node.handle(now, input);
        }
        if step == 15 {
            node.handle(now, Input::DeleteRequested { pod: uid.clone(), grace_seconds: None });
        } else if let Some(wake) = node.next_wake().filter(|_| idle) {
            now = wake;
            node.advance(now);
        }
    }
    assert!(gone, "a deleted pod is still there: {:?}", node.status(&uid));
}
