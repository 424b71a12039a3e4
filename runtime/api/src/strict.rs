//! Strict reading of one object: unknown and repeated fields, wrong types, and fields that have no effect here.
//!
//! The walk goes on after a mistake, so that one run shows them all, and gives JSON that fits the typed objects.

use std::collections::HashMap;

use serde_json::Value as Json;

use crate::schema::{Field, Object, Runner, Support, Type};
use crate::suggest;
use crate::tree::{Entry, Node, Value};

/// How it is said that something is not supported, before the reason.
pub(crate) const NOT_SUPPORTED: &str = "it is not supported: ";

/// Something found at a place.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) line: usize,
    pub(crate) path: String,
    pub(crate) what: What,
    pub(crate) message: String,
}

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// A field that isn't known.
    Unknown,
    /// A field that can't be honoured and mustn't be ignored.
    Unsupported,
    /// Anything else that is wrong, or worth a warning.
    Other,
}

/// What the walk found.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) errors: Vec<Found>,
    pub(crate) warnings: Vec<Found>,
    /// An error was a wrong type, so the JSON has gaps.
    pub(crate) is_broken: bool,
}

/// Reads an object by its table of fields.
pub(crate) fn read(node: &Node, object: &Object, runner: Runner, path: &str, findings: &mut Findings) -> Json {
    Walk { findings, runner, quiet: false }.object(node, object, path)
}

struct Walk<'a> {
    findings: &'a mut Findings,
    runner: Runner,
    /// Inside something that has been warned about: what is in it goes without saying.
    quiet: bool,
}

