//! A document as written: values with the lines they stand on.

/// A value and its line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    /// Line in the file, from 1.
    pub(crate) line: usize,
    /// What stands there.
    pub(crate) value: Value,
}

/// What stands in a document.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Int(i64),
    /// Also integers that do not fit 64 bits.
    Float(f64),
    Str(String),
    List(Vec<Node>),
    /// In the order written; keys may be repeated (the strict decoder says so).
    Map(Vec<Entry>),
}

/// A key with its value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    /// The key.
    pub(crate) key: String,
    /// The key's line.
    pub(crate) line: usize,
    /// The value.
    pub(crate) value: Node,
}

impl Node {
    /// The value of a key.
    pub(crate) fn entry(&self, key: &str) -> Option<&Entry> {
        match &self.value {
            Value::Map(entries) => entries.iter().find(|entry| entry.key == key),
            _ => None,
        }
    }

    /// The string under a key.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        match &self.entry(key)?.value.value {
            Value::Str(text) => Some(text),
            _ => None,
        }
    }

    /// The line of a field, or of the nearest thing around it that is there: a missing field is best looked for where
    /// its parent begins.
    pub(crate) fn line_of(&self, path: &str) -> usize {
        self.walk(path).0
    }

    /// What stands in a field, if it is there and short enough to be shown.
    pub(crate) fn shown(&self, path: &str) -> Option<String> {
        match self.walk(path) {
            (_, Some(node)) => match &node.value {
                Value::Str(text) => Some(format!("{:?}", shortened(text))),
                Value::Int(value) => Some(value.to_string()),
                Value::Float(value) => Some(value.to_string()),
                Value::Bool(value) => Some(value.to_string()),
                Value::Null | Value::List(_) | Value::Map(_) => None,
            },
            (_, None) => None,
        }
    }

    /// As far as the path leads: the last line on it, and the value if it leads to one.
    fn walk(&self, path: &str) -> (usize, Option<&Self>) {
        let mut node = self;
        let mut line = self.line;
        for segment in segments(path) {
            let next = match &node.value {
                Value::Map(_) => node.entry(segment).map(|entry| (entry.line, &entry.value)),
                Value::List(items) => {
                    segment.parse().ok().and_then(|index: usize| items.get(index)).map(|item| (item.line, item))
                }
                _ => None,
            };
            let Some((found, below)) = next else { return (line, None) };
            line = found;
            node = below;
        }
        (line, Some(node))
    }

    /// As JSON, without any knowledge of fields.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        match &self.value {
            Value::Null => serde_json::Value::Null,
            Value::Bool(value) => (*value).into(),
            Value::Int(value) => (*value).into(),
            Value::Float(value) => serde_json::Number::from_f64(*value).map_or(serde_json::Value::Null, Into::into),
            Value::Str(value) => value.as_str().into(),
            Value::List(items) => items.iter().map(Self::to_json).collect(),
            Value::Map(entries) => entries
                .iter()
                .map(|entry| (entry.key.clone(), entry.value.to_json()))
                .collect::<serde_json::Map<_, _>>()
                .into(),
        }
    }

    /// From JSON that has no lines.
    pub(crate) fn from_json(json: &serde_json::Value) -> Self {
        use serde_json::Value as Json;
        let value = match json {
            Json::Null => Value::Null,
            Json::Bool(value) => Value::Bool(*value),
            Json::Number(number) => {
                number.as_i64().map_or_else(|| Value::Float(number.as_f64().unwrap_or(f64::MAX)), Value::Int)
            }
            Json::String(text) => Value::Str(text.clone()),
            Json::Array(items) => Value::List(items.iter().map(Self::from_json).collect()),
            Json::Object(entries) => {
                let entry =
                    |(key, value): (&String, _)| Entry { key: key.clone(), line: 1, value: Self::from_json(value) };
                Value::Map(entries.iter().map(entry).collect())
            }
        };
        Self { line: 1, value }
    }

    /// What to call it in a message.
    pub(crate) fn describe(&self) -> String {
        match &self.value {
            Value::Null => "nothing".into(),
            Value::Bool(value) => value.to_string(),
            Value::Int(value) => format!("the number {value}"),
            Value::Float(value) => format!("the number {value}"),
            Value::Str(value) => format!("the string {:?}", shortened(value)),
            Value::List(_) => "a list".into(),
            Value::Map(_) => "a map".into(),
        }
    }
}

/// A message is one line: long values are cut.
fn shortened(text: &str) -> String {
    const MAX: usize = 40;
    if text.chars().count() <= MAX { text.into() } else { text.chars().take(MAX).chain(['…']).collect() }
}

/// The steps of a path: fields, indexes and keys.
fn segments(path: &str) -> impl Iterator<Item = &str> {
    let mut rest = path;
    core::iter::from_fn(move || {
        rest = rest.strip_prefix('.').unwrap_or(rest);
        if rest.is_empty() {
            return None;
        }
        let (segment, after) = match rest.strip_prefix('[') {
            Some(inner) => inner.split_once(']').unwrap_or((inner, "")),
            None => {
                let end = rest.find(['.', '[']).unwrap_or(rest.len());
                rest.split_at(end)
            }
        };
        rest = after;
        Some(segment)
    })
}
