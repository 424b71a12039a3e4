//! Pods' records, written to the store in its own rhythm (TERM-11, NODE-04).

use std::sync::Arc;

use husk_core::Instant;
use husk_core::io::{PodUid, Urgency};
use husk_core::record::PodRecord;
use husk_store::Store;
use tokio::sync::{Notify, watch};

use super::health::Health;
use crate::clock::Clock;
use crate::local::Keeper;

/// Keeps the records of a node.
pub(crate) struct Records {
    store: Arc<Store>,
    clock: Clock,
    health: Arc<Health>,
    marked: Notify,
    /// Changes when something may have been written.
    written: watch::Sender<u64>,
}

impl Keeper for Records {
    fn persist(&self, now: Instant, record: &PodRecord, urgency: Urgency) {
        self.store.persist(now, &record.uid().0, record.to_bytes(), urgency);
        self.marked.notify_one();
    }
}

impl Records {
    pub(crate) fn new(store: Arc<Store>, clock: Clock, health: Arc<Health>) -> Self {
        Self { store, clock, health, marked: Notify::new(), written: watch::Sender::new(0) }
    }

    /// Is there something new of a pod that isn't on the disk yet and must not be lost?
    pub(crate) fn is_pending(&self, pod: &PodUid) -> bool {
        self.store.is_pending(&pod.0)
    }

    /// Nothing is left of a pod, nor of its object.
    pub(crate) fn forget(&self, pod: &PodUid) {
        self.store.forget(self.clock.now(), &pod.0);
        self.marked.notify_one();
    }

    /// Does the disk refuse what is to be written?
    pub(crate) fn is_refused(&self) -> bool {
        self.store.is_refused()
    }

    /// Changes when something may have been written.
    pub(crate) fn written(&self) -> watch::Receiver<u64> {
        self.written.subscribe()
    }

    /// Writes what is due, for as long as the agent lives. `version` tells of what the API server writes.
    pub(crate) async fn write(self: Arc<Self>, mut version: watch::Receiver<u64>) {
        loop {
            let wait = self.store.next_wake().map(|at| self.clock.until(at));
            let due = async {
                match wait {
                    Some(wait) => tokio::time::sleep(wait).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.marked.notified() => {}
                // Both live in the store that this holds.
                _ = version.changed() => {}
                () = due => self.blocking(|store, now| store.advance(now)).await,
            }
            self.written.send_modify(|times| *times += 1);
        }
    }

    /// Writes everything that is still to be written.
    pub(crate) async fn flush(&self) {
        self.blocking(|store, now| store.flush(now)).await;
    }

    async fn blocking(&self, work: impl FnOnce(&Store, Instant) -> Result<(), husk_store::DiskError> + Send + 'static) {
        let (store, now) = (self.store.clone(), self.clock.now());
        match tokio::task::spawn_blocking(move || work(&store, now)).await {
            Ok(Ok(())) => {}
            // The store says when it is tried again.
            Ok(Err(error)) => {
                self.health.store.failed(&error);
                tracing::warn!(%error, "pods' records can't be written");
            }
            Err(error) => tracing::error!(%error, "writing pods' records broke off"),
        }
    }
}
