//! From the text of a manifest to static pods.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::Path;

use husk_api::k8s::{Pod, Toleration};
use husk_api::{DEFAULT_NAMESPACE, Document, Gates, Object, Problem};
use husk_core::io::PodUid;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::folder::problem;
use super::problem::PodName;

/// More of one file are not told: whoever wants to know asks `husk check`.
const MOST_WARNINGS: usize = 20;

/// What a pod is called on its node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Identity {
    namespace: String,
    name: String,
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// A pod of a file.
#[derive(Clone, Debug)]
pub(super) struct StaticPod {
    pub(super) identity: Identity,
    /// Its own if the manifest gives one, made from node, identity and content if not.
    pub(super) uid: PodUid,
    /// A digest of node, identity and content.
    pub(super) content: String,
    /// Defaulted, valid, marked as what it is.
    pub(super) pod: Pod,
}

impl StaticPod {
    /// Which it is.
    pub(super) fn name(&self) -> PodName {
        let Identity { namespace, name } = self.identity.clone();
        PodName { namespace, name, uid: self.uid.0.to_string() }
    }

    /// The file that it was made from, as its object says.
    pub(super) fn file(&self) -> Option<OsString> {
        Some(self.pod.metadata.annotations.as_ref()?.get(FILE)?.into())
    }

    /// The same pod, as if it were from the file of another one: nothing else of it changes.
    pub(super) fn moved(mut self, to: &Self) -> Self {
        let file = to.pod.metadata.annotations.as_ref().and_then(|annotations| annotations.get(FILE));
        if let Some(file) = file {
            self.pod.metadata.annotations.get_or_insert_default().insert(FILE.into(), file.clone());
        }
        self
    }

    /// From the object that was kept of it.
    pub(super) fn of_mirror(pod: Pod) -> Option<Self> {
        let meta = &pod.metadata;
        let identity = Identity { namespace: meta.namespace.clone()?, name: meta.name.clone()? };
        let content = meta.annotations.as_ref()?.get(CONTENT)?.clone();
        Some(Self { identity, uid: PodUid::from(meta.uid.as_deref()?), content, pod })
    }
}

