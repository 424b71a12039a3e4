//! The tasks that carry a connection. They are aborted with it, so that a probe that is given up leaves nothing.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::task::JoinSet;

/// Tasks that end when this is dropped.
#[derive(Default)]
pub(super) struct Carrier(Arc<Mutex<JoinSet<()>>>);

/// Adds to them, as HTTP/2 does while it goes on.
#[derive(Clone)]
pub(super) struct Spawner(Arc<Mutex<JoinSet<()>>>);

impl Carrier {
    /// Carries a connection.
    pub(super) fn of<T>(connection: impl Future<Output = T> + Send + 'static) -> Self {
        let carrier = Self::default();
        carrier.carry(connection);
        carrier
    }

    /// Carries a connection. What goes wrong with it is told to the one who waits for an answer.
    pub(super) fn carry<T>(&self, connection: impl Future<Output = T> + Send + 'static) {
        spawn(&self.0, connection);
    }

    /// For what the connection has done besides.
    pub(super) fn spawner(&self) -> Spawner {
        Spawner(Arc::clone(&self.0))
    }
}

impl Drop for Carrier {
    fn drop(&mut self) {
        // The tasks may hold spawners, and these the tasks: they don't end by themselves.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).abort_all();
    }
}

impl<F: Future + Send + 'static> hyper::rt::Executor<F> for Spawner {
    fn execute(&self, task: F) {
        spawn(&self.0, task);
    }
}

fn spawn<T>(tasks: &Mutex<JoinSet<()>>, task: impl Future<Output = T> + Send + 'static) {
    tasks.lock().unwrap_or_else(PoisonError::into_inner).spawn(async move {
        let _ = task.await;
    });
}
