//! Core modules (wasm32-wasip1): plain imports, the same that `include/husk.h` declares for C.

use std::time::Duration;

use crate::signals::Signal;

#[link(wasm_import_module = "husk:lifecycle")]
unsafe extern "C" {
    safe fn signal_next() -> i32;
    safe fn signal_wait(timeout_ms: i64) -> i32;
    #[link_name = "ready"]
    safe fn set_ready(is_ready: i32);
}

pub(crate) fn next() -> Option<Signal> {
    Signal::from_number(signal_next())
}

pub(crate) fn wait(timeout: Option<Duration>) -> Option<Signal> {
    // Rounded up: a wait must not end before its time.
    let milliseconds = |timeout: Duration| i64::try_from(timeout.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX);
    Signal::from_number(signal_wait(timeout.map_or(-1, milliseconds)))
}

pub(crate) fn ready(is_ready: bool) {
    set_ready(i32::from(is_ready));
}

pub(crate) fn exit(code: u8) -> ! {
    std::process::exit(i32::from(code))
}
