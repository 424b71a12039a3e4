//! Forms of output: tables, YAML, JSON, names.

use std::fmt::Display;
use std::io::{self, Write};

use serde::Serialize;
use serde_json::{Value, json};

use super::failure::Failure;
use super::jsonpath::{self, JsonPath};
use super::resources::Resource;
use super::table::{Columns, cell};

/// How objects are shown.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Form {
    /// A table, also with the columns that are for wide screens.
    Table {
        /// With all columns.
        is_wide: bool,
    },
    /// As `-o json`.
    Json,
    /// As `-o yaml`.
    Yaml,
    /// `TYPE/NAME`.
    Name,
    /// A template, filled in.
    JsonPath(JsonPath),
    /// Columns of one's own, with their headings.
    Columns(Vec<(String, JsonPath)>),
}

impl Form {
    /// For clap.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let template = text.split_once('=').filter(|(form, _)| ["jsonpath", "custom-columns"].contains(form));
        if let Some((form, template)) = template {
            return match form {
                "jsonpath" => JsonPath::parse(template).map(Self::JsonPath),
                _ => columns(template).map(Self::Columns),
            };
        }
        Ok(match text {
            "" => Self::Table { is_wide: false },
            "wide" => Self::Table { is_wide: true },
            "json" => Self::Json,
            "yaml" => Self::Yaml,
            "name" => Self::Name,
            _ => {
                return Err(format!(
                    "unable to match a printer suitable for the output format {text:?}, allowed formats are: custom-columns=,json,jsonpath=,name,wide,yaml"
                ));
            }
        })
    }
}

/// `HEADING:PATH,HEADING:PATH`.
fn columns(text: &str) -> Result<Vec<(String, JsonPath)>, String> {
    let column = |column: &str| {
        let Some((heading, path)) =
            column.split_once(':').filter(|(heading, path)| !heading.is_empty() && !path.is_empty())
        else {
            return Err(format!("unexpected custom-columns spec: {column:?}, expected <header>:<json-path-expr>"));
        };
        Ok((heading.to_owned(), JsonPath::parse(path)?))
    };
    text.split(',').map(column).collect()
}

/// Writes objects in a form other than the server's table.
#[derive(Debug)]
pub(crate) struct Printer {
    form: Form,
    keeps_managed_fields: bool,
    has_headings: bool,
    written: usize,
    table: Columns,
}

impl Printer {
    /// In that form.
    pub(crate) fn new(form: Form) -> Self {
        Self { form, keeps_managed_fields: false, has_headings: true, written: 0, table: Columns::default() }
    }

    /// Columns without their headings.
    pub(crate) fn no_headers(mut self, is_without: bool) -> Self {
        self.has_headings = !is_without;
        self
    }

    /// Shows who manages which field as well.
    pub(crate) fn keep_managed_fields(mut self, keeps: bool) -> Self {
        self.keeps_managed_fields = keeps;
        self
    }

    /// Writes several objects as one list.
    pub(crate) fn list(&mut self, objects: Vec<(Value, &Resource)>) -> Result<(), Failure> {
        if let Form::Columns(columns) = &self.form {
            let rows = objects.iter().map(|(object, _)| row(columns, object)).collect();
            return self.rows(rows);
        }
        if self.form == Form::Name {
            return objects.iter().try_for_each(|(object, resource)| self.object(object, resource));
        }
        let items: Vec<Value> = objects.iter().map(|(object, _)| self.shown(object)).collect();
        self.whole(&json!({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": items}))
    }

    /// Writes an object.
    pub(crate) fn object(&mut self, object: &Value, resource: &Resource) -> Result<(), Failure> {
        match &self.form {
            Form::Columns(columns) => {
                let rows = vec![row(columns, object)];
                self.rows(rows)
            }
            Form::Name => line(format_args!("{}/{}", resource.prefix(), name_of(object))),
            _ => self.whole(&self.shown(object)),
        }
    }

    /// Writes what happened to an object, if the form has a place for it.
    pub(crate) fn event(&mut self, happened: &str, object: &Value, resource: &Resource) -> Result<(), Failure> {
        match self.form {
            Form::Json | Form::Yaml => self.whole(&json!({"type": happened, "object": self.shown(object)})),
            _ => self.object(object, resource),
        }
    }

    fn rows(&mut self, mut rows: Vec<Vec<String>>) -> Result<(), Failure> {
        if let Form::Columns(columns) = &self.form
            && self.written == 0
            && self.has_headings
        {
            rows.insert(0, columns.iter().map(|(heading, _)| heading.clone()).collect());
        }
        self.written += 1;
        self.table.write(&rows)
    }

    fn shown(&self, object: &Value) -> Value {
        let mut shown = object.clone();
        if !self.keeps_managed_fields
            && let Some(metadata) = shown["metadata"].as_object_mut()
        {
            metadata.remove("managedFields");
        }
        shown
    }

    fn whole(&mut self, value: &Value) -> Result<(), Failure> {
        let text = match &self.form {
            Form::Json => pretty(value)?,
            // No end of a line that isn't in the template.
            Form::JsonPath(template) => return bytes(template.render(value).as_bytes()),
            _ if self.written > 0 => format!("---\n{}", yaml(value)?),
            _ => yaml(value)?,
        };
        self.written += 1;
        line(text.trim_end_matches('\n'))
    }
}

fn row(columns: &[(String, JsonPath)], object: &Value) -> Vec<String> {
    let shown = |(_, path): &(String, JsonPath)| {
        let found: Vec<String> = path.find(object).into_iter().map(jsonpath::shown).collect();
        if found.is_empty() { "<none>".to_owned() } else { cell(&found.join(",")) }
    };
    columns.iter().map(shown).collect()
}

/// Four spaces, as `kubectl` has it.
fn pretty(value: &Value) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(b"    ");
    value.serialize(&mut serde_json::Serializer::with_formatter(&mut bytes, formatter)).map_err(Failure::other)?;
    String::from_utf8(bytes).map_err(Failure::other)
}

fn yaml(value: &Value) -> Result<String, Failure> {
    let options = serde_saphyr::ser_options! { folded_wrap_chars: usize::MAX };
    serde_saphyr::to_string_with_options(value, options).map_err(Failure::other)
}

/// `metadata.name`.
pub(crate) fn name_of(object: &Value) -> &str {
    text(&object["metadata"]["name"])
}

/// A text; empty if it isn't one.
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Writes a line to standard output.
pub(crate) fn line(line: impl Display) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

/// Writes bytes to standard output.
pub(crate) fn bytes(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    Ok(out.flush()?)
}
