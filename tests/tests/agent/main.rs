//! `husk agent` end to end: the real binary, its socket, its data folder, and what it makes of crashes.

#[path = "../e2e/husk.rs"]
#[expect(dead_code, reason = "not everything there is needed here")]
mod husk;

mod client;
mod crashes;
mod device;
mod images;
mod static_pods;
mod world;
