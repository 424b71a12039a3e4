//! Whether a server speaks HTTP/2. It says so with its first frame, and a gRPC client has no connection before that.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Where a frame has its type, and the type that the first one has to have.
const TYPE_AT: usize = 3;
const SETTINGS: u8 = 4;

/// Whether a server has greeted.
#[derive(Debug, Default)]
pub(super) struct Greeting(AtomicBool);

impl Greeting {
    /// It has.
    pub(super) fn was_heard(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A connection that is listened to.
pub(super) struct Greeted<S> {
    stream: S,
    read: usize,
    greeting: Arc<Greeting>,
}

impl<S> Greeted<S> {
    pub(super) fn new(stream: S, greeting: Arc<Greeting>) -> Self {
        Self { stream, read: 0, greeting }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Greeted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        let new = &buffer.filled()[before..];
        let kind = TYPE_AT.checked_sub(self.read).and_then(|at| new.get(at));
        if kind == Some(&SETTINGS) {
            self.greeting.0.store(true, Ordering::Relaxed);
        }
        self.read += new.len();
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Greeted<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
