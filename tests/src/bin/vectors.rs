//! `vectors [--dir DIR] [--show N] [--pack] [FAMILY…]`: asks Husk's decisions what upstream's were asked.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, ensure};
use clap::Parser;
use husk_tests::vectors::{Exclusions, FAMILIES, Source, pack, run};

/// Compare Husk's decisions with what upstream Kubernetes answers.
#[derive(Parser)]
struct Options {
    /// Read FAMILY.json (JSON Lines) from this directory instead of the packed copy.
    #[arg(long)]
    dir: Option<PathBuf>,
    /// How many differences to print per family.
    #[arg(long, default_value_t = 3)]
    show: usize,
    /// Renew the packed copy from --dir first.
    #[arg(long, requires = "dir")]
    pack: bool,
    /// Families to run; all if none is given.
    families: Vec<String>,
}

fn main() -> anyhow::Result<ExitCode> {
    let options = Options::parse();
    let unknown = options.families.iter().find(|name| !FAMILIES.iter().any(|(family, _)| family == name));
    ensure!(unknown.is_none(), "no family {}: known are {}", unknown.map_or("", |name| name), known());
    let source = options.dir.clone().map_or(Source::Packed, Source::Directory);
    let exclusions = Exclusions::load()?;
    let wanted = |family: &str| options.families.is_empty() || options.families.iter().any(|name| name == family);

    // A panic is one failed case here; its trace would bury the table.
    std::panic::set_hook(Box::new(|_| {}));
    println!("{:<20}{:>8}{:>8}{:>10}", "family", "passed", "failed", "excluded");
    let mut total = [0; 3];
    for (family, answer) in FAMILIES.iter().filter(|(family, _)| wanted(family)) {
        if let (true, Some(dir)) = (options.pack, &options.dir) {
            pack(family, dir).with_context(|| format!("packing {family}"))?;
        }
        let report = run(family, *answer, &source, &exclusions)?;
        let figures = [report.passed, report.failed.len(), report.excluded];
        println!("{family:<20}{:>8}{:>8}{:>10}", figures[0], figures[1], figures[2]);
        for difference in report.failed.iter().take(options.show) {
            println!("{difference}");
        }
        total = std::array::from_fn(|n| total[n] + figures[n]);
    }
    println!("{:<20}{:>8}{:>8}{:>10}", "all", total[0], total[1], total[2]);
    Ok(if total[1] == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn known() -> String {
    FAMILIES.iter().map(|(family, _)| *family).collect::<Vec<_>>().join(", ")
}
