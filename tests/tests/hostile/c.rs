//! Attacks in C, whose programs hold nothing back by themselves.

use crate::arena::withstand;
use crate::attack::{Attack, Guest, with_data};

/// Errors of the guest's C library.
const NOT_PERMITTED: i64 = 63;
/// What Linux' signals would be.
const FAULT: i64 = 139;

fn vandal(name: &'static str, way: &'static str) -> Attack {
    Attack::new(name, Guest::Vandal(way)).with(with_data)
}

// spec: RES-04
// spec: RES-06
#[test]
fn programs_in_c_break_nothing_but_themselves() {
    withstand([
        vandal("a write to where nothing is", "wild-write").exits(FAULT),
        vandal("a write over everything", "overflow").exits(FAULT),
        vandal("a call of what is no function", "wild-call").exits(FAULT),
        vandal("frames on top of frames", "deeper").exits(FAULT),
        vandal("memory that is never given back", "hoard").memory(32).oom_killed(),
        vandal("memory that is given back twice", "twice").exits(0),
        vandal("what Linux shows of others", "snoop").exits(NOT_PERMITTED),
        vandal("names that come and go", "churn"),
        vandal("a log without lines", "babble").writes("aaaa"),
        vandal("waits that are over at once", "impatient"),
    ]);
}
