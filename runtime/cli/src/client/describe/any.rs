//! Objects of all kinds but pods and nodes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::text::{Text, plain};
use crate::client::output::text;

pub(super) fn config_map(out: &mut Text, map: &Value) {
    head(out, map);
    out.line(0, "\nData\n====");
    for (key, value) in map["data"].as_object().into_iter().flatten() {
        out.line(0, format_args!("{key}:\n----\n{}\n", text(value)));
    }
    out.line(0, "\nBinaryData\n====");
    for (key, value) in map["binaryData"].as_object().into_iter().flatten() {
        out.line(0, format_args!("{key}: {} bytes", length(value)));
    }
    out.line(0, "");
}

/// Secrets are not shown: only how long they are.
pub(super) fn secret(out: &mut Text, secret: &Value) {
    head(out, secret);
    out.line(0, "");
    out.pair(0, "Type", text(&secret["type"]));
    out.line(0, "\nData\n====");
    for (key, value) in secret["data"].as_object().into_iter().flatten() {
        out.pair(0, key, format_args!("{} bytes", length(value)));
    }
}

pub(super) fn namespace(out: &mut Text, namespace: &Value) {
    let metadata = &namespace["metadata"];
    out.pair(0, "Name", text(&metadata["name"]));
    out.labels("Labels", &metadata["labels"]);
    out.annotations(&metadata["annotations"]);
    out.pair(0, "Status", text(&namespace["status"]["phase"]));
}

/// Whatever else: field by field.
pub(super) fn describe(out: &mut Text, object: &Value) {
    head(out, object);
    out.pair(0, "API Version", text(&object["apiVersion"]));
    out.pair(0, "Kind", text(&object["kind"]));
    for (field, value) in object.as_object().into_iter().flatten() {
        if !["apiVersion", "kind", "metadata"].contains(&field.as_str()) {
            fields(out, 0, field, value);
        }
    }
}

fn head(out: &mut Text, object: &Value) {
    let metadata = &object["metadata"];
    out.pair(0, "Name", text(&metadata["name"]));
    if !text(&metadata["namespace"]).is_empty() {
        out.pair(0, "Namespace", text(&metadata["namespace"]));
    }
    out.labels("Labels", &metadata["labels"]);
    out.annotations(&metadata["annotations"]);
}

fn fields(out: &mut Text, level: usize, field: &str, value: &Value) {
    match value {
        Value::Object(below) => {
            out.line(level, format_args!("{}:", title(field)));
            below.iter().for_each(|(field, value)| fields(out, level + 1, field, value));
        }
        Value::Array(items) => {
            out.line(level, format_args!("{}:", title(field)));
            for item in items {
                match item {
                    Value::Object(below) => {
                        below.iter().for_each(|(field, value)| fields(out, level + 1, field, value))
                    }
                    item => out.line(level + 1, plain(item)),
                }
            }
        }
        value => out.pair(level, &title(field), plain(value)),
    }
}

/// `minAvailable` is `Min Available` to people.
fn title(field: &str) -> String {
    let mut title = String::new();
    let mut before = ' ';
    for c in field.chars() {
        if title.is_empty() {
            title.extend(c.to_uppercase());
        } else {
            if c.is_uppercase() && before.is_lowercase() {
                title.push(' ');
            }
            title.push(c);
        }
        before = c;
    }
    title
}

/// Of what is written in Base64.
fn length(value: &Value) -> usize {
    STANDARD.decode(text(value)).map_or(0, |bytes| bytes.len())
}
