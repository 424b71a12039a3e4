//! How a store begins: what was there, what became of it, and the time that goes on.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use husk_core::Instant;
use husk_core::record::{Interruption, PodRecord, RecordError};

use crate::disk::{Damage, Disk, Loaded, Row};
use crate::error::{DiskError, OpenError};
use crate::history::History;
use crate::medium::Medium;
use crate::meter::Meter;
use crate::pending::{Limits, Pending};
use crate::state::{RESERVE, RESERVED_FACT, State, reserve_row};
use crate::store::Store;

const BOOT_FACT: &str = "store.boot";
/// The node's time at the start of that boot, in nanoseconds.
const CLOCK_FACT: &str = "store.clock";

/// Versions of a new store begin here for each store that was set aside before: no watch can take one for the other.
const GENERATION: u64 = 1 << 40;

/// So many boots are told apart on a full disk.
const UNWRITTEN_BOOTS: u64 = 4093;
/// More changes than one in so many microseconds are not made on average until the agent starts again.
const MICROS_PER_VERSION: u128 = 64;

/// The present boot of the board.
#[derive(Clone, Debug)]
pub struct Boot {
    /// Tells this boot from all others (Linux: `/proc/sys/kernel/random/boot_id`). With an empty one every start counts as a reboot.
    pub id: String,
    /// Time since the boot, sleep included (Linux: `CLOCK_BOOTTIME`).
    pub uptime: Duration,
}

/// What a store is opened with.
pub struct Options {
    /// The present boot.
    pub boot: Boot,
    /// Resources whose objects are kept in memory only.
    pub volatile: Vec<String>,
    /// Rhythm and bounds.
    pub limits: Limits,
    /// Called after each change with the store's version, by whoever made the change: wake the watches, do nothing else.
    pub on_change: Box<dyn Fn(u64) + Send + Sync>,
}

impl Options {
    /// Events in memory only, the usual limits, nobody to wake.
    pub fn new(boot: Boot) -> Self {
        let volatile = vec!["events".to_owned(), "events.events.k8s.io".to_owned()];
        Self { boot, volatile, limits: Limits::default(), on_change: Box::new(|_| {}) }
    }
}

/// An open store and what was in it.
#[derive(Debug)]
pub struct Opened {
    /// The store.
    pub store: Store,
    /// The node's time now: it goes on from the last run's (RESTART-12). Count from here with the boot's clock.
    pub now: Instant,
    /// What became of the instances of the last run; none if there was no last run.
    pub interruption: Option<Interruption>,
    /// The pods' records, in the order in which they are handed to the node.
    pub records: Vec<PodRecord>,
    /// Records that are none. They stay until the pod is persisted again or forgotten.
    pub unreadable: Vec<Unreadable>,
    /// What was there couldn't be used: an empty store was begun. Log it, make it an event of the node.
    pub set_aside: Option<SetAside>,
    /// The disk is full: everything is in memory only, and written as soon as there is space.
    pub degraded: Option<DiskError>,
}

/// A record that is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// Whose.
    pub uid: String,
    /// What is on the disk.
    pub bytes: Vec<u8>,
    /// Why.
    pub error: RecordError,
}

/// A store that couldn't be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetAside {
    /// Where it was.
    pub name: String,
    /// Where it is kept.
    pub kept_as: String,
    /// What is wrong with it.
    pub why: String,
}

impl std::fmt::Display for SetAside {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { name, kept_as, why } = self;
        write!(
            f,
            "{name}: the agent's state can't be used: {why}; it is kept as {kept_as} and an empty one was begun: static pods run, \
             pods from the API have to be applied again"
        )
    }
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options").field("boot", &self.boot).field("limits", &self.limits).finish_non_exhaustive()
    }
}

