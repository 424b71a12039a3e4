//! Termination messages: what a container says last, and how much of it is kept (STATE-06).

use alloc::string::String;

use crate::status::{ContainerState, PodStatus, Terminated};

/// Bytes of the file at `terminationMessagePath` that are read, its last.
pub const MOST_OF_FILE: usize = 4096;
/// Bytes of the log that stand for an empty file, the last.
pub const MOST_OF_LOG: usize = 2048;
/// Lines of the log that they are taken from, the last.
pub const MOST_LINES_OF_LOG: usize = 80;
/// Bytes that all messages of a pod share alike.
pub const MOST_OF_POD: usize = 12 * 1024;

/// The message in what was read of a file, cut to size. What isn't UTF-8 becomes U+FFFD.
pub fn from_file(bytes: &[u8]) -> String {
    // The end of a character whose beginning wasn't read.
    let torn = bytes.iter().take(3).take_while(|byte| **byte & 0xc0 == 0x80).count();
    tail(&String::from_utf8_lossy(&bytes[torn..]), MOST_OF_FILE).into()
}

/// The message in the lines of a log; each with its line feed, if it has one.
pub fn from_log<'a>(lines: impl DoubleEndedIterator<Item = &'a str>) -> String {
    let mut last: alloc::vec::Vec<&str> = lines.rev().take(MOST_LINES_OF_LOG).collect();
    last.reverse();
    tail(&last.concat(), MOST_OF_LOG).into()
}

/// What the runtime has to say of the end, and then what the container said.
pub fn join(runtime: &str, container: &str) -> String {
    let colon = if runtime.is_empty() || container.is_empty() { "" } else { ": " };
    [runtime, colon, container].concat()
}

/// Cuts the messages of a status so that those of `containers` fit into what a pod may have.
pub(crate) fn share(status: &mut PodStatus, containers: usize) {
    let most = MOST_OF_POD / containers.max(1);
    let lists =
        [&mut status.init_container_statuses, &mut status.container_statuses, &mut status.ephemeral_container_statuses];
    for container in lists.into_iter().flatten() {
        if let ContainerState::Terminated(end) = &mut container.state {
            cut(end, most);
        }
        if let Some(end) = &mut container.last_state {
            cut(end, most);
        }
    }
}

fn cut(end: &mut Terminated, most: usize) {
    end.message.truncate(end.message.floor_char_boundary(most));
}

/// The last bytes, from the beginning of a character.
fn tail(text: &str, most: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(most))..]
}
