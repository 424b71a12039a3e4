//! The paths of `kubectl`: `{.status.phase}`, `{.items[*].metadata.name}`, `{range .items[*]}{.metadata.name}{"\n"}{end}`.

mod parse;

use std::cmp::Ordering;

use serde_json::Value;

/// A template: texts, and paths to what stands between them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct JsonPath(Vec<Piece>);

#[derive(Clone, Debug, PartialEq)]
enum Piece {
    Text(String),
    Path(Vec<Step>),
    /// The template for each of what the path leads to.
    Range(Vec<Step>, Vec<Piece>),
}

/// One step of a path.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    Field(String),
    /// All of these.
    Union(Vec<Vec<Step>>),
    /// The fields of that name, however deep; without a name everything.
    Deep(Option<String>),
    /// These items; from the end if less than 0.
    Items(Vec<i64>),
    Slice {
        from: Option<i64>,
        to: Option<i64>,
        step: i64,
    },
    All,
    Filter(Filter),
}

/// Which items of a list.
#[derive(Clone, Debug, PartialEq)]
enum Filter {
    Exists(Vec<Step>),
    Compare(Operand, Operator, Operand),
}

#[derive(Clone, Debug, PartialEq)]
enum Operand {
    Path(Vec<Step>),
    Value(Value),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl JsonPath {
    /// Reads a template; a path may stand there without braces.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        parse::template(text).map(Self)
    }

    /// What its first path leads to.
    pub(crate) fn find<'a>(&self, object: &'a Value) -> Vec<&'a Value> {
        let path = self.0.iter().find_map(|piece| match piece {
            Piece::Path(path) => Some(path),
            _ => None,
        });
        path.map(|path| walk(path, object)).unwrap_or_default()
    }

    /// The template filled in.
    pub(crate) fn render(&self, object: &Value) -> String {
        let mut text = String::new();
        render(&self.0, object, &mut text);
        text
    }
}

/// A value as it is shown.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn render(pieces: &[Piece], object: &Value, text: &mut String) {
    for piece in pieces {
        match piece {
            Piece::Text(piece) => text.push_str(piece),
            Piece::Path(path) => {
                let found: Vec<String> = walk(path, object).into_iter().map(shown).collect();
                text.push_str(&found.join(" "));
            }
            Piece::Range(path, pieces) => walk(path, object).into_iter().for_each(|item| render(pieces, item, text)),
        }
    }
}

fn walk<'a>(path: &[Step], object: &'a Value) -> Vec<&'a Value> {
    path.iter().fold(vec![object], |found, step| found.into_iter().flat_map(|value| step.take(value)).collect())
}

impl Step {
    fn take<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        let list = || value.as_array().map(Vec::as_slice).unwrap_or_default();
        match self {
            Self::Field(name) => value.get(name).into_iter().collect(),
            Self::Union(paths) => paths.iter().flat_map(|path| walk(path, value)).collect(),
            Self::Deep(name) => {
                let mut found = Vec::new();
                deep(name.as_deref(), value, &mut found);
                found
            }
            Self::Items(places) => {
                let at = |place: &i64| usize::try_from(place_of(*place, list().len())).ok();
                places.iter().filter_map(|place| at(place).and_then(|place| list().get(place))).collect()
            }
            Self::Slice { from, to, step } => {
                let length = list().len();
                let end = |place: i64| usize::try_from(place_of(place, length)).unwrap_or_default().min(length);
                let (from, to) = (end(from.unwrap_or(0)), to.map_or(length, end));
                let step = usize::try_from(*step).unwrap_or(1).max(1);
                list().get(from..to).unwrap_or_default().iter().step_by(step).collect()
            }
            Self::All => match value {
                Value::Array(items) => items.iter().collect(),
                Value::Object(fields) => fields.values().collect(),
                _ => Vec::new(),
            },
            Self::Filter(filter) => list().iter().filter(|item| filter.takes(item)).collect(),
        }
    }
}

/// Counted from the beginning.
fn place_of(place: i64, length: usize) -> i64 {
    if place < 0 { place + i64::try_from(length).unwrap_or(i64::MAX) } else { place }
}

