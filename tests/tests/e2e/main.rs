//! End to end: the `husk` binary, the guests, real manifests.

mod bad_input;
mod examples;
mod guests;
mod http_probes;
mod husk;
mod interrupts;
mod readers;
mod rows;
mod seeds;
mod simulate;
