//! `cargo xtask conformance`: which rows of the lifecycle contract have a test.
//!
//! A test that drives a row through the public surface carries `// spec: ID` on a line above its `#[test]`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use pico_args::Arguments;

use crate::run::root;
use crate::{Verb, no_more};

pub(crate) const VERB: Verb = Verb {
    name: "conformance",
    summary: "List the rows of the lifecycle contract that have a test",
    help: "\
Usage: cargo xtask conformance [--files]

Looks for `// spec: ID` above tests. With --files it says where each row is tested.",
    run: conformance,
};

/// Row → places.
type Table = BTreeMap<String, Vec<String>>;

fn conformance(mut arguments: Arguments) -> Result<()> {
    let with_files = arguments.contains("--files");
    no_more(arguments)?;
    let table = tagged_rows()?;
    let mut areas: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for row in table.keys() {
        let (area, _) = row.rsplit_once('-').unwrap_or((row, ""));
        areas.entry(area).or_default().push(row);
    }
    for (area, rows) in &areas {
        println!("{area:<10} {:>3}  {}", rows.len(), rows.join(" "));
        if with_files {
            for row in rows {
                println!("  {row:<11} {}", table[*row].join(" "));
            }
        }
    }
    let tests: usize = table.values().map(Vec::len).sum();
    println!("{} rows have a test, {tests} tags in all", table.len());
    Ok(())
}

fn tagged_rows() -> Result<Table> {
    let mut table = Table::new();
    let root = root();
    for part in ["runtime", "tests", "guest-sdk", "examples"] {
        for file in rust_files(&root.join(part)) {
            let text = fs::read_to_string(&file).with_context(|| format!("could not read {}", file.display()))?;
            let name = file.strip_prefix(&root).unwrap_or(&file).display().to_string();
            let lines: Vec<&str> = text.lines().collect();
            for (number, line) in lines.iter().enumerate() {
                if !is_above_a_test(&lines[number + 1..]) {
                    continue;
                }
                let Some(rows) = line.trim_start().strip_prefix("// spec:") else { continue };
                for row in rows.split([',', ' ']).filter(|row| is_row(row)) {
                    table.entry(row.to_owned()).or_default().push(format!("{name}:{}", number + 1));
                }
            }
        }
    }
    Ok(table)
}

/// Whether nothing but comments and attributes is between here and a `#[test]`.
fn is_above_a_test(lines: &[&str]) -> bool {
    let mut lines =
        lines.iter().map(|line| line.trim()).take_while(|line| line.starts_with("//") || line.starts_with("#["));
    lines.any(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test"))
}

/// `INIT-03` and the like.
fn is_row(word: &str) -> bool {
    word.split_once('-').is_some_and(|(area, number)| {
        area.chars().all(|c| c.is_ascii_uppercase()) && number.len() == 2 && number.chars().all(|c| c.is_ascii_digit())
    })
}

fn rust_files(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for path in dir.read_dir().into_iter().flatten().flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            // `target` of a nested workspace: not ours to count.
            if path.file_name().is_none_or(|name| name != "target") {
                files.extend(rust_files(&path));
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}
