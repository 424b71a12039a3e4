//! Attacks by what guests write: the log, and their last words.

use crate::arena::withstand;
use crate::attack::Attack;
use crate::wat::{forever, guest, guest_with, times};

/// The most that is kept of the last words of a container.
const MOST: usize = 4096;

// spec: RES-06
#[test]
fn what_guests_write_is_kept_in_bounds() {
    let fill = |byte: u8| format!("(memory.fill (i32.const 65536) (i32.const {byte}) (i32.const 1048576))");
    let flood = |stream: u8| format!("(drop (call $write (i32.const {stream}) (i32.const 65536) (i32.const 1048576)))");
    let say_done = "(call $say {\ndone\n}) (call $sleep)";
    withstand([
        Attack::new(
            "100 MB without a line feed",
            guest_with(20, "", &format!("{} {} {say_done}", fill(b'x'), times(100, &flood(1)))),
        )
        .writes("done"),
        Attack::new("line feeds without end", guest_with(20, "", &format!("{} {}", fill(b'\n'), forever(&flood(1))))),
        Attack::new(
            "both streams without end",
            guest_with(20, "", &format!("{} {}", fill(b'x'), forever(&[flood(1), flood(2)].concat()))),
        ),
        Attack::new("bytes one by one without end", guest(&forever("(call $say {x})"))),
        Attack::new("what is no text", guest_with(20, "", &format!("{} {} {say_done}", fill(0xff), flood(2))))
            .writes("done"),
        Attack::new(
            "orders to a terminal",
            guest("(call $say {\u{1b}[2J\u{1b}]0;mine\u{7}\u{1b}c\r\0done\n}) (call $sleep)"),
        )
        .writes("done"),
        Attack::new("random bytes", guest_with(20, "", &forever(NOISE))),
        Attack::new("last words of 10 MB", guest_with(20, "", &last_words()))
            .says(7, |message| message.len() <= MOST && message.ends_with('x')),
        Attack::new("last words by a link", guest(BY_LINK)).says(7, |message| message.is_empty()),
        Attack::new("last words by another name of a file outside", guest(BY_LONG_LINK))
            .says(7, |message| message.is_empty()),
        Attack::new("a folder in the place of last words", guest(FOLDER)).says(7, |message| message.is_empty()),
        Attack::new("last words that are no text", guest(NO_TEXT)).says(7, |message| message.contains('\u{fffd}')),
    ]);
}

const NOISE: &str = "(drop (call $random_get (i32.const 65536) (i32.const 65536)))
    (drop (call $write (i32.const 1) (i32.const 65536) (i32.const 65536)))";
const BY_LINK: &str = "(call $must (call $path_unlink_file (i32.const 3) {dev/termination-log}))
    (call $must (call $path_symlink {../../../../../../../../../../etc/passwd} (i32.const 3) {dev/termination-log}))
    (call $exit (i32.const 7))";
const BY_LONG_LINK: &str = "(call $must (call $path_rename (i32.const 3) {dev} (i32.const 3) {gone}))
    (call $must (call $path_symlink {../../../../../../../../../../proc/self} (i32.const 3) {dev}))
    (call $exit (i32.const 7))";
const FOLDER: &str = "(call $must (call $path_unlink_file (i32.const 3) {dev/termination-log}))
    (call $must (call $path_create_directory (i32.const 3) {dev/termination-log}))
    (call $exit (i32.const 7))";
const NO_TEXT: &str = "(call $must (call $open {dev/termination-log} (i32.const 0)))
    (i32.store (i32.const 64) (i32.const 0xfefdfcff))
    (call $must (call $write (i32.load (i32.const 0)) (i32.const 64) (i32.const 4)))
    (call $exit (i32.const 7))";

fn last_words() -> String {
    let piece = "(call $must (call $write (i32.load (i32.const 0)) (i32.const 65536) (i32.const 1048576)))";
    format!(
        "(memory.fill (i32.const 65536) (i32.const 120) (i32.const 1048576))
         (call $must (call $open {{dev/termination-log}} (i32.const 0))) {} (call $exit (i32.const 7))",
        piece.repeat(10)
    )
}
