//! Attacks on what the node does for guests: each call of WASI with what nobody should give it.

use crate::arena::withstand;
use crate::attack::Attack;
use crate::wat::{call, forever, guest, guest_with};

/// Errors of WASI.
const BADF: i64 = 8;
const INVAL: i64 = 28;
const NOMEM: i64 = 48;
const NOT_A_SOCKET: i64 = 57;
/// A rule was broken that ends who breaks it: a pointer to beyond the memory is one.
const ABORTED: i64 = 134;

#[test]
fn calls_with_the_wrong_arguments_harm_nobody_else() {
    let write =
        |vectors: &str, count: &str| call("fd_write", &format!("(i32.const 1) {vectors} {count} (i32.const 0)"));
    withstand([
        Attack::new("a million subscriptions", guest_with(1400, "", POLL_MILLION)).memory(128).exits(ABORTED),
        Attack::new(
            "subscriptions beyond the memory",
            call("poll_oneoff", "(i32.const -8) (i32.const 0) (i32.const 9) (i32.const 0)"),
        )
        .exits(ABORTED),
        Attack::new("no subscription", call("poll_oneoff", "(i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)"))
            .exits(INVAL),
        Attack::new("a clock that nobody has", call("clock_time_get", "(i32.const 99) (i64.const 0) (i32.const 0)"))
            .exits(ABORTED),
        Attack::new("a wait until the end of time", guest(END_OF_TIME)),
        Attack::new("waits for nothing without end", guest(&forever(WAIT_FOR_NOTHING))),
        Attack::new(
            "the time, without end",
            guest(&forever("(drop (call $clock_time_get (i32.const 0) (i64.const 0) (i32.const 0)))")),
        ),
        Attack::new("output from beyond the memory", write("(i32.const -4)", "(i32.const 1)")).exits(ABORTED),
        Attack::new("output of 4 GB", guest(FOUR_GIGABYTES)).exits(NOMEM),
        Attack::new("output of four thousand million pieces", write("(i32.const 64)", "(i32.const -1)")).exits(NOMEM),
        Attack::new("random bytes for all addresses", call("random_get", "(i32.const 0) (i32.const -1)"))
            .exits(ABORTED),
        Attack::new("random bytes beyond the memory", call("random_get", "(i32.const -8) (i32.const 64)"))
            .exits(ABORTED),
        Attack::new("random bytes by the megabyte, without end", guest_with(1024, "", &forever(RANDOM_FLOOD)))
            .memory(80),
        Attack::new("arguments to beyond the memory", call("args_get", "(i32.const -4) (i32.const -4)")).exits(ABORTED),
        Attack::new("the environment to beyond the memory", call("environ_get", "(i32.const -4) (i32.const -4)"))
            .exits(ABORTED),
        Attack::new("folders that it doesn't have", call("fd_prestat_get", "(i32.const 77) (i32.const 0)")).exits(BADF),
        Attack::new(
            "a folder's name, longer than it is",
            call("fd_prestat_dir_name", "(i32.const 3) (i32.const 0) (i32.const -1)"),
        )
        .exits(0),
        Attack::new("another descriptor in the place of the output", guest(RENUMBER)).exits(0),
        Attack::new("a write after closing everything", guest(CLOSE_ALL)).exits(BADF),
        Attack::new("descriptors below zero", call("fd_close", "(i32.const -1)")).exits(BADF),
        Attack::new("connections that nobody offers", call("sock_accept", "(i32.const 1) (i32.const 0) (i32.const 0)"))
            .exits(NOT_A_SOCKET),
        Attack::new(
            "the same without end, which the node may have something to say about",
            guest(&forever("(drop (call $sock_accept (i32.const 1) (i32.const 0) (i32.const 0)))")),
        ),
        Attack::new("the exit code 255", guest("(call $exit (i32.const 255))")).exits(255),
        Attack::new("the exit code 256", guest("(call $exit (i32.const 256))")).exits(256),
        Attack::new("the exit code -1", guest("(call $exit (i32.const -1))")).exits(-1),
        Attack::new("the lowest exit code", guest("(call $exit (i32.const 0x80000000))")).exits(-2_147_483_648),
    ]);
}

const POLL_MILLION: &str = "(local $at i32)
    (local.set $at (i32.const 65536))
    (loop $fill
        (i32.store offset=16 (local.get $at) (i32.const 1))
        (i64.store offset=24 (local.get $at) (i64.const 31536000000000000))
        (local.set $at (i32.add (local.get $at) (i32.const 48)))
        (br_if $fill (i32.lt_u (local.get $at) (i32.const 50397184))))
    (call $exit (call $poll_oneoff (i32.const 65536) (i32.const 50397184) (i32.const 1048576) (i32.const 0)))";
/// At the last moment that a clock can show.
const END_OF_TIME: &str = "(i32.store (i32.const 48) (i32.const 1))
    (i64.store (i32.const 56) (i64.const -1))
    (i32.store16 (i32.const 72) (i32.const 1))
    (call $exit (call $poll_oneoff (i32.const 32) (i32.const 80) (i32.const 1) (i32.const 0)))";
const WAIT_FOR_NOTHING: &str = "(i32.store (i32.const 48) (i32.const 1))
    (drop (call $poll_oneoff (i32.const 32) (i32.const 80) (i32.const 1) (i32.const 0)))";
const FOUR_GIGABYTES: &str = "(i32.store (i32.const 20) (i32.const -1))
    (call $exit (call $fd_write (i32.const 1) (i32.const 16) (i32.const 1) (i32.const 24)))";
const RANDOM_FLOOD: &str = "(drop (call $random_get (i32.const 65536) (i32.const 33554432)))";
const RENUMBER: &str = "(call $must (call $open {mine} (i32.const 1)))
    (call $must (call $fd_renumber (i32.load (i32.const 0)) (i32.const 1)))
    (call $must (call $fd_renumber (i32.const 1) (i32.const 2)))
    (call $must (i32.ne (call $fd_renumber (i32.const 0) (i32.const 1000000)) (i32.const 8)))
    (call $exit (call $write (i32.const 2) {into the file}))";
const CLOSE_ALL: &str = "(local $fd i32)
    (loop $close
        (drop (call $fd_close (local.get $fd)))
        (local.set $fd (i32.add (local.get $fd) (i32.const 1)))
        (br_if $close (i32.lt_u (local.get $fd) (i32.const 100))))
    (call $exit (call $write (i32.const 1) {nobody hears}))";
