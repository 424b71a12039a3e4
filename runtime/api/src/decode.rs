//! From the text of a manifest to objects, or to a list of what is wrong with it.

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;

use crate::problem::Problem;
use crate::raw::repeated_keys;
use crate::schema::{KINDS, Kind, Runner};
use crate::strict::{self, Findings, Found};
use crate::suggest;
use crate::tree::{Node, Value};
use crate::{Object, yaml};

/// What was read from a manifest.
#[derive(Debug, Default)]
pub struct Decoded {
    /// The objects, in order. An object with wrong types is not among them.
    pub documents: Vec<Document>,
    /// What must be put right before anything is started.
    pub errors: Vec<Problem>,
    /// What is taken but has no effect, or not the usual one.
    pub warnings: Vec<Problem>,
}

/// An object and where it came from.
#[derive(Clone, Debug)]
pub struct Document {
    /// Which document of the file, counted from 1.
    pub index: usize,
    /// The line it begins on, counted from 1.
    pub line: usize,
    /// The object.
    pub object: Object,
    /// Where the object stands in its document: empty, or `items[3]` in a list.
    pub(crate) prefix: String,
    /// The object as written, for line numbers.
    node: Node,
}

impl Document {
    /// The line of a field, or of the nearest thing around it that is there.
    pub fn line_of(&self, path: &str) -> usize {
        self.node.line_of(path)
    }

    /// What is written in a field, if that is short enough for a message.
    pub(crate) fn shown(&self, path: &str) -> Option<String> {
        self.node.shown(path)
    }
}

/// Reads every object of a manifest: YAML documents, JSON, or a `List` of objects.
///
/// Fields are read strictly: an unknown or repeated field and a wrong type is an error, with its document, line and path.
/// Whether the values make sense is another question: see [`crate::check`].
pub fn decode(text: &str, file: &str) -> Decoded {
    read(text, file, Reader::Command)
}

/// Who reads a manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    /// A command that runs its pods.
    Command,
    /// An agent that runs its pods.
    Agent,
    /// Who sends its objects to an agent. Of kinds that aren't taken only keys that are repeated are errors, because nobody sees
    /// them later.
    Client,
}

impl Reader {
    fn runner(self) -> Runner {
        match self {
            Self::Command => Runner::Alone,
            Self::Agent | Self::Client => Runner::Agent,
        }
    }
}

pub(crate) fn read(text: &str, file: &str, reader: Reader) -> Decoded {
    let (nodes, stop) = yaml::documents(text);
    let mut reading = Reading { file, reader, decoded: Decoded::default() };
    let is_empty = nodes.is_empty() && stop.is_none();
    for (index, node) in nodes {
        reading.document(index, node, "");
    }
    if let Some(stop) = stop {
        let file = file.into();
        let problem =
            Problem { file, document: stop.document, line: stop.line, path: String::new(), message: stop.message };
        reading.decoded.errors.push(problem);
    }
    if is_empty {
        reading.error(
            1,
            None,
            "",
            "the file has no object in it; write one with apiVersion, kind, metadata and spec".into(),
        );
    }
    reading.decoded
}

struct Reading<'a> {
    file: &'a str,
    reader: Reader,
    decoded: Decoded,
}

impl Reading<'_> {
    /// `prefix` is where the object stands in its document: empty, or `items[3]` in a list.
    fn document(&mut self, index: usize, node: Node, prefix: &str) {
        let line = Some(node.line);
        if !matches!(node.value, Value::Map(_)) {
            let message = format!("expected an object with apiVersion and kind, found {}", node.describe());
            return self.error(index, line, prefix, message);
        }
        let (version, kind) = (node.text("apiVersion").unwrap_or(""), node.text("kind").unwrap_or(""));
        if kind == "List" && version == "v1" {
            return self.list(index, node, prefix);
        }
        let is_taken = KINDS.iter().any(|known| known.kind == kind);
        if self.reader == Reader::Client && !is_taken && !kind.is_empty() && !version.is_empty() {
            let mut repeated = Vec::new();
            repeated_keys(&node, "", &mut repeated);
            for path in repeated {
                let line = Some(node.line_of(&path));
                self.error(index, line, &path, "the key is repeated; remove one of them".into());
            }
            return;
        }
        match known_kind(version, kind) {
            Ok(known) => self.object(index, node, prefix, known),
            Err((field, message)) => {
                let line = Some(node.line_of(field));
                let path = if prefix.is_empty() { field.into() } else { format!("{prefix}.{field}") };
                self.error(index, line, &path, message);
            }
        }
    }

    fn list(&mut self, index: usize, node: Node, prefix: &str) {
        let line = node.line;
        let Value::Map(entries) = node.value else { return };
        let items = entries.into_iter().find(|entry| entry.key == "items").map(|entry| entry.value.value);
        let Some(Value::List(items)) = items else {
            return self.error(index, Some(line), prefix, "a List needs `items`, a list of objects".into());
        };
        for (position, item) in items.into_iter().enumerate() {
            let at = format!("items[{position}]");
            self.document(index, item, &if prefix.is_empty() { at } else { format!("{prefix}.{at}") });
        }
    }

    fn object(&mut self, index: usize, node: Node, prefix: &str, kind: &Kind) {
        let mut findings = Findings::default();
        let json = strict::read(&node, kind.object, self.reader.runner(), prefix, &mut findings);
        let Findings { errors, warnings, is_broken } = findings;
        for Found { line, path, message, .. } in warnings {
            let warning = Problem { file: self.file.into(), document: index, line: Some(line), path, message };
            self.decoded.warnings.push(warning);
        }
        for Found { line, path, message, .. } in errors {
            let message = if kind.kind == "Secret" { without_value(message) } else { message };
            self.error(index, Some(line), &path, message);
        }
        if is_broken {
            return;
        }
        match typed_object(kind.kind, json) {
            Ok(object) => {
                let (line, prefix) = (node.line, prefix.into());
                self.decoded.documents.push(Document { index, line, object, prefix, node });
            }
            Err((path, message)) => self.error(index, Some(node.line_of(&path)), &path, message),
        }
    }

    fn error(&mut self, document: usize, line: Option<usize>, path: &str, message: String) {
        self.decoded.errors.push(Problem { file: self.file.into(), document, line, path: path.into(), message });
    }
}

