//! Family `selectors`: what do label and field selectors match?

use husk_api::label_selector;
use husk_core::field_selector::FieldSelector;
use husk_core::selector::{Labels, Selector};
use serde_json::{Value, json};

pub(super) fn answer(input: &Value) -> Value {
    // Only field selectors have dots in their keys, or are nothing but commas; the cases don't say which kind they are.
    match input.as_str() {
        Some(text) if is_field_selector(text) => by_field(text),
        Some(text) => by_label(Selector::parse(text)),
        None => {
            let selector = serde_json::from_value::<Option<_>>(input.clone()).expect("a label selector of the case");
            by_label(label_selector(selector.as_ref()))
        }
    }
}

fn is_field_selector(text: &str) -> bool {
    ["metadata.", "spec.", "status.", "nope"].iter().any(|field| text.trim_start_matches(',').starts_with(field))
        || text == ","
}

fn by_label<E>(selector: Result<Selector, E>) -> Value {
    let Ok(selector) = selector else { return json!({"error": true}) };
    let objects: [&[(&str, &str)]; 9] = [
        &[],
        &[("a", "b")],
        &[("a", "c")],
        &[("a", "")],
        &[("a", "b"), ("x", "y")],
        &[("x", "y")],
        &[("n", "5")],
        &[("n", "10")],
        &[("n", "z")],
    ];
    let labels = |pairs: &[(&str, &str)]| -> Labels {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    };
    let matches: Vec<usize> = (0..objects.len()).filter(|n| selector.matches(&labels(objects[*n]))).collect();
    json!({"canonical": selector.to_string(), "matches": matches})
}

fn by_field(text: &str) -> Value {
    let Ok(selector) = FieldSelector::parse(text) else { return json!({"error": true}) };
    let names = ["metadata.name", "metadata.namespace", "spec.nodeName", "spec.restartPolicy", "status.phase"];
    let objects =
        [["p", "d", "", "Always", "Pending"], ["q", "d", "n1", "Never", "Running"], ["a,b", "e", "x=y", "", "Failed"]];
    let value = |object: usize, field: &str| {
        names.iter().position(|name| *name == field).map_or("", |position| objects[object][position])
    };
    let matches: Vec<usize> =
        (0..objects.len()).filter(|object| selector.matches(|field| value(*object, field))).collect();
    json!({"canonical": selector.to_string(), "matches": matches})
}