fn deep<'a>(name: Option<&str>, value: &'a Value, found: &mut Vec<&'a Value>) {
    match name {
        None => found.push(value),
        Some(name) => found.extend(value.get(name)),
    }
    match value {
        Value::Array(items) => items.iter().for_each(|item| deep(name, item, found)),
        Value::Object(fields) => fields.values().for_each(|field| deep(name, field, found)),
        _ => {}
    }
}

impl Filter {
    fn takes(&self, item: &Value) -> bool {
        match self {
            Self::Exists(path) => !walk(path, item).is_empty(),
            Self::Compare(left, operator, right) => match (left.of(item), right.of(item)) {
                (Some(left), Some(right)) => operator.holds(left, right),
                _ => false,
            },
        }
    }
}

impl Operand {
    fn of<'a>(&'a self, item: &'a Value) -> Option<&'a Value> {
        match self {
            Self::Path(path) => walk(path, item).first().copied(),
            Self::Value(value) => Some(value),
        }
    }
}

impl Operator {
    fn holds(self, left: &Value, right: &Value) -> bool {
        let order = match (left.as_f64(), right.as_f64()) {
            (Some(left), Some(right)) => left.partial_cmp(&right),
            _ if left == right => Some(Ordering::Equal),
            _ => left.as_str().zip(right.as_str()).map(|(left, right)| left.cmp(right)),
        };
        match self {
            Self::Equal => order == Some(Ordering::Equal),
            Self::NotEqual => order != Some(Ordering::Equal),
            Self::Less => order == Some(Ordering::Less),
            Self::LessOrEqual => matches!(order, Some(Ordering::Less | Ordering::Equal)),
            Self::Greater => order == Some(Ordering::Greater),
            Self::GreaterOrEqual => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn templates_are_filled_in() {
        let object = json!({
            "kind": "List",
            "items": [
                {"metadata": {"name": "a", "labels": {"app.kubernetes.io/name": "x"}}, "n": 1, "conditions": [{"type": "Ready", "status": "True"}, {"type": "Other", "status": "False"}]},
                {"metadata": {"name": "b"}, "n": 2, "conditions": []},
                {"metadata": {"name": "c"}, "n": 3.5},
            ],
        });
        for (template, wanted) in [
            ("{.kind}", "List"),
            ("kind", "List"),
            (".kind", "List"),
            ("{$.kind}!", "List!"),
            ("{.items[*].metadata.name}", "a b c"),
            ("{.items[0].metadata.name}{\"\\t\"}{.items[-1:].n}", "a\t3.5"),
            ("{.items[0:3:2].n}", "1 3.5"),
            ("{.items[0,2].metadata.name}", "a c"),
            ("{range .items[*]}{.metadata.name}={.n}{'\\n'}{end}end", "a=1\nb=2\nc=3.5\nend"),
            (r"{.items[0].metadata.labels.app\.kubernetes\.io/name}", "x"),
            (r"{.items[0].metadata.labels['app\.kubernetes\.io/name']}", "x"),
            ("{.items[*]['metadata.name', 'n']}", "a 1 b 2 c 3.5"),
            ("{.items[0].conditions[?(@.type==\"Ready\")].status}", "True"),
            ("{.items[?(@.n>=2)].metadata.name}", "b c"),
            ("{.items[?(@.metadata.labels)].metadata.name}", "a"),
            ("{.items[?(@.metadata.name != 'b')].n}", "1 3.5"),
            ("{..name}", "a b c"),
            ("{.items[1].metadata}", "{\"name\":\"b\"}"),
            ("{.missing.at.all}", ""),
            ("{.items[7].n}", ""),
        ] {
            let path = JsonPath::parse(template).unwrap_or_else(|error| panic!("{template}: {error}"));
            assert_eq!(path.render(&object), wanted, "{template}");
        }
    }

    #[test]
    fn what_is_malformed_is_told() {
        for template in ["{.a", "{.a[}", "{.a[?(@.b==)]}", "{range .a}", "{end}", "{.a[x]}", "{'a}", "{.a[1}", "{.a b}"]
        {
            assert!(JsonPath::parse(template).is_err(), "{template}");
        }
    }
}
