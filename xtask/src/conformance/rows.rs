//! The rows of the contract and the exclusions from it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

pub(crate) const ROWS: &str = "docs/rows.tsv";
pub(crate) const EXCLUSIONS: &str = "docs/conformance-exclusions.txt";

/// A part of the contract.
pub(crate) struct Area {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) rows: Vec<Row>,
}

/// One behaviour.
pub(crate) struct Row {
    pub(crate) id: String,
    pub(crate) tier: String,
    pub(crate) behaviour: String,
}

/// What a row may need.
pub(crate) const TIERS: [&str; 3] = ["core", "agent", "api"];

pub(crate) fn read_rows(root: &Path) -> Result<Vec<Area>> {
    let file = root.join(ROWS);
    let text = fs::read_to_string(&file).with_context(|| format!("could not read {}", file.display()))?;
    let mut areas: Vec<Area> = Vec::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with('#')) {
        let place = || format!("{ROWS}:{}", number + 1);
        let [id, tier, behaviour] = line.split('\t').collect::<Vec<_>>()[..] else {
            bail!("{}: three fields with tabs between them are needed: id, tier, behaviour", place());
        };
        match (areas.last_mut(), id.rsplit_once('-')) {
            (_, None) if tier == "area" => {
                areas.push(Area { name: id.to_owned(), title: behaviour.to_owned(), rows: Vec::new() });
            }
            (Some(area), Some((name, _))) if area.name == name && TIERS.contains(&tier) => {
                area.rows.push(Row { id: id.to_owned(), tier: tier.to_owned(), behaviour: behaviour.to_owned() });
            }
            _ => bail!("{}: {id} has to stand below its area, with tier core, agent or api", place()),
        }
    }
    Ok(areas)
}

/// Row → reason.
pub(crate) fn read_exclusions(root: &Path) -> Result<BTreeMap<String, String>> {
    let file = root.join(EXCLUSIONS);
    let text = fs::read_to_string(&file).with_context(|| format!("could not read {}", file.display()))?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    let parse = |(number, line): (usize, &str)| match line.split_once(' ') {
        Some((id, reason)) if !reason.trim().is_empty() => Ok((id.to_owned(), reason.trim().to_owned())),
        _ => bail!("{EXCLUSIONS}:{}: a row and its reason are needed", number + 1),
    };
    lines.map(parse).collect()
}
