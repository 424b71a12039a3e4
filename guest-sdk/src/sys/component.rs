//! Components (wasm32-wasip2): the interfaces of `wit/lifecycle.wit`.

use std::time::Duration;

use wasip2::clocks::monotonic_clock::subscribe_duration;
use wasip2::io::poll::poll;

use crate::signals::Signal;

#[allow(missing_docs)]
mod bindings {
    wit_bindgen::generate!({
        path: "wit",
        world: "guest",
        with: { "wasi:io/poll@0.2.12": ::wasip2::io::poll },
    });
}

use bindings::husk::lifecycle::{health, signals};

pub(crate) fn next() -> Option<Signal> {
    signals::next().map(signal)
}

pub(crate) fn wait(timeout: Option<Duration>) -> Option<Signal> {
    let Some(timeout) = timeout else {
        return Some(signal(signals::wait()));
    };
    let arrived = signals::subscribe();
    let over = subscribe_duration(u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX));
    poll(&[&arrived, &over]);
    next()
}

pub(crate) fn ready(is_ready: bool) {
    health::ready(is_ready);
}

pub(crate) fn exit(code: u8) -> ! {
    wasip2::cli::exit::exit_with_code(code);
    unreachable!("the node ends the instance within the call")
}

fn signal(signal: signals::Signal) -> Signal {
    match signal {
        signals::Signal::Hup => Signal::Hup,
        signals::Signal::Int => Signal::Int,
        signals::Signal::Quit => Signal::Quit,
        signals::Signal::Usr1 => Signal::Usr1,
        signals::Signal::Usr2 => Signal::Usr2,
        signals::Signal::Term => Signal::Term,
        signals::Signal::Winch => Signal::Winch,
    }
}
