//! `cargo xtask conformance`: which rows of the lifecycle contract are held by a test that ran.
//!
//! A test that drives a row through the public surface carries `// spec: ID` on a line above its `#[test]`. The edge cases
//! with a history are rows as well (`EDGE-01` to `EDGE-36`); their tests are named for them: `edge_01_…`.

mod page;
mod rows;
mod tags;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use anyhow::{Context, Result, bail};

use crate::Verb;
use crate::run::root;
use crate::tests_run::TestsRun;
use rows::{Area, EXCLUSIONS};

pub(crate) const VERB: Verb = Verb {
    name: "conformance",
    summary: "List the rows of the lifecycle contract, and the tests that hold them",
    help: "\
Usage: cargo xtask conformance [--check] [ROW...]

Finds `// spec: ID` above tests and tests named edge_NN_..., prints what is covered,
excluded and missing, and writes docs/conformance.md. With rows (INIT-03, EDGE-07, INIT)
it lists their tests instead, and writes nothing.

  --check   write nothing; it is an error if docs/conformance.md is not up to date

It is an error if a tag names no row or stands above no test, if a test that claims a
row is ignored, or did not run and pass in the last `cargo xtask test`, and if a row of
tier core has neither a test nor an exclusion.",
    run: |mut arguments| {
        let check = arguments.contains("--check");
        let rows: Vec<String> = arguments.finish().iter().map(|row| row.to_string_lossy().into_owned()).collect();
        if let Some(option) = rows.iter().find(|row| row.starts_with('-')) {
            bail!("unexpected argument {option:?}; add --help to see what is possible");
        }
        if rows.is_empty() { conformance(check) } else { list(&rows) }
    },
};

const PAGE: &str = "docs/conformance.md";
/// So many errors are shown.
const SHOWN: usize = 20;
/// Where tests claim rows.
const SOURCES: [&str; 4] = ["runtime", "tests", "guest-sdk", "examples"];

/// The contract and what is known about it.
struct Table {
    areas: Vec<Area>,
    /// Row → its tests, in the order of files.
    tests: BTreeMap<String, Vec<Test>>,
    /// Row → reason.
    exclusions: BTreeMap<String, String>,
}

struct Test {
    file: String,
    line: usize,
    name: String,
}

enum State<'a> {
    Covered(&'a [Test]),
    Excluded(&'a str),
    Missing,
}

impl Table {
    fn state(&self, row: &str) -> State<'_> {
        match (self.tests.get(row), self.exclusions.get(row)) {
            (Some(tests), _) => State::Covered(tests),
            (None, Some(reason)) => State::Excluded(reason),
            (None, None) => State::Missing,
        }
    }

    fn rows(&self) -> BTreeSet<&str> {
        self.areas.iter().flat_map(|area| &area.rows).map(|row| &*row.id).collect()
    }
}

pub(crate) fn conformance(check: bool) -> Result<()> {
    let root = root();
    let (table, mut errors) = read(&root)?;
    errors.extend(contradictions(&table));
    errors.extend(not_run(&root, &table, &TestsRun::load()));
    print!("{}", page::brief(&table));
    let (file, page) = (root.join(PAGE), page::page(&table));
    let up_to_date = fs::read_to_string(&file).is_ok_and(|old| old == page);
    match (up_to_date, check) {
        (true, _) => {}
        (false, true) => {
            errors.push(format!("{PAGE} is not up to date: run `cargo xtask conformance` and commit what it writes"));
        }
        (false, false) => {
            fs::write(&file, page).with_context(|| format!("could not write {}", file.display()))?;
            println!("{PAGE} written");
        }
    }
    if !errors.is_empty() {
        let more = if errors.len() > SHOWN { format!("\n  and {} more", errors.len() - SHOWN) } else { String::new() };
        let shown = errors.iter().take(SHOWN).map(|error| format!("\n  {error}")).collect::<String>();
        bail!("{} found by conformance:{shown}{more}", errors.len());
    }
    Ok(())
}

