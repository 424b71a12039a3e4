//! Objects as they are written in a manifest, whatever their kinds are: what a client sends to a server.

use serde_json::Value as Json;

use crate::problem::Problem;
use crate::tree::{Node, Value};
use crate::yaml;

/// An object as it is written.
#[derive(Clone, Debug)]
pub struct Written {
    /// Which document of the file, counted from 1.
    pub index: usize,
    /// The line it begins on, counted from 1.
    pub line: usize,
    /// The object; of a repeated key, what stands last.
    pub json: Json,
    /// Where it stands in its document: empty, or `items[3]` in a list.
    prefix: String,
    node: Node,
}

impl Written {
    /// A problem with one of its fields.
    pub fn problem(&self, file: &str, field: &str, message: String) -> Problem {
        let path = match (self.prefix.as_str(), field) {
            ("", field) => field.into(),
            (prefix, "") => prefix.into(),
            (prefix, field) => format!("{prefix}.{field}"),
        };
        Problem { file: file.into(), document: self.index, line: Some(self.node.line_of(field)), path, message }
    }
}

/// Every object of a manifest: YAML documents, JSON, or a list of objects.
///
/// # Errors
/// If the text can't be read, or something in it is no object with an `apiVersion` and a `kind`.
pub fn written(text: &str, file: &str) -> Result<Vec<Written>, Vec<Problem>> {
    let (nodes, stop) = yaml::documents(text);
    let mut reading = Reading { file, objects: Vec::new(), errors: Vec::new() };
    for (index, node) in nodes {
        reading.document(index, node, String::new());
    }
    if let Some(stop) = stop {
        let (document, line, message) = (stop.document, stop.line, stop.message);
        reading.errors.push(Problem { file: file.into(), document, line, path: String::new(), message });
    }
    if reading.errors.is_empty() { Ok(reading.objects) } else { Err(reading.errors) }
}

struct Reading<'a> {
    file: &'a str,
    objects: Vec<Written>,
    errors: Vec<Problem>,
}

impl Reading<'_> {
    fn document(&mut self, index: usize, node: Node, prefix: String) {
        let mut error = |line: usize, path: String, message: String| {
            self.errors.push(Problem { file: self.file.into(), document: index, line: Some(line), path, message });
        };
        if !matches!(node.value, Value::Map(_)) {
            let message = format!("expected an object with apiVersion and kind, found {}", node.describe());
            return error(node.line, prefix, message);
        }
        for (field, example) in [("apiVersion", "v1"), ("kind", "Pod")] {
            if node.text(field).unwrap_or_default().is_empty() {
                return error(
                    node.line,
                    prefix,
                    format!("the object has no {field}; write one, as in `{field}: {example}`"),
                );
            }
        }
        // What a server lists is written so as well.
        let is_list = node.text("kind").is_some_and(|kind| kind.ends_with("List"));
        match node.entry("items").map(|entry| &entry.value.value) {
            Some(Value::List(items)) if is_list => {
                for (position, item) in items.iter().enumerate() {
                    let at = format!("items[{position}]");
                    let at = if prefix.is_empty() { at } else { format!("{prefix}.{at}") };
                    self.document(index, item.clone(), at);
                }
            }
            _ => self.objects.push(Written { index, line: node.line, json: node.to_json(), prefix, node }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_of_all_kinds_with_their_lines() {
        let text = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: x/v2\n  kind: Thing\n  spec:\n    a: [1, 2]\n---\n---\napiVersion: v1\nkind: ConfigMap\n";
        let objects = written(text, "f").expect("two objects");
        let [thing, map] = objects.as_slice() else { panic!("{objects:?}") };
        let problem = thing.problem("f", "spec.a[1]", "no".into());
        assert_eq!((problem.line, problem.path.as_str(), problem.document), (Some(7), "items[0].spec.a[1]", 1));
        assert_eq!(thing.json["spec"]["a"][1], 2);
        assert_eq!((map.line, map.json["kind"].as_str()), (10, Some("ConfigMap")));
    }

    #[test]
    fn what_is_no_object_is_told() {
        for (text, wanted) in [
            ("- 1\n", "expected an object"),
            ("apiVersion: v1\n", "no kind"),
            ("kind: Pod\n", "no apiVersion"),
            ("kind: {", "not YAML"),
        ] {
            let errors = written(text, "f").expect_err(text);
            assert!(errors[0].message.contains(wanted), "{text:?}: {errors:?}");
        }
    }
}
