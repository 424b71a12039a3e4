//! The lifecycle interface: how a guest hears of signals and says whether it is ready.
//!
//! Components import `husk:lifecycle` (guest-sdk/wit), core modules plain functions of the same names. To import the signals is to
//! declare that one handles them.

use std::sync::Arc;
use std::time::Duration;

use wasmtime::component::{self, Component, Resource};
use wasmtime::{Caller, Module};
use wasmtime_wasi::p2::{DynPollable, Pollable, subscribe};
use wasmtime_wasi::{WasiCtxView, WasiView as _};

use crate::guest::Guest;
use crate::signal::Pending;

mod bindings {
    #![allow(missing_docs, unreachable_pub, reason = "generated")]
    wasmtime::component::bindgen!({
        path: "../../guest-sdk/wit",
        world: "guest",
        imports: {
            "husk:lifecycle/signals.wait": async | trappable,
            default: trappable,
        },
        with: { "wasi:io/poll": wasmtime_wasi::p2::bindings::io::poll },
    });
}

use bindings::husk::lifecycle::{health, signals};

/// Module name of the plain imports.
const MODULE: &str = "husk:lifecycle";

/// Adds the interface to what components can import.
pub(crate) fn add_to_components(linker: &mut component::Linker<Guest>) -> wasmtime::Result<()> {
    signals::add_to_linker::<Guest, component::HasSelf<Guest>>(linker, |guest| guest)?;
    health::add_to_linker::<Guest, component::HasSelf<Guest>>(linker, |guest| guest)
}

/// Adds the plain functions to what core modules can import.
pub(crate) fn add_to_modules(linker: &mut wasmtime::Linker<Guest>) -> wasmtime::Result<()> {
    linker.func_wrap(MODULE, "signal_next", |caller: Caller<'_, Guest>| caller.data().signals.take().unwrap_or(0))?;
    linker.func_wrap_async(MODULE, "signal_wait", |caller: Caller<'_, Guest>, (timeout,): (i64,)| {
        let signals = caller.data().signals.clone();
        Box::new(async move {
            match u64::try_from(timeout) {
                Err(_) => signals.wait().await,
                Ok(timeout) => tokio::time::timeout(Duration::from_millis(timeout), signals.wait()).await.unwrap_or(0),
            }
        })
    })?;
    linker.func_wrap(MODULE, "ready", |caller: Caller<'_, Guest>, ready: i32| {
        caller.data().ready.send_replace(Some(ready != 0));
    })?;
    Ok(())
}

/// Whether a component imports the signals.
pub(crate) fn component_handles_signals(component: &Component, engine: &wasmtime::Engine) -> bool {
    component.component_type().imports(engine).any(|(name, _)| name.starts_with("husk:lifecycle/signals@"))
}

/// Whether a module imports the signals.
pub(crate) fn module_handles_signals(module: &Module) -> bool {
    module.imports().any(|import| import.module() == MODULE && import.name().starts_with("signal_"))
}

impl signals::Host for Guest {
    fn next(&mut self) -> wasmtime::Result<Option<signals::Signal>> {
        Ok(self.signals.take().map(named))
    }

    async fn wait(&mut self) -> wasmtime::Result<signals::Signal> {
        Ok(named(self.signals.wait().await))
    }

    fn subscribe(&mut self) -> wasmtime::Result<Resource<DynPollable>> {
        let arrival = Arrival(self.signals.clone());
        let WasiCtxView { table, .. } = self.ctx();
        let arrival = table.push(arrival)?;
        subscribe(table, arrival)
    }
}

impl health::Host for Guest {
    fn ready(&mut self, is_ready: bool) -> wasmtime::Result<()> {
        self.ready.send_replace(Some(is_ready));
        Ok(())
    }
}

/// Ready while there is a signal to be taken.
struct Arrival(Arc<Pending>);

#[async_trait::async_trait]
impl Pollable for Arrival {
    async fn ready(&mut self) {
        self.0.ready().await;
    }
}

/// The interface's name of a signal; one that has none is sent as TERM.
fn named(signal: i32) -> signals::Signal {
    match signal {
        1 => signals::Signal::Hup,
        2 => signals::Signal::Int,
        3 => signals::Signal::Quit,
        10 => signals::Signal::Usr1,
        12 => signals::Signal::Usr2,
        28 => signals::Signal::Winch,
        _ => signals::Signal::Term,
    }
}
