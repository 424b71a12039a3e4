//! Leases: who says of itself that it lives.

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use serde_json::{Value, json};

use super::typed::{self, CREATED, age, text};
use crate::resource::{ALL_VERBS, Column, Resource};

pub(crate) static LEASES: Resource = Resource {
    group: "coordination.k8s.io",
    version: "v1",
    kind: "Lease",
    plural: "leases",
    singular: "lease",
    short_names: &[],
    namespaced: true,
    categories: &[],
    verbs: ALL_VERBS,
    subresources: &[],
    strategy: typed::plain::<Lease>(),
    lists: &[],
    columns: &[
        Column::text("Name", "Name of the lease"),
        Column::text("Holder", "Who lives"),
        Column::text("Age", "Since it was created"),
    ],
    row: |lease: &Value, now: Timestamp| {
        let name = text(lease, "/metadata/name", "");
        vec![json!(name), json!(text(lease, "/spec/holderIdentity", "")), json!(age(lease, CREATED, now))]
    },
    selectable: &[],
};
