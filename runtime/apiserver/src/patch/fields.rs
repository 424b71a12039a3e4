//! Sets of fields, as `managedFields` has them.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::{Map, Value};

use super::lists::Lists;
use crate::resource::ListMerge;

/// One step to a field. Its text is that of `fieldsV1`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    /// A field of an object.
    Field(String),
    /// An item of a list, by the field that tells it apart and the JSON of its value.
    Item(String, String),
    /// A value in a set, by its JSON.
    Member(String),
}

pub(crate) type Path = Vec<Step>;

/// Fields by their paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldSet(pub(crate) BTreeSet<Path>);

/// What everybody knows of an object, so that nobody owns it.
const NOBODYS: [&str; 12] = [
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
    "managedFields",
    "apiVersion",
    "kind",
];

impl FieldSet {
    /// All fields of an object.
    pub(crate) fn of(object: &Value, lists: Lists) -> Self {
        let mut set = Self::default();
        for (key, value) in object.as_object().into_iter().flatten() {
            match key.as_str() {
                "apiVersion" | "kind" => {}
                "metadata" => {
                    for (field, value) in value.as_object().into_iter().flatten() {
                        if !NOBODYS.contains(&field.as_str()) {
                            set.add(value, &mut vec![Step::Field(key.clone()), Step::Field(field.clone())], lists);
                        }
                    }
                }
                _ => set.add(value, &mut vec![Step::Field(key.clone())], lists),
            }
        }
        set
    }

    fn add(&mut self, value: &Value, path: &mut Path, lists: Lists) {
        match (value, lists.rule_of(path)) {
            (Value::Null, _) => {}
            (Value::Object(fields), _) if !fields.is_empty() => {
                for (key, value) in fields {
                    path.push(Step::Field(key.clone()));
                    self.add(value, path, lists);
                    path.pop();
                }
            }
            (Value::Array(items), Some(rule)) => {
                for item in items {
                    path.push(step_to(item, rule));
                    self.0.insert(path.clone());
                    if item.is_object() {
                        self.add(item, path, lists);
                    }
                    path.pop();
                }
            }
            _ => {
                self.0.insert(path.clone());
            }
        }
    }

    /// Reads `fieldsV1`.
    pub(crate) fn read(fields: &Value) -> Self {
        let mut set = Self::default();
        set.read_below(fields, &mut Vec::new());
        set
    }

    fn read_below(&mut self, fields: &Value, path: &mut Path) {
        let below = fields.as_object().filter(|fields| !fields.is_empty());
        let Some(below) = below else {
            if !path.is_empty() {
                self.0.insert(path.clone());
            }
            return;
        };
        for (key, fields) in below {
            if key == "." {
                self.0.insert(path.clone());
            } else if let Some(step) = Step::read(key) {
                path.push(step);
                self.read_below(fields, path);
                path.pop();
            }
        }
    }

    /// Writes `fieldsV1`.
    pub(crate) fn written(&self) -> Value {
        let mut root = Map::new();
        for path in &self.0 {
            write(path, &mut root);
        }
        Value::Object(root)
    }
}

impl Step {
    fn read(text: &str) -> Option<Self> {
        let (kind, rest) = text.split_once(':')?;
        match kind {
            "f" => Some(Self::Field(rest.into())),
            "v" => Some(Self::Member(rest.into())),
            "k" => {
                let key: Map<String, Value> = serde_json::from_str(rest).ok()?;
                let (name, value) = key.into_iter().next()?;
                Some(Self::Item(name, value.to_string()))
            }
            _ => None,
        }
    }

    /// The place of the item in a list.
    pub(crate) fn place(&self, items: &[Value]) -> Option<usize> {
        items.iter().position(|item| match self {
            Self::Field(_) => false,
            Self::Item(name, value) => written(&item[name]) == *value,
            Self::Member(value) => written(item) == *value,
        })
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, "f:{name}"),
            Self::Item(name, value) => write!(f, "k:{{{}:{value}}}", Value::from(name.as_str())),
            Self::Member(value) => write!(f, "v:{value}"),
        }
    }
}

fn write(path: &[Step], fields: &mut Map<String, Value>) {
    let Some((step, rest)) = path.split_first() else { return };
    let below = fields.entry(step.to_string()).or_insert_with(|| Value::Object(Map::new()));
    let Value::Object(below) = below else { return };
    if rest.is_empty() && matches!(step, Step::Item(..)) {
        below.insert(".".into(), Value::Object(Map::new()));
    }
    write(rest, below);
}

/// As people read it: `.spec.containers[name="main"].image`.
pub(crate) fn shown(path: &[Step]) -> String {
    let step = |step: &Step| match step {
        Step::Field(name) => format!(".{name}"),
        Step::Item(name, value) => format!("[{name}={value}]"),
        Step::Member(value) => format!("[={value}]"),
    };
    path.iter().map(step).collect()
}

/// What stands at a path.
pub(crate) fn value_at<'a>(object: &'a Value, path: &[Step]) -> Option<&'a Value> {
    path.iter().try_fold(object, |value, step| match step {
        Step::Field(name) => value.get(name),
        step => value.as_array().and_then(|items| items.get(step.place(items)?)),
    })
}

/// Removes what stands at a path.
pub(crate) fn remove_at(object: &mut Value, path: &[Step]) {
    let Some((last, parents)) = path.split_last() else { return };
    let parent = parents.iter().try_fold(object, |value, step| match step {
        Step::Field(name) => value.get_mut(name),
        step => {
            let items = value.as_array_mut()?;
            let place = step.place(items)?;
            items.get_mut(place)
        }
    });
    match (parent, last) {
        (Some(Value::Object(fields)), Step::Field(name)) => {
            fields.remove(name);
        }
        (Some(Value::Array(items)), step) => {
            if let Some(place) = step.place(items) {
                items.remove(place);
            }
        }
        _ => {}
    }
}

/// Values are told apart by their JSON.
fn written(value: &Value) -> String {
    value.to_string()
}

fn step_to(item: &Value, rule: ListMerge) -> Step {
    match rule {
        ListMerge::Set => Step::Member(written(item)),
        ListMerge::ByKey(name) | ListMerge::ByKeyRetaining(name) => Step::Item(name.into(), written(&item[name])),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::resources::PODS;

    #[test]
    fn a_set_is_written_and_read() {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "a", "labels": {"app": "a"}, "finalizers": ["x/y"]},
            "spec": {"containers": [{"name": "c", "args": ["1"]}], "tolerations": [{"key": "k"}]},
        });
        let set = FieldSet::of(&pod, Lists(PODS.lists));
        let expected = json!({
            "f:metadata": {"f:labels": {"f:app": {}}, "f:finalizers": {"v:\"x/y\"": {}}},
            "f:spec": {
                "f:containers": {"k:{\"name\":\"c\"}": {".": {}, "f:name": {}, "f:args": {}}},
                "f:tolerations": {},
            },
        });
        assert_eq!(set.written(), expected);
        assert_eq!(FieldSet::read(&expected), set);
        let image = set.0.iter().find(|path| shown(path).ends_with("args")).expect("it is there");
        assert_eq!(shown(image), ".spec.containers[name=\"c\"].args");
        assert_eq!(value_at(&pod, image), Some(&json!(["1"])));
    }

    #[test]
    fn nonsense_is_no_field() {
        for fields in [json!(null), json!(5), json!({"x": {}}), json!({"k:{": {}}), json!({"k:{}": {}})] {
            assert_eq!(FieldSet::read(&fields), FieldSet::default(), "{fields}");
        }
    }
}
