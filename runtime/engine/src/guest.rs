//! What belongs to one instance: the data of its store.

use std::sync::Arc;

use tokio::sync::watch;
use wasmtime_wasi::p1::WasiP1Ctx;
use wasmtime_wasi::{WasiCtxView, WasiView};

use crate::handles::Lease;
use crate::limits::Meter;
use crate::net::PodNet;
use crate::signal::Pending;

/// The data of a store.
pub(crate) struct Guest {
    /// WASI; the context of preview 1 contains that of preview 2, so one serves modules and components.
    pub(crate) wasi: WasiP1Ctx,
    /// Its share of the container's memory.
    pub(crate) meter: Meter,
    /// What it may hold open.
    pub(crate) handles: Lease,
    /// Signals sent to it.
    pub(crate) signals: Arc<Pending>,
    /// What it says of itself (`husk:lifecycle/health`).
    pub(crate) ready: watch::Sender<Option<bool>>,
    /// Its sockets.
    pub(crate) net: PodNet,
}

impl WasiView for Guest {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        self.wasi.ctx()
    }
}
