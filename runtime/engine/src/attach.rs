//! A container's own output: it goes to its log, and to those who are attached.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;

use crate::container::Container;
use crate::exec::Streams;
use crate::log::{Log, Stream};
use crate::outcome::Ended;
use crate::stdio::{Channel, Room, Sink};
use crate::terminal;

/// A container waits for who reads what it writes, but not for longer than this for one who reads nothing.
const PATIENCE: Duration = Duration::from_secs(10);

/// Streams that are connected to those of a container. Dropping it detaches them.
#[derive(Debug)]
pub struct Attached {
    ended: watch::Receiver<Option<Ended>>,
    is_stuck: watch::Receiver<bool>,
    typing: Option<AbortHandle>,
}

/// Why streams are not attached any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detached {
    /// The container has ended. What it wrote may still be in the channels.
    Ended,
    /// Nobody read what it wrote, so that it had to wait for too long.
    Stuck,
}

impl Attached {
    pub(crate) fn new(container: &Container, streams: Streams, ends_input: bool) -> Self {
        let Streams { stdin, stdout, stderr, tty } = streams;
        // What the container has is what counts: a terminal here would spoil the output of a program that has none.
        let is_terminal = container.0.context.config.tty;
        let channel = |sender: mpsc::Sender<Bytes>| Arc::new(Channel::new(sender, is_terminal));
        // To a terminal both outputs are one.
        let stderr = if tty { stdout.clone() } else { stderr };
        let stdout = stdout.map(channel);
        let stderr = stderr.filter(|_| !is_terminal).map(channel);
        let is_stuck = watch::Sender::new(false);
        for (output, channel) in [(&container.0.stdout, &stdout), (&container.0.stderr, &stderr)] {
            if let Some(channel) = channel {
                output.attach(Reader { channel: channel.clone(), is_stuck: is_stuck.clone() });
            }
        }
        let typing = stdin.zip(container.stdin()).map(|(stdin, input)| {
            let last = ends_input.then(|| ClosesInput(container.clone()));
            let control = container.0.control.clone();
            let typing = container.0.context.engine.threads().spawn(async move {
                let _last = last;
                if is_terminal {
                    terminal::edit(stdin, input, stdout, control).await;
                } else {
                    pass_on(stdin, input).await;
                }
            });
            typing.abort_handle()
        });
        Self { ended: container.0.context.ended.subscribe(), is_stuck: is_stuck.subscribe(), typing }
    }

    /// Waits until the streams are not attached any more. Can be given up and called again.
    pub async fn wait(&mut self) -> Detached {
        tokio::select! {
            biased;
            _ = self.ended.wait_for(Option::is_some) => Detached::Ended,
            Ok(_) = self.is_stuck.wait_for(|is_stuck| *is_stuck) => Detached::Stuck,
        }
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        if let Some(typing) = &self.typing {
            typing.abort();
        }
    }
}

/// Closes a container's input in the end.
struct ClosesInput(Container);

impl Drop for ClosesInput {
    fn drop(&mut self) {
        self.0.close_stdin();
    }
}

async fn pass_on(mut from: mpsc::Receiver<Bytes>, to: mpsc::Sender<Bytes>) {
    while let Some(bytes) = from.recv().await {
        if to.send(bytes).await.is_err() {
            return;
        }
    }
}

/// One of a container's two outputs.
#[derive(Debug)]
pub(crate) struct OwnOutput {
    log: Log,
    stream: Stream,
    /// None when the container has ended.
    readers: Mutex<Option<Vec<Reader>>>,
}

/// Somebody who is attached.
#[derive(Clone, Debug)]
struct Reader {
    channel: Arc<Channel>,
    /// Told if it was given up.
    is_stuck: watch::Sender<bool>,
}

impl OwnOutput {
    pub(crate) fn new(log: Log, stream: Stream) -> Self {
        Self { log, stream, readers: Mutex::new(Some(Vec::new())) }
    }

    /// Gives what is written from now on to a reader as well.
    fn attach(&self, reader: Reader) {
        if let Some(readers) = &mut *self.readers() {
            readers.push(reader);
        }
    }

    /// The container has ended: the readers get what is still for them, then the end.
    pub(crate) fn finish(&self, threads: &Handle) {
        for Reader { channel, .. } in self.readers().take().into_iter().flatten() {
            threads.spawn(async move { channel.flush().await });
        }
    }

    fn readers(&self) -> MutexGuard<'_, Option<Vec<Reader>>> {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn give_up(&self, stuck: &Reader) {
        stuck.is_stuck.send_replace(true);
        if let Some(readers) = &mut *self.readers() {
            readers.retain(|reader| !Arc::ptr_eq(&reader.channel, &stuck.channel));
        }
    }
}

#[async_trait::async_trait]
impl Sink for OwnOutput {
    fn write(&self, bytes: Bytes) {
        // Readers first: who attaches once he has seen a line in the log has what came after it, and not that line as well.
        for reader in self.readers().iter().flatten() {
            reader.channel.write(bytes.clone());
        }
        self.log.write(self.stream, &bytes);
    }

    fn room(&self) -> Room {
        let mut readers = self.readers();
        let Some(readers) = &mut *readers else { return Room::Free };
        // Who has detached doesn't count any more.
        readers.retain(|reader| reader.channel.room() != Room::Closed);
        match readers.iter().all(|reader| reader.channel.room() == Room::Free) {
            true => Room::Free,
            false => Room::Full,
        }
    }

    async fn ready(&self) {
        let readers = self.readers().clone();
        for reader in readers.into_iter().flatten() {
            if tokio::time::timeout(PATIENCE, reader.channel.ready()).await.is_err() {
                self.give_up(&reader);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_container_does_not_wait_for_ever_for_who_reads_nothing() {
        let output = OwnOutput::new(Log::default(), Stream::Stdout);
        let is_stuck = watch::Sender::new(false);
        let reader = |sender| Reader { channel: Arc::new(Channel::new(sender, false)), is_stuck: is_stuck.clone() };
        let ((stuck, _pieces), (gone, _)) = (mpsc::channel(1), mpsc::channel(1));
        output.attach(reader(stuck));
        output.attach(reader(gone));
        output.write("one".into());
        assert_eq!(output.room(), Room::Full);
        assert!(!*is_stuck.borrow());
        output.ready().await;
        assert_eq!(output.room(), Room::Free);
        assert!(*is_stuck.borrow());
    }
}
