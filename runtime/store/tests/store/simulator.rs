//! A day of the simulator's pods, with the store in the loop: what a node goes on from is what the store gives back. The power goes
//! right after a flush here, for the simulator's referee knows nothing of what isn't on the disk yet; `lives` has it go at any moment.

use std::collections::BTreeMap;
use std::time::Duration;

use husk_core::Instant;
use husk_core::io::{PodUid, Urgency};
use husk_core::record::{Interruption, PodRecord};
use husk_sim::Broken;
use husk_sim::counts::Counts;
use husk_sim::play::{End, Records, play_with};
use husk_sim::random::case;
use husk_sim::scenario::What;
use husk_store::{Boot, Opened, Options, Store};

use crate::support::{Machine, options, secs};

/// The store of a device, and what has to be in it.
struct Disk {
    machine: Machine,
    store: Option<Store>,
    boots: u64,
    /// When the board was started.
    booted: Instant,
    expected: BTreeMap<PodUid, Vec<u8>>,
    reopened: u64,
}

impl Disk {
    fn new() -> Self {
        let mut disk = Self {
            machine: Machine::default(),
            store: None,
            boots: 1,
            booted: Instant::ZERO,
            expected: BTreeMap::new(),
            reopened: 0,
        };
        let seen = disk.open(Instant::ZERO);
        assert_eq!((seen.interruption, seen.now), (None, Instant::ZERO));
        disk
    }

    fn open(&mut self, now: Instant) -> Seen {
        let boot = Boot { id: format!("boot-{}", self.boots), uptime: now.saturating_since(self.booted) };
        let opened = Store::open_on(self.machine.medium(), Options { boot, ..options() }).expect("it opens");
        let Opened { store, now, interruption, records, unreadable, set_aside, .. } = opened;
        assert_eq!((set_aside, unreadable.as_slice()), (None, &[][..]));
        self.store = Some(store);
        Seen { now, interruption, records }
    }

    /// The store, in its rhythm.
    fn at(&self, now: Instant) -> &Store {
        let store = self.store.as_ref().expect("open");
        store.advance(now).expect("the disk is well");
        store
    }
}

struct Seen {
    now: Instant,
    interruption: Option<Interruption>,
    records: Vec<PodRecord>,
}

impl Records for &mut Disk {
    fn keep(&mut self, now: Instant, pod: &PodUid, record: Vec<u8>, urgency: Urgency) {
        self.at(now).persist(now, &pod.0, record.clone(), urgency);
        self.expected.insert(pod.clone(), record);
    }

    fn forget(&mut self, now: Instant, pod: &PodUid) {
        self.at(now).forget(now, &pod.0);
        self.expected.remove(pod);
    }

    fn reopen(&mut self, now: Instant, after: Interruption) -> Result<Vec<PodRecord>, Broken> {
        let store = self.store.take().expect("open");
        if after == Interruption::AgentRestart {
            store.close(now).expect("the disk is well");
        } else {
            // What a client has seen is on the disk by then; the power goes without a further word.
            store.flush(now).expect("the disk is well");
            drop(store);
            self.machine.boot(self.boots);
            self.boots += 1;
            self.booted = now;
        }
        self.reopened += 1;
        let seen = self.open(now);
        assert_eq!(seen.interruption, Some(after));
        // Time goes on: exactly while the board's clock does, and after that from what was last written.
        let last = seen.records.iter().map(PodRecord::saved_at).max().unwrap_or_default();
        match after {
            Interruption::AgentRestart => assert_eq!(seen.now, now),
            _ => self.booted = seen.now.max(last),
        }
        assert!(seen.now >= last, "{:?} before {last:?}", seen.now);
        let found: BTreeMap<_, _> = seen.records.iter().map(|r| (r.uid().clone(), r.to_bytes())).collect();
        assert!(found == self.expected, "another record came back than was kept");
        Ok(seen.records)
    }
}

// spec: NODE-04
#[test]
fn a_day_of_the_simulators_pods_goes_on_from_what_the_store_gives_back() {
    let (mut lived, mut reopened) = (Duration::ZERO, 0);
    for seed in 0.. {
        let case = case(seed);
        if !case.scenario.facts.iter().any(|fact| matches!(fact.what, What::Restart { .. })) {
            continue;
        }
        let mut disk = Disk::new();
        let mut counts = Counts::default();
        let end = play_with(&case.subjects, &case.scenario, secs(86_400 * 30), &mut counts, &mut disk);
        match end {
            Ok(End::Over(at)) => lived += at.since_epoch(),
            other => panic!("seed {seed}: {other:?}"),
        }
        reopened += disk.reopened;
        if lived >= secs(86_400) {
            break;
        }
    }
    assert!(reopened >= 20, "{reopened}");
}
