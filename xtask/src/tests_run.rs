//! Which tests ran and passed: what `cargo xtask test` leaves for `cargo xtask conformance`.
//!
//! A file of lines `SET<TAB>ROOT<TAB>NAME`. A set is one run of `cargo test` and is replaced as a whole; the root is the
//! source file that the test binary was compiled from; the name is what the test runner calls the test. The line whose
//! root is `begun` says when the run began, in seconds since 1970.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::run::target_dir;

const BEGUN: &str = "begun";

/// Tests that passed, and when their runs began.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct TestsRun {
    sets: BTreeMap<String, Set>,
}

#[derive(Debug, Default, PartialEq)]
struct Set {
    begun: u64,
    /// Root and name.
    passed: BTreeSet<(String, String)>,
}

impl TestsRun {
    pub(crate) fn file() -> PathBuf {
        target_dir().join("tests-run.txt")
    }

    /// What the last runs left; empty if there were none.
    pub(crate) fn load() -> Self {
        fs::read_to_string(Self::file()).map(|text| Self::parse(&text)).unwrap_or_default()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.sets.is_empty()
    }

    /// Every test that passed: when its run began, root, name.
    pub(crate) fn passed(&self) -> impl Iterator<Item = (u64, &str, &str)> {
        self.sets.values().flat_map(|set| set.passed.iter().map(|(root, name)| (set.begun, &**root, &**name)))
    }

    #[cfg(test)]
    pub(crate) fn of(set: &str, begun: u64, passed: &[(&str, &str)]) -> Self {
        let passed = passed.iter().map(|(root, name)| ((*root).to_owned(), (*name).to_owned())).collect();
        Self { sets: BTreeMap::from([(set.to_owned(), Set { begun, passed })]) }
    }

    fn parse(text: &str) -> Self {
        let mut all = Self::default();
        for line in text.lines() {
            let mut fields = line.splitn(3, '\t');
            let (Some(set), Some(root), Some(name)) = (fields.next(), fields.next(), fields.next()) else { continue };
            let set = all.sets.entry(set.to_owned()).or_default();
            if root == BEGUN {
                set.begun = name.parse().unwrap_or_default();
            } else {
                set.passed.insert((root.to_owned(), name.to_owned()));
            }
        }
        all
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for (name, set) in &self.sets {
            text.push_str(&format!("{name}\t{BEGUN}\t{}\n", set.begun));
            for (root, test) in &set.passed {
                text.push_str(&format!("{name}\t{root}\t{test}\n"));
            }
        }
        text
    }

    fn store(&self) -> Result<()> {
        let file = Self::file();
        fs::create_dir_all(target_dir())?;
        fs::write(&file, self.text()).with_context(|| format!("could not write {}", file.display()))
    }
}

/// Listens to one run of `cargo test`.
pub(crate) struct Recorder {
    set: String,
    passed: Set,
    /// File name of a test binary → its root.
    roots: BTreeMap<String, String>,
    /// Root of the binary that is running.
    current: Option<String>,
}

impl Recorder {
    /// A run begins, before anything is built for it. What its predecessor left is forgotten at once: a run that does not
    /// build or is interrupted proves nothing.
    pub(crate) fn begin(set: &str) -> Result<Self> {
        let mut all = TestsRun::load();
        all.sets.remove(set);
        all.store()?;
        let begun = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let passed = Set { begun, ..Set::default() };
        Ok(Self { set: set.to_owned(), passed, roots: BTreeMap::new(), current: None })
    }

    /// It is built. `artifacts` is what `cargo test --no-run --message-format=json` said; paths are noted relative to `base`.
    pub(crate) fn built(&mut self, artifacts: &str, base: &Path) {
        self.roots = roots(artifacts, base);
    }

    /// One line of cargo or of a test binary.
    pub(crate) fn hear(&mut self, line: &str) {
        let line = without_colours(line);
        if let Some(binary) = running(&line) {
            self.current = self.roots.get(binary).cloned();
        } else if line.trim_start().starts_with("Doc-tests ") {
            self.current = None;
        } else if let (Some(root), Some(test)) = (&self.current, passed_test(&line)) {
            self.passed.passed.insert((root.clone(), test.to_owned()));
        }
    }

