//! Text with tabs, which become columns: each as wide as what stands in it on neighbouring lines.

use std::fmt::Display;

use jiff::tz::TimeZone;
use serde_json::Value;

use crate::client::happenings::time;
use crate::client::output::text;

/// Spaces between two columns.
const PADDING: usize = 2;
/// Longer annotations are cut.
const LONGEST_ANNOTATION: usize = 140;
/// What nobody wants to read.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

pub(super) const NONE: &str = "<none>";

/// A text that grows line by line.
#[derive(Debug, Default)]
pub(super) struct Text(String);

impl Text {
    /// A line, indented by so many levels.
    pub(super) fn line(&mut self, level: usize, line: impl Display) {
        self.0.push_str(&"  ".repeat(level));
        // What others wrote may not move the cursor; tabs and ends of lines are ours.
        self.0.extend(line.to_string().chars().map(|c| if c.is_control() && c != '\t' && c != '\n' { '�' } else { c }));
        self.0.push('\n');
    }

    /// A name and a value.
    pub(super) fn pair(&mut self, level: usize, name: &str, value: impl Display) {
        self.line(level, format_args!("{name}:\t{value}"));
    }

    /// Keys with values, one on a line.
    pub(super) fn labels(&mut self, title: &str, labels: &Value) {
        let pairs: Vec<String> =
            labels.as_object().into_iter().flatten().map(|(key, value)| format!("{key}={}", text(value))).collect();
        self.below(title, &pairs);
    }

    /// Lines, the first beside the title.
    pub(super) fn below(&mut self, title: &str, lines: &[String]) {
        let Some((first, rest)) = lines.split_first() else { return self.pair(0, title, NONE) };
        self.pair(0, title, first);
        rest.iter().for_each(|line| self.line(0, format_args!("\t{line}")));
    }

    /// The same for annotations, which may be long.
    pub(super) fn annotations(&mut self, annotations: &Value) {
        let all = annotations.as_object().into_iter().flatten().filter(|(key, _)| *key != LAST_APPLIED);
        let mut lines = Vec::new();
        for (key, value) in all {
            let value = text(value).trim_end_matches('\n');
            if key.len() + value.len() + 2 > LONGEST_ANNOTATION || value.contains('\n') {
                lines.push(format!("{key}:"));
                lines.extend(value.split('\n').map(|line| format!("  {}", shortened(line, LONGEST_ANNOTATION - 2))));
            } else {
                lines.push(format!("{key}: {value}"));
            }
        }
        self.below("Annotations", &lines);
    }

    /// With columns in place of tabs.
    pub(super) fn aligned(&self) -> String {
        let lines: Vec<Vec<&str>> = self.0.lines().map(|line| line.split('\t').collect()).collect();
        let mut widths: Vec<Vec<usize>> =
            lines.iter().map(|cells| cells.iter().map(|cell| cell.chars().count() + PADDING).collect()).collect();
        let columns = lines.iter().map(Vec::len).max().unwrap_or_default();
        for column in 0..columns {
            let mut begin = 0;
            while begin < lines.len() {
                // The last cell of a line is in no column.
                let is_in = |line: &Vec<&str>| line.len() > column + 1;
                let run = lines[begin..].iter().take_while(|line| is_in(line)).count();
                let block = &mut widths[begin..begin + run];
                let widest = block.iter().map(|line| line[column]).max().unwrap_or_default();
                block.iter_mut().for_each(|line| line[column] = widest);
                begin += run.max(1);
            }
        }
        let mut aligned = String::new();
        for (cells, widths) in lines.iter().zip(&widths) {
            for (place, (cell, width)) in cells.iter().zip(widths).enumerate() {
                aligned.push_str(cell);
                if place + 1 < cells.len() {
                    aligned.extend(std::iter::repeat_n(' ', width - cell.chars().count()));
                }
            }
            aligned.push('\n');
        }
        aligned
    }
}

fn shortened(line: &str, longest: usize) -> String {
    if line.chars().count() <= longest {
        return line.to_owned();
    }
    line.chars().take(longest - 3).chain("...".chars()).collect()
}

/// A time as people of here read it, as in `Mon, 30 Nov 2026 05:44:41 +0000`.
pub(super) fn date(value: &Value) -> String {
    match time(value) {
        Some(time) => time.to_zoned(TimeZone::system()).strftime("%a, %d %b %Y %H:%M:%S %z").to_string(),
        None => "<unset>".into(),
    }
}

/// As people write it.
pub(super) fn truth(value: &Value) -> &'static str {
    if value == true { "True" } else { "False" }
}

/// A value as it is written, without quotes.
pub(super) fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tabs_become_columns_of_neighbours() {
        let mut text = Text::default();
        text.pair(0, "Name", "web");
        text.pair(0, "Namespace", "default");
        text.labels("Labels", &json!({"a": "1", "b": "2"}));
        text.labels("None", &json!(null));
        text.line(0, "Containers:");
        text.pair(1, "x", "y");
        text.line(1, "a\tbb\tc");
        text.line(1, "\x1b[2J\tb\tc");
        let wanted = "Name:       web\nNamespace:  default\nLabels:     a=1\n            b=2\nNone:       <none>\nContainers:\n  x:    y\n  a     bb  c\n  �[2J  b   c\n";
        assert_eq!(text.aligned(), wanted);
    }

    #[test]
    fn long_annotations_are_cut() {
        let mut text = Text::default();
        text.annotations(&json!({"a": "x", "b": "1\n2", "c": "y".repeat(200), LAST_APPLIED: "{}"}));
        let wanted = format!(
            "Annotations:  a: x\n              b:\n                1\n                2\n              c:\n                {}...\n",
            "y".repeat(135)
        );
        assert_eq!(text.aligned(), wanted);
    }
}
