//! The table of resources: what the server serves.

mod budgets;
mod config;
mod events;
mod leases;
mod metrics;
mod namespaces;
mod nodes;
mod pods;
mod typed;

use crate::resource::Resource;

/// Every resource. To serve another one, write its row and add it here.
pub static RESOURCES: &[&Resource] = &[
    &config::CONFIG_MAPS,
    &events::EVENTS,
    &namespaces::NAMESPACES,
    &nodes::NODES,
    &pods::PODS,
    &config::SECRETS,
    &budgets::BUDGETS,
    &leases::LEASES,
    &metrics::NODE_METRICS,
    &metrics::POD_METRICS,
];

pub(crate) use budgets::BUDGETS;
pub use config::{CONFIG_MAPS, SECRETS};
pub(crate) use events::EVENTS;
pub(crate) use leases::LEASES;
pub use metrics::{NODE_METRICS, POD_METRICS};
pub(crate) use namespaces::NAMESPACES;
pub use nodes::NODES;
pub use pods::PODS;

/// The resource of that group, version and plural name.
pub(crate) fn find(group: &str, version: &str, plural: &str) -> Option<&'static Resource> {
    RESOURCES.iter().copied().find(|r| r.group == group && r.version == version && r.plural == plural)
}
