//! The engine through its public surface, with guests written in Wasm's text form.

mod cache;
mod churn;
mod cpu;
mod exec;
mod files;
mod guests;
mod images;
mod lifecycle;
mod log;
mod memory;
mod network;
mod outcomes;
mod single_files;
mod streams;
mod support;