/// Prints the tests of rows, or of whole areas.
fn list(wanted: &[String]) -> Result<()> {
    let (table, _) = read(&root())?;
    for name in wanted {
        let mut known = false;
        for row in table.areas.iter().flat_map(|area| &area.rows) {
            if row.id != *name && row.id.rsplit_once('-').is_none_or(|(area, _)| area != name) {
                continue;
            }
            known = true;
            let state = match table.state(&row.id) {
                State::Covered(tests) => format!("{} tests", tests.len()),
                State::Excluded(reason) => format!("excluded: {reason}"),
                State::Missing => "missing".to_owned(),
            };
            println!("{} ({}, {state}): {}", row.id, row.tier, row.behaviour);
            for test in table.tests.get(&row.id).into_iter().flatten() {
                println!("  {}:{} {}", test.file, test.line, test.name);
            }
        }
        if !known {
            bail!("there is no row or area {name:?}; {} lists them", rows::ROWS);
        }
    }
    Ok(())
}

/// The table, and what is wrong with the tags themselves.
fn read(root: &Path) -> Result<(Table, Vec<String>)> {
    let (areas, exclusions) = (rows::read_rows(root)?, rows::read_exclusions(root)?);
    let mut table = Table { areas, tests: BTreeMap::new(), exclusions };
    let mut errors = Vec::new();
    for path in SOURCES.iter().flat_map(|part| rust_files(&root.join(part))) {
        let text = fs::read_to_string(&path).with_context(|| format!("could not read {}", path.display()))?;
        let file = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        let (claims, strays) = tags::scan(&text);
        errors.extend(strays.iter().map(|stray| format!("{file}:{}: {}", stray.line, stray.why)));
        for claim in claims {
            for row in claim.rows {
                let test = Test { file: file.clone(), line: claim.line, name: claim.test.clone() };
                table.tests.entry(row).or_default().push(test);
            }
        }
    }
    Ok((table, errors))
}

/// Tags and exclusions of rows that are none, rows that are both excluded and tested, and core rows that are neither.
fn contradictions(table: &Table) -> Vec<String> {
    let rows = table.rows();
    let unknown = table.tests.iter().filter(|(row, _)| !rows.contains(&***row)).flat_map(|(row, tests)| {
        tests.iter().map(move |test| format!("{}:{}: {row} is no row of {}", test.file, test.line, rows::ROWS))
    });
    let excluded = table.exclusions.keys().filter_map(|row| match (rows.contains(&**row), table.tests.get(row)) {
        (false, _) => Some(format!("{EXCLUSIONS}: {row} is no row of {}", rows::ROWS)),
        (true, Some(_)) => Some(format!("{EXCLUSIONS}: {row} has a test: take it out")),
        (true, None) => None,
    });
    let of_core = table.areas.iter().flat_map(|area| &area.rows).filter(|row| row.tier == "core");
    let missing = of_core.filter(|row| matches!(table.state(&row.id), State::Missing));
    let missing = missing.map(|row| format!("{} of tier core has no test, and no reason in {EXCLUSIONS}", row.id));
    unknown.chain(excluded).chain(missing).collect()
}

/// Tests that claim a row without having run and passed.
fn not_run(root: &Path, table: &Table, run: &TestsRun) -> Vec<String> {
    if run.is_empty() {
        let file = TestsRun::file();
        return vec![format!("{} is not there: run `cargo xtask test tests guest-tests` first", file.display())];
    }
    // A file may belong to several binaries: it is enough that one of them ran the test.
    let mut begun: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for (at, source, name) in run.passed() {
        begun.insert((source, name), at);
    }
    let sources: BTreeSet<&str> = begun.keys().map(|(source, _)| *source).collect();
    let mut errors = BTreeSet::new();
    for test in table.tests.values().flatten() {
        let at = |source: &&str| begun.get(&(*source, full_name(source, test)?.as_str())).copied();
        let ran = sources.iter().filter_map(at).max();
        let place = || format!("{}:{}: {}", test.file, test.line, test.name);
        match ran {
            None => {
                let why = "did not run and pass in the last `cargo xtask test`: a row needs a test that does";
                errors.insert(format!("{} {why}", place()));
            }
            Some(at) if changed_since(&root.join(&test.file), at) => {
                errors.insert(format!("{} was changed after it ran: run `cargo xtask test` again", place()));
            }
            Some(_) => {}
        }
    }
    errors.into_iter().collect()
}

