//! Memory of pods that idle.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::run::target_dir;

/// Measures and prints.
pub(super) fn measure(husk: &Path) -> Result<()> {
    println!("\nmemory of husk run with pods that idle (resident, KiB)");
    let mut one = None;
    for count in [1, 100, 1000] {
        let resident = resident_with(husk, count)?;
        let base = *one.get_or_insert(resident);
        let each = if count > 1 { (resident.saturating_sub(base)) as f64 / (count - 1) as f64 } else { 0.0 };
        println!("  {count:>5} pods  {resident:>8}  {each:>8.1} for each beyond the first");
    }
    Ok(())
}

/// Starts that many pods and looks when all of them run.
fn resident_with(husk: &Path, count: usize) -> Result<u64> {
    let image = target_dir().join("guests").join("pause.wasm");
    let mut manifest = String::new();
    for n in 0..count {
        writeln!(
            manifest,
            "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: p{n}}}\nspec:\n  containers:\n  - {{name: app, image: '{}'}}",
            image.display()
        )?;
    }
    let path = target_dir().join("bench").join(format!("idle-{count}.yaml"));
    fs::write(&path, manifest)?;
    let mut child = Command::new(husk)
        .args(["run", "-o", "json", "--cache-dir"])
        .arg(target_dir().join("bench").join("cache"))
        .arg(&path)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| husk.display().to_string())?;
    let lines = BufReader::new(child.stdout.take().context("no output")?).lines();
    let started = lines.map_while(Result::ok).filter(|line| line.contains(r#""reason":"Started""#)).take(count).count();
    let status = fs::read_to_string(format!("/proc/{}/status", child.id()))?;
    child.kill()?;
    child.wait()?;
    anyhow::ensure!(started == count, "only {started} of {count} pods started");
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    Ok(resident.trim().trim_end_matches(" kB").parse()?)
}