impl Walk<'_> {
    fn object(&mut self, node: &Node, object: &Object, path: &str) -> Json {
        let entries = match &node.value {
            Value::Map(entries) => entries,
            Value::Null => return Json::Object(serde_json::Map::new()),
            _ => return self.wrong_type(node, path, "an object"),
        };
        self.repeated(entries, |key| joined(path, key));
        let mut json = serde_json::Map::new();
        for entry in entries {
            let path = joined(path, &entry.key);
            match object.field(&entry.key) {
                Some(field) => {
                    let value = self.field(entry, field, &path);
                    if !value.is_null() {
                        json.insert(entry.key.clone(), value);
                    }
                }
                None if object.name == "ContainerRestartRule" && entry.key == "onExit" => {
                    self.on_exit(entry, object, &path, &mut json);
                }
                None => self.unknown(entry, object, path),
            }
        }
        Json::Object(json)
    }

    fn field(&mut self, entry: &Entry, field: &Field, path: &str) -> Json {
        let was_quiet = self.quiet;
        if !was_quiet && says_something(&entry.value, field.but) {
            self.quiet = self.say(field.support, entry.line, path);
        }
        match (field.only, &entry.value.value) {
            (Some((these, others)), Value::Map(entries)) if !self.quiet => {
                for other in entries.iter().filter(|other| !these.contains(&other.key.as_str())) {
                    self.say(others, other.line, &format!("{path}[{}]", other.key));
                }
            }
            (Some((these, others)), Value::Str(text)) if !self.quiet && !these.contains(&text.as_str()) => {
                self.say(others, entry.line, path);
            }
            _ => {}
        }
        let json = self.value(&entry.value, &field.ty, path);
        self.quiet = was_quiet;
        json
    }

    /// Says what is done with a field; whether there was anything to say.
    fn say(&mut self, support: Support, line: usize, path: &str) -> bool {
        match support {
            Support::Honoured => return false,
            Support::WarnedAlone(_) if self.runner == Runner::Agent => return false,
            Support::Warned(what) | Support::WarnedAlone(what) => {
                self.warning(line, path, format!("it has no effect: {what}"))
            }
            Support::Rejected(what) => {
                self.found(line, path, What::Unsupported, format!("{NOT_SUPPORTED}{what}"));
            }
        }
        true
    }

    /// An earlier spelling of a restart rule's condition, `onExit.exitCodes`.
    fn on_exit(&mut self, entry: &Entry, object: &Object, path: &str, json: &mut serde_json::Map<String, Json>) {
        self.warning(entry.line, path, "this spelling is of a draft; write `exitCodes` without `onExit`".into());
        let (Some(field), Some(codes)) = (object.field("exitCodes"), entry.value.entry("exitCodes")) else {
            return self.error(entry.line, path, "it needs `exitCodes` with `operator` and `values`".into());
        };
        for other in map_of(&entry.value).iter().filter(|other| other.key != "exitCodes") {
            let message = "unknown field; only `exitCodes` stands here".into();
            self.found(other.line, &joined(path, &other.key), What::Unknown, message);
        }
        let value = self.value(&codes.value, &field.ty, &joined(path, "exitCodes"));
        if json.insert("exitCodes".into(), value).is_some() {
            self.error(entry.line, path, "the rule has `exitCodes` already; remove `onExit`".into());
        }
    }

    fn value(&mut self, node: &Node, ty: &Type, path: &str) -> Json {
        match (ty, &node.value) {
            (Type::Object(object), Value::Map(_)) => self.object(node, object, path),
            (_, Value::Null) => Json::Null,
            (Type::List(item), Value::List(items)) => {
                let item = |(index, node): (usize, &Node)| {
                    let json = self.value(node, item, &format!("{path}[{index}]"));
                    // As Go reads it: nothing in a list is the item's zero value.
                    if node.value == Value::Null { zero(item) } else { json }
                };
                items.iter().enumerate().map(item).collect()
            }
            (Type::Map(item), Value::Map(entries)) => {
                self.repeated(entries, |key| format!("{path}[{key}]"));
                let mut json = serde_json::Map::new();
                for entry in entries {
                    let value = self.value(&entry.value, item, &format!("{path}[{}]", entry.key));
                    let value = if entry.value.value == Value::Null { zero(item) } else { value };
                    json.insert(entry.key.clone(), value);
                }
                Json::Object(json)
            }
            (Type::Any, _) => node.to_json(),
            (Type::Bool, Value::Bool(value)) => (*value).into(),
            (Type::Str | Type::Time, Value::Str(text)) => text.as_str().into(),
            (Type::Quantity, Value::Str(text)) => self.quantity(node, text, path),
            (Type::Quantity, Value::Int(value)) => value.to_string().into(),
            (Type::Quantity, Value::Float(value)) => value.to_string().into(),
            (Type::IntOrString, Value::Str(text)) => text.as_str().into(),
            (Type::Int64, Value::Int(value)) => (*value).into(),
            (Type::Int32 | Type::IntOrString, Value::Int(value)) if i32::try_from(*value).is_ok() => (*value).into(),
            // 1.0 and 1e3 are integers for Go too.
            (Type::Int32 | Type::Int64, Value::Float(value))
                if value.fract() == 0.0 && value.abs() < 2_147_483_648.0 =>
            {
                #[expect(clippy::cast_possible_truncation, reason = "its range was just checked")]
                let value = *value as i64;
                value.into()
            }
            _ => self.wrong_type(node, path, ty.noun()),
        }
    }

    fn quantity(&mut self, node: &Node, text: &str, path: &str) -> Json {
        // Upstream, too, takes white space around it.
        if crate::amount::parse(text.trim()).is_some() {
            return text.trim().into();
        }
        let message =
            format!("{} is not a quantity; write a number with a unit, as in `100m`, `64Mi` or `1.5`", node.describe());
        self.findings.is_broken = true;
        self.error(node.line, path, message);
        Json::Null
    }

    fn wrong_type(&mut self, node: &Node, path: &str, wanted: &str) -> Json {
        self.findings.is_broken = true;
        let remedy = match node.value {
            Value::Bool(_) | Value::Int(_) | Value::Float(_) if wanted == "a string" => "; put it in quotes",
            Value::Map(_) if wanted == "a string" => "; put a text that has a colon in it in quotes",
            Value::Str(_) if wanted == "a list" => "; write it as [item, …] or with a dash before each item",
            Value::Str(ref text) if wanted.starts_with("an integer") && text.trim().parse::<i64>().is_ok() => {
                "; remove the quotes"
            }
            _ => "",
        };
        self.error(node.line, path, format!("expected {wanted}, found {}{remedy}", node.describe()));
        Json::Null
    }

    fn unknown(&mut self, entry: &Entry, object: &Object, path: String) {
        let known = || object.fields.iter().map(|field| field.name);
        let message = match suggest::nearest(&entry.key, known()) {
            Some(name) => format!("unknown field; did you mean `{name}`?"),
            None if object.fields.len() <= 12 => {
                format!("unknown field; {} has {}", object.name, known().collect::<Vec<_>>().join(", "))
            }
            None => format!("unknown field of {}; remove it or look for its right place", object.name),
        };
        self.found(entry.line, &path, What::Unknown, message);
    }

    fn repeated(&mut self, entries: &[Entry], path: impl Fn(&str) -> String) {
        let mut first = HashMap::new();
        for entry in entries {
            if let Some(line) = first.insert(entry.key.as_str(), entry.line) {
                let message = format!("the key is repeated, it stands on line {line} too; remove one of them");
                self.error(entry.line, &path(&entry.key), message);
            }
        }
    }

    fn error(&mut self, line: usize, path: &str, message: String) {
        self.found(line, path, What::Other, message);
    }

    fn found(&mut self, line: usize, path: &str, what: What, message: String) {
        self.findings.errors.push(Found { line, path: path.into(), what, message });
    }

    fn warning(&mut self, line: usize, path: &str, message: String) {
        self.findings.warnings.push(Found { line, path: path.into(), what: What::Other, message });
    }
}

/// `parent.field`.
fn joined(parent: &str, field: &str) -> String {
    if parent.is_empty() { field.into() } else { format!("{parent}.{field}") }
}

fn map_of(node: &Node) -> &[Entry] {
    match &node.value {
        Value::Map(entries) => entries,
        _ => &[],
    }
}

/// A field that is empty, false, or has the value that it would have anyway, asks for nothing.
fn says_something(node: &Node, but: &[&str]) -> bool {
    match &node.value {
        Value::Null | Value::Bool(false) => false,
        Value::Bool(true) => !but.contains(&"true"),
        Value::Int(value) => !but.contains(&value.to_string().as_str()),
        Value::Float(_) => true,
        Value::Str(text) => !text.is_empty() && !but.contains(&text.as_str()),
        Value::List(items) => !items.is_empty(),
        // An empty map says something for volumes: `emptyDir: {}`.
        Value::Map(_) => true,
    }
}

/// What Go puts where nothing is written.
fn zero(ty: &Type) -> Json {
    match ty {
        Type::Bool => false.into(),
        Type::Int32 | Type::Int64 | Type::IntOrString => 0.into(),
        Type::Str | Type::Time => "".into(),
        Type::Quantity => "0".into(),
        Type::Any => Json::Null,
        Type::List(_) => Json::Array(Vec::new()),
        Type::Map(_) | Type::Object(_) => Json::Object(serde_json::Map::new()),
    }
}
