//! Lives of a device: clients that ask for pods and for their end, pods of many shapes, and a power that goes at any moment.

use std::time::Duration;

use husk_store::{Options, Store};

use crate::support::device::{Clients, Device, PowerCut};
use crate::support::sim::Random;
use crate::support::{Machine, boot, options, secs};

/// Starts of the device, each on what the last power cut has left.
struct Life {
    machine: Machine,
    random: Random,
    clients: Clients,
    boots: u64,
    uptime: Duration,
}

impl Life {
    fn new(seed: u64) -> Self {
        Self {
            machine: Machine::default(),
            random: Random(seed),
            clients: Clients::default(),
            boots: 1,
            uptime: secs(9),
        }
    }

    /// From one power cut to the next. `calm` is how long nothing happens to the power, at least.
    fn until_a_cut(&mut self, calm: Duration) {
        // Sometimes it goes again while the store puts itself right.
        if self.random.below(4) == 0 {
            self.machine.cut_after(self.random.below(40) as u64);
        }
        let mut lived = Duration::ZERO;
        let went = self.run(calm, &mut lived);
        assert!(went.is_err() && self.machine.is_off());
        self.machine.boot(self.random.next());
        // After the end of the agent alone what wasn't synced may be lost as well: that is harder than life is.
        if self.random.below(3) == 0 {
            self.uptime += lived;
        } else {
            (self.boots, self.uptime) = (self.boots + 1, secs(3));
        }
    }

    fn run(&mut self, calm: Duration, lived: &mut Duration) -> Result<(), PowerCut> {
        let boot = boot(&format!("boot-{}", self.boots), self.uptime.as_secs());
        let opened = match Store::open_on(self.machine.medium(), Options { boot, ..options() }) {
            Ok(opened) => opened,
            Err(_) if self.machine.is_off() => return Err(PowerCut),
            Err(error) => panic!("the store always opens: {error}"),
        };
        let began = opened.now;
        let mut device = Device::begin(opened, self.random.next(), &mut self.clients)?;
        let mut is_cut = false;
        loop {
            let result = device.ask().and_then(|()| device.run_for(secs(self.random.below(40) as u64)));
            *lived = device.now.saturating_since(began);
            result?;
            if *lived >= calm && !is_cut {
                is_cut = true;
                self.machine.cut_after(self.random.below(60) as u64);
            }
        }
    }

    /// With power for good: whoever was to end ends, and the others live.
    fn ends_well(mut self) {
        let boot = boot("the last boot", 3);
        let opened = Store::open_on(self.machine.medium(), Options { boot, ..options() }).expect("it opens");
        let mut device = Device::begin(opened, self.random.next(), &mut self.clients).expect("there is power");
        device.run_for(secs(600)).expect("there is power");
        let stuck: Vec<_> = self.clients.objects.values().filter(|object| object.leaving.is_some()).collect();
        assert!(stuck.is_empty(), "deleted and still there: {stuck:?}");
    }
}

/// So many lives with twenty power cuts each, the same each time; HUSK_LIVES=500 for ten thousand cuts.
fn lives() -> u64 {
    std::env::var("HUSK_LIVES").ok().and_then(|lives| lives.parse().ok()).unwrap_or(50)
}

// spec: NODE-04
// spec: TERM-07
// spec: TERM-11
// spec: STATE-04
#[test]
fn a_thousand_power_cuts_take_nothing_back_that_a_client_has_seen() {
    for seed in 0..lives() {
        let mut life = Life::new(seed);
        for _ in 0..20 {
            life.until_a_cut(secs(seed % 7 * 20));
        }
        life.ends_well();
    }
}

// spec: NODE-04
#[test]
fn a_day_with_a_power_cut_each_half_hour_or_so() {
    let mut life = Life::new(999);
    for _ in 0..48 {
        life.until_a_cut(secs(1800));
    }
    life.ends_well();
}
