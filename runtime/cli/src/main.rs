//! The husk binary.
mod simulate;
mod span;
fn main() {}
