//! Images for people and for programs.

use std::time::SystemTime;

use anyhow::Result;
use husk_agent::{ImageStore, StoredImage};
use jiff::Timestamp;
use serde_json::{Value, json};

/// An image whose name was given to a newer one.
pub(crate) const NO_NAME: &str = "<none>";

/// A line for each name.
pub(crate) fn table(images: &[StoredImage]) -> String {
    let mut rows = vec![["IMAGE", "DIGEST", "SIZE", "IN USE", "LAST USED"].map(String::from)];
    for image in images {
        let none = [NO_NAME.to_owned()];
        let names = if image.names.is_empty() { &none[..] } else { &image.names };
        for name in names {
            rows.push([
                name.clone(),
                image.digest.hex()[..12].to_owned(),
                bytes(image.bytes),
                if image.in_use { "yes" } else { "no" }.to_owned(),
                image.last_used.map_or_else(|| "never".to_owned(), time),
            ]);
        }
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths: [usize; 5] = std::array::from_fn(width);
    let line = |row: &[String; 5]| {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("   ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The same for programs.
pub(crate) fn json(images: &[StoredImage]) -> Result<String> {
    let images: Vec<Value> = images.iter().map(described).collect();
    Ok(serde_json::to_string_pretty(&images)?)
}

/// An image with its manifest and configuration.
pub(crate) fn inspected(store: &ImageStore, image: &StoredImage) -> Result<Value> {
    let (manifest, config) = store.documents(image.digest)?;
    let mut value = described(image);
    value["manifest"] = serde_json::from_str(&manifest)?;
    value["config"] = serde_json::from_str(&config)?;
    Ok(value)
}

fn described(image: &StoredImage) -> Value {
    json!({
        "digest": image.digest.to_string(),
        "names": image.names,
        "bytes": image.bytes,
        "imported": time(image.imported),
        "lastUsed": image.last_used.map(time),
        "inUse": image.in_use,
    })
}

fn time(time: SystemTime) -> String {
    Timestamp::try_from(time).map_or_else(|_| "unknown".to_owned(), |time| format!("{time:.0}"))
}

/// `1.5 MiB`.
pub(crate) fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let mut unit = None;
    let (mut whole, mut tenths) = (bytes, 0);
    for next in UNITS {
        if whole < 1024 {
            break;
        }
        (whole, tenths, unit) = (whole / 1024, whole % 1024 * 10 / 1024, Some(next));
    }
    unit.map_or_else(|| format!("{bytes} B"), |unit| format!("{whole}.{tenths} {unit}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_for_people() {
        for (count, wanted) in
            [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1_572_864, "1.5 MiB"), (u64::MAX, "16777215.9 TiB")]
        {
            assert_eq!(bytes(count), wanted);
        }
    }
}
