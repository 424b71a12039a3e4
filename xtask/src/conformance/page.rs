//! docs/conformance.md and the same in brief on the terminal.

use std::fmt::Write;

use super::rows::{Area, EXCLUSIONS, ROWS, TIERS};
use super::{State, Table};

/// How many rows are in which state.
#[derive(Default)]
struct Sum {
    covered: usize,
    excluded: usize,
    missing: Vec<String>,
}

impl Sum {
    fn of<'a>(table: &Table, rows: impl Iterator<Item = &'a str>) -> Self {
        let mut sum = Self::default();
        for row in rows {
            match table.state(row) {
                State::Covered(_) => sum.covered += 1,
                State::Excluded(_) => sum.excluded += 1,
                State::Missing => sum.missing.push(row.to_owned()),
            }
        }
        sum
    }

    fn all(&self) -> usize {
        self.covered + self.excluded + self.missing.len()
    }
}

fn by_area<'a>(table: &'a Table, area: &'a Area) -> Sum {
    Sum::of(table, area.rows.iter().map(|row| &*row.id))
}

fn by_tier(table: &Table, tier: &str) -> Sum {
    let rows = table.areas.iter().flat_map(|area| &area.rows);
    Sum::of(table, rows.filter(|row| row.tier == tier).map(|row| &*row.id))
}

/// For the terminal.
pub(crate) fn brief(table: &Table) -> String {
    let mut text = format!("{:<10} {:>7} {:>8} {:>7}\n", "", "covered", "excluded", "missing");
    let mut line = |name: &str, sum: &Sum, with_rows: bool| {
        let rows = if with_rows { sum.missing.join(" ") } else { String::new() };
        let (covered, excluded, missing) = (sum.covered, sum.excluded, sum.missing.len());
        let line = format!("{name:<10} {covered:>7} {excluded:>8} {missing:>7}  {rows}");
        text.push_str(line.trim_end());
        text.push('\n');
    };
    for area in &table.areas {
        line(&area.name, &by_area(table, area), true);
    }
    for tier in TIERS {
        line(&format!("tier {tier}"), &by_tier(table, tier), false);
    }
    for (row, reason) in &table.exclusions {
        text.push_str(&format!("excluded: {row}: {reason}\n"));
    }
    text
}

/// docs/conformance.md
pub(crate) fn page(table: &Table) -> String {
    let mut page = format!(
        "# Conformance\n\n\
         What Kubernetes promises about a pod's life, row by row, and the tests that hold Husk to it.\n\n\
         Written by `cargo xtask conformance` from [{ROWS}](rows.tsv), [{EXCLUSIONS}](conformance-exclusions.txt)\n\
         and the tags `// spec: ID` above tests. A tag counts only if its test ran and passed in the last `cargo xtask test`.\n\n\
         * **yes**: tests drive the behaviour through the public surface, in the files named.\n\
         * **excluded**: a Wasm node differs, for the reason given.\n\
         * **missing**: not there yet, or not proven yet. `cargo xtask conformance ROW` lists the tests of a row by name.\n\n"
    );
    page.push_str("| | rows | covered | excluded | missing |\n|---|---:|---:|---:|---:|\n");
    for tier in TIERS {
        let _ = writeln!(page, "{}", sum_line(&format!("**tier {tier}**"), &by_tier(table, tier)));
    }
    for area in &table.areas {
        let name = format!("[{}](#{}) {}", area.name, area.name.to_lowercase(), area.title);
        let _ = writeln!(page, "{}", sum_line(&name, &by_area(table, area)));
    }
    for area in &table.areas {
        let _ = writeln!(page, "\n## {}\n\n{}\n", area.name, area.title);
        page.push_str("| Row | Behaviour | Tier | State | Tests |\n|---|---|---|---|---|\n");
        for row in &area.rows {
            let (state, tests) = match table.state(&row.id) {
                State::Covered(_) => ("yes", links(table, &row.id)),
                State::Excluded(reason) => ("excluded", cell(reason)),
                State::Missing => ("missing", String::new()),
            };
            let (id, behaviour, tier) = (&row.id, cell(&row.behaviour), &row.tier);
            let _ = writeln!(page, "| {id} | {behaviour} | {tier} | {state} | {tests} |");
        }
    }
    page
}

fn sum_line(name: &str, sum: &Sum) -> String {
    format!("| {name} | {} | {} | {} | {} |", sum.all(), sum.covered, sum.excluded, sum.missing.len())
}

/// The files with tests of a row. Not how many tests: the page would change with every test that is written.
fn links(table: &Table, row: &str) -> String {
    let mut files: Vec<&str> = table.tests.get(row).into_iter().flatten().map(|test| &*test.file).collect();
    files.dedup();
    files.iter().map(|file| format!("[{}](../{file})", short(file))).collect::<Vec<_>>().join(", ")
}

/// `runtime/core/tests/node/init.rs` → `core node/init`
fn short(file: &str) -> String {
    let plain = file.trim_end_matches(".rs").trim_start_matches("runtime/").trim_start_matches("examples/");
    let (package, path) = plain.split_once('/').unwrap_or(("", plain));
    let path = path.trim_start_matches("tests/").trim_start_matches("src/").trim_end_matches("/mod");
    format!("{package} {path}").trim().to_owned()
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
