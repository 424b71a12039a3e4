//! Attacks by names: ways out of the folders that a guest was given.

use crate::arena::withstand;
use crate::attack::{Attack, with_data};
use crate::wat::{guest, times};

/// Errors of WASI.
const EXIST: i64 = 20;
const ILSEQ: i64 = 25;
const INVAL: i64 = 28;
const ISDIR: i64 = 31;
const LOOP: i64 = 32;
const NAME_TOO_LONG: i64 = 37;
const NOENT: i64 = 44;
const NOT_DIR: i64 = 54;
const PERM: i64 = 63;

/// From a volume to the agent's folder.
const TO_AGENT: &str = "../../../../..";

#[test]
fn nobody_leaves_the_folders_that_he_was_given() {
    let opens = |path: &str| guest(&format!("(call $exit (call $open {{{path}}} (i32.const 0)))"));
    let makes = |path: &str| guest(&format!("(call $exit (call $open {{{path}}} (i32.const 1)))"));
    let follows = |target: &str, path: &str| {
        guest(&format!(
            "(call $must (call $path_symlink {{{target}}} (i32.const 3) {{link}}))
             (call $exit (call $open {{{path}}} (i32.const 0)))"
        ))
    };
    let longest = "n".repeat(256);
    let names = [
        Attack::new("up to the host's root", opens("../../../../../../../../../../etc/passwd")).exits(PERM),
        Attack::new("up by way of a folder", opens("a/../../../../../etc/passwd")).exits(NOENT),
        Attack::new("a path from the host's root", opens("/etc/passwd")).exits(PERM),
        Attack::new("the agent's socket", opens(&format!("{TO_AGENT}/husk.sock"))).exits(PERM),
        Attack::new("the agent's state", opens(&format!("{TO_AGENT}/data/state.redb"))).exits(PERM),
        Attack::new("a file beside the agent's", makes(&format!("{TO_AGENT}/mine"))).exits(PERM),
        Attack::new("the memory of its process", opens("proc/self/mem")).exits(NOENT),
        Attack::new("devices", opens("dev/mem")).exits(NOENT),
        Attack::new("a folder as a file to write", makes(".")).exits(ISDIR),
        Attack::new("a file as a folder", guest(FILE_AS_FOLDER)).exits(NOT_DIR),
        Attack::new("a name of 256 bytes", makes(&longest)).exits(NAME_TOO_LONG),
        Attack::new("a name with a zero", makes("a\0b")).exits(INVAL),
        Attack::new("a name that is no text", guest(NO_TEXT)).exits(ILSEQ),
        Attack::new("a path without name", makes("")).exits(NOENT),
    ];
    let links = [
        Attack::new("a link to the host's root", follows("/", "link/etc/passwd")).exits(100 + PERM),
        Attack::new("a link upwards", follows("../../../../../../../../etc", "link/passwd")).exits(PERM),
        Attack::new("a link to a way that leads out", follows("a/../../../../../../../../../etc", "link/passwd"))
            .exits(NOENT),
        Attack::new("a chain of links", guest(CHAIN)).exits(PERM),
        Attack::new("links in a circle", guest(CIRCLE)).exits(LOOP),
        Attack::new("a file made by a link that leads nowhere yet", guest(DANGLING)).exits(PERM),
        Attack::new("another name of a file outside", guest(LINK_IN)).exits(PERM),
        Attack::new("another name outside", guest(LINK_OUT)).exits(PERM),
        Attack::new("a rename to outside", guest(RENAME_OUT)).exits(PERM),
        Attack::new("a rename from outside", guest(RENAME_IN)).exits(PERM),
        Attack::new(
            "a folder made outside",
            guest("(call $exit (call $path_create_directory (i32.const 3) {../mine}))"),
        )
        .exits(PERM),
        Attack::new("a folder that goes where it is", guest(INTO_ITSELF)).exits(INVAL),
        Attack::new("a rename over the volume itself", guest(OVER_VOLUME)).exits(PERM),
        Attack::new(
            "a removal outside",
            guest("(call $exit (call $path_unlink_file (i32.const 3) {../../../../../husk.sock}))"),
        )
        .exits(PERM),
        Attack::new("the volume itself removed", guest("(call $exit (call $path_remove_directory (i32.const 3) {.}))"))
            .exits(INVAL),
        Attack::new("a link to where a file is", guest(TWICE)).exits(EXIST),
        Attack::new("folder and link exchanged while it opens", guest(OPENS)).beside(guest(&swaps())).exits(0),
    ];
    withstand(names.into_iter().chain(links).map(|attack| attack.with(with_data)));
}

