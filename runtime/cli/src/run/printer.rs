//! Shows what happens from a thread of its own: whoever reads may be slow or gone, and neither pods nor Ctrl-C wait for that.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use super::happening::{Reporter, What, Who};

/// What the thread has before it.
const QUEUE: usize = 256;
/// What waits here at most while the thread waits for the reader.
const BACKLOG: usize = 8192;

/// Something to show.
enum Told {
    Happened(Duration, Who, What),
    Note(Duration, String),
    Tick(Duration),
    /// That was all.
    End,
}

/// Hands what happens to a reporter.
pub(crate) struct Printer {
    queue: mpsc::Sender<Told>,
    backlog: VecDeque<Told>,
    /// So much found no place in the backlog.
    lost: u64,
    done: oneshot::Receiver<()>,
}

/// What became of something that was to be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passed {
    /// It is on its way.
    On,
    /// There is no reader any more.
    Nowhere,
}

impl Printer {
    /// Starts the thread.
    pub(crate) fn start(mut reporter: Box<dyn Reporter>) -> io::Result<Self> {
        let (queue, mut told) = mpsc::channel(QUEUE);
        let (finished, done) = oneshot::channel();
        std::thread::Builder::new().name("printer".into()).spawn(move || {
            while let Some(told) = told.blocking_recv() {
                let shown = match told {
                    Told::Happened(after, who, what) => reporter.happened(after, &who, &what),
                    Told::Note(after, text) => reporter.note(after, &text),
                    Told::Tick(after) => reporter.tick(after),
                    Told::End => break,
                };
                if shown.is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe) {
                    return;
                }
            }
            reporter.finish();
            let _ = finished.send(());
        })?;
        Ok(Self { queue, backlog: VecDeque::new(), lost: 0, done })
    }

    /// Something happened to a pod.
    pub(crate) fn happened(&mut self, after: Duration, who: &Who, what: What) {
        self.tell(Told::Happened(after, who.clone(), what));
    }

    /// Something about the run as a whole.
    pub(crate) fn note(&mut self, after: Duration, text: &str) {
        self.tell(Told::Note(after, text.to_owned()));
    }

    /// Time has passed. Nobody misses it if there is no room.
    pub(crate) fn tick(&mut self, after: Duration) {
        if self.backlog.is_empty() {
            self.tell_lost(after);
            let _ = self.queue.try_send(Told::Tick(after));
        }
    }

    fn tell_lost(&mut self, after: Duration) {
        if self.lost > 0 {
            let text = format!("{} happenings weren't shown: they weren't read fast enough", self.lost);
            self.lost = 0;
            self.note(after, &text);
        }
    }

    /// So many lines may be told now. What becomes of the pods always finds some room beside them.
    pub(crate) fn room(&self) -> usize {
        (BACKLOG / 2).saturating_sub(self.backlog.len())
    }

    /// Waits until something of the backlog is on its way; if there is none, until the reader is gone.
    pub(crate) async fn pass(&mut self) -> Passed {
        if self.backlog.is_empty() {
            self.queue.closed().await;
            return Passed::Nowhere;
        }
        let Ok(permit) = self.queue.reserve().await else {
            self.backlog.clear();
            return Passed::Nowhere;
        };
        if let Some(told) = self.backlog.pop_front() {
            permit.send(told);
        }
        Passed::On
    }

    /// Waits until the backlog is on its way.
    pub(crate) async fn empty(&mut self) -> Passed {
        while !self.backlog.is_empty() {
            if self.pass().await == Passed::Nowhere {
                return Passed::Nowhere;
            }
        }
        Passed::On
    }

    /// Waits until all is shown.
    pub(crate) async fn finish(&mut self, after: Duration) {
        if self.empty().await == Passed::Nowhere {
            return;
        }
        self.tell_lost(after);
        self.backlog.push_back(Told::End);
        if self.empty().await == Passed::On {
            // Fails if the reader goes away now.
            let _ = (&mut self.done).await;
        }
    }

    fn tell(&mut self, told: Told) {
        if self.queue.is_closed() {
            return;
        }
        if self.backlog.len() >= BACKLOG {
            self.lost += 1;
            return;
        }
        self.backlog.push_back(told);
        while let Ok(permit) = self.queue.try_reserve() {
            let Some(told) = self.backlog.pop_front() else { return };
            permit.send(told);
        }
    }
}
