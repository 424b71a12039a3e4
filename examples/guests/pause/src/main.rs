//! Does nothing until it is stopped, then ends with 0.

fn main() {
    while !husk_guest::signals::wait(None).is_some_and(husk_guest::Signal::is_stop) {}
}
