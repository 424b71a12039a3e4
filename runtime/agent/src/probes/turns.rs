//! Probes take turns, so that many that are due at once don't disturb what else runs (PROBE-14).

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep};

/// So many probes have their turn at once.
const MOST: usize = 64;
/// A turn is over after this. A probe that takes longer waits for somebody, which costs nothing but a connection: it goes on
/// waiting without holding up those that would be answered at once, however many wait and however long they may.
const TURN: Duration = Duration::from_millis(100);

/// Who may probe now.
#[derive(Clone, Debug)]
pub(crate) struct Turns(Arc<Semaphore>);

impl Default for Turns {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MOST)))
    }
}

impl Turns {
    /// Does this when it is its turn, and says how long it took. It begins only then, and so does its time.
    pub(crate) async fn take<T>(&self, probe: impl Future<Output = T>) -> (T, Duration) {
        // Never closed.
        let turn = self.0.acquire().await;
        let began = Instant::now();
        let mut probe = std::pin::pin!(probe);
        let said = tokio::select! {
            biased;
            said = &mut probe => said,
            () = sleep(TURN) => {
                drop(turn);
                probe.await
            }
        };
        (said, began.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::task::JoinSet;
    use tokio::time::timeout;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_waits_for_an_answer_holds_up_nobody() {
        let turns = Turns::default();
        let mut waiting = JoinSet::new();
        for _ in 0..10 * MOST {
            let turns = turns.clone();
            waiting.spawn(async move { turns.take(pending::<()>()).await });
        }
        tokio::task::yield_now().await;
        // After those before it had theirs.
        assert!(timeout(11 * TURN, turns.take(async {})).await.is_ok());
        assert_eq!(waiting.len(), 10 * MOST);
    }

    #[tokio::test(start_paused = true)]
    async fn only_so_many_begin_at_once() {
        let turns = Turns::default();
        let mut waiting = JoinSet::new();
        for _ in 0..2 * MOST {
            let turns = turns.clone();
            waiting.spawn(async move { turns.take(async { sleep(TURN / 2).await }).await });
        }
        sleep(TURN / 4).await;
        assert_eq!(turns.0.available_permits(), 0);
        sleep(TURN / 2).await;
        // Half of them are done, and the others had to wait for that.
        assert_eq!(turns.0.available_permits(), 0);
        sleep(TURN / 2).await;
        assert_eq!(turns.0.available_permits(), MOST);
    }
}
