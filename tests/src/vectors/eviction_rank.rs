//! Family `eviction_rank`: who has to go first?

use husk_core::eviction::{Candidate, Pressure, rank_in_groups};
use husk_core::quantity::{Notation, Quantity};
use serde_json::{Value, json};

use super::objects::{flag, list, quantity, text};

pub(super) fn answer(input: &Value) -> Value {
    let (pressure, resource, figures): (_, _, &[&str]) = match input["pressure"].as_str() {
        Some("memory") => (Pressure::Memory, "memory", &["memoryBytes"]),
        Some("disk") => (Pressure::Disk, "ephemeral-storage", &["rootfsBytes", "logsBytes", "emptyDirBytes"]),
        _ => (Pressure::Pid, "", &["processes"]),
    };
    let candidates = list(&input["pods"], |pod| {
        let used = figures.iter().map(|figure| pod[figure].as_i64().unwrap_or_default()).sum();
        Candidate {
            pod: text(&pod["name"]),
            priority: pod["priority"].as_i64().and_then(|priority| priority.try_into().ok()).unwrap_or_default(),
            usage: (!flag(&pod["noStats"])).then(|| Quantity::new(used, Notation::Binary)),
            request: quantity(&pod["requests"][resource]),
        }
    });
    let groups = rank_in_groups(candidates, pressure).into_iter().map(|group| {
        let mut names: Vec<String> = group.into_iter().map(|candidate| candidate.pod).collect();
        names.sort_unstable();
        names
    });
    json!(groups.collect::<Vec<_>>())
}
