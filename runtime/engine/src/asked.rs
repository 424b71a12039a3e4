//! Guests are asked at each call of the host whether they may go on: a call may take far longer than the fuel that it costs.

use async_trait::async_trait;
use tokio::sync::watch;
use wasmtime::{CallHook, CallHookHandler, StoreContextMut};
use wasmtime_wasi::WasiView as _;

use crate::guest::Guest;
use crate::outcome::{Ended, Stopped};
use crate::{signal, turns};

/// What an instance hears when it calls the host.
pub(crate) struct Asked {
    /// The signal that ends it.
    pub(crate) stop: watch::Receiver<Option<i32>>,
    /// Its container has ended, and with it what was started in it.
    pub(crate) ended: watch::Receiver<Option<Ended>>,
}

#[async_trait]
impl CallHookHandler<Guest> for Asked {
    async fn handle_call_event(&self, mut store: StoreContextMut<'_, Guest>, hook: CallHook) -> wasmtime::Result<()> {
        if !matches!(hook, CallHook::CallingHost) {
            return Ok(());
        }
        turns::pause_if_long().await;
        let Guest { handles, wasi, .. } = store.data_mut();
        handles.look(wasi.ctx().table)?;
        let signal = *self.stop.borrow();
        let signal = signal.or_else(|| self.ended.borrow().is_some().then_some(signal::KILL));
        signal.map_or(Ok(()), |signal| Err(Stopped(signal).into()))
    }
}