    /// The run is over.
    pub(crate) fn finish(self) -> Result<()> {
        let mut all = TestsRun::load();
        all.sets.insert(self.set, self.passed);
        all.store()
    }
}

/// File name of each test binary → the source file it was compiled from.
fn roots(artifacts: &str, base: &Path) -> BTreeMap<String, String> {
    let root = |line: &str| {
        let message: Value = serde_json::from_str(line).ok()?;
        let binary = Path::new(message["executable"].as_str()?).file_name()?.to_str()?.to_owned();
        let source = Path::new(message["target"]["src_path"].as_str()?);
        Some((binary, source.strip_prefix(base).unwrap_or(source).display().to_string()))
    };
    artifacts.lines().filter_map(root).collect()
}

/// `Running tests/node/main.rs (target/debug/deps/node-0123456789abcdef)` → `node-0123456789abcdef`
fn running(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("Running ")?.trim_end().strip_suffix(')')?;
    let (_, path) = rest.rsplit_once('(')?;
    Path::new(path).file_name()?.to_str()
}

/// `test module::name ... ok` → `module::name`; the test of a panic has a note behind its name.
fn passed_test(line: &str) -> Option<&str> {
    let name = line.strip_prefix("test ")?.trim_end().strip_suffix(" ... ok")?;
    Some(name.strip_suffix(" - should panic").unwrap_or(name))
}

/// The line without the terminal's control sequences.
fn without_colours(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        plain.push_str(before);
        rest = after.find(|c: char| c.is_ascii_alphabetic()).map_or("", |end| &after[end + 1..]);
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARTIFACTS: &str = r#"
{"reason":"compiler-artifact","target":{"src_path":"/repo/core/tests/node/main.rs"},"executable":"/t/debug/deps/node-0a"}
{"reason":"compiler-artifact","target":{"src_path":"/repo/core/src/lib.rs"},"executable":"/t/debug/deps/core-1b"}
{"reason":"compiler-artifact","target":{"src_path":"/repo/core/src/lib.rs"},"executable":null}
{"reason":"build-finished","success":true}"#;

    fn heard(lines: &str) -> Vec<(String, String)> {
        let base = Path::new("/repo");
        let (set, passed) = ("s".to_owned(), Set::default());
        let mut recorder = Recorder { set, passed, roots: roots(ARTIFACTS, base), current: None };
        lines.lines().for_each(|line| recorder.hear(line));
        recorder.passed.passed.into_iter().collect()
    }

    fn pair(root: &str, name: &str) -> (String, String) {
        (root.to_owned(), name.to_owned())
    }

    #[test]
    fn tests_that_passed_are_noted_with_the_root_of_their_binary() {
        let lines = "     Running unittests src/lib.rs (target/debug/deps/core-1b)\n\
                     test a::tests::x ... ok\n\
                     \u{1b}[1m\u{1b}[32m     Running\u{1b}[0m tests/node/main.rs (/t/debug/deps/node-0a)\n\
                     test a::tests::x ... ok\n\
                     test p - should panic ... ok";
        let (lib, node) = ("core/src/lib.rs", "core/tests/node/main.rs");
        assert_eq!(heard(lines), [pair(lib, "a::tests::x"), pair(node, "a::tests::x"), pair(node, "p")]);
    }

    #[test]
    fn what_failed_or_was_ignored_or_is_not_known_is_not_noted() {
        let lines = "test early ... ok\n\
                     Running tests/node/main.rs (/t/debug/deps/node-0a)\n\
                     test a ... FAILED\n\
                     test b ... ignored\n\
                     test c ... ignored, because it is slow\n\
                     d ... ok\n\
                     Running tests/node/main.rs (/t/debug/deps/other-0a)\n\
                     test e ... ok\n\
                     Running tests/node/main.rs (/t/debug/deps/node-0a)\n   Doc-tests core\n\
                     test src/lib.rs - f (line 3) ... ok";
        assert_eq!(heard(lines), []);
    }

    #[test]
    fn the_file_is_read_as_it_was_written() {
        let all = TestsRun::of("workspace", 7, &[("core/src/lib.rs", "a::b"), ("core/src/lib.rs", "c")]);
        assert_eq!(TestsRun::parse(&all.text()), all);
    }
}