/// What the test runner calls a test, if its file is a module below that root; none if it can't be.
fn full_name(source: &str, test: &Test) -> Option<String> {
    if source == test.file {
        return Some(test.name.clone());
    }
    let (folder, _) = source.rsplit_once('/')?;
    let module = test.file.strip_prefix(folder)?.strip_prefix('/')?.strip_suffix(".rs")?;
    let module = module.strip_suffix("/mod").unwrap_or(module).replace('/', "::");
    Some(format!("{module}::{}", test.name))
}

fn changed_since(file: &Path, begun: u64) -> bool {
    let changed = file.metadata().and_then(|data| data.modified()).ok();
    let changed = changed.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    changed.is_none_or(|changed| changed.as_secs() > begun)
}

fn rust_files(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut entries: Vec<PathBuf> = dir.read_dir().into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    entries.sort();
    for path in entries {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn test(file: &str, name: &str) -> Test {
        Test { file: file.to_owned(), line: 1, name: name.to_owned() }
    }

    #[test]
    fn the_runners_name_of_a_test_follows_from_its_file() {
        let name = |source: &str, file: &str| full_name(source, &test(file, "tests::a"));
        assert_eq!(name("core/src/lib.rs", "core/src/lib.rs").as_deref(), Some("tests::a"));
        assert_eq!(name("core/src/lib.rs", "core/src/pod/sync.rs").as_deref(), Some("pod::sync::tests::a"));
        assert_eq!(name("core/tests/node/main.rs", "core/tests/node/x/mod.rs").as_deref(), Some("x::tests::a"));
        assert_eq!(name("core/tests/node/main.rs", "core/tests/other/x.rs"), None);
    }

    #[test]
    fn the_contract_is_complete_and_every_row_stands_once() {
        let areas = rows::read_rows(&root()).expect("the project's own rows");
        let ids: Vec<_> = areas.iter().flat_map(|area| &area.rows).map(|row| &row.id).collect();
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "a row stands twice");
        assert_eq!(ids.iter().filter(|id| id.starts_with("EDGE-")).count(), 36);
        assert_eq!(ids.len(), 145 + 36);
    }

    #[test]
    fn what_does_not_go_together_is_an_error() {
        let row = |id: &str, tier: &str| rows::Row { id: id.into(), tier: tier.into(), behaviour: String::new() };
        let rows = vec![row("POD-01", "agent"), row("POD-02", "core"), row("POD-03", "core"), row("POD-04", "core")];
        let table = Table {
            areas: vec![Area { name: "POD".into(), title: String::new(), rows }],
            tests: ["POD-03", "POD-09"].map(|row| (row.to_owned(), vec![test("f.rs", "a")])).into(),
            exclusions: ["POD-03", "POD-04", "POD-08"].map(|row| (row.to_owned(), "so".to_owned())).into(),
        };
        let errors = contradictions(&table);
        let about = |row: &str, what: &str| errors.iter().any(|error| error.contains(row) && error.contains(what));
        assert!(about("POD-09", "is no row of docs/rows.tsv") && about("POD-08", "is no row of docs/rows.tsv"));
        assert!(about("POD-03", "has a test: take it out") && about("POD-02", "has no test"));
        assert_eq!(errors.len(), 4, "{errors:?}");
    }

    #[test]
    fn a_claim_without_a_run_is_an_error() {
        let table = Table {
            areas: Vec::new(),
            tests: BTreeMap::from([("POD-01".to_owned(), vec![test("xtask/src/conformance.rs", "tests::never")])]),
            exclusions: BTreeMap::new(),
        };
        assert!(not_run(&root(), &table, &TestsRun::default())[0].contains("run `cargo xtask test"));
        let run = |name: &str| TestsRun::of("s", u64::MAX, &[("xtask/src/main.rs", name)]);
        assert!(not_run(&root(), &table, &run("conformance::tests::other"))[0].contains("did not run and pass"));
        assert_eq!(not_run(&root(), &table, &run("conformance::tests::never")), Vec::<String>::new());
        let early = TestsRun::of("s", 0, &[("xtask/src/main.rs", "conformance::tests::never")]);
        assert!(not_run(&root(), &table, &early)[0].contains("changed after it ran"));
    }
}
