//! The crate as a guest's native tests see it.

use std::time::Duration;

use husk_guest::signals::native::{raise, said_ready};
use husk_guest::{Signal, health, signals};

#[test]
fn signals_come_in_the_order_they_are_due() {
    raise(Signal::Usr1, Duration::from_millis(2));
    raise(Signal::Hup, Duration::ZERO);
    assert_eq!(signals::next(), Some(Signal::Hup));
    assert_eq!(signals::wait(None), Some(Signal::Usr1));
    assert_eq!(signals::next(), None);
}

#[test]
fn a_wait_without_a_signal_ends_with_its_timeout() {
    assert_eq!(signals::wait(Some(Duration::from_millis(1))), None);
}

#[test]
fn a_stop_signal_ends_the_loop_and_other_signals_do_not() {
    let mut rounds = 0;
    let stopped_by = husk_guest::run_until_stopped(Duration::from_secs(3600), || {
        rounds += 1;
        raise(Signal::Usr1, Duration::ZERO);
        raise(Signal::Term, Duration::ZERO);
    });
    assert_eq!((rounds, stopped_by), (1, Signal::Term));
    assert_eq!(signals::stop_requested(), Some(Signal::Term), "the answer stays");
}

#[test]
fn readiness_is_said() {
    assert_eq!(said_ready(), None);
    health::ready(false);
    assert_eq!(said_ready(), Some(false));
}

#[test]
fn names_and_numbers_are_those_of_linux() {
    for (name, number) in [("HUP", 1), ("SIGINT", 2), ("quit", 3), ("USR1", 10), ("sigusr2", 12), ("TERM", 15)] {
        assert_eq!(Signal::from_name(name).map(Signal::number), Some(number), "{name}");
        assert_eq!(
            Signal::from_number(number).and_then(|signal| Signal::from_name(signal.name())),
            Signal::from_name(name)
        );
    }
    assert_eq!(Signal::Term.exit_code(), 143);
    assert_eq!(Signal::from_name("NOSUCH"), None);
    assert_eq!(Signal::from_number(0), None);
}
