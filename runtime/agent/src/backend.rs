//! The ways into containers that the API server needs.

use async_trait::async_trait;
use bytes::Bytes;
use husk_apiserver::{ApiError, Attached, Backend, BoxFuture, Exit, LogLine, LogSource, Streams, Target};
use husk_core::io::PodUid;
use husk_engine::{Container, Detached, Line};
use husk_timeline::Document;
use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::{mpsc, watch};

use crate::histories::Histories;
use crate::instance;
use crate::logs::{Instance, Instances, Logs, Output};
use crate::metrics::Metrics;

/// So many lines wait for who follows a log; who is slower misses some of them.
const LINES: usize = 64;

/// The exit code for a command that can't be started, as a shell has it.
const NOT_STARTED: i32 = 126;

/// The containers of an agent's pods: their output and what runs in them.
#[derive(Clone, Debug)]
pub struct Containers {
    logs: Logs,
    metrics: Metrics,
    histories: Histories,
}

impl Containers {
    pub(crate) fn new(logs: Logs, metrics: Metrics, histories: Histories) -> Self {
        Self { logs, metrics, histories }
    }

    fn output(&self, target: Target<'_>) -> Option<Output> {
        self.logs.output(&PodUid::from(target.uid()), target.container)
    }

    /// The instance that runs, in the words of a kubelet if there is none.
    fn running(&self, target: Target<'_>) -> Result<Container, ApiError> {
        let running = self.output(target).and_then(|output| output.instances.borrow().running().cloned());
        running.ok_or_else(|| ApiError::internal(format!("container not found (\"{}\")", target.container)))
    }
}

#[async_trait]
impl Backend for Containers {
    fn metrics(&self) -> Option<husk_apiserver::Metrics> {
        Some(husk_apiserver::Metrics { content_type: Metrics::CONTENT_TYPE, text: self.metrics.text() })
    }

    fn timeline(&self, namespace: &str, name: &str, previous: bool) -> Option<Value> {
        let timeline = self.histories.find(namespace, name, previous)?;
        serde_json::to_value(Document::of(&timeline)).ok()
    }

    async fn logs(&self, target: Target<'_>, previous: bool, follow: bool) -> Result<LogSource, ApiError> {
        let output = self.output(target);
        let wanted = output.as_ref().and_then(|output| {
            let instances = output.instances.borrow();
            if previous { instances.previous.clone() } else { instances.last.clone() }
        });
        let (Some(output), Some(instance)) = (output, wanted) else {
            return Err(no_output(target, previous));
        };
        let end = output.instances.borrow().end_of(&instance);
        let own = |line: &Line| line.seq >= instance.first && end.is_none_or(|end| line.seq < end);
        let lines: Vec<Line> = output.log.lines().into_iter().filter(own).collect();
        let next = lines.last().map_or(instance.first, |line| line.seq + 1);
        let more = (follow && end.is_none()).then(|| {
            let (sender, receiver) = mpsc::channel(LINES);
            tokio::spawn(pass_on(output, instance, next, sender));
            receiver
        });
        Ok(LogSource { lines: lines.into_iter().map(log_line).collect(), more })
    }

    async fn exec(
        &self,
        target: Target<'_>,
        command: Vec<String>,
        tty: bool,
        streams: Streams,
    ) -> Result<BoxFuture<Exit>, ApiError> {
        let container = self.running(target)?;
        let Streams { stdin, stdout, stderr, .. } = streams;
        // For a last word of the node.
        let words = if tty { stdout.clone() } else { stderr.clone() };
        let streams = husk_engine::Streams { stdin, stdout, stderr, tty };
        let started = container.spawn(&command, streams).await;
        Ok(Box::pin(async move {
            let mut process = match started {
                Ok(process) => process,
                Err(error) => {
                    let name = command.first().map(String::as_str).unwrap_or_default();
                    let message = format!("exec failed: unable to start container process: exec: {name:?}: {error}");
                    return last_word(words, message, NOT_STARTED).await;
                }
            };
            match process.wait().await {
                (outcome, None) => Exit::Code(outcome.exit_code()),
                (outcome, detail) => last_word(words, instance::reason(detail), outcome.exit_code()).await,
            }
        }))
    }

    async fn attach(&self, target: Target<'_>, tty: bool, streams: Streams) -> Result<Attached, ApiError> {
        let container = self.running(target)?;
        let Streams { stdin, stdout, stderr, .. } = streams;
        let streams = husk_engine::Streams { stdin, stdout, stderr, tty };
        let mut attached = container.attach(streams, has_stdin_once(target));
        let exit = Box::pin(async move {
            match attached.wait().await {
                // With which code is said in its status.
                Detached::Ended => Exit::Code(0),
                Detached::Stuck => {
                    Exit::Failed("detached: the container had to wait too long for its output to be read".into())
                }
            }
        });
        Ok(Attached { container_id: container.id().to_owned(), exit })
    }
}

/// Whether a container's input ends with the first who was attached to it.
fn has_stdin_once(target: Target<'_>) -> bool {
    let spec = &target.pod["spec"];
    let lists = ["containers", "initContainers", "ephemeralContainers"];
    let mut all = lists.iter().flat_map(|list| spec[*list].as_array().into_iter().flatten());
    all.any(|container| container["name"] == target.container && container["stdinOnce"] == true)
}

/// Ends a process for which the node says a last word.
async fn last_word(words: Option<mpsc::Sender<Bytes>>, mut message: String, code: i32) -> Exit {
    message.push('\n');
    if let Some(words) = words {
        // An error means that nobody listens.
        let _ = words.send(message.into()).await;
    }
    Exit::Code(code)
}

/// Passes on what an instance writes from line `next` on, until it has ended and all is read.
async fn pass_on(output: Output, instance: Instance, next: u64, lines: mpsc::Sender<LogLine>) {
    let mut follower = output.log.follow_from(next);
    let mut instances = output.instances.subscribe();
    let mut end = None;
    let mut read = next;
    while end.is_none_or(|end| read < end) {
        tokio::select! {
            biased;
            // Only until its end is known: no line after that is its own.
            known = ended(&mut instances, &instance), if end.is_none() => end = known,
            () = lines.closed() => return,
            line = follower.next() => match line {
                Some(line) if end.is_none_or(|end| line.seq < end) => {
                    read = line.seq + 1;
                    if lines.send(log_line(line)).await.is_err() {
                        return;
                    }
                }
                _ => return,
            },
        }
    }
}

/// Waits for the end of an instance: for the number of the first line that isn't its own.
async fn ended(instances: &mut watch::Receiver<Instances>, instance: &Instance) -> Option<u64> {
    let known = instances.wait_for(|now| now.end_of(instance).is_some()).await;
    known.ok().and_then(|now| now.end_of(instance))
}

fn log_line(line: Line) -> LogLine {
    let time = Timestamp::try_from(line.time).unwrap_or_default();
    LogLine { time, text: line.text.as_bytes().to_vec().into(), partial: line.partial }
}

/// There was an instance, or its status says so: before this agent was started, and output is kept in memory only.
fn no_output(target: Target<'_>, previous: bool) -> ApiError {
    let (name, pod) = (target.container, target.pod["metadata"]["name"].as_str().unwrap_or_default());
    ApiError::bad_request(match previous {
        true => format!("previous terminated container \"{name}\" in pod \"{pod}\" not found"),
        false => format!(
            "the output of container \"{name}\" in pod \"{pod}\" is not kept: it ended before this agent was started"
        ),
    })
}
