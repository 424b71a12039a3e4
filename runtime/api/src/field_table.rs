//! The page of fields: made from the table that the decoder walks.

use crate::schema::{Field, KINDS, Object, Support};
use crate::{MAX_BYTES, MAX_DEPTH, MAX_VALUES};

/// What every field of a manifest does here, in Markdown.
pub fn field_table_markdown() -> String {
    let mut page = intro();
    let mut sections: Vec<&Object> = KINDS.iter().map(|kind| kind.object).collect();
    let mut next = 0;
    while let Some(object) = sections.get(next).copied() {
        next += 1;
        page += &section(object);
        for nested in object.fields.iter().filter_map(described) {
            if !sections.iter().any(|known| core::ptr::eq(*known, nested)) {
                sections.push(nested);
            }
        }
    }
    page
}

fn intro() -> String {
    let kinds: Vec<String> = KINDS.iter().map(|kind| format!("* {} (`{}`)", kind.kind, kind.api_version)).collect();
    let mebibytes = MAX_BYTES >> 20;
    format!(
        "# Fields of a manifest

<!-- Made by `cargo run -p husk-api --example manifest_fields > docs/manifest-fields.md`; a test compares. -->

A manifest is YAML or JSON with any number of documents. Of a kind with a template one pod is run. These kinds are taken,
and `v1` List of them:

{}

* **yes**: the field does what Kubernetes says.
* **no effect**: the field is taken with a warning that names it.
* **yes, by an agent**: `husk agent` does what Kubernetes says; `husk run`, which has no node to place pods on, warns.
* **refused**: the field is an error, because without it the pod would do something else than it says.

What is not in the table is unknown: an error with its document, line and path, as are a repeated key and a wrong type. Values
are checked by the rules of Kubernetes 1.36. A field that is empty, `false`, or has the value it would have anyway is not
warned about. `restartPolicyRules[*].onExit.exitCodes`, the spelling of a draft, is read as `exitCodes` with a warning.

A file has at most {mebibytes} MiB; a document nests at most {MAX_DEPTH} deep and holds at most {MAX_VALUES} values once its
aliases are unfolded.
",
        kinds.join("\n")
    )
}

fn section(object: &Object) -> String {
    let rows: String = object.fields.iter().map(row).collect();
    format!("\n## {}\n\n| field | type | honoured |\n|---|---|---|\n{rows}", object.name)
}

fn row(field: &Field) -> String {
    let honoured = match field.only {
        Some((these, others)) => {
            let shown = these.iter().filter(|value| !value.is_empty()).map(|value| format!("`{value}`"));
            format!("{}: yes; others: {}", shown.collect::<Vec<_>>().join(", "), support(others))
        }
        None => support(field.support),
    };
    let ty = match described(field) {
        Some(object) => field.ty.column().replace(object.name, &format!("[{0}](#{1})", object.name, anchor(object))),
        None => field.ty.column(),
    };
    format!("| `{}` | {ty} | {honoured} |\n", field.name)
}

fn support(support: Support) -> String {
    match support {
        Support::Honoured => "yes".into(),
        Support::Warned(what) => format!("no effect: {what}"),
        Support::WarnedAlone(what) => format!("yes, by an agent; no effect with `husk run`: {what}"),
        Support::Rejected(what) => format!("refused: {what}"),
    }
}

/// The object of a field, if it has a section of its own: what is in a field that does nothing does nothing either.
fn described(field: &Field) -> Option<&'static Object> {
    field.ty.nested().filter(|_| matches!(field.support, Support::Honoured | Support::WarnedAlone(_)))
}

fn anchor(object: &Object) -> String {
    object.name.to_lowercase()
}
