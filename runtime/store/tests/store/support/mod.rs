//! A machine without a disk: its files lose, tear and reorder what wasn't synced when the power goes, and fail on demand.

pub(crate) mod device;
pub(crate) mod pods;
pub(crate) mod shapes;
pub(crate) mod sim;

use std::time::Duration;

use husk_store::{Batch, Boot, Expect, Limits, ObjectKey, Opened, Options, Scope, Store};

pub(crate) use sim::{Fault, Machine};

pub(crate) const PODS: Scope<'static> = Scope { resource: "pods", namespace: None };

pub(crate) fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(crate) fn boot(id: &str, uptime: u64) -> Boot {
    Boot { id: id.into(), uptime: secs(uptime) }
}

pub(crate) fn options() -> Options {
    Options::new(boot("boot-1", 100))
}

pub(crate) fn with_limits(limits: Limits) -> Options {
    Options { limits, ..options() }
}

pub(crate) fn open(machine: &Machine) -> Opened {
    Store::open_on(machine.medium(), options()).expect("the store opens")
}

pub(crate) fn pod(name: &str) -> ObjectKey {
    ObjectKey::new("pods", "default", name)
}

pub(crate) fn put(name: &str, body: &str, expect: Expect) -> Batch {
    Batch::new().put(pod(name), "u", body.into(), expect)
}

pub(crate) fn body(store: &Store, name: &str) -> Option<String> {
    store.object(&pod(name)).map(|object| String::from_utf8_lossy(&object.body).into_owned())
}
