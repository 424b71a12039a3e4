//! Quantities as they stand in objects.

use husk_core::quantity::Quantity;
use husk_core::spec::ResourceList;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Written;
use std::collections::BTreeMap;

/// The amount, if the text is one.
pub(crate) fn parse(text: &str) -> Option<Quantity> {
    Quantity::parse(text).ok()
}

/// The amount of a field that was checked when it was decoded; zero otherwise.
pub(crate) fn of(written: &Written) -> Quantity {
    parse(&written.0).unwrap_or_default()
}

/// All amounts of a `limits` or `requests`.
pub(crate) fn list(written: Option<&BTreeMap<String, Written>>) -> ResourceList {
    written.into_iter().flatten().map(|(name, amount)| (name.clone(), of(amount))).collect()
}

/// Writes the amount as upstream prints it; leaves what is no amount.
pub(crate) fn canonical(written: &mut Written) {
    if let Some(amount) = parse(&written.0) {
        written.0 = amount.to_string();
    }
}

/// The same, rounded up to milli units.
pub(crate) fn round_to_milli(written: &mut Written) {
    if let Some(amount) = parse(&written.0) {
        written.0 = amount.in_milli().to_string();
    }
}
