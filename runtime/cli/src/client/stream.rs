//! Answers that go on: lines as they come, and the events of a watch.

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::Value;

use super::connection::{Agent, Ask};
use super::failure::{Failure, Status};

/// Lines as they come.
#[derive(Debug)]
pub(crate) struct Lines {
    body: Incoming,
    buffer: BytesMut,
    /// So much of the buffer has no end of a line in it.
    searched: usize,
}

impl Lines {
    /// Of an answer.
    pub(crate) async fn of(agent: &Agent, ask: Ask<'_>) -> Result<Self, Failure> {
        let body = agent.open(ask).await?.into_body();
        Ok(Self { body, buffer: BytesMut::new(), searched: 0 })
    }

    /// The next line with its end; the last may have none. None when all is read.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        loop {
            if let Some(end) = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n') {
                let line = self.buffer.split_to(self.searched + end + 1);
                self.searched = 0;
                return Ok(Some(line.freeze()));
            }
            self.searched = self.buffer.len();
            match self.body.frame().await {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.buffer.extend_from_slice(&data);
                    }
                }
                Some(Err(error)) => return Err(Failure::Other(format!("the agent ended the connection: {error}"))),
                None if self.buffer.is_empty() => return Ok(None),
                None => {
                    self.searched = 0;
                    return Ok(Some(self.buffer.split().freeze()));
                }
            }
        }
    }
}

/// Something that happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Happened {
    Added,
    Modified,
    Deleted,
    /// Nothing; it only tells how far the server is.
    Bookmark,
}

impl Happened {
    /// As in a watch.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
            Self::Bookmark => "BOOKMARK",
        }
    }
}

/// A watch.
#[derive(Debug)]
pub(crate) struct Watch(Lines);

impl Watch {
    /// Begins one.
    pub(crate) async fn begin(agent: &Agent, mut ask: Ask<'_>) -> Result<Self, Failure> {
        ask.query = ask.query.with("watch", true);
        Lines::of(agent, ask).await.map(Self)
    }

    /// What happened next; none when the server ends it.
    pub(crate) async fn next(&mut self) -> Result<Option<(Happened, Value)>, Failure> {
        let Some(line) = self.0.next().await? else { return Ok(None) };
        let mut event: Value = serde_json::from_slice(&line).map_err(Failure::other)?;
        let happened = match event["type"].as_str() {
            Some("ADDED") => Happened::Added,
            Some("MODIFIED") => Happened::Modified,
            Some("DELETED") => Happened::Deleted,
            Some("BOOKMARK") => Happened::Bookmark,
            _ => return Err(Failure::Server(Box::new(Status::of(&event["object"])))),
        };
        Ok(Some((happened, event["object"].take())))
    }
}
