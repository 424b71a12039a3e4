//! The verbs that talk to an agent, end to end: the real binary on both ends of the socket, beside the real `kubectl`.

#[path = "../e2e/husk.rs"]
#[expect(dead_code, reason = "not everything there is needed here")]
mod husk;

mod consoles;
mod describe;
mod device;
mod drain;
mod kubectl;
mod manifests;
mod timeline;
mod verbs;
