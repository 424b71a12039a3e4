//! What the program says of its own health.

/// Says whether the program can do its work now. A program that never says so is judged by its probes alone.
pub fn ready(is_ready: bool) {
    crate::sys::ready(is_ready);
}
