//! Events.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use serde_json::{Value, json};

use super::typed::{self, CREATED, age, text};
use crate::resource::{ALL_VERBS, Column, Resource};

pub(crate) static EVENTS: Resource = Resource {
    group: "",
    version: "v1",
    kind: "Event",
    plural: "events",
    singular: "event",
    short_names: &["ev"],
    namespaced: true,
    categories: &[],
    verbs: ALL_VERBS,
    subresources: &[],
    strategy: typed::plain::<Event>(),
    lists: &[],
    columns: &[
        Column::text("Last Seen", "Since it happened last"),
        Column::text("Type", "Normal or Warning"),
        Column::text("Reason", "For programs"),
        Column::text("Object", "What it is about"),
        Column::wide("Subobject", "Which part of that"),
        Column::wide("Source", "Who says so"),
        Column::text("Message", "For people"),
        Column::wide("First Seen", "Since it happened first"),
        Column { wide: true, ..Column::number("Count", "How often it happened") },
        Column::wide("Name", "Name of the event"),
    ],
    row,
    selectable: &[
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
        "reason",
        "reportingComponent",
        "source.component",
        "type",
    ],
};

fn row(event: &Value, now: Timestamp) -> Vec<Value> {
    let since = |pointers: &[&str]| {
        let known = pointers.iter().find(|pointer| !text(event, pointer, "").is_empty());
        age(event, known.unwrap_or(&CREATED), now)
    };
    let kind = text(event, "/involvedObject/kind", "").to_lowercase();
    let object = format!("{kind}/{}", text(event, "/involvedObject/name", ""));
    let host = text(event, "/source/host", "");
    let source = text(event, "/source/component", text(event, "/reportingComponent", ""));
    vec![
        json!(since(&["/lastTimestamp", "/series/lastObservedTime", "/eventTime"])),
        json!(text(event, "/type", "")),
        json!(text(event, "/reason", "")),
        json!(object),
        json!(text(event, "/involvedObject/fieldPath", "")),
        json!(if host.is_empty() { source.to_owned() } else { format!("{source}, {host}") }),
        json!(text(event, "/message", "").trim()),
        json!(since(&["/firstTimestamp", "/eventTime"])),
        json!(event["count"].as_i64().unwrap_or(1)),
        json!(text(event, "/metadata/name", "")),
    ]
}
