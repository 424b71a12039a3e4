//! Columns of text, aligned as `kubectl` does it.

use super::failure::Failure;
use super::output::line;

/// Spaces between two columns.
const PADDING: usize = 3;
/// No column is narrower, with its padding.
const NARROWEST: usize = 6;

/// Writes rows; columns never get narrower, so that rows which come later stand below the earlier ones.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    widths: Vec<usize>,
}

impl Columns {
    /// The rows as lines.
    pub(crate) fn lines(&mut self, rows: &[Vec<String>]) -> Vec<String> {
        for row in rows {
            for (column, cell) in row.iter().enumerate() {
                let width = cell.chars().count() + PADDING;
                match self.widths.get_mut(column) {
                    Some(known) => *known = width.max(*known),
                    None => self.widths.push(width.max(NARROWEST)),
                }
            }
        }
        rows.iter().map(|row| self.line(row)).collect()
    }

    fn line(&self, row: &[String]) -> String {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            line.push_str(cell);
            if column + 1 < row.len() {
                let width = self.widths.get(column).copied().unwrap_or_default();
                line.extend(std::iter::repeat_n(' ', width.saturating_sub(cell.chars().count())));
            }
        }
        line
    }

    /// Writes rows to standard output.
    pub(crate) fn write(&mut self, rows: &[Vec<String>]) -> Result<(), Failure> {
        self.lines(rows).iter().try_for_each(line)
    }
}

/// A cell: one line, without what would move the cursor.
pub(crate) fn cell(text: &str) -> String {
    let (first, is_cut) = match text.find(['\n', '\r', '\x0c']) {
        Some(end) => (&text[..end], true),
        None => (text, false),
    };
    // As it is but for what a terminal would take as an order.
    let mut cell: String = first.chars().map(|c| if c.is_control() && c != '\t' { '�' } else { c }).collect();
    if is_cut {
        cell.push_str("...");
    }
    cell
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cells: &[&str]) -> Vec<String> {
        cells.iter().map(|cell| (*cell).to_owned()).collect()
    }

    #[test]
    fn columns_stand_below_each_other() {
        let mut columns = Columns::default();
        let lines = columns.lines(&[row(&["NAME", "READY", "AGE"]), row(&["a", "1/1", "5s"])]);
        assert_eq!(lines, ["NAME   READY   AGE", "a      1/1     5s"]);
        assert_eq!(columns.lines(&[row(&["bé", "", "6s"])]), ["bé             6s"]);
        assert_eq!(columns.lines(&[row(&["x"])]), ["x"]);
    }

    #[test]
    fn a_cell_is_one_line() {
        assert_eq!(cell("one\ntwo"), "one...");
        assert_eq!(cell("\x1b[2Jx"), "�[2Jx");
    }
}
