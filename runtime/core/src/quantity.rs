//! Kubernetes quantities (RES-01).

use serde::{Deserialize, Serialize};

/// An exact decimal amount.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quantity {
    nanos: i128,
}
