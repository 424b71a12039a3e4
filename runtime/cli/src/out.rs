//! Standard output and standard error, for those who may no longer be read.

use std::fmt::Display;
use std::io::{self, Write};

/// Writes a line to standard output. A reader who has seen enough (`| head`) is no error.
pub(crate) fn out(line: impl Display) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// Writes a line to standard error.
pub(crate) fn err(line: impl Display) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// Text that a guest or a manifest made, on one line and without what would move the cursor or colour what follows.
pub(crate) fn printable(text: &str) -> String {
    let mut printable = String::with_capacity(text.len());
    let mut chars = text.trim_end().chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\x1b' => match chars.next_if(|c| matches!(c, '[' | ']')) {
                // A control sequence: up to its final letter.
                Some('[') => while chars.next().is_some_and(|c| !('@'..='~').contains(&c)) {},
                // A command of the operating system: up to the bell, or to `ESC \`.
                Some(_) => while chars.next_if(|c| *c != '\x1b').is_some_and(|c| c != '\x07') {},
                None => {
                    chars.next_if(|c| c.is_ascii_graphic());
                }
            },
            // Directions that would turn round the rest of the line.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {}
            '\t' => printable.push(c),
            c if c.is_control() => printable.push(' '),
            c => printable.push(c),
        }
    }
    printable
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guests_cannot_move_the_cursor() {
        for (text, wanted) in [
            ("plain", "plain"),
            ("two\nlines\n", "two lines"),
            ("\x1b[31mred\x1b[0m", "red"),
            ("\x1b[2J\x1b[Hgone", "gone"),
            ("\x1b]0;title\x07text", "text"),
            ("\x1b]0;title\x1b\\text", "text"),
            ("over\rwritten", "over written"),
            ("\u{202e}evil", "evil"),
            ("cut \x1b[", "cut "),
            ("a\tb", "a\tb"),
        ] {
            assert_eq!(printable(text), wanted, "{text:?}");
        }
    }
}
