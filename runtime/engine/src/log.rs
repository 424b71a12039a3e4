//! The bounded log of a container: the last lines of its output, with stream and time.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use tokio::sync::watch;

/// Which of a guest's two outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl Stream {
    /// `stdout` or `stderr`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

/// Bounds of a log. The oldest lines go first.
#[derive(Clone, Copy, Debug)]
pub struct LogConfig {
    /// Bytes of text that are kept.
    pub max_bytes: usize,
    /// Lines that are kept.
    pub max_lines: usize,
    /// Bytes of a line; what is longer is cut into several, all but the last marked `partial`.
    pub max_line: usize,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self { max_bytes: 256 * 1024, max_lines: 4096, max_line: 16 * 1024 }
    }
}

/// A line of output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// 0 for the first line of the log, one more for each that followed.
    pub seq: u64,
    /// Where it was written to.
    pub stream: Stream,
    /// When its first byte was written.
    pub time: SystemTime,
    /// Without its line feed. What isn't UTF-8 is shown as U+FFFD.
    pub text: Arc<str>,
    /// The line goes on in the next one of this stream: it was too long, or its writer ended in the middle of it.
    pub partial: bool,
}

/// A log; clones are the same log.
#[derive(Clone, Debug)]
pub struct Log(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    config: LogConfig,
    ring: Mutex<Ring>,
    /// Sequence number of the next line. Followers wait for it to change.
    grown: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Ring {
    lines: VecDeque<Line>,
    bytes: usize,
    next: u64,
    open: [Open; 2],
    closed: bool,
}

/// A line that has no end yet.
#[derive(Debug, Default)]
struct Open {
    bytes: Vec<u8>,
    since: Option<SystemTime>,
}

impl Default for Log {
    fn default() -> Self {
        Self::new(LogConfig::default())
    }
}

impl Log {
    /// An empty log.
    pub fn new(config: LogConfig) -> Self {
        let config = LogConfig { max_lines: config.max_lines.max(1), max_line: config.max_line.max(4), ..config };
        Self(Arc::new(Shared { config, ring: Mutex::default(), grown: watch::Sender::new(0) }))
    }

    /// Appends output. Never waits: what is too much pushes out the oldest lines.
    pub fn write(&self, stream: Stream, bytes: &[u8]) {
        let now = SystemTime::now();
        let mut ring = self.ring();
        let before = ring.next;
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, ended) = piece.strip_suffix(b"\n").map_or((piece, false), |text| (text, true));
            ring.append(&self.0.config, stream, text, now);
            if ended {
                ring.finish(&self.0.config, stream, false);
            }
        }
        let next = ring.next;
        drop(ring);
        if next != before {
            self.0.grown.send_replace(next);
        }
    }

    /// Ends the lines that were begun: their writer is gone.
    pub(crate) fn flush(&self) {
        let mut ring = self.ring();
        for stream in [Stream::Stdout, Stream::Stderr] {
            if ring.open[stream as usize].since.is_some() {
                ring.finish(&self.0.config, stream, true);
            }
        }
        let next = ring.next;
        drop(ring);
        self.0.grown.send_replace(next);
    }

    /// Nothing will be written any more: followers end when they have read all. A later write opens it again.
    pub fn close(&self) {
        self.flush();
        self.ring().closed = true;
        self.0.grown.send_modify(|_| {});
    }

    /// The lines that are kept, oldest first.
    pub fn lines(&self) -> Vec<Line> {
        self.ring().lines.iter().cloned().collect()
    }

    /// Lines that were ever written: the sequence number of the next one.
    pub fn written(&self) -> u64 {
        self.ring().next
    }

    /// Lines that were pushed out by newer ones.
    pub fn dropped(&self) -> u64 {
        let ring = self.ring();
        ring.next - ring.lines.len() as u64
    }

    /// Follows the log from its oldest line.
    pub fn follow(&self) -> Follower {
        self.follow_from(0)
    }

    /// Follows the log from the line of that number.
    pub fn follow_from(&self, next: u64) -> Follower {
        Follower { log: self.clone(), next, missed: 0, grown: self.0.grown.subscribe() }
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.0.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ring {
    fn append(&mut self, config: &LogConfig, stream: Stream, mut text: &[u8], now: SystemTime) {
        self.closed = false;
        loop {
            let open = &mut self.open[stream as usize];
            open.since.get_or_insert(now);
            let room = config.max_line - open.bytes.len();
            if text.len() <= room {
                open.bytes.extend_from_slice(text);
                return;
            }
            let (fits, rest) = text.split_at(room);
            open.bytes.extend_from_slice(fits);
            text = rest;
            let tail = open.bytes.split_off(end_of_last_character(&open.bytes));
            self.finish(config, stream, true);
            let open = &mut self.open[stream as usize];
            open.bytes = tail;
        }
    }

    fn finish(&mut self, config: &LogConfig, stream: Stream, partial: bool) {
        let open = std::mem::take(&mut self.open[stream as usize]);
        let text: Arc<str> = String::from_utf8_lossy(&open.bytes).into();
        self.bytes += text.len();
        let time = open.since.unwrap_or_else(SystemTime::now);
        self.lines.push_back(Line { seq: self.next, stream, time, text, partial });
        self.next += 1;
        while self.lines.len() > config.max_lines || (self.bytes > config.max_bytes && self.lines.len() > 1) {
            if let Some(oldest) = self.lines.pop_front() {
                self.bytes -= oldest.text.len();
            }
        }
    }
}

/// Where to cut so that no character is torn, if the end of `bytes` lies in one.
fn end_of_last_character(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() && error.valid_up_to() > 0 => error.valid_up_to(),
        _ => bytes.len(),
    }
}

/// Reads a log line by line and waits for more.
#[derive(Debug)]
pub struct Follower {
    log: Log,
    next: u64,
    missed: u64,
    grown: watch::Receiver<u64>,
}

impl Follower {
    /// The next line; none when the log is closed and read to its end. Can be given up and called again.
    pub async fn next(&mut self) -> Option<Line> {
        loop {
            self.grown.mark_unchanged();
            {
                let ring = self.log.ring();
                let oldest = ring.next - ring.lines.len() as u64;
                self.missed += oldest.saturating_sub(self.next);
                self.next = self.next.max(oldest);
                if let Some(line) = ring.lines.get((self.next - oldest) as usize) {
                    self.next += 1;
                    return Some(line.clone());
                }
                if ring.closed {
                    return None;
                }
            }
            // The sender lives in the log that this holds.
            let _ = self.grown.changed().await;
        }
    }

    /// Lines that were pushed out before they could be read.
    pub fn missed(&self) -> u64 {
        self.missed
    }
}
