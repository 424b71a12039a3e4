//! The node runs short and pods go one after the other: when the next one may (RES-09).

use std::time::Duration;

use husk_core::Input;
use husk_core::eviction::{PodUsage, Pressure, Shortage};
use husk_core::quantity::Quantity;
use husk_core::record::Interruption;
use husk_core::spec::PodSpec;
use husk_core::status::Phase;
use husk_core::time::Instant;

use crate::support::{asking_pod, why, world_with};
use crate::world::{OnSignal, Script, World, secs};

fn amount(text: &str) -> Quantity {
    Quantity::parse(text).expect("an amount")
}

/// What was measured then: that pods use so much.
fn shortage(usage: &[(&str, &str)], grace_seconds: Option<i64>, as_of: Instant) -> Shortage {
    let used = |(uid, used): &(&str, &str)| PodUsage {
        pod: (*uid).into(),
        total: amount(used),
        containers: vec![("a0".into(), amount(used))],
    };
    let usage = usage.iter().map(used).collect();
    Shortage { threshold: amount("100"), available: amount("50"), grace_seconds, as_of, usage }
}

/// It is measured now, and somebody has to go.
fn press(world: &mut World, pressure: Pressure, usage: &[(&str, &str)], grace_seconds: i64) {
    let shortage = shortage(usage, Some(grace_seconds), world.now);
    world.input(Input::Pressure { resource: pressure, shortage: Some(Box::new(shortage)) });
}

/// Who had to go, in this order.
fn went(world: &World) -> Vec<String> {
    world.events.iter().filter(|event| event.reason == "Evicted").map(|event| event.pod.to_string()).collect()
}

const BOTH: [(&str, &str); 2] = [("u1", "80Mi"), ("u2", "70Mi")];

/// Two pods that run, whose containers do that when they are told to stop.
fn two(on_signal: OnSignal) -> World {
    let mut world = world_with(&[]);
    world.script("a0", Script { on_signal, ..Script::default() });
    for (name, uid) in [("p", "u1"), ("q", "u2")] {
        world.apply(name, uid, PodSpec { termination_grace_period_seconds: Some(60), ..asking_pod(&[]) });
    }
    world.run_until(1.0);
    world
}

// spec: RES-09
#[test]
fn nobody_goes_before_the_one_before_is_gone() {
    let mut world = two(OnSignal::Ignores);
    world.teardown_delay = secs(10);
    // Its containers end after 5 s, and what they leave is removed 10 s later.
    press(&mut world, Pressure::Memory, &BOTH, 5);
    for second in 2..16 {
        world.run_until(f64::from(second));
        for pressure in [Pressure::Memory, Pressure::Disk] {
            press(&mut world, pressure, &BOTH, 5);
        }
        assert_eq!(went(&world), ["u1"], "at {second}");
    }
    world.run_until(16.0);
    press(&mut world, Pressure::Memory, &BOTH, 5);
    assert_eq!(went(&world), ["u1", "u2"]);
    assert_eq!(world.node.last_evicted(), Some(&"u2".into()));
}

// spec: RES-09
#[test]
fn what_was_measured_before_somebody_was_gone_says_nothing_of_the_next() {
    let mut world = two(OnSignal::Ignores);
    // There is no record of when something was set free.
    world.without_heir();
    press(&mut world, Pressure::Disk, &BOTH, 0);
    // A walk over a disk takes long.
    world.run_until(2.5);
    let early = shortage(&BOTH, Some(0), world.now);
    world.run_until(3.0);
    assert_eq!(world.status_of("u1").phase, Phase::Failed);
    world.input(Input::Pressure { resource: Pressure::Disk, shortage: Some(Box::new(early)) });
    assert_eq!(went(&world), ["u1"]);
    press(&mut world, Pressure::Disk, &BOTH, 0);
    assert_eq!(went(&world), ["u1", "u2"]);
}

// spec: RES-09
#[test]
fn a_hard_threshold_cuts_the_grace_of_who_goes_for_a_soft_one() {
    let mut world = two(OnSignal::Ignores);
    press(&mut world, Pressure::Memory, &BOTH, 40);
    world.run_until(10.0);
    press(&mut world, Pressure::Memory, &BOTH, 40);
    assert_eq!(world.kills("a0"), [0.0; 0], "a soft one gives it no less than before");
    press(&mut world, Pressure::Memory, &BOTH, 0);
    world.run_until(12.0);
    assert_eq!(world.kills("a0"), [12.0], "as long as a container has in any case");
    assert_eq!(went(&world), ["u1"]);
}

