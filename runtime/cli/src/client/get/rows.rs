//! The server's table, with the columns that were asked for.

use serde_json::Value;

use super::Get;
use crate::client::failure::Failure;
use crate::client::output::text;
use crate::client::resources::{Resource, items};
use crate::client::table::{Columns, cell};

/// Rows of the table of one resource.
pub(super) struct Rows<'a> {
    get: &'a Get,
    resource: &'a Resource,
    shows_kind: bool,
    is_wide: bool,
    /// Which of the server's columns are shown.
    shown: Vec<usize>,
    header: Option<Vec<String>>,
    rows: Vec<Vec<String>>,
    columns: Columns,
    /// For those who want to know.
    pub(super) happened: &'static str,
}

impl<'a> Rows<'a> {
    pub(super) fn new(get: &'a Get, resource: &'a Resource, is_wide: bool, shows_kind: bool) -> Self {
        let (shown, header, rows, columns) = Default::default();
        Self { get, resource, shows_kind, is_wide, shown, header, rows, columns, happened: "" }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Whether a column stands before those of the server.
    fn shows_namespace(&self) -> bool {
        self.get.choice.all_namespaces && self.resource.is_namespaced
    }

    pub(super) fn add(&mut self, table: &Value) {
        let definitions = items(&table["columnDefinitions"]);
        if !definitions.is_empty() {
            let is_shown = |column: &Value| self.is_wide || column["priority"].as_i64().unwrap_or_default() == 0;
            self.shown = (0..definitions.len()).filter(|index| is_shown(&definitions[*index])).collect();
            // Columns come again with each page, but are shown once.
            if self.header.is_none() {
                self.header = Some(self.header_of(definitions));
            }
        }
        let rows: Vec<_> = items(&table["rows"]).iter().map(|row| self.row(row)).collect();
        self.rows.extend(rows);
    }

    fn header_of(&self, definitions: &[Value]) -> Vec<String> {
        let mut header = Vec::new();
        if self.get.output_watch_events && !self.happened.is_empty() {
            header.push("EVENT".to_owned());
        }
        if self.shows_namespace() {
            header.push("NAMESPACE".into());
        }
        header.extend(self.shown.iter().map(|index| text(&definitions[*index]["name"]).to_uppercase()));
        let last_part = |label: &String| label.rsplit('/').next().unwrap_or_default().to_uppercase();
        header.extend(self.get.label_columns.iter().map(last_part));
        if self.get.show_labels {
            header.push("LABELS".into());
        }
        header
    }

    fn row(&self, row: &Value) -> Vec<String> {
        let mut cells = Vec::new();
        if self.get.output_watch_events && !self.happened.is_empty() {
            cells.push(self.happened.to_owned());
        }
        let metadata = &row["object"]["metadata"];
        if self.shows_namespace() {
            cells.push(cell(text(&metadata["namespace"])));
        }
        let values = items(&row["cells"]);
        for (place, index) in self.shown.iter().enumerate() {
            let shown = match values.get(*index) {
                Some(Value::String(text)) => cell(text),
                Some(Value::Null) | None => "<none>".into(),
                Some(other) => other.to_string(),
            };
            let is_name = place == 0 && self.shows_kind;
            cells.push(if is_name { format!("{}/{shown}", self.resource.prefix()) } else { shown });
        }
        let labels = metadata["labels"].as_object();
        for key in &self.get.label_columns {
            cells.push(labels.and_then(|labels| labels.get(key)).map(|label| cell(text(label))).unwrap_or_default());
        }
        if self.get.show_labels {
            let pairs: Vec<String> =
                labels.into_iter().flatten().map(|(key, value)| format!("{key}={}", text(value))).collect();
            cells.push(if pairs.is_empty() { "<none>".into() } else { cell(&pairs.join(",")) });
        }
        cells
    }

    /// Writes what was added since the last time.
    pub(super) fn write(&mut self) -> Result<(), Failure> {
        let mut rows = Vec::new();
        // Shown once: what is kept is that it was.
        if let Some(header) = self.header.as_mut().map(std::mem::take)
            && !self.get.no_headers
            && !header.is_empty()
        {
            rows.push(header);
        }
        rows.append(&mut self.rows);
        self.columns.write(&rows)
    }
}
