//! What an event costs, and a pod that idles, on a node with few and with many pods: `cargo xtask bench core`.

#[path = "../tests/counting/mod.rs"]
mod counting;
#[path = "../tests/fleet/mod.rs"]
mod fleet;

use std::time::{Duration, Instant};

use counting::{allocations, live_bytes};
use fleet::{EVENTS, Event, Fleet};

/// Pods beside the busy one.
const SIZES: [usize; 3] = [10, 1000, 10_000];

/// How often each event happens in one measurement: so short that there are some in which nothing else ran.
const TIMES: u32 = 20;

/// Measurements; the fastest counts, since whatever else runs on the machine can only make one slower.
const ROUNDS: usize = 300;

fn main() {
    let mut plain = Vec::new();
    let mut fleets = SIZES.map(|size| {
        let (bytes, fleet) = bytes_each(size, Fleet::new);
        plain.push(bytes);
        fleet
    });
    let sized = SIZES.map(|size| bytes_each(size, Fleet::sized).0);
    println!("husk-core: ns (allocations) for each event, by the number of idle pods");
    println!("  {:<34}{}", "", SIZES.map(|size| format!("{size:>16}")).concat());
    for event in &EVENTS {
        let row = measure(event, &mut fleets);
        println!("  {:<34}{row}", event.name);
    }
    for (name, bytes) in [("bytes for each pod", &*plain), ("… with requests and limits", &sized)] {
        println!("  {name:<34}{}", bytes.iter().map(|bytes| format!("{bytes:>16}")).collect::<String>());
    }
}

fn bytes_each(size: usize, fleet: fn(usize) -> Fleet) -> (i64, Fleet) {
    let before = live_bytes();
    let fleet = fleet(size);
    ((live_bytes() - before) / i64::try_from(size).unwrap_or(i64::MAX), fleet)
}

/// Round by round for all sizes, so that a slow moment of the machine meets all of them.
fn measure(event: &Event, fleets: &mut [Fleet]) -> String {
    let mut best = vec![(Duration::MAX, 0); fleets.len()];
    for _ in 0..ROUNDS {
        for (fleet, (time, count)) in fleets.iter_mut().zip(&mut best) {
            (event.happen)(fleet);
            let begun = Instant::now();
            let (allocated, ()) = allocations(|| (0..TIMES).for_each(|_| (event.happen)(fleet)));
            *time = begun.elapsed().min(*time);
            *count = allocated / u64::from(TIMES);
        }
    }
    let cell = |(time, count): (Duration, u64)| {
        let cell = format!("{} ({count})", time.as_nanos() / u128::from(TIMES));
        format!("{cell:>16}")
    };
    best.into_iter().map(cell).collect()
}