pub(crate) fn open(medium: Box<dyn Medium>, options: Options) -> Result<Opened, OpenError> {
    let meter = Arc::new(Meter::default());
    let mut disk = Disk::new(medium, meter.clone());
    let (loaded, set_aside) = match disk.load()? {
        Ok(loaded) => (loaded, None),
        Err(Damage(why)) => {
            let name = disk.medium().name();
            let kept_as = disk.medium().set_aside().map_err(|error| disk.open_error("set it aside", error))?;
            (None, Some(SetAside { name, kept_as, why }))
        }
    };
    let first_version = match &loaded {
        Some(loaded) => loaded.number(RESERVED_FACT).unwrap_or(0),
        None => {
            let number = disk.medium().set_aside_number();
            number.map_err(|error| disk.open_error("read its directory", error))?.saturating_mul(GENERATION)
        }
    };
    let unwritten = unwritten_versions(&options.boot);
    let limits = options.limits;
    let begun = Begun::new(loaded.as_ref(), options.boot);
    let rewrite = loaded.as_ref().is_none_or(Loaded::is_sparse);
    let Loaded { objects, records, facts, .. } = loaded.unwrap_or_default();
    let own = begun.facts.iter().cloned();
    let mut state = State {
        objects: objects.into_iter().map(|object| (object.key.clone(), object)).collect(),
        records: records.into_iter().collect(),
        facts: facts.into_iter().filter(|(name, _)| !name.starts_with("store.")).chain(own).collect(),
        history: History::new(first_version, limits.history_changes, limits.history_bytes),
        pending: Pending::new(begun.now, limits.clone()),
        version: first_version,
        reserved: first_version.saturating_add(RESERVE),
        volatile: options.volatile,
        committing: false,
        writing: Vec::new(),
        deferred: VecDeque::new(),
    };
    let written = match disk.is_open() && !rewrite {
        true => disk.write(&begun.rows(state.reserved)),
        false => disk.rebuild(&state.all_rows()),
    };
    let degraded = match written {
        Ok(()) => None,
        Err(error) if error.is_full() => {
            // Nothing is reserved: that makes it due to be tried again. Nor can anything be until then, so that versions are
            // given that no start after this one gives, whether there is space again by then or not.
            state.version = first_version.saturating_add(unwritten);
            state.reserved = state.version;
            state.history = History::new(state.version, limits.history_changes, limits.history_bytes);
            state.pending.failed(begun.now, Vec::new());
            Some(error)
        }
        Err(error) => return Err(disk.open_error("write to it", error.error)),
    };
    let Begun { now, interruption, records, unreadable, .. } = begun;
    let store = Store::new(disk, state, meter, options.on_change);
    Ok(Opened { store, now, interruption, records, unreadable, set_aside, degraded })
}

/// How far ahead of what is on the disk the versions of a start begin that can't write to it: by the boot, and by the time in
/// it, so that each start has versions of its own although no other knows of it.
fn unwritten_versions(boot: &Boot) -> u64 {
    // FNV-1a.
    let hash = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let of_boot = 1 + boot.id.bytes().fold(0xcbf2_9ce4_8422_2325, hash) % UNWRITTEN_BOOTS;
    let of_time = u64::try_from(boot.uptime.as_micros() / MICROS_PER_VERSION).unwrap_or(u64::MAX);
    of_boot.saturating_mul(GENERATION).saturating_add(of_time)
}

/// What follows from what was loaded.
struct Begun {
    now: Instant,
    interruption: Option<Interruption>,
    records: Vec<PodRecord>,
    unreadable: Vec<Unreadable>,
    facts: [(Arc<str>, Arc<[u8]>); 2],
}

impl Begun {
    fn new(loaded: Option<&Loaded>, boot: Boot) -> Self {
        let mut records = Vec::new();
        let mut unreadable = Vec::new();
        for (uid, bytes) in loaded.into_iter().flat_map(|loaded| &loaded.records) {
            match PodRecord::from_bytes(bytes) {
                Ok(record) => records.push(record),
                Err(error) => unreadable.push(Unreadable { uid: uid.to_string(), bytes: bytes.to_vec(), error }),
            }
        }
        records.sort_by_key(PodRecord::accepted);
        let last_boot = loaded.and_then(|loaded| loaded.fact(BOOT_FACT));
        let same_boot = !boot.id.is_empty() && last_boot == Some(boot.id.as_bytes());
        let saved = records.iter().map(PodRecord::saved_at).max().unwrap_or(Instant::ZERO);
        let clock = loaded.and_then(|loaded| loaded.number(CLOCK_FACT)).map_or(Instant::ZERO, Instant::from_nanos);
        // At the start of another boot it was at least as late as everything that is known of the boots before.
        let clock = if same_boot { clock } else { clock.max(saved) };
        Self {
            now: saved.max(clock + boot.uptime),
            interruption: loaded.map(|_| if same_boot { Interruption::AgentRestart } else { Interruption::Reboot }),
            records,
            unreadable,
            facts: [
                (BOOT_FACT.into(), boot.id.into_bytes().into()),
                (CLOCK_FACT.into(), clock.as_nanos().to_le_bytes().into()),
            ],
        }
    }

    fn rows(&self, reserved: u64) -> Vec<Row> {
        let facts = self.facts.iter().map(|(name, value)| Row::Fact(name.clone(), Some(value.clone())));
        facts.chain([reserve_row(reserved)]).collect()
    }
}