/// The pods of a manifest, or everything that is wrong with it.
pub(super) fn read(text: &str, path: &Path, node_name: &str, gates: &Gates) -> Result<Vec<StaticPod>, Vec<Problem>> {
    let decoded = husk_api::check_for_agent(text, &path.display().to_string(), gates);
    let (mut pods, mut problems) = (Vec::new(), decoded.errors);
    for document in &decoded.documents {
        match of(document, node_name, gates) {
            Ok(mut pod) => {
                if let Some(name) = path.file_name().and_then(OsStr::to_str) {
                    let annotations = pod.pod.metadata.annotations.get_or_insert_default();
                    annotations.insert(FILE.into(), name.into());
                }
                pods.push(pod);
            }
            Err(errors) => {
                for (field, message) in errors {
                    // What was wrong before it got its name and marks was said already.
                    if !problems.iter().any(|known| (known.document, &known.path) == (document.index, &field)) {
                        let line = Some(document.line_of(&field));
                        problems.push(Problem {
                            document: document.index,
                            line,
                            path: field,
                            ..problem(path, message)
                        });
                    }
                }
            }
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    decoded.warnings.iter().take(MOST_WARNINGS).for_each(|warning| tracing::warn!(%warning, "static pod"));
    Ok(pods)
}

/// Field and message of what is wrong.
type FieldProblem = (String, String);

fn of(document: &Document, node_name: &str, gates: &Gates) -> Result<StaticPod, Vec<FieldProblem>> {
    let failed = |field: &str, message: String| vec![(field.to_owned(), message)];
    let Object::Pod(pod) = &document.object else {
        let kind = document.object.kind();
        return Err(failed("kind", format!("a {kind} needs a controller: write its Pod into the file")));
    };
    let mut pod = (**pod).clone();
    let meta = &mut pod.metadata;
    let Some(name) = meta.name.clone().filter(|name| !name.is_empty()) else {
        return Err(failed("metadata.name", "a static pod is known by its name: give it one".into()));
    };
    let name = format!("{name}-{}", node_name.to_lowercase());
    meta.name = Some(name.clone());
    let namespace = meta.namespace.take().filter(|namespace| !namespace.is_empty());
    let namespace = namespace.unwrap_or_else(|| DEFAULT_NAMESPACE.into());
    meta.namespace = Some(namespace.clone());
    let own_uid = meta.uid.take();
    if own_uid.as_deref().is_some_and(|uid| !is_uid(uid)) {
        return Err(failed("metadata.uid", "may have letters, digits and `-` only; leave it out".into()));
    }
    pod.status = None;
    for (field, gate) in husk_api::drop_disabled_fields(&mut pod, gates) {
        let gate = gate.name();
        tracing::warn!(pod = name, field, gate, "static pod: a field is not taken: its feature gate is off");
    }
    husk_api::default_pod(&mut pod);
    let errors = husk_api::validate_pod_with(&pod, gates);
    if !errors.is_empty() {
        return Err(errors.into_iter().map(|error| (error.field.clone(), error.message())).collect());
    }
    let json = serde_json::to_value(&pod).map_err(|error| failed("", error.to_string()))?;
    let references = references(&json["spec"], "spec");
    if !references.is_empty() {
        let message = "a static pod may not refer to other objects: there may be no API server to get them from";
        return Err(references.into_iter().map(|field| (field, message.to_owned())).collect());
    }
    let content = digest(node_name, &namespace, &name, &json);
    let uid = own_uid.unwrap_or_else(|| content.clone());
    mark(&mut pod, &uid, &content);
    Ok(StaticPod { identity: Identity { namespace, name }, uid: PodUid::from(uid.as_str()), content, pod })
}

/// A uid names folders.
fn is_uid(uid: &str) -> bool {
    !uid.is_empty() && uid.len() <= 128 && uid.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// Of what the pod is, whatever its file is called and however it is laid out. Fields of an object are in order there.
fn digest(node_name: &str, namespace: &str, name: &str, pod: &Value) -> String {
    let mut digest = Sha256::new();
    for part in [node_name, namespace, name, &pod.to_string()] {
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part);
    }
    digest.finalize()[..16].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The annotation with the digest.
const CONTENT: &str = "kubernetes.io/config.hash";

/// The annotation with the name of the file: an agent that begins again knows whose pod it is while the file can't be read.
pub(crate) const FILE: &str = "husk.dev/config.file";

/// Says of a pod that it comes from a file, as upstream does.
fn mark(pod: &mut Pod, uid: &str, content: &str) {
    let seen = jiff::Timestamp::now().to_string();
    let meta = &mut pod.metadata;
    meta.uid = Some(uid.to_owned());
    meta.generation = Some(1);
    let marks =
        [("config.hash", content), ("config.mirror", content), ("config.seen", &seen), ("config.source", "file")];
    let annotations = meta.annotations.get_or_insert_default();
    annotations.extend(marks.map(|(name, value)| (format!("kubernetes.io/{name}"), value.to_owned())));
    // It stays on its node whatever becomes of that.
    let stays =
        Toleration { operator: Some("Exists".into()), effect: Some("NoExecute".into()), ..Toleration::default() };
    let tolerations = pod.spec.get_or_insert_default().tolerations.get_or_insert_default();
    if !tolerations.contains(&stays) {
        tolerations.push(stays);
    }
}

/// Fields that name objects of an API server.
const REFERENCES: [&str; 12] = [
    "configMap",
    "configMapKeyRef",
    "configMapRef",
    "ephemeralContainers",
    "imagePullSecrets",
    "persistentVolumeClaim",
    "resourceClaims",
    "secret",
    "secretKeyRef",
    "secretRef",
    "serviceAccountName",
    "serviceAccountToken",
];

/// Where such fields are. Names that somebody chose, as those of labels, have texts as values.
fn references(value: &Value, path: &str) -> Vec<String> {
    match value {
        Value::Object(fields) => fields
            .iter()
            .flat_map(|(name, value)| {
                let path = format!("{path}.{name}");
                let names = match value {
                    Value::Object(_) => true,
                    Value::Array(items) => !items.is_empty(),
                    Value::String(text) => name == "serviceAccountName" && !text.is_empty(),
                    _ => false,
                };
                if names && REFERENCES.contains(&name.as_str()) { vec![path] } else { references(value, &path) }
            })
            .collect(),
        Value::Array(items) => {
            items.iter().enumerate().flat_map(|(n, item)| references(item, &format!("{path}[{n}]"))).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_one(text: &str) -> Result<StaticPod, Vec<Problem>> {
        read(text, Path::new("a.yaml"), "Edge-7", &Gates::default()).map(|mut pods| pods.remove(0))
    }

    fn pod(spec: &str) -> String {
        format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: web}}\nspec: {spec}\n")
    }

    #[test]
    fn a_static_pod_is_marked_as_upstream_marks_it() {
        let pod = read_one(&pod("{containers: [{name: app, image: x}]}")).expect("valid");
        assert_eq!(pod.identity.to_string(), "default/web-edge-7");
        let meta = &pod.pod.metadata;
        let annotations = meta.annotations.as_ref().expect("some");
        let of = |name: &str| annotations[&format!("kubernetes.io/config.{name}")].as_str();
        assert_eq!((of("source"), of("hash"), of("mirror")), ("file", &*pod.content, &*pod.content));
        assert!(of("seen").parse::<jiff::Timestamp>().is_ok());
        assert_eq!((meta.uid.as_deref(), pod.content.len()), (Some(&*pod.content), 32));
        assert!(husk_api::core_meta(&pod.pod).is_static);
        let tolerations = pod.pod.spec.and_then(|spec| spec.tolerations).expect("some");
        assert_eq!(tolerations[0].effect.as_deref(), Some("NoExecute"));
    }

    #[test]
    fn a_uid_is_made_from_what_the_pod_is() {
        let uid = |text: &str, node: &str| {
            read(text, Path::new("x.yaml"), node, &Gates::default()).expect("valid")[0].uid.clone()
        };
        let plain = pod("{containers: [{name: app, image: x}]}");
        let defaults_written = pod("{restartPolicy: Always, containers: [{image: x, name: app}]}");
        assert_eq!(uid(&plain, "a"), uid(&defaults_written, "a"));
        assert_ne!(uid(&plain, "a"), uid(&plain, "b"));
        assert_ne!(uid(&plain, "a"), uid(&plain.replace("web", "wob"), "a"));
        assert_ne!(uid(&plain, "a"), uid(&plain.replace("image: x", "image: z"), "a"));
        assert_eq!(uid(&plain.replace("name: web", "name: web, uid: my-own"), "a"), PodUid::from("my-own"));
    }

    #[test]
    fn a_static_pod_refers_to_nothing_that_only_an_api_server_has() {
        for (spec, field) in [
            ("{serviceAccountName: robot, containers: [{name: app, image: x}]}", "spec.serviceAccountName"),
            ("{imagePullSecrets: [{name: key}], containers: [{name: app, image: x}]}", "spec.imagePullSecrets"),
            (
                "{containers: [{name: app, image: x}], volumes: [{name: v, secret: {secretName: s}}]}",
                "spec.volumes[0].secret",
            ),
        ] {
            let problems = read_one(&pod(spec)).expect_err(spec);
            assert!(problems.iter().any(|problem| problem.path == field), "{problems:?}");
        }
        let labelled = "{nodeSelector: {secret: x}, containers: [{name: app, image: x}]}";
        assert!(read_one(&pod(labelled)).is_ok());
    }

    #[test]
    fn what_is_valid_depends_on_the_gates() {
        let text = pod("{tolerations: [{key: k, operator: Lt, value: '5'}], containers: [{name: app, image: x}]}");
        let read = |gates: &Gates| read(&text, Path::new("a.yaml"), "node", gates).map(|pods| pods.len());
        assert!(read(&Gates::default()).is_err());
        assert_eq!(read(&Gates::ALL).expect("valid"), 1);
    }

    #[test]
    fn a_mistake_is_told_once() {
        let problems =
            read_one(&pod("{restartPolicy: Often, containers: [{name: app, image: x}]}")).expect_err("wrong");
        assert_eq!(problems.iter().map(|problem| &*problem.path).collect::<Vec<_>>(), ["spec.restartPolicy"]);
    }

    #[test]
    fn a_static_pod_needs_a_name() {
        let nameless =
            "apiVersion: v1\nkind: Pod\nmetadata: {generateName: web-}\nspec: {containers: [{name: a, image: x}]}";
        let problems = read_one(nameless).expect_err("nameless");
        assert_eq!(problems[0].path, "metadata.name");
    }
}
