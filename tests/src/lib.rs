//! Tests that judge Husk from outside: against what upstream Kubernetes answers, and through the binary.

pub mod vectors;
