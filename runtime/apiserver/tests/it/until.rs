//! Waiting for what happens soon: a test that waits in vain fails, it doesn't hang.

use std::time::Duration;

/// Far longer than anything here takes on the slowest machine.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(1);

/// Asks until there is an answer.
pub(crate) async fn until<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let answered = async {
        loop {
            if let Some(answer) = ask().await {
                return answer;
            }
            tokio::time::sleep(PAUSE).await;
        }
    };
    within(what, answered).await
}

/// Waits for something.
pub(crate) async fn within<T>(what: &str, happens: impl Future<Output = T>) -> T {
    let happened = tokio::time::timeout(PATIENCE, happens).await;
    happened.unwrap_or_else(|_| panic!("waited {PATIENCE:?} in vain: {what}"))
}
