//! What the server needs of the node: output of containers, and processes in them.

use std::pin::Pin;

use async_trait::async_trait;
use bytes::Bytes;
use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::status::ApiError;

/// A future that can be kept anywhere.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Runs what the server's pods say.
///
/// It takes pods from a watch of the storage, as a kubelet takes them from its API server, and writes their statuses through
/// [`crate::Objects`]. What is here are the ways into running containers.
#[async_trait]
pub trait Backend: Send + Sync + 'static {
    /// The output of a container: of its instance before the present one if `previous`.
    async fn logs(&self, target: Target<'_>, previous: bool, follow: bool) -> Result<LogSource, ApiError>;

    /// Starts a process in a container. It ends when the future is dropped.
    async fn exec(
        &self,
        target: Target<'_>,
        command: Vec<String>,
        tty: bool,
        streams: Streams,
    ) -> Result<BoxFuture<Exit>, ApiError>;

    /// Figures about the node, if it has any.
    fn metrics(&self) -> Option<Metrics> {
        None
    }

    /// What happened to the pod of that name, or to the one that had it before, if that is known. The pod may be gone.
    fn timeline(&self, namespace: &str, name: &str, previous: bool) -> Option<Value> {
        let _ = (namespace, name, previous);
        None
    }

    /// Connects to a container's own process. When the future is dropped, the process goes on.
    async fn attach(&self, target: Target<'_>, tty: bool, streams: Streams) -> Result<Attached, ApiError>;
}

/// Figures for Prometheus.
#[derive(Clone, Debug)]
pub struct Metrics {
    /// `Content-Type` of the text.
    pub content_type: &'static str,
    /// The text.
    pub text: String,
}

/// Which container.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// The pod as it is stored.
    pub pod: &'a Value,
    /// Name of the container; the pod has it.
    pub container: &'a str,
}

impl<'a> Target<'a> {
    /// `metadata.uid` of the pod.
    pub fn uid(&self) -> &'a str {
        self.pod["metadata"]["uid"].as_str().unwrap_or_default()
    }
}

/// A container's output.
#[derive(Debug, Default)]
pub struct LogSource {
    /// What there is.
    pub lines: Vec<LogLine>,
    /// What follows; none if that wasn't asked for. It is closed when nothing can follow any more.
    pub more: Option<mpsc::Receiver<LogLine>>,
}

/// A line of output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// When it was written.
    pub time: Timestamp,
    /// What was written, without the end of the line.
    pub text: Bytes,
    /// The line has no end here: it goes on in the next one, or its writer ended in the middle of it.
    pub partial: bool,
}

/// The streams of a process, those that were asked for.
#[derive(Debug, Default)]
pub struct Streams {
    /// Closed at the end of input.
    pub stdin: Option<mpsc::Receiver<Bytes>>,
    /// Fails when the client is gone.
    pub stdout: Option<mpsc::Sender<Bytes>>,
    /// The same.
    pub stderr: Option<mpsc::Sender<Bytes>>,
    /// Sizes of the terminal, if there is one.
    pub resize: Option<mpsc::Receiver<TerminalSize>>,
}

/// Size of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct TerminalSize {
    /// Columns.
    pub width: u16,
    /// Rows.
    pub height: u16,
}

/// A connection to a container's own process.
pub struct Attached {
    /// `containerID` of the instance: there may have been a restart since whoever asked looked at the pod.
    pub container_id: String,
    /// Its end.
    pub exit: BoxFuture<Exit>,
}

/// How a process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exit {
    /// With a code.
    Code(i32),
    /// It could not be started or was lost; the text says why.
    Failed(String),
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A node without pods.
    pub(crate) struct Empty;

    #[async_trait]
    impl Backend for Empty {
        async fn logs(&self, _: Target<'_>, _: bool, _: bool) -> Result<LogSource, ApiError> {
            Err(ApiError::internal("the pod is not here"))
        }

        async fn exec(&self, _: Target<'_>, _: Vec<String>, _: bool, _: Streams) -> Result<BoxFuture<Exit>, ApiError> {
            Err(ApiError::internal("the pod is not here"))
        }

        async fn attach(&self, _: Target<'_>, _: bool, _: Streams) -> Result<Attached, ApiError> {
            Err(ApiError::internal("the pod is not here"))
        }
    }
}
