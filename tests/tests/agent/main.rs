//! `husk agent` end to end: the real binary, its socket, its data folder, and what it makes of crashes.

#[path = "../e2e/husk.rs"]
#[expect(dead_code, reason = "not everything there is needed here")]
mod husk;
#[path = "../../../runtime/agent/tests/probes/servers.rs"]
#[expect(dead_code, reason = "not everything there is needed here")]
mod servers;

mod bad_pods;
mod bad_requests;
mod client;
mod clocks;
mod compiled_code;
mod configuration;
mod crashes;
mod debugging;
mod device;
mod disks;
mod evictions;
mod examples;
mod flags;
mod full_disk;
mod images;
mod many_crashes;
mod many_pods;
mod memory;
mod memory_qos;
mod observing;
mod offline;
mod probes;
mod read_only;
mod references;
mod resize;
mod service;
mod shutdown;
mod static_pods;
mod storage;
mod unwritable;
mod usage;
mod users;
mod world;
