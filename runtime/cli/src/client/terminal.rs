//! The user's side of a process: terminal and standard input.

use std::io::{IsTerminal, Read};

use bytes::Bytes;
use ratatui::crossterm::terminal::{disable_raw_mode, enable_raw_mode, size};
use tokio::sync::mpsc;

use crate::out::err;

/// So much is read at once.
const PIECE: usize = 8 << 10;
/// So many pieces may wait.
const PIECES: usize = 4;

/// A terminal that passes on every key; it is as before when this is dropped.
#[derive(Debug)]
pub(crate) struct RawMode(());

impl RawMode {
    /// None if standard input isn't a terminal, which is told.
    pub(crate) fn enter() -> Option<Self> {
        if !std::io::stdin().is_terminal() {
            err("Unable to use a TTY - input is not a terminal or the right kind of file");
            return None;
        }
        enable_raw_mode().ok().map(|()| Self(()))
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        // There is nothing else to try.
        let _ = disable_raw_mode();
    }
}

/// Columns and rows of the terminal, as the other side takes them.
pub(crate) fn size_message() -> Option<String> {
    let (width, height) = size().ok()?;
    Some(format!("{{\"Width\":{width},\"Height\":{height}}}\n"))
}

/// What comes from standard input. A thread reads it, which nobody waits for: it may never come back.
pub(crate) fn stdin() -> std::io::Result<mpsc::Receiver<Bytes>> {
    let (sender, receiver) = mpsc::channel(PIECES);
    std::thread::Builder::new().name("stdin".into()).spawn(move || {
        let mut stdin = std::io::stdin().lock();
        let mut piece = vec![0; PIECE];
        while let Ok(count @ 1..) = stdin.read(&mut piece) {
            if sender.blocking_send(Bytes::copy_from_slice(&piece[..count])).is_err() {
                return;
            }
        }
    })?;
    Ok(receiver)
}
