//! Attacks on memory: what a guest gets is counted, wherever it keeps it.

use serde_json::json;

use crate::arena::withstand;
use crate::attack::Attack;
use crate::wat::{forever, guest, guest_with, module};

// spec: RES-04
#[test]
fn who_takes_memory_gets_what_it_may_have() {
    let until_refused = |grow: &str| format!("(loop $more (br_if $more (i32.ne {grow} (i32.const -1))))");
    let grow = |pages: i64| format!("(memory.grow (i32.const {pages}))");
    let grow_table = |table: u32| format!("(table.grow {table} (ref.null func) (i32.const 10000))");
    withstand([
        Attack::new("growth page by page", module("(memory 1)", &until_refused(&grow(1)))).memory(16).oom_killed(),
        Attack::new("growth by 65,535 pages at once", module("(memory 1)", &until_refused(&grow(65_535))))
            .memory(16)
            .oom_killed(),
        Attack::new("growth by as much as a number holds", module("(memory 1)", &until_refused(&grow(-1))))
            .memory(16)
            .exits(0),
        Attack::new("growth, and a write to each page", guest_with(1, "", TOUCHES)).memory(32).oom_killed(),
        Attack::new("a memory that begins with 4 GiB", module("(memory 65536)", "")).memory(16).oom_killed(),
        Attack::new("sixteen memories that grow in turn", many_memories(16)).memory(16).oom_killed(),
        Attack::new("a thousand memories", many_memories(1000)).refused(""),
        Attack::new("a memory with addresses of 64 bits", module("(memory i64 1)", GROW_64)).memory(16).oom_killed(),
        Attack::new("a memory of 64 bits with 2^48 pages", module("(memory i64 281474976710656)", ""))
            .memory(16)
            .oom_killed(),
        Attack::new("a table of ten million", module("(table 10000000 funcref)", "")).exits(134),
        Attack::new("a table that grows without end", module("(table 1 funcref)", &until_refused(&grow_table(0))))
            .exits(0),
        Attack::new("a table that grows beyond the limit", module("(table 1 funcref)", &until_refused(&grow_table(0))))
            .memory(4)
            .oom_killed(),
        Attack::new("a hundred tables that grow in turn", many_tables(100, &grow_table)).memory(16).oom_killed(),
        Attack::new("a thousand tables", module(&"(table 1 funcref)".repeat(1000), "")).refused(""),
        Attack::new("a data segment of 16 MiB, put everywhere", data_segments(16)).memory(16).grows(160).oom_killed(),
        Attack::new("passive segments that are put in and dropped", guest_with(2, DATA, &forever(INIT))).memory(8),
        Attack::new("an element segment of 100,000", elements(100_000)).memory(8).exits(0),
        Attack::new(
            "fills beyond the end",
            module("(memory 1)", "(memory.fill (i32.const 65535) (i32.const 1) (i32.const -1))"),
        )
        .exits(139),
        Attack::new(
            "copies from before the beginning",
            module("(memory 1)", "(memory.copy (i32.const 0) (i32.const -8) (i32.const 64))"),
        )
        .exits(139),
        Attack::new("a function that is in no table", module("(table 1 funcref)", "(call_indirect (i32.const 77))"))
            .exits(139),
        Attack::new("a probe that takes as much as its container", guest(GREEDY_PROBE))
            .memory(8)
            .with(|spec| {
                let probe = json!({"exec": {"command": ["take", "all"]}, "periodSeconds": 1});
                spec["containers"][0]["readinessProbe"] = probe;
            })
            .writes("up"),
    ]);
}

const TOUCHES: &str = "(local i32)
    (loop $more
        (local.set 0 (memory.grow (i32.const 16)))
        (memory.fill (i32.mul (local.get 0) (i32.const 65536)) (i32.const 1) (i32.const 1048576))
        (br $more))";
const GROW_64: &str = "(loop $more (br_if $more (i64.ne (memory.grow (i64.const 100)) (i64.const -1))))";
const DATA: &str = r#"(data $d "0123456789abcdef")"#;
const INIT: &str = "(memory.init $d (i32.const 65536) (i32.const 0) (i32.const 0)) (data.drop $d)";
/// With an argument it takes what there is, without one it waits until that has happened.
const GREEDY_PROBE: &str = "(call $must (call $args_sizes_get (i32.const 0) (i32.const 4)))
    (if (i32.gt_u (i32.load (i32.const 0)) (i32.const 1)) (then
        (loop $more (drop (memory.grow (i32.const 1))) (br $more))))
    (call $say {up\n}) (call $sleep)";

fn many_memories(count: u32) -> String {
    let grow = |n: u32| format!("(drop (memory.grow $m{n} (i32.const 10)))");
    let memories: String = (0..count).map(|n| format!("(memory $m{n} 0)")).collect();
    module(&memories, &forever(&(0..count).map(grow).collect::<String>()))
}

fn many_tables(count: u32, grow: &dyn Fn(u32) -> String) -> String {
    let body: String = (0..count).map(|n| format!("(drop {})", grow(n))).collect();
    module(&"(table 0 funcref)".repeat(count as usize), &forever(&body))
}

/// A MiB of data, written as often as it takes.
fn data_segments(mib: u32) -> String {
    let text = "0123456789abcdef".repeat(1 << 16);
    let segments: String = (0..mib).map(|n| format!("(data (i32.const {}) {text:?})", n << 20)).collect();
    module(&format!("(memory {}) {segments}", (mib << 4) + 1), "")
}

fn elements(count: usize) -> String {
    let segment = "$f ".repeat(count);
    module(&format!("(table {count} funcref) (func $f) (elem (i32.const 0) {segment})"), "")
}
