//! Where cases come from: a directory of JSON Lines, or the packed copy in this package.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use flate2::{Compression, GzBuilder};
use serde::Deserialize;
use serde_json::Value;

/// One question and upstream's answer.
#[derive(Clone, Debug, Deserialize)]
pub struct Case {
    /// Unique in its family.
    pub id: String,
    /// The question.
    #[serde(rename = "in", default)]
    pub input: Value,
    /// The answer.
    #[serde(default)]
    pub out: Value,
}

/// A place to read cases from.
#[derive(Clone, Debug)]
pub enum Source {
    /// `tests/vectors/*.json.gz`.
    Packed,
    /// A directory with `FAMILY.json` files.
    Directory(PathBuf),
}

impl Source {
    /// All cases of a family.
    ///
    /// # Errors
    /// If the file is not there or not readable as cases; the message names it.
    pub fn cases(&self, family: &str) -> anyhow::Result<Vec<Case>> {
        let path = match self {
            Self::Packed => packed(family),
            Self::Directory(dir) => dir.join(format!("{family}.json")),
        };
        let file = File::open(&path).with_context(|| format!("no cases of family {family}: {}", path.display()))?;
        let text: Box<dyn Read> = match self {
            Self::Packed => Box::new(flate2::read::GzDecoder::new(file)),
            Self::Directory(_) => Box::new(file),
        };
        let mut cases = Vec::new();
        for (number, line) in BufReader::new(text).lines().enumerate() {
            let at = || format!("{} line {}", path.display(), number + 1);
            cases.push(serde_json::from_str(&line.with_context(at)?).with_context(at)?);
        }
        Ok(cases)
    }
}

/// Copies a family from a directory into this package, compressed. The same cases give the same bytes.
///
/// # Errors
/// If the family can't be read or the copy not be written.
pub fn pack(family: &str, dir: &Path) -> anyhow::Result<()> {
    let path = dir.join(format!("{family}.json"));
    let text = fs::read(&path).with_context(|| path.display().to_string())?;
    let file = BufWriter::new(File::create(packed(family))?);
    let mut gzip = GzBuilder::new().mtime(0).write(file, Compression::best());
    gzip.write_all(&text)?;
    gzip.finish()?.flush()?;
    Ok(())
}

/// The folder of the packed copies.
pub(super) fn packed_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors")
}

fn packed(family: &str) -> PathBuf {
    packed_dir().join(format!("{family}.json.gz"))
}
