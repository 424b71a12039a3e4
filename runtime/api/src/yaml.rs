//! From text to documents.
//!
//! Everything is bounded, because a manifest may come from anywhere: the size of the text, the depth, and what aliases
//! unfold to.

use std::collections::{HashMap, HashSet};

use saphyr_parser::{Event, Parser, ScalarStyle, Span};

use crate::tree::{Entry, Node, Value};
use crate::{json, scalar};

/// The largest text that is read, in bytes: as much as an API server takes in one request.
pub const MAX_BYTES: usize = 3 << 20;
/// The deepest nesting that is read. The deepest field of a pod lies at 15.
pub const MAX_DEPTH: usize = 64;
/// The most values one document may hold once its aliases are unfolded.
pub const MAX_VALUES: usize = 100_000;
/// The most bytes of text one document may hold once its aliases are unfolded.
pub const MAX_UNFOLDED_BYTES: usize = 2 * MAX_BYTES;

/// Why reading stopped.
#[derive(Debug)]
pub(crate) struct Stop {
    /// The document, from 1.
    pub(crate) document: usize,
    /// The line, from 1.
    pub(crate) line: Option<usize>,
    /// What is wrong and what to do.
    pub(crate) message: String,
}

/// All documents up to the first that can't be read, and why it can't. Empty documents are left out but counted.
pub(crate) fn documents(text: &str) -> (Vec<(usize, Node)>, Option<Stop>) {
    if text.len() > MAX_BYTES {
        let message =
            format!("the file has {} bytes and at most {MAX_BYTES} are read; split it into several files", text.len());
        return (Vec::new(), Some(Stop { document: 1, line: None, message }));
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim_start().starts_with('{')
        && let Some(documents) = json::documents(text)
    {
        return (documents, None);
    }
    let mut reader = Reader::default();
    let mut parser = Parser::new_from_str(text);
    while let Some(next) = parser.next_event() {
        let (line, message) = match next {
            Ok((event, span)) => match reader.event(event, span) {
                Ok(()) => continue,
                Err(message) => (span.start.line(), message),
            },
            // The parser has a limit of its own, which it may reach before the reader here sees a value.
            Err(error) if error.info().contains("recursion limit") => (error.marker().line(), too_deep()),
            Err(error) => (error.marker().line(), format!("this is not YAML: {}", error.info())),
        };
        let document = reader.document.max(1);
        return (reader.done, Some(Stop { document, line: Some(line), message }));
    }
    (reader.done, None)
}

#[derive(Default)]
struct Reader {
    done: Vec<(usize, Node)>,
    /// The document being read, from 1.
    document: usize,
    open: Vec<Open>,
    anchors: HashMap<usize, Node>,
    values: usize,
    bytes: usize,
}

/// A list or map that has not ended.
struct Open {
    line: usize,
    anchor: usize,
    content: Content,
}

enum Content {
    List(Vec<Node>),
    /// `merged` came by `<<` and gives way to what is written out.
    Map {
        entries: Vec<Entry>,
        merged: Vec<Entry>,
        key: Option<Key>,
    },
}

/// A key that waits for its value.
struct Key {
    text: String,
    line: usize,
    /// A plain `<<`.
    merges: bool,
}

impl Reader {
    fn event(&mut self, event: Event<'_>, span: Span) -> Result<(), String> {
        let line = span.start.line();
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd => Ok(()),
            Event::DocumentStart(_) => {
                self.document += 1;
                self.anchors.clear();
                (self.values, self.bytes) = (0, 0);
                Ok(())
            }
            Event::DocumentEnd => Ok(()),
            Event::Alias(anchor) => {
                let Some(node) = self.anchors.get(&anchor) else {
                    return Err("an alias inside the value that it names has no end; remove it".into());
                };
                // Counted before it is copied: a billion laughs stop here.
                let Weight { values, bytes, depth } = Weight::of(node);
                if !self.within(values, bytes) {
                    return Err(too_much());
                }
                if self.open.len() + depth > MAX_DEPTH {
                    return Err(too_deep());
                }
                let mut copy = node.clone();
                self.count(values, bytes)?;
                copy.line = line;
                self.add(copy, 0)
            }
            Event::Scalar(text, style, anchor, tag) => {
                self.count(1, text.len())?;
                let is_plain = style == ScalarStyle::Plain;
                let is_text = tag.as_ref().is_some_and(|tag| tag.is_yaml_core_schema() && tag.suffix == "str");
                let value =
                    if is_plain && !is_text { scalar::plain(&text) } else { Value::Str(text.clone().into_owned()) };
                if let Some(Open { content: Content::Map { key: key @ None, .. }, .. }) = self.open.last_mut() {
                    *key = Some(Key { merges: is_plain && text == "<<", text: key_text(&value, &text), line });
                    return Ok(());
                }
                self.add(Node { line, value }, anchor)
            }
            Event::SequenceStart(anchor, _) => self.begin(line, anchor, Content::List(Vec::new())),
            Event::MappingStart(anchor, _) => {
                self.begin(line, anchor, Content::Map { entries: Vec::new(), merged: Vec::new(), key: None })
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(Open { line, anchor, content }) = self.open.pop() else { return Ok(()) };
                let value = match content {
                    Content::List(items) => Value::List(items),
                    Content::Map { entries, merged, .. } => Value::Map(with_merged(entries, merged)),
                };
                self.add(Node { line, value }, anchor)
            }
        }
    }

    fn begin(&mut self, line: usize, anchor: usize, content: Content) -> Result<(), String> {
        self.count(1, 0)?;
        if self.open.len() >= MAX_DEPTH {
            return Err(too_deep());
        }
        if let Some(Open { content: Content::Map { key: None, .. }, .. }) = self.open.last() {
            return Err(
                "a key must be a word, not a list or map; a value that begins with { or [ may lack its quotes".into()
            );
        }
        self.open.push(Open { line, anchor, content });
        Ok(())
    }

    /// Puts a value where it belongs: under the waiting key, at the end of the list, or as the document.
    fn add(&mut self, node: Node, anchor: usize) -> Result<(), String> {
        if anchor > 0 {
            let Weight { values, bytes, .. } = Weight::of(&node);
            self.count(values, bytes)?;
            self.anchors.insert(anchor, node.clone());
        }
        match self.open.last_mut() {
            None if node.value == Value::Null => {}
            None => self.done.push((self.document, node)),
            Some(Open { content: Content::List(items), .. }) => items.push(node),
            Some(Open { content: Content::Map { entries, merged, key }, .. }) => match key.take() {
                Some(Key { merges: true, .. }) => merge(merged, node)?,
                Some(Key { text, line, .. }) => entries.push(Entry { key: text, line, value: node }),
                None => return Err("a key must be a word, not an alias".into()),
            },
        }
        Ok(())
    }

    fn within(&self, values: usize, bytes: usize) -> bool {
        self.values.saturating_add(values) <= MAX_VALUES && self.bytes.saturating_add(bytes) <= MAX_UNFOLDED_BYTES
    }

    fn count(&mut self, values: usize, bytes: usize) -> Result<(), String> {
        if !self.within(values, bytes) {
            return Err(too_much());
        }
        self.values += values;
        self.bytes += bytes;
        Ok(())
    }
}