const FILE_AS_FOLDER: &str = "(call $must (call $open {file} (i32.const 1)))
    (call $exit (call $open {file} (i32.const 2)))";
const NO_TEXT: &str = "(i32.store (i32.const 64) (i32.const 0xc3ff80))
    (call $exit (call $open (i32.const 64) (i32.const 3) (i32.const 1)))";
const CHAIN: &str = "(call $must (call $path_create_directory (i32.const 3) {a}))
    (call $must (call $path_symlink {..} (i32.const 3) {a/up}))
    (call $must (call $path_symlink {a/up/..} (i32.const 3) {higher}))
    (call $must (call $path_symlink {higher/../../../..} (i32.const 3) {top}))
    (call $exit (call $open {top/etc/passwd} (i32.const 0)))";
const CIRCLE: &str = "(call $must (call $path_symlink {b} (i32.const 3) {a}))
    (call $must (call $path_symlink {a} (i32.const 3) {b}))
    (call $exit (call $open {a} (i32.const 0)))";
const DANGLING: &str = "(call $must (call $path_symlink {../../../mine} (i32.const 3) {link}))
    (call $exit (call $open {link} (i32.const 1)))";
const LINK_IN: &str = "(call $exit (call $path_link
    (i32.const 3) (i32.const 0) {../../../../../log} (i32.const 3) {mine}))";
const LINK_OUT: &str = "(call $must (call $open {file} (i32.const 1)))
    (call $exit (call $path_link (i32.const 3) (i32.const 0) {file} (i32.const 3) {../../file}))";
const RENAME_OUT: &str = "(call $must (call $open {file} (i32.const 1)))
    (call $exit (call $path_rename (i32.const 3) {file} (i32.const 3) {../../file}))";
const RENAME_IN: &str =
    "(call $exit (call $path_rename (i32.const 3) {../../../../../husk.sock} (i32.const 3) {mine}))";
const INTO_ITSELF: &str = "(call $must (call $path_create_directory (i32.const 3) {a}))
    (call $exit (call $path_rename (i32.const 3) {a} (i32.const 3) {a/b}))";
const OVER_VOLUME: &str = "(call $must (call $path_create_directory (i32.const 3) {a}))
    (call $exit (call $path_rename (i32.const 3) {a} (i32.const 3) {../data}))";
const TWICE: &str = "(call $must (call $open {file} (i32.const 1)))
    (call $exit (call $path_symlink {elsewhere} (i32.const 3) {file}))";

/// Opens a path, the first part of which is a folder now and a link to outside then. It ends when it has been the folder often.
const OPENS: &str = "(loop $again
    (if (i32.eqz (call $open {way/passwd} (i32.const 0))) (then
        (call $must (call $read (i32.load (i32.const 0))))
        ;; What is outside is not empty.
        (if (i32.load (i32.const 24)) (then (call $exit (i32.const 66))))
        (call $must (call $fd_close (i32.load (i32.const 0))))
        (call $next)))
    (br_if $again (i32.lt_u (global.get $n) (i32.const 300))))";

/// Exchanges the two, a thousand times in each turn of the other at least.
fn swaps() -> String {
    let rename = |from: &str, to: &str| {
        format!("(call $must (call $path_rename (i32.const 3) {{{from}}} (i32.const 3) {{{to}}}))")
    };
    let round = [rename("way", "inside"), rename("outside", "way"), rename("way", "outside"), rename("inside", "way")];
    format!(
        "(call $must (call $path_create_directory (i32.const 3) {{way}}))
         (call $must (call $open {{way/passwd}} (i32.const 1)))
         (call $must (call $path_symlink {{../../../../../../../../../../../etc}} (i32.const 3) {{outside}}))
         {}",
        times(u32::MAX, &round.concat())
    )
}
