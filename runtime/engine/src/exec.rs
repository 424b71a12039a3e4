//! exec: another instance in a container's context, for probes, hooks and people.

use std::sync::{Arc, Mutex, PoisonError};

use husk_core::io::Outcome;
use tokio::sync::watch;

use crate::container::{ExecContext, GuestParts, StartError};
use crate::outcome::Ended;
use crate::signal::{self, Pending};
use crate::wasi::Sink;

/// Bytes of output that are kept; what comes after them is thrown away.
const MAX_OUTPUT: usize = 64 * 1024;

/// An instance that was started by [`Container::exec`](crate::Container::exec). Dropping it kills the instance.
#[derive(Debug)]
pub struct Exec {
    stop: watch::Sender<Option<i32>>,
    ended: watch::Receiver<Option<Ended>>,
    output: Arc<Capture>,
}

/// What came of an exec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecOutput {
    /// How it ended.
    pub outcome: Outcome,
    /// What it wrote to both its outputs, in the order it did, up to 64 KiB.
    pub output: Vec<u8>,
    /// It wrote more than that.
    pub truncated: bool,
    /// Why it ended in words, if it trapped.
    pub detail: Option<String>,
}

impl Exec {
    pub(crate) async fn start(context: Arc<ExecContext>, command: &[String]) -> Result<Self, StartError> {
        if command.is_empty() {
            return Err(StartError { reason: "ExecError", message: "exec: the command is empty".into() });
        }
        let (module, argv) = context.module(command, &[]);
        let program = context.engine.program(module).await?;
        let output = Arc::new(Capture::default());
        let guest = context.guest(GuestParts {
            argv: &argv,
            stdin: None,
            stdout: output.clone(),
            stderr: output.clone(),
            signals: Arc::new(Pending::default()),
            ready: watch::Sender::new(None),
        })?;
        let stop = watch::Sender::new(None);
        let (ended, receiver) = watch::channel(None);
        let stopped = stop.subscribe();
        let engine = context.engine.clone();
        engine.threads().spawn(async move {
            let mut container = context.ended.subscribe();
            let outcome = tokio::select! {
                biased;
                // The container is gone, and all that is in it with it.
                _ = container.wait_for(Option::is_some) => Ended::signal(signal::KILL),
                outcome = context.run(program, guest, stopped) => outcome,
            };
            ended.send_replace(Some(outcome));
        });
        Ok(Self { stop, ended: receiver, output })
    }

    /// Ends it now.
    pub fn kill(&self) {
        self.stop.send_replace(Some(signal::KILL));
    }

    /// Waits for its end. Can be given up and called again.
    pub async fn wait(&mut self) -> ExecOutput {
        let ended = self.ended.wait_for(Option::is_some).await.ok().and_then(|ended| ended.clone());
        let Ended { outcome, detail } = ended.unwrap_or_else(Ended::lost);
        let kept = self.output.0.lock().unwrap_or_else(PoisonError::into_inner);
        ExecOutput { outcome, output: kept.bytes.clone(), truncated: kept.truncated, detail }
    }
}

impl Drop for Exec {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The first bytes of output.
#[derive(Debug, Default)]
struct Capture(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    bytes: Vec<u8>,
    truncated: bool,
}

impl Sink for Capture {
    fn write(&self, bytes: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let room = MAX_OUTPUT - kept.bytes.len();
        kept.truncated |= bytes.len() > room;
        kept.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}
