//! Attacks on the processor: whoever computes without end takes turns with others, and ends when it is told to.

use crate::arena::withstand;
use crate::attack::Attack;
use crate::wat::{forever, guest, guest_with, module};

// spec: TERM-04
#[test]
fn who_takes_the_processor_shares_it() {
    let endless = || module("", &forever(""));
    let twenty = (1..20).fold(Attack::new("twenty loops at once", endless()), |attack, _| attack.beside(endless()));
    withstand([
        Attack::new("an endless loop", endless()),
        Attack::new("an endless loop with a limit", endless()).cpu("10m"),
        twenty,
        Attack::new("an endless loop of host calls", guest(&forever("(drop (call $sched_yield))"))),
        Attack::new("a start function that never ends", module("(func $s (loop (br 0))) (start $s)", "")),
        Attack::new("a recursion without end of it in a thousand years", module(TWICE, "(call $twice (i32.const 90))")),
        Attack::new("a recursion without bottom", module(BOTTOMLESS, "(call $deeper)")).exits(139),
        Attack::new("two functions that call each other through a table", module(MUTUAL, "(call $ping)")).exits(139),
        Attack::new("a recursion through a host call's frames", guest_with(2, RANDOM, "(call $deeper)")).exits(139),
        Attack::new("frames of 50,000 values", wide_frames(50_000)).exits(139).grows(160),
        Attack::new("a branch table of 60,000 ways", branches(60_000)),
        Attack::new("divisions, square roots and populations", guest_with(1, "", &forever(SLOW))),
        Attack::new("a fill of 64 MB without end", guest_with(1024, "", &forever(FILL))).memory(80),
        Attack::new("overlapping copies without end", guest_with(1024, "", &forever(COPY))).memory(80),
        Attack::new("growth by nothing without end", module("(memory 1)", &forever(GROW_BY_NOTHING))),
    ]);
}

const TWICE: &str = "(func $twice (param i32)
    (if (local.get 0) (then
        (call $twice (i32.sub (local.get 0) (i32.const 1)))
        (call $twice (i32.sub (local.get 0) (i32.const 1))))))";
const BOTTOMLESS: &str = "(func $deeper (call $deeper) (call $deeper))";
const MUTUAL: &str = "(table 2 funcref) (elem (i32.const 0) $ping $pong)
    (func $ping (call_indirect (i32.const 1)) (call_indirect (i32.const 0)))
    (func $pong (call_indirect (i32.const 0)) (call_indirect (i32.const 1)))";
const RANDOM: &str =
    "(func $deeper (drop (call $random_get (i32.const 0) (i32.const 8))) (call $deeper) (call $deeper))";
const SLOW: &str = "(f64.store (i32.const 0) (f64.sqrt (f64.div (f64.load (i32.const 0)) (f64.const 3.7))))
    (i64.store (i32.const 8) (i64.rem_u (i64.popcnt (i64.load (i32.const 0))) (i64.const 7)))";
const FILL: &str = "(memory.fill (i32.const 65536) (i32.const 7) (i32.const 67043328))";
const COPY: &str = "(memory.copy (i32.const 65536) (i32.const 65537) (i32.const 67043327))";
const GROW_BY_NOTHING: &str = "(drop (memory.grow (i32.const 0)))";

/// Few calls fill a stack, if each has so many values that live across it.
fn wide_frames(values: u32) -> String {
    let keep: String = (0..values).map(|n| format!("(i64.store (i32.const {}) (local.get {n}))", n % 4096)).collect();
    let change: String = (0..values).map(|n| format!("(local.set {n} (i64.load (i32.const {})))", n % 4096)).collect();
    let locals = "i64 ".repeat(values as usize);
    module(&format!("(memory 1) (func $wide (local {locals}) {change} (call $wide) {keep})"), "(call $wide)")
}

fn branches(ways: u32) -> String {
    let labels = "0 1 2 3 4 ".repeat(ways as usize / 5);
    let table = format!("(block (block (block (block (block (br_table {labels} 0 (local.get 0)))))))");
    let next = "(local.set 0 (i32.rem_u (i32.add (local.get 0) (i32.const 7919)) (i32.const 60000)))";
    module(&format!("(func $walk (param i32) (loop $on {table} {next} (br $on)))"), "(call $walk (i32.const 0))")
}
