//! Volumes, as `kubectl describe pod` writes them.

use serde_json::Value;

use super::text::{NONE, Text, plain};
use crate::client::output::text;
use crate::client::resources::items;

/// Kinds of volumes: the field, what it is, and what is told about it: name, field, and what stands for nothing.
type Row = (&'static str, &'static str, &'static [(&'static str, &'static str, &'static str)]);

const KINDS: [Row; 7] = [
    ("hostPath", "HostPath (bare host directory volume)", &[("Path", "path", ""), ("HostPathType", "type", NONE)]),
    (
        "emptyDir",
        "EmptyDir (a temporary directory that shares a pod's lifetime)",
        &[("Medium", "medium", ""), ("SizeLimit", "sizeLimit", "<unset>")],
    ),
    (
        "secret",
        "Secret (a volume populated by a Secret)",
        &[("SecretName", "secretName", ""), ("Optional", "optional", "false")],
    ),
    (
        "configMap",
        "ConfigMap (a volume populated by a ConfigMap)",
        &[("Name", "name", ""), ("Optional", "optional", "false")],
    ),
    (
        "image",
        "Image (a container image or OCI artifact)",
        &[("Reference", "reference", ""), ("PullPolicy", "pullPolicy", "")],
    ),
    ("downwardAPI", "DownwardAPI (a volume populated by information about the pod)", &[]),
    ("projected", "Projected (a volume that contains injected data from multiple sources)", &[]),
];

pub(super) fn describe(out: &mut Text, volumes: &[Value]) {
    if volumes.is_empty() {
        return out.pair(0, "Volumes", NONE);
    }
    out.line(0, "Volumes:");
    for volume in volumes {
        out.line(1, format_args!("{}:", text(&volume["name"])));
        let Some((field, kind, told)) = KINDS.iter().find(|(field, ..)| !volume[field].is_null()) else {
            out.line(1, "<unknown>");
            continue;
        };
        let source = &volume[field];
        out.pair(2, "Type", kind);
        for (name, field, none) in *told {
            let value = match &source[field] {
                Value::Null => (*none).to_owned(),
                value => plain(value),
            };
            out.pair(2, name, value);
        }
        match *field {
            "downwardAPI" => {
                out.line(2, "Items:");
                for item in items(&source["items"]) {
                    let from = match &item["fieldRef"] {
                        Value::Null => text(&item["resourceFieldRef"]["resource"]),
                        field => text(&field["fieldPath"]),
                    };
                    out.line(3, format_args!("{from} -> {}", text(&item["path"])));
                }
            }
            "projected" => items(&source["sources"]).iter().for_each(|source| projected(out, source)),
            _ => {}
        }
    }
}

fn projected(out: &mut Text, source: &Value) {
    let optional = |source: &Value| source["optional"] == true;
    for (title, field) in [("SecretName", "secret"), ("ConfigMapName", "configMap")] {
        if let source @ Value::Object(_) = &source[field] {
            out.pair(2, title, text(&source["name"]));
            out.pair(2, "Optional", optional(source));
        }
    }
    if !source["downwardAPI"].is_null() {
        out.pair(2, "DownwardAPI", true);
    }
    if let token @ Value::Object(_) = &source["serviceAccountToken"] {
        out.pair(2, "TokenExpirationSeconds", token["expirationSeconds"].as_i64().unwrap_or_default());
    }
}
