//! A container instance that runs, as probes and hooks use it.

use husk_core::io::Outcome;
use husk_core::termination_message;
use husk_engine::Container;
use k8s_openapi::api::core::v1::Container as Definition;

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

/// The termination message of a container that ended: why it trapped, and what it said last (STATE-06).
pub(crate) fn last_words(container: &Container, outcome: Outcome, policy: MessagePolicy) -> String {
    let mut said = termination_message::from_file(container.last_words());
    if said.is_empty() && policy == MessagePolicy::FallbackToLogsOnError && outcome.exit_code() != 0 {
        let lines = container.lines();
        let lines: Vec<_> =
            lines.iter().map(|line| [&*line.text, if line.partial { "" } else { "\n" }].concat()).collect();
        said = termination_message::from_log(lines.iter().map(String::as_str));
    }
    termination_message::join(&reason(container.detail()), &said)
}

/// `terminationMessagePolicy`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum MessagePolicy {
    /// What is in the file.
    #[default]
    File,
    /// The end of the log if there is nothing in the file and it failed.
    FallbackToLogsOnError,
}

impl MessagePolicy {
    /// Of a container.
    pub(crate) fn of(container: &Definition) -> Self {
        match container.termination_message_policy.as_deref() {
            Some("FallbackToLogsOnError") => Self::FallbackToLogsOnError,
            _ => Self::File,
        }
    }
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
