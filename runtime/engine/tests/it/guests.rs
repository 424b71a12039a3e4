//! The example guests that end in every way, as components and as core modules.

use husk_core::io::{Outcome, Trap};
use husk_engine::{Container, ContainerConfig, Log};

use crate::support::{guest, next_line, start, text};

async fn crasher(kind: &str, way: &[&str]) -> (Container, Log) {
    let mut config = ContainerConfig::new(guest(kind));
    config.args = way.iter().map(ToString::to_string).collect();
    config.memory_limit = Some(32 << 20);
    start(config).await
}

const KINDS: [&str; 2] = ["crasher", "crasher.p1"];

// spec: STATE-07
#[tokio::test]
async fn programs_end_as_the_table_says() {
    let ways: [(&[&str], Outcome); 9] = [
        (&["exit", "0"], Outcome::Code(0)),
        (&["exit", "42"], Outcome::Code(42)),
        (&["exit", "255"], Outcome::Code(255)),
        (&["panic"], Outcome::Trap(Trap::Unreachable)),
        (&["unreachable"], Outcome::Trap(Trap::Unreachable)),
        (&["div-by-zero"], Outcome::Trap(Trap::Arithmetic)),
        (&["out-of-bounds"], Outcome::Trap(Trap::Fault)),
        (&["stack-overflow"], Outcome::Trap(Trap::Fault)),
        (&["out-of-memory"], Outcome::Trap(Trap::OutOfMemory)),
    ];
    for kind in KINDS {
        for (way, expected) in ways {
            let (container, log) = crasher(kind, way).await;
            assert_eq!(container.wait().await, expected, "{kind} {way:?}: {:?} {:?}", container.detail(), text(&log));
            assert_eq!(container.memory().used, 0);
        }
    }
}

// spec: TERM-03
#[tokio::test]
async fn programs_without_a_handler_end_by_their_signal() {
    for kind in KINDS {
        for way in ["loop", "sleep"] {
            let (container, _) = crasher(kind, &[way]).await;
            container.signal("SIGTERM").expect("a signal");
            assert_eq!(container.wait().await, Outcome::Signal(15), "{kind} {way}");
        }
    }
}

// spec: TERM-03
#[tokio::test]
async fn programs_with_a_handler_stop_by_themselves() {
    for kind in ["pause", "pause.p1"] {
        let (container, _) = start(ContainerConfig::new(guest(kind))).await;
        assert!(container.handles_signals());
        container.signal("SIGTERM").expect("a signal");
        assert_eq!(container.wait().await, Outcome::Code(0), "{kind}");
    }
}

#[tokio::test]
async fn a_program_in_c_runs() {
    let (container, log) = start(ContainerConfig::new(guest("c-hello.p1"))).await;
    assert_eq!(next_line(&log).await, "hello from C, world");
    container.signal("SIGTERM").expect("a signal");
    assert_eq!(container.wait().await, Outcome::Code(0));
    assert!(text(&log).iter().any(|line| line.starts_with("signal 15: good bye")), "{:?}", text(&log));
}
