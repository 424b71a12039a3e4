//! End to end: the `husk` binary, the guests, real manifests.

mod bad_input;
mod examples;
mod guests;
mod husk;
mod interrupts;
mod rows;
mod seeds;
mod simulate;
