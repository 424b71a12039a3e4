//! What events cost, in allocations: the same on every machine, and for every number of pods beside. (How many pods an event
//! looks at is tested where they are kept; `cargo xtask bench core` measures the time.)

#[path = "counting/mod.rs"]
mod counting;
#[path = "fleet/mod.rs"]
mod fleet;

use counting::{allocations, live_bytes};
use fleet::{EVENTS, Fleet};
use husk_core::Instant;

const FEW: usize = 10;
const MANY: usize = 10_000;

/// Where all pods are probed, timers of different pods change places, and the index of timers gets new leaves now and then.
const PROBES_FOR_A_LEAF: u64 = 4;

/// What anything else may allocate that happens to one pod, from its creation to its deletion at most.
const FOR_AN_EVENT: u64 = 300;

/// Leaves of indexes that are full at one size and not at another.
const LEAVES: u64 = 10;

#[test]
fn a_probe_that_changes_nothing_allocates_nothing_however_many_pods_idle() {
    for idle in [FEW, MANY] {
        let mut fleet = Fleet::new(idle);
        fleet.probe();
        for _ in 0..100 {
            let (count, ()) = allocations(|| fleet.probe());
            assert_eq!(count, 0, "beside {idle} pods");
        }
    }
}

#[test]
fn where_all_pods_are_probed_only_the_index_of_timers_allocates() {
    for pods in [FEW, MANY] {
        let mut fleet = Fleet::probed(pods);
        fleet.probe();
        let before = fleet.probes;
        let (count, ()) = allocations(|| (0..10).for_each(|_| fleet.probe()));
        let probes = fleet.probes - before;
        assert!(probes >= 10 * 2 * pods as u64, "{probes} probes of {pods} pods");
        assert!(count * PROBES_FOR_A_LEAF <= probes, "{count} allocations for {probes} probes of {pods} pods");
    }
}

// spec: PROBE-14
#[test]
fn a_week_of_probes_leaves_nothing_behind() {
    let mut fleet = Fleet::probed(10);
    let until = |fleet: &mut Fleet, days: u64| {
        while fleet.now < Instant::from_secs(days * 24 * 3600) {
            fleet.probe();
        }
        (fleet.probes, live_bytes())
    };
    let (first, before) = until(&mut fleet, 1);
    let (last, after) = until(&mut fleet, 8);
    // Two each every ten seconds: none is late, and none is missing.
    assert_eq!(last - first, 10 * 2 * 7 * 24 * 360);
    assert!(after <= before, "{before} bytes grew to {after}");
}

#[test]
fn an_event_allocates_the_same_however_many_pods_idle() {
    let [few, many] = [FEW, MANY].map(|idle| {
        let mut fleet = Fleet::new(idle);
        EVENTS.map(|event| {
            (event.happen)(&mut fleet);
            allocations(|| (event.happen)(&mut fleet)).0
        })
    });
    for (event, (few, many)) in EVENTS.iter().zip(few.into_iter().zip(many)) {
        assert!(few.max(many) <= FOR_AN_EVENT, "{}: {few} and {many}", event.name);
        assert!(few.abs_diff(many) <= LEAVES, "{}: {few} beside {FEW} pods, {many} beside {MANY}", event.name);
    }
}
