//! A terminal between a person and a guest.
//!
//! Their own terminal passes every key on as it is; elsewhere it is the kernel of the other side that makes lines of them. WASI has no
//! such thing, so this is it: keys are shown and can be taken back until the line is ended, ^C and ^\ are signals, ^D is the end of
//! the input. What a guest can't ask WASI for is not here: keys one by one, input that isn't shown, the size.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use tokio::sync::mpsc;

use crate::signal::Control;
use crate::stdio::{Channel, Room, Sink};

/// Bytes of a line, as on Linux. Further keys are refused with a bell.
const MAX_LINE: usize = 4095;
/// Bytes of lines that the guest has not read yet; more are refused.
const MAX_WAITING: usize = 64 * 1024;

const BELL: &[u8] = b"\x07";
const INT: i32 = 2;
const QUIT: i32 = 3;

/// Output as it is shown: each line begins at the left.
pub(crate) fn shown(bytes: &Bytes) -> Bytes {
    if !bytes.contains(&b'\n') {
        return bytes.clone();
    }
    let mut shown = BytesMut::with_capacity(bytes.len() + 16);
    for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
        match piece.strip_suffix(b"\n") {
            Some(text) => {
                shown.put_slice(text);
                shown.put_slice(b"\r\n");
            }
            None => shown.put_slice(piece),
        }
    }
    shown.freeze()
}

/// Makes lines of keys until there are no more of them, or nobody reads the lines.
pub(crate) async fn edit(
    mut keys: mpsc::Receiver<Bytes>,
    lines: mpsc::Sender<Bytes>,
    screen: Option<Arc<Channel>>,
    control: Control,
) {
    let mut editor = Editor::default();
    let mut is_open = true;
    while is_open || !editor.lines.is_empty() {
        tokio::select! {
            pressed = keys.recv(), if is_open => match pressed {
                Some(pressed) => {
                    let signals: Vec<i32> = pressed.iter().filter_map(|key| editor.key(*key)).collect();
                    let echo = std::mem::take(&mut editor.echo).freeze();
                    // Who types without a look at the screen doesn't miss it.
                    if let Some(screen) = screen.as_ref().filter(|screen| screen.room() == Room::Free) {
                        screen.write_raw(echo);
                    }
                    for signal in signals {
                        control.deliver(signal);
                    }
                }
                None => is_open = false,
            },
            permit = lines.reserve(), if !editor.lines.is_empty() => match permit {
                Ok(permit) => {
                    if let Some(line) = editor.next_line() {
                        permit.send(line);
                    }
                }
                Err(_) => return,
            },
            () = lines.closed() => return,
        }
    }
}

#[derive(Debug, Default)]
struct Editor {
    line: Vec<u8>,
    /// Lines that are done. An empty one is the end of the input.
    lines: VecDeque<Bytes>,
    waiting: usize,
    /// What is to be shown.
    echo: BytesMut,
}

impl Editor {
    /// Takes a key. The answer is the number of the signal that it stands for.
    fn key(&mut self, key: u8) -> Option<i32> {
        match key {
            b'\r' | b'\n' => {
                self.show(b"\r\n");
                self.line.push(b'\n');
                self.end_line();
            }
            0x03 => return self.interrupt(b"^C\r\n", INT),
            0x1c => return self.interrupt(b"^\\\r\n", QUIT),
            // ^D: what is there is read without an end of line; if there is nothing, that is the end.
            0x04 => self.end_line(),
            0x7f | 0x08 => self.erase(),
            // ^U: the whole line.
            0x15 => {
                while !self.line.is_empty() {
                    self.erase();
                }
            }
            // ^W: the last word.
            0x17 => {
                while self.line.last().is_some_and(|byte| *byte == b' ') {
                    self.erase();
                }
                while self.line.last().is_some_and(|byte| *byte != b' ') {
                    self.erase();
                }
            }
            _ if self.line.len() >= MAX_LINE => self.show(BELL),
            b'\t' | 0x20.. => {
                self.line.push(key);
                self.show(&[key]);
            }
            _ => {
                self.line.push(key);
                self.show(&[b'^', key + 0x40]);
            }
        }
        None
    }

    /// Takes back the last character, which may be several bytes.
    fn erase(&mut self) {
        let is_continuation = |byte: u8| byte & 0xc0 == 0x80;
        let Some(mut last) = self.line.pop() else { return };
        while is_continuation(last)
            && let Some(byte) = self.line.pop()
        {
            last = byte;
        }
        // A control character was shown as two.
        let width = if last < 0x20 && last != b'\t' { 2 } else { 1 };
        (0..width).for_each(|_| self.show(b"\x08 \x08"));
    }

    fn interrupt(&mut self, shown: &[u8], signal: i32) -> Option<i32> {
        self.line.clear();
        self.show(shown);
        Some(signal)
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        if self.waiting + line.len() + 1 > MAX_WAITING {
            self.show(BELL);
            return;
        }
        self.waiting += line.len() + 1;
        self.lines.push_back(line.into());
    }

    fn next_line(&mut self) -> Option<Bytes> {
        let line = self.lines.pop_front()?;
        self.waiting -= line.len() + 1;
        Some(line)
    }

    fn show(&mut self, bytes: &[u8]) {
        self.echo.put_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines, what is shown, the signals.
    fn typed(keys: &[u8]) -> (Vec<String>, String, Vec<i32>) {
        let mut editor = Editor::default();
        let signals = keys.iter().filter_map(|key| editor.key(*key)).collect();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (editor.lines.iter().map(|line| text(line)).collect(), text(&editor.echo), signals)
    }

    #[test]
    fn keys_become_lines() {
        assert_eq!(typed(b"ls\r"), (vec!["ls\n".into()], "ls\r\n".into(), vec![]));
        let rubbed = "lö\x7fs\r".as_bytes();
        assert_eq!(typed(rubbed), (vec!["ls\n".into()], "lö\x08 \x08s\r\n".into(), vec![]));
        assert_eq!(typed(b"a b  \x17c\r").0, ["a c\n"]);
        assert_eq!(typed(b"\x7fabc\x15d\r").0, ["d\n"]);
        assert_eq!(typed(b"sleep\x03ls\r"), (vec!["ls\n".into()], "sleep^C\r\nls\r\n".into(), vec![INT]));
        assert_eq!(typed(b"\x1c").2, [QUIT]);
        // The end of the input, and what stands in the line until then.
        assert_eq!(typed(b"\x04").0, [""]);
        assert_eq!(typed(b"ab\x04").0, ["ab"]);
        assert_eq!(typed(b"\x1b[A").1, "^[[A");
    }

    #[test]
    fn what_nobody_reads_is_bounded() {
        let mut editor = Editor::default();
        for _ in 0..100 {
            (0..10_000).for_each(|_| assert_eq!(editor.key(b'x'), None));
            editor.key(b'\r');
            editor.echo.clear();
        }
        assert!(editor.lines.iter().map(Bytes::len).sum::<usize>() <= MAX_WAITING);
        assert!(editor.lines.iter().all(|line| line.len() <= MAX_LINE + 1));
        // ^D makes empty lines.
        let mut editor = Editor::default();
        (0..1_000_000).for_each(|_| assert_eq!(editor.key(0x04), None));
        assert!(editor.lines.len() <= MAX_WAITING);
    }

    #[test]
    fn lines_begin_at_the_left() {
        assert_eq!(shown(&Bytes::from_static(b"a\nb\n\nc")), "a\r\nb\r\n\r\nc");
        assert_eq!(shown(&Bytes::from_static(b"abc")), "abc");
    }
}
