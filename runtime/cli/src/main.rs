//! The husk binary.
fn main() {}
