//! Exit codes.

use std::io::Write as _;

/// Ends the program with an exit code that reaches the container's status unchanged.
///
/// On `wasm32-wasip2` this is the way to end with a code other than 0 and 1: the C library below
/// [`std::process::exit`], and below what `main` returns, only tells success from failure there. Codes are cut to eight
/// bits, as on Unix.
pub fn exit(code: u8) -> ! {
    // What the standard library does at an exit of its own; an output that is gone already can't be helped.
    let _ = std::io::stdout().flush();
    crate::sys::exit(code)
}
