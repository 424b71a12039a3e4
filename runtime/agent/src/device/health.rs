//! How the agent is: what `/livez` and `/readyz` look at.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use husk_apiserver::Check;
use husk_core::event::EventKind;
use husk_store::{Batch, DiskError, Store};

use super::node_events::Remark;
use crate::clock::Clock;
use crate::local::LocalNode;
use crate::volumes::is_read_only;

/// A node that takes longer for a turn hangs.
const PATIENCE: Duration = Duration::from_secs(5);
/// A disk that refused is not tried more often.
const PAUSE: Duration = Duration::from_secs(5);
/// Written to see whether the disk takes anything.
const TRY: &str = "health.try";

/// Whether the store can be written.
#[derive(Debug, Default)]
pub(crate) struct StoreHealth {
    trouble: Mutex<Option<Trouble>>,
    /// The node's events say so.
    is_told: AtomicBool,
}

#[derive(Clone, Debug)]
struct Trouble {
    reason: String,
    tried: Instant,
}

/// What changes of how the agent is.
#[derive(Debug, Default)]
pub(crate) struct Health {
    pub(crate) store: StoreHealth,
    /// What became of the pods of an earlier life is known, and shown.
    pub(crate) is_restored: AtomicBool,
    /// It was told to end.
    pub(crate) is_ending: AtomicBool,
}

impl StoreHealth {
    /// The disk refused.
    pub(crate) fn failed(&self, error: &DiskError) {
        self.set(Some(error.to_string()));
    }

    fn set(&self, reason: Option<String>) {
        let trouble = reason.map(|reason| Trouble { reason, tried: Instant::now() });
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }

    /// What is to be told of it, once. A disk that is read-only is seen also while nothing is to be written.
    pub(crate) fn remark(&self, data_dir: &Path) -> Option<Remark> {
        if self.trouble().is_none() && is_read_only(data_dir).unwrap_or(false) {
            self.set(Some(format!("{}: {}", data_dir.display(), rustix::io::Errno::ROFS)));
        }
        let trouble = self.trouble();
        let was_told = self.is_told.swap(trouble.is_some(), Ordering::Relaxed);
        let Trouble { reason, .. } = trouble.filter(|_| !was_told)?;
        Some((EventKind::Warning, "StateNotWritten", reason))
    }

    fn trouble(&self) -> Option<Trouble> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Health {
    /// What is looked at. The store and the node may be gone before who asks.
    pub(crate) fn checks(self: &Arc<Self>, node: &Arc<LocalNode>, store: &Arc<Store>, clock: Clock) -> Vec<Check> {
        let (node, store) = (Arc::downgrade(node), Arc::downgrade(store));
        let (health, of_restored, of_ending) = (self.clone(), self.clone(), self.clone());
        vec![
            Check {
                name: "syncloop",
                is_vital: true,
                look: Box::new(move || {
                    let node = node.clone();
                    Box::pin(async move {
                        let node = node.upgrade().ok_or("the node has ended")?;
                        match tokio::time::timeout(PATIENCE, node.answers()).await {
                            Ok(true) => Ok(()),
                            Ok(false) => Err("the node has ended".into()),
                            Err(_) => Err(format!("the node has not answered for {} seconds", PATIENCE.as_secs())),
                        }
                    })
                }),
            },
            Check {
                name: "store",
                is_vital: false,
                look: Box::new(move || {
                    let (health, store) = (health.clone(), store.clone());
                    Box::pin(async move { health.look_at(store, clock).await })
                }),
            },
            Check {
                name: "restore",
                is_vital: false,
                look: Box::new(move || {
                    let is_restored = of_restored.is_restored.load(Ordering::Relaxed);
                    let reason = "pods of before the start are being restored";
                    Box::pin(async move { if is_restored { Ok(()) } else { Err(reason.into()) } })
                }),
            },
            Check {
                name: "shutdown",
                is_vital: false,
                look: Box::new(move || {
                    let is_ending = of_ending.is_ending.load(Ordering::Relaxed);
                    Box::pin(async move { if is_ending { Err("the node shuts down".into()) } else { Ok(()) } })
                }),
            },
        ]
    }

    /// A disk that refused is tried again, so that it is well as soon as it takes something.
    async fn look_at(&self, store: Weak<Store>, clock: Clock) -> Result<(), String> {
        let Some(Trouble { reason, tried }) = self.store.trouble() else { return Ok(()) };
        let Some(store) = store.upgrade().filter(|_| tried.elapsed() >= PAUSE) else { return Err(reason) };
        let now = clock.now();
        let batch = Batch::new().fact(TRY, now.as_nanos().to_le_bytes().to_vec());
        let tried = tokio::task::spawn_blocking(move || store.commit(now, batch)).await;
        let reason = match tried {
            Ok(Ok(_)) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(error) => Some(error.to_string()),
        };
        self.store.set(reason.clone());
        reason.map_or(Ok(()), Err)
    }
}
