//! Colours on terminals that want them.

use std::io::IsTerminal;
use std::sync::LazyLock;

/// Both outputs are judged together: who redirects one reads the other in a file as well, more often than not.
static COLOURS: LazyLock<bool> = LazyLock::new(|| {
    std::io::stdout().is_terminal()
        && std::io::stderr().is_terminal()
        && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
});

/// Something is wrong.
pub(crate) fn red(text: &str) -> String {
    paint("31;1", text)
}

/// Something to look at.
pub(crate) fn yellow(text: &str) -> String {
    paint("33;1", text)
}

/// All is well.
pub(crate) fn green(text: &str) -> String {
    paint("32;1", text)
}

/// Of less importance.
pub(crate) fn faint(text: &str) -> String {
    paint("2", text)
}

/// A name, one of eight colours by its place.
pub(crate) fn named(place: usize, text: &str) -> String {
    const PALETTE: [&str; 6] = ["36", "35", "34", "33", "32", "96"];
    paint(PALETTE[place % PALETTE.len()], text)
}

fn paint(code: &str, text: &str) -> String {
    if *COLOURS { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
}
