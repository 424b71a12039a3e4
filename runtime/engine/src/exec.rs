//! exec: another instance in a container's context, for probes, hooks and people.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use husk_core::io::Outcome;
use tokio::sync::{mpsc, watch};

use crate::container::{ExecContext, GuestParts, StartError};
use crate::outcome::Ended;
use crate::signal::{self, Control};
use crate::stdio::{Channel, Nowhere, Sink, Stdio};
use crate::terminal;

/// Bytes of output that are kept; what comes after them is thrown away.
const MAX_OUTPUT: usize = 64 * 1024;

/// Lines of a terminal that wait until the guest reads them.
const LINES: usize = 16;

/// The streams of a process, those that somebody wants. It waits while there is no room in a channel for its output.
#[derive(Debug, Default)]
pub struct Streams {
    /// What it reads; closing the channel is the end of the input. There is nothing to read without one.
    pub stdin: Option<mpsc::Receiver<Bytes>>,
    /// What it writes to standard output. To a terminal this is all that it writes.
    pub stdout: Option<mpsc::Sender<Bytes>>,
    /// What it writes to standard error.
    pub stderr: Option<mpsc::Sender<Bytes>>,
    /// They are a terminal to it.
    pub tty: bool,
}

/// A process that was started in a container by [`Container::spawn`](crate::Container::spawn). Dropping it kills it.
#[derive(Debug)]
pub struct Process {
    control: Control,
    ended: watch::Receiver<Option<Ended>>,
}

impl Process {
    pub(crate) async fn start(
        context: Arc<ExecContext>,
        command: &[String],
        streams: Streams,
    ) -> Result<Self, StartError> {
        let Streams { stdin, stdout, stderr, tty } = streams;
        let output = |sender: Option<mpsc::Sender<Bytes>>| sender.map(|sender| Arc::new(Channel::new(sender, tty)));
        let stdout = output(stdout);
        let stderr = if tty { stdout.clone() } else { output(stderr) };
        let sink = |channel: &Option<Arc<Channel>>| -> Arc<dyn Sink> {
            match channel {
                Some(channel) => channel.clone(),
                None => Arc::new(Nowhere),
            }
        };
        let (stdin, keys, lines) = match stdin {
            Some(keys) if tty => {
                let (lines, stdin) = mpsc::channel(LINES);
                (Some(stdin), Some(keys), Some(lines))
            }
            stdin => (stdin, None, None),
        };
        let stdio = Stdio { stdin, stdout: sink(&stdout), stderr: sink(&stderr), is_terminal: tty };
        let threads = context.engine.threads().clone();
        let process = Self::start_with(context, command, stdio, [stdout.clone(), stderr]).await?;
        if let Some((keys, lines)) = keys.zip(lines) {
            threads.spawn(terminal::edit(keys, lines, stdout, process.control.clone()));
        }
        Ok(process)
    }

    /// `channels` are given what is still to be read when it has ended.
    async fn start_with(
        context: Arc<ExecContext>,
        command: &[String],
        stdio: Stdio,
        channels: [Option<Arc<Channel>>; 2],
    ) -> Result<Self, StartError> {
        if command.is_empty() {
            return Err(StartError { reason: "ExecError", message: "exec: the command is empty".into() });
        }
        let (module, argv) = context.module(command, &[]);
        let program = context.engine.program(module).await?;
        let control = Control::new(program.handles_signals);
        let guest = context.guest(GuestParts {
            argv: &argv,
            stdio,
            signals: control.pending.clone(),
            ready: watch::Sender::new(None),
        })?;
        let (ended, receiver) = watch::channel(None);
        let (stopped, at_once) = (control.stop.subscribe(), watch::Sender::new(true).subscribe());
        let engine = context.engine.clone();
        engine.threads().spawn(async move {
            let mut container = context.ended.subscribe();
            let mut given_up = stopped.clone();
            let outcome = tokio::select! {
                biased;
                // The container is gone, and all that is in it with it.
                _ = signal::said(&mut container) => Ended::signal(signal::KILL),
                outcome = context.run(program, guest, at_once, stopped) => outcome,
            };
            ended.send_replace(Some(outcome));
            tokio::select! {
                // Nobody reads any more.
                _ = signal::said(&mut given_up) => {}
                () = async { for channel in channels.iter().flatten() { channel.flush().await } } => {}
            }
        });
        Ok(Self { control, ended: receiver })
    }

    /// Ends it now.
    pub fn kill(&self) {
        self.control.deliver(signal::KILL);
    }

    /// Waits for its end: how it ended, and why in words, if it trapped. What it wrote may still be in its channels. Can be given up
    /// and called again.
    pub async fn wait(&mut self) -> (Outcome, Option<String>) {
        let Ended { outcome, detail } = signal::said(&mut self.ended).await.unwrap_or_else(Ended::lost);
        (outcome, detail)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// An instance that was started by [`Container::exec`](crate::Container::exec). Dropping it kills the instance.
#[derive(Debug)]
pub struct Exec {
    process: Process,
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
        let output = Arc::new(Capture::default());
        let stdio = Stdio { stdin: None, stdout: output.clone(), stderr: output.clone(), is_terminal: false };
        Ok(Self { process: Process::start_with(context, command, stdio, [None, None]).await?, output })
    }

    /// Ends it now.
    pub fn kill(&self) {
        self.process.kill();
    }

    /// Waits for its end. Can be given up and called again.
    pub async fn wait(&mut self) -> ExecOutput {
        let (outcome, detail) = self.process.wait().await;
        let kept = self.output.0.lock().unwrap_or_else(PoisonError::into_inner);
        ExecOutput { outcome, output: kept.bytes.clone(), truncated: kept.truncated, detail }
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
    fn write(&self, bytes: Bytes) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let room = MAX_OUTPUT - kept.bytes.len();
        kept.truncated |= bytes.len() > room;
        kept.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}