// spec: RES-09
#[test]
fn who_is_deleted_anyway_goes_first_and_at_once() {
    let mut world = two(OnSignal::Ignores);
    world.input(Input::DeleteRequested { pod: "u1".into(), grace_seconds: Some(60) });
    world.run_until(2.0);
    press(&mut world, Pressure::Memory, &BOTH, 0);
    world.run_until(2.5);
    press(&mut world, Pressure::Memory, &BOTH, 0);
    assert_eq!(went(&world), [""; 0], "what it holds is about to be free");
    world.run_until(5.0);
    assert_eq!(world.kills("a0"), [4.0], "as long as a container has in any case");
    press(&mut world, Pressure::Memory, &BOTH[1..], 0);
    assert_eq!(went(&world), ["u2"]);
}

// spec: RES-09
#[test]
fn what_hangs_while_it_is_removed_is_not_waited_for_with_memory() {
    for (pressure, next) in [(Pressure::Memory, true), (Pressure::Disk, false)] {
        let mut world = two(OnSignal::Ignores);
        world.teardown_delay = Duration::from_secs(100_000);
        press(&mut world, pressure, &BOTH, 0);
        world.run_until(32.9);
        press(&mut world, pressure, &BOTH, 0);
        assert_eq!(went(&world), ["u1"]);
        world.run_until(33.0);
        press(&mut world, pressure, &BOTH, 0);
        // From a disk that hangs nobody else could be removed either.
        assert_eq!(went(&world).len(), if next { 2 } else { 1 }, "{pressure:?}");
    }
}

// spec: RES-09
#[test]
fn a_threshold_in_its_grace_period_makes_the_node_short_and_nobody_go() {
    let mut world = two(OnSignal::Ignores);
    let shortage = shortage(&BOTH, None, world.now);
    world.input(Input::Pressure { resource: Pressure::Memory, shortage: Some(Box::new(shortage)) });
    world.run_until(100.0);
    assert_eq!(went(&world), [""; 0]);
    world.apply("r", "u3", asking_pod(&[]));
    assert!(why(&world, "u3").contains("memory-pressure"));
}

// spec: RES-09
#[test]
fn nobody_goes_before_those_of_before_the_start_run_again() {
    // The greedy one takes longer to come back, and uses nothing meanwhile.
    for delay in [5, 100] {
        let mut world = two(OnSignal::Ignores);
        world.script("a0", Script { start_delay: secs(delay), ..Script::default() });
        world.interrupt(Interruption::AgentRestart, 1.0);
        for second in 3..8 {
            press(&mut world, Pressure::Memory, &[("u1", "0"), ("u2", "70Mi")], 0);
            assert_eq!(went(&world), [""; 0], "{second}");
            world.run_until(f64::from(second));
        }
        if delay == 5 {
            press(&mut world, Pressure::Memory, &BOTH, 0);
            assert_eq!(went(&world), ["u1"]);
        } else {
            world.run_until(61.9);
            press(&mut world, Pressure::Memory, &BOTH, 0);
            assert_eq!(went(&world), [""; 0]);
            // Who doesn't come back keeps the others for a minute and not for ever.
            world.run_until(62.0);
            press(&mut world, Pressure::Memory, &[("u1", "0"), ("u2", "70Mi")], 0);
            assert_eq!(went(&world), ["u2"]);
        }
    }
}

// spec: RES-09
#[test]
fn who_holds_nothing_of_what_is_short_stays() {
    let mut world = two(OnSignal::Ignores);
    press(&mut world, Pressure::Disk, &[("u1", "0"), ("u2", "0")], 0);
    assert_eq!(went(&world), [""; 0], "it would set nothing free");
    press(&mut world, Pressure::Disk, &[("u1", "0"), ("u2", "1")], 0);
    assert_eq!(went(&world), ["u2"]);
}

// spec: RES-09
#[test]
fn a_disk_without_room_for_files_is_short_of_files() {
    let mut world = two(OnSignal::Ignores);
    press(&mut world, Pressure::Inodes, &[("u1", "3"), ("u2", "9000")], 0);
    world.run_until(10.0);
    assert_eq!(went(&world), ["u2"]);
    let message = world.status_of("u2").message;
    assert!(message.starts_with("The node was low on resource: inodes. Threshold quantity: 100, available: 50. "));
    world.apply("r", "u3", asking_pod(&[("memory", "1Mi")]));
    assert!(why(&world, "u3").contains("disk-pressure"));
}
