//! The standard streams of an instance, as WASI sees them. Whoever reads a guest's output can hold the guest up: it waits when
//! there is no room for more.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use wasmtime_wasi::cli::{IsTerminal, StdinStream, StdoutStream};
use wasmtime_wasi::p2::{InputStream, OutputStream, Pollable, StreamError, StreamResult};

use crate::terminal;

/// Bytes that a guest may write at once.
const WRITE_PERMIT: usize = 64 * 1024;

/// The standard streams of an instance.
pub(crate) struct Stdio {
    /// Empty if there is none.
    pub(crate) stdin: Option<mpsc::Receiver<Bytes>>,
    pub(crate) stdout: Arc<dyn Sink>,
    pub(crate) stderr: Arc<dyn Sink>,
    /// They are a terminal.
    pub(crate) is_terminal: bool,
}

/// What takes the output of an instance.
#[async_trait::async_trait]
pub(crate) trait Sink: Send + Sync + 'static {
    /// Takes output, whether there is room for it or not.
    fn write(&self, bytes: Bytes);

    /// Whether there is room.
    fn room(&self) -> Room {
        Room::Free
    }

    /// Waits until there is room, or nobody reads any more.
    async fn ready(&self) {}
}

/// Whether a sink has room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    /// It has.
    Free,
    /// It has none at the moment.
    Full,
    /// Nobody reads any more.
    Closed,
}

/// Nobody is interested.
pub(crate) struct Nowhere;

impl Sink for Nowhere {
    fn write(&self, _: Bytes) {}
}

/// Output that somebody reads. Nothing of it is lost while they do, and only what was written before the guest could know that
/// there is no room waits beside the channel.
#[derive(Debug)]
pub(crate) struct Channel {
    sender: mpsc::Sender<Bytes>,
    is_terminal: bool,
    waiting: Mutex<VecDeque<Bytes>>,
}

impl Channel {
    pub(crate) fn new(sender: mpsc::Sender<Bytes>, is_terminal: bool) -> Self {
        Self { sender, is_terminal, waiting: Mutex::default() }
    }

    /// Waits until all is in the channel, or nobody reads any more.
    pub(crate) async fn flush(&self) {
        while !self.waiting().is_empty() {
            let Ok(permit) = self.sender.reserve().await else { return };
            if let Some(bytes) = self.waiting().pop_front() {
                permit.send(bytes);
            }
        }
    }

    /// Takes bytes as they are.
    pub(crate) fn write_raw(&self, bytes: Bytes) {
        let mut waiting = self.waiting();
        waiting.push_back(bytes);
        while let Some(bytes) = waiting.pop_front() {
            match self.sender.try_send(bytes) {
                Ok(()) => {}
                Err(mpsc::error::TrySendError::Full(bytes)) => return waiting.push_front(bytes),
                Err(mpsc::error::TrySendError::Closed(_)) => return waiting.clear(),
            }
        }
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<Bytes>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait::async_trait]
impl Sink for Channel {
    fn write(&self, bytes: Bytes) {
        self.write_raw(if self.is_terminal { terminal::shown(&bytes) } else { bytes });
    }

    fn room(&self) -> Room {
        if self.sender.is_closed() {
            Room::Closed
        } else if self.waiting().is_empty() && self.sender.capacity() > 0 {
            Room::Free
        } else {
            Room::Full
        }
    }

    async fn ready(&self) {
        self.flush().await;
        // An error means that nobody reads.
        let _ = self.sender.reserve().await;
    }
}

/// An output of a guest.
pub(crate) struct Output {
    pub(crate) sink: Arc<dyn Sink>,
    pub(crate) is_terminal: bool,
}

impl IsTerminal for Output {
    fn is_terminal(&self) -> bool {
        self.is_terminal
    }
}

impl StdoutStream for Output {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(NotHere)
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(OutputWriter(self.sink.clone()))
    }
}

struct OutputWriter(Arc<dyn Sink>);

#[async_trait::async_trait]
impl Pollable for OutputWriter {
    async fn ready(&mut self) {
        self.0.ready().await;
    }
}

impl OutputStream for OutputWriter {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        if !bytes.is_empty() {
            self.0.write(bytes);
        }
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        match self.0.room() {
            Room::Free => Ok(WRITE_PERMIT),
            Room::Full => Ok(0),
            Room::Closed => Err(StreamError::Closed),
        }
    }
}

/// The input of a guest: pieces of bytes, until the channel is closed. An empty piece is an end of the input after which more may
/// follow, as a terminal has it.
pub(crate) struct Input {
    read: Arc<Mutex<Pieces>>,
    is_terminal: bool,
}

struct Pieces {
    pieces: mpsc::Receiver<Bytes>,
    /// Received, and not read yet.
    rest: Option<Bytes>,
}

impl Input {
    pub(crate) fn new(pieces: mpsc::Receiver<Bytes>, is_terminal: bool) -> Self {
        Self { read: Arc::new(Mutex::new(Pieces { pieces, rest: None })), is_terminal }
    }
}

impl IsTerminal for Input {
    fn is_terminal(&self) -> bool {
        self.is_terminal
    }
}

impl StdinStream for Input {
    fn async_stream(&self) -> Box<dyn AsyncRead + Send + Sync> {
        Box::new(NotHere)
    }

    fn p2_stream(&self) -> Box<dyn InputStream> {
        Box::new(InputReader(self.read.clone()))
    }
}

struct InputReader(Arc<Mutex<Pieces>>);

impl InputReader {
    fn poll_ready(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut read = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if read.rest.is_none() {
            match read.pieces.poll_recv(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(piece) => read.rest = piece,
            }
        }
        Poll::Ready(())
    }
}

#[async_trait::async_trait]
impl Pollable for InputReader {
    async fn ready(&mut self) {
        std::future::poll_fn(|context| self.poll_ready(context)).await;
    }
}

#[async_trait::async_trait]
impl InputStream for InputReader {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        let mut read = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let piece = match read.rest.take() {
            Some(piece) => piece,
            None => match read.pieces.try_recv() {
                Ok(piece) => piece,
                Err(mpsc::error::TryRecvError::Empty) => return Ok(Bytes::new()),
                Err(mpsc::error::TryRecvError::Disconnected) => return Err(StreamError::Closed),
            },
        };
        if piece.is_empty() {
            return Err(StreamError::Closed);
        }
        let mut piece = piece;
        let taken = piece.split_to(size.min(piece.len()));
        read.rest = Some(piece).filter(|rest| !rest.is_empty());
        Ok(taken)
    }
}

/// Streams of WASI 0.3, which no linker here has.
struct NotHere;

impl NotHere {
    fn error() -> Poll<io::Result<usize>> {
        Poll::Ready(Err(io::ErrorKind::Unsupported.into()))
    }
}

impl AsyncRead for NotHere {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut tokio::io::ReadBuf<'_>) -> Poll<io::Result<()>> {
        Self::error().map_ok(|_| ())
    }
}

impl AsyncWrite for NotHere {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
        Self::error()
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
