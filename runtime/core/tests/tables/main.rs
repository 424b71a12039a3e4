//! Decision tables: what the documents say, as data, over whole domains.
//!
//! Each table or oracle is written from sentences of the documents, named beside it, and not from the code: from the pages of
//! Kubernetes' documentation (Pod Lifecycle, Init Containers, Sidecar Containers, Pod QoS Classes, Node-pressure Eviction,
//! Container Lifecycle Hooks), the rows of docs/rows.tsv, and what is known of the upstream node agent. Where a domain is
//! finite, every case of it is asked.

mod backoff;
mod conditions;
mod eviction;
mod grace;
mod phase;
mod qos;
mod restart;
mod sandbox;

use husk_core::spec::{ContainerSpec, RestartPolicy};

const POLICIES: [RestartPolicy; 3] = [RestartPolicy::Always, RestartPolicy::OnFailure, RestartPolicy::Never];

fn container(name: &str, own: Option<RestartPolicy>) -> ContainerSpec {
    ContainerSpec { name: name.into(), restart_policy: own, ..ContainerSpec::default() }
}

fn sidecar(name: &str) -> ContainerSpec {
    container(name, Some(RestartPolicy::Always))
}

/// The rows of a table: cells between bars, and the line as it stands for messages.
fn rows(table: &'static str) -> Vec<(Vec<&'static str>, &'static str)> {
    let lines = table.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.skip(1).map(|line| (line.split('|').map(str::trim).collect(), line)).collect()
}

/// Does a cell hold for that word? `*` holds for all, `a b` for either.
fn holds(cell: &str, word: &str) -> bool {
    cell == "*" || cell.split(' ').any(|one| one == word)
}
