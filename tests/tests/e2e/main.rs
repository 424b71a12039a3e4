//! End to end: the `husk` binary, the guests, real manifests.

mod bad_input;
mod examples;
mod exec_probes;
mod guests;
mod http_probes;
mod https;
mod husk;
mod images;
mod interrupts;
mod readers;
mod rows;
mod seeds;
mod simulate;
mod termination_message;
mod view;
mod volumes;