/// The kind that was named, or the field that is wrong and why.
fn known_kind(version: &str, kind: &str) -> Result<&'static Kind, (&'static str, String)> {
    let kinds = || KINDS.iter().map(|known| known.kind);
    let taken = || format!("{} and List are taken", kinds().collect::<Vec<_>>().join(", "));
    if kind.is_empty() {
        return Err(("kind", format!("the object has no kind; {}", taken())));
    }
    let Some(known) = KINDS.iter().find(|known| known.kind == kind) else {
        let hint = suggest::nearest(kind, kinds()).map(|name| format!(" did you mean {name}?")).unwrap_or_default();
        return Err(("kind", format!("objects of kind {kind} are not taken;{hint} {}", taken())));
    };
    if version.is_empty() {
        return Err(("apiVersion", format!("the object has no apiVersion; write `apiVersion: {}`", known.api_version)));
    }
    if version != known.api_version {
        return Err(("apiVersion", format!("{kind} of {version} is not taken; write `{}`", known.api_version)));
    }
    Ok(known)
}

fn typed_object(kind: &str, json: Json) -> Result<Object, (String, String)> {
    Ok(match kind {
        "Job" => Object::Job(Box::new(typed(json)?)),
        "Deployment" => Object::Deployment(Box::new(typed(json)?)),
        "ReplicaSet" => Object::ReplicaSet(Box::new(typed(json)?)),
        "DaemonSet" => Object::DaemonSet(Box::new(typed(json)?)),
        "StatefulSet" => Object::StatefulSet(Box::new(typed(json)?)),
        "ConfigMap" => Object::ConfigMap(Box::new(typed(json)?)),
        "Secret" => Object::Secret(Box::new(with_string_data(typed(json)?))),
        _ => Object::Pod(Box::new(typed(json)?)),
    })
}

/// What is written in a Secret is nobody's business.
fn without_value(message: String) -> String {
    match message.split_once(", found ") {
        Some((wanted, _)) => format!("{wanted}; numbers and the like go in quotes"),
        None => message,
    }
}

/// `stringData` is only ever written: what it says wins over `data`.
fn with_string_data(mut secret: Secret) -> Secret {
    let written = secret.string_data.take().into_iter().flatten();
    let written = written.map(|(key, value)| (key, ByteString(value.into_bytes())));
    secret.data.get_or_insert_default().extend(written);
    secret
}

/// The typed object; otherwise the path of what does not fit.
///
/// The walk over the table has said all that it can. This is the second lock: what the typed objects refuse or skip is an
/// error here too, so that the table can't let a field through that is lost afterwards.
fn typed<T: DeserializeOwned>(json: Json) -> Result<T, (String, String)> {
    let mut skipped = None;
    let mut track = serde_path_to_error::Track::new();
    let deserializer = serde_path_to_error::Deserializer::new(json, &mut track);
    let result = serde_ignored::deserialize(deserializer, |path| {
        skipped.get_or_insert_with(|| path.to_string().replace(".?", ""));
    });
    match (result, skipped) {
        (Ok(object), None) => Ok(object),
        (Ok(_), Some(path)) => Err((path, "unknown field; remove it".into())),
        (Err(error), _) => Err((track.path().to_string(), error.to_string())),
    }
}

/// Reads a pod from JSON leniently: unknown fields are dropped, and a pod may lack what a valid one needs.
///
/// # Errors
///
/// A value of the wrong type, with its path.
pub fn pod_from_json(json: &Json) -> Result<k8s_openapi::api::core::v1::Pod, Problem> {
    let node = Node::from_json(json);
    let mut findings = Findings::default();
    let strict = strict::read(&node, KINDS[0].object, Runner::Alone, "", &mut findings);
    let problem = |path, message| Problem { file: String::new(), document: 1, line: None, path, message };
    if findings.is_broken {
        let wrong = findings.errors.into_iter().find(|found| !found.message.starts_with("unknown field"));
        let (path, message) = wrong.map(|found| (found.path, found.message)).unwrap_or_default();
        return Err(problem(path, message));
    }
    typed_leniently(strict)
}

/// The typed pod of JSON that the walk has read.
pub(crate) fn typed_leniently(json: Json) -> Result<k8s_openapi::api::core::v1::Pod, Problem> {
    let problem = |(path, message)| Problem { file: String::new(), document: 1, line: None, path, message };
    typed(json).map_err(problem)
}
