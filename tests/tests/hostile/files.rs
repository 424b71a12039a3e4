//! Attacks on the disk and on descriptors: more files, longer files, deeper folders than anybody needs.

use serde_json::Value;

use crate::arena::{Arena, withstand};
use crate::attack::{Attack, with_data};
use crate::wat::{forever, guest, guest_with, times};
use crate::world::World;

/// Errors of WASI.
const INVAL: i64 = 28;
const NOTSUP: i64 = 58;
/// A rule was broken that ends who breaks it: to hold more descriptors than there may be is one.
const ABORTED: i64 = 134;

// spec: RES-06
#[test]
fn who_takes_files_and_folders_takes_them_from_itself() {
    let opened = "(call $must (call $open {file} (i32.const 1)))";
    let file = |name: &str, arguments: &str| {
        guest(&format!("{opened} (call $exit (call ${name} (i32.load (i32.const 0)) {arguments}))"))
    };
    let attacks = [
        Attack::new("files that are opened and never closed", guest(&forever(opened))).exits(ABORTED),
        Attack::new(
            "folders that are opened and never closed",
            guest(&forever("(call $must (call $open {.} (i32.const 2)))")),
        )
        .exits(ABORTED),
        Attack::new("a file of a TB with nothing in it", file("fd_filestat_set_size", "(i64.const 0x10000000000)"))
            .exits(0),
        Attack::new("a file as long as a number", file("fd_filestat_set_size", "(i64.const -1)")).exits(INVAL),
        Attack::new("a TB of disk at once", file("fd_allocate", "(i64.const 0) (i64.const 0x10000000000)"))
            .exits(NOTSUP),
        Attack::new("a byte at the end of all files", guest(AT_THE_END)).exits(0),
        Attack::new("a place before the beginning", file("fd_seek", "(i64.const -9) (i32.const 0) (i32.const 24)"))
            .exits(INVAL),
        Attack::new("5,000 small files", guest(&times(5000, ONE_FILE))).exits(0),
        Attack::new("a thousand folders in each other", guest(&times(1000, DEEPER))).exits(0),
        Attack::new("a folder that is read while it changes", guest(&forever(READ_WHILE_CHANGED))),
        Attack::new("links to links, a thousand", guest(&times(1000, ONE_LINK))).exits(0),
        Attack::new("a file that is made and removed without end", guest(&forever(MAKE_AND_REMOVE))),
        Attack::new("a file that is cut and filled without end", guest_with(20, "", &cut_and_fill())),
        Attack::new("8 MB where 1 MB may be", guest_with(20, "", &fills(8))).with(limited).evicted("data"),
    ];
    let with_volume = |attack: Attack| match attack.end {
        crate::attack::End::Evicted(_) => attack,
        _ => attack.with(with_data),
    };
    withstand(attacks.into_iter().map(with_volume));
}

// spec: RES-06
#[test]
fn who_takes_all_descriptors_leaves_the_node_what_it_needs() {
    let mut world = World::without_agent(&[]);
    world.under = &["prlimit", "--nofile=1024:1024"];
    world.start();
    let opens = || guest(&forever("(call $must (call $open {file} (i32.const 1)))"));
    let together = (0..4).fold(Attack::new("five who open what they can", opens()), |all, _| all.beside(opens()));
    let held = guest(&format!("{} {}", times(300, "(call $must (call $open {file} (i32.const 1)))"), "(call $sleep)"));
    let beside_holder = Attack::new("one who opens what another left", opens()).beside(held);
    let moderate = guest(&times(50, "(call $must (call $open {file} (i32.const 1)))"));
    Arena::of(world).withstands(
        [together.exits(ABORTED), beside_holder.exits(ABORTED), Attack::new("one who opens few", moderate).exits(0)]
            .map(|attack| attack.with(with_data)),
    );
}

/// With a volume that is to hold no more than a MiB.
fn limited(spec: &mut Value) {
    with_data(spec);
    spec["volumes"][0]["emptyDir"]["sizeLimit"] = "1Mi".into();
}

/// Some disks have room for a file that long, if there is nothing in it.
const AT_THE_END: &str = "(call $must (call $open {file} (i32.const 1)))
    (drop (call $fd_pwrite (i32.load (i32.const 0)) (i32.const 16) (i32.const 1) (i64.const 0x7ffffffffffffffe) (i32.const 24)))";
const ONE_FILE: &str = "(call $must (call $open (i32.const 2048) (i32.const 8) (i32.const 1)))
    (call $must (call $fd_close (i32.load (i32.const 0))))";
const ONE_LINK: &str = "(i32.store8 (i32.const 2047) (i32.const 108))
    (call $must (call $path_symlink (i32.const 2048) (i32.const 8) (i32.const 3) (i32.const 2047) (i32.const 9)))";
/// The path of the folder grows by its own name: what is below it can't be named by a path any more.
const DEEPER: &str = "(call $must (call $path_create_directory
        (select (i32.load (i32.const 8)) (i32.const 3) (i32.load (i32.const 8))) {a-name-that-is-long-enough-to-be-too-long-soon}))
    (call $must (call $path_open
        (select (i32.load (i32.const 8)) (i32.const 3) (i32.load (i32.const 8))) (i32.const 0)
        {a-name-that-is-long-enough-to-be-too-long-soon}
        (i32.const 2) (i64.const 2) (i64.const 2) (i32.const 0) (i32.const 0)))
    (if (i32.load (i32.const 8)) (then (call $must (call $fd_close (i32.load (i32.const 8))))))
    (i32.store (i32.const 8) (i32.load (i32.const 0)))";
const READ_WHILE_CHANGED: &str = "(call $next)
    (global.set $n (i32.rem_u (global.get $n) (i32.const 500)))
    (drop (call $path_unlink_file (i32.const 3) (i32.const 2048) (i32.const 8)))
    (call $must (call $fd_readdir (i32.const 3) (i32.const 65536) (i32.const 4096) (i64.const 0) (i32.const 24)))
    (call $next)
    (call $must (call $open (i32.const 2048) (i32.const 8) (i32.const 1)))
    (call $must (call $fd_close (i32.load (i32.const 0))))
    (call $must (call $fd_readdir (i32.const 3) (i32.const 65536) (i32.const 16) (i64.const 7) (i32.const 24)))";
const MAKE_AND_REMOVE: &str = "(call $must (call $open {file} (i32.const 1)))
    (call $must (call $write (i32.load (i32.const 0)) {some text}))
    (call $must (call $path_unlink_file (i32.const 3) {file}))
    (call $must (call $fd_close (i32.load (i32.const 0))))";
/// A MiB of the memory to the file at 0.
const MEGABYTE: &str = "(call $must (call $write (i32.load (i32.const 0)) (i32.const 65536) (i32.const 1048576)))";

fn cut_and_fill() -> String {
    let cut = "(call $must (call $fd_filestat_set_size (i32.load (i32.const 0)) (i64.const 0)))";
    format!("(call $must (call $open {{file}} (i32.const 1))) {}", forever(&format!("{MEGABYTE} {cut}")))
}

fn fills(mib: usize) -> String {
    format!("(call $must (call $open {{file}} (i32.const 1))) {} (call $sleep)", MEGABYTE.repeat(mib))
}
