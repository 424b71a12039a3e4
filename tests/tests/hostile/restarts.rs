//! Attacks by ending: whoever ends at once, whenever he is started, waits longer each time.

use serde_json::Value;

use crate::arena::withstand;
use crate::attack::Attack;
use crate::wat::{guest, module};

#[test]
fn who_ends_at_once_again_and_again_is_kept_waiting() {
    let exit = |code: i32| guest(&format!("(call $exit (i32.const {code}))"));
    let twenty = (1..20).fold(Attack::new("twenty that end at once", exit(1)), |attack, _| attack.beside(exit(1)));
    withstand(
        [
            Attack::new("an end at once", exit(3)).backs_off("Error", 3),
            Attack::new("a good end at once", exit(0)).backs_off("Completed", 0),
            twenty.backs_off("Error", 1),
            Attack::new("a start function that traps", module("(func $s unreachable) (start $s)", ""))
                .backs_off("Error", 134),
            Attack::new("a memory that is too large at the start", module("(memory 1000)", ""))
                .memory(8)
                .backs_off("OOMKilled", 137),
            Attack::new("a segment that doesn't fit", module("(memory 1) (data (i32.const 65536) \"x\")", ""))
                .backs_off("Error", 139),
            Attack::new("an overflow of the stack", module("(func $f (call $f) (call $f))", "(call $f)"))
                .backs_off("Error", 139),
        ]
        .map(|attack| attack.with(always)),
    );
}

fn always(spec: &mut Value) {
    spec["restartPolicy"] = "Always".into();
}