fn too_deep() -> String {
    format!("values are nested deeper than {MAX_DEPTH}; no Kubernetes object is")
}

fn too_much() -> String {
    format!(
        "the document unfolds to more than {MAX_VALUES} values or {MAX_UNFOLDED_BYTES} bytes; \
         split it, or write the values out instead of using so many aliases"
    )
}

/// How much there is in a tree.
#[derive(Clone, Copy, Default)]
struct Weight {
    values: usize,
    /// Of text.
    bytes: usize,
    /// Lists and maps in each other.
    depth: usize,
}

impl Weight {
    fn of(node: &Node) -> Self {
        match &node.value {
            Value::Str(text) => Self { values: 1, bytes: text.len(), depth: 0 },
            Value::List(items) => items.iter().fold(Self::default(), |all, item| all.and(Self::of(item))).in_one(),
            Value::Map(entries) => {
                let key = |entry: &Entry| Self { values: 1, bytes: entry.key.len(), depth: 0 };
                let weights = entries.iter().map(|entry| key(entry).and(Self::of(&entry.value)));
                weights.fold(Self::default(), Self::and).in_one()
            }
            _ => Self { values: 1, bytes: 0, depth: 0 },
        }
    }

    fn and(self, other: Self) -> Self {
        Self { values: self.values + other.values, bytes: self.bytes + other.bytes, depth: self.depth.max(other.depth) }
    }

    fn in_one(self) -> Self {
        Self { values: self.values + 1, bytes: self.bytes, depth: self.depth + 1 }
    }
}

/// Keys are strings: `on:` is the key `true`, as kubectl takes it.
fn key_text(value: &Value, written: &str) -> String {
    match value {
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        _ => written.into(),
    }
}

/// `<<: {…}` and `<<: [{…}, …]`.
fn merge(merged: &mut Vec<Entry>, node: Node) -> Result<(), String> {
    let sources = match node.value {
        Value::List(items) => items,
        _ => vec![node],
    };
    for source in sources {
        let Value::Map(entries) = source.value else {
            return Err("the merge key << takes a map or a list of maps".into());
        };
        merged.extend(entries);
    }
    Ok(())
}

/// What is written out wins, wherever it stands; of two merged maps the first wins.
fn with_merged(mut entries: Vec<Entry>, merged: Vec<Entry>) -> Vec<Entry> {
    if merged.is_empty() {
        return entries;
    }
    let mut known: HashSet<String> = entries.iter().map(|entry| entry.key.clone()).collect();
    entries.extend(merged.into_iter().filter(|entry| known.insert(entry.key.clone())));
    entries
}
