//! A container instance that runs, as probes and hooks use it.

use husk_core::io::Outcome;
use husk_engine::Container;

/// So much of an exec's output goes into a message.
const MOST_OUTPUT: usize = 10 * 1024;

/// Delivers a stop signal.
pub(crate) fn signal(container: &Container, name: &str) {
    if let Err(error) = container.signal(name) {
        // Validation lets no unknown name through; should one come, the pod is to end all the same.
        tracing::warn!(%error, "stop signal");
        let _ = container.signal("SIGTERM");
    }
}

/// Why it trapped, in a line; empty if it didn't.
pub(crate) fn reason(detail: Option<String>) -> String {
    let detail = detail.unwrap_or_default();
    let (reason, place) = detail.split_once('\n').unwrap_or((&detail, ""));
    if !place.is_empty() {
        tracing::debug!(reason, place, "trap");
    }
    reason.to_owned()
}

/// How a command in a container ended that did not end well, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ExecFailure {
    /// It ran and failed.
    Failed(String),
    /// It could not be run.
    NotRun(String),
}

/// Runs a command in the container's context. Dropping the future ends the command.
pub(crate) async fn exec(container: &Container, command: &[String]) -> Result<(), ExecFailure> {
    let mut exec = container.exec(command).await.map_err(|error| ExecFailure::NotRun(error.to_string()))?;
    let done = exec.wait().await;
    if done.outcome == Outcome::Code(0) {
        return Ok(());
    }
    let how = match done.outcome {
        Outcome::Code(code) => format!("exit code {code}"),
        Outcome::Signal(number) => format!("ended by signal {number}"),
        Outcome::Trap(_) => reason(done.detail),
    };
    let kept = &done.output[..done.output.len().min(MOST_OUTPUT)];
    let output = String::from_utf8_lossy(kept);
    let output = output.trim_end();
    Err(ExecFailure::Failed(if output.is_empty() { how } else { format!("{how}: {output}") }))
}
