//! The store itself.

use std::fmt;
use std::ops::Bound;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use husk_core::Instant;
use husk_core::io::Urgency;

use crate::batch::Batch;
use crate::disk::{Disk, Row};
use crate::error::{CommitError, DiskError, InvalidWrite, OpenError, WatchError};
use crate::key::ObjectKey;
use crate::medium::{FileMedium, Medium};
use crate::meter::{Meter, Written};
use crate::object::{Change, Object};
use crate::opening::{self, Opened, Options};
use crate::pending::{Due, Pending};
use crate::state::{Plan, RESERVE, State, reserve_row};

/// The agent's state: in memory, and on the disk whatever has to be.
///
/// All methods take `&self`. What reads, posts or persists never waits for the disk; [`commit`](Self::commit),
/// [`advance`](Self::advance) and [`flush`](Self::flush) do and belong on a thread that may block.
pub struct Store {
    /// Held for a whole transaction. Taken before `state`, never after.
    disk: Mutex<Disk>,
    /// Held for moments.
    state: RwLock<State>,
    meter: Arc<Meter>,
    on_change: Box<dyn Fn(u64) + Send + Sync>,
}

/// Objects as they are at one version.
#[derive(Clone, Debug)]
pub struct List {
    /// The store's version: a watch goes on from here.
    pub version: u64,
    /// In the order of namespaces and names.
    pub objects: Vec<Arc<Object>>,
}

/// What a watch has missed.
#[derive(Clone, Debug)]
pub struct Changes {
    /// Ask again from here.
    pub version: u64,
    /// Oldest first.
    pub changes: Vec<Arc<Change>>,
}

/// What a batch made.
#[derive(Clone, Debug)]
pub struct Committed {
    /// The store's version afterwards.
    pub version: u64,
    /// One for each write of an object that did something, in order: as it is now, a deleted one as it was.
    pub objects: Vec<Arc<Object>>,
}

/// Which changes a watch wants.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'a> {
    /// Of this resource.
    pub resource: &'a str,
    /// Of this namespace only.
    pub namespace: Option<&'a str>,
}

impl Store {
    /// Opens the store in this file, or begins one. What can't be used is set aside beside it, as `NAME.corrupt-N`.
    ///
    /// # Errors
    /// Another agent has it, or the directory can't be used.
    pub fn open(path: &Path, options: Options) -> Result<Opened, OpenError> {
        Self::open_on(Box::new(FileMedium::new(path)?), options)
    }

    /// The same on anything that stores bytes.
    ///
    /// # Errors
    /// The medium can't be read or written.
    pub fn open_on(medium: Box<dyn Medium>, options: Options) -> Result<Opened, OpenError> {
        opening::open(medium, options)
    }

    pub(crate) fn new(disk: Disk, state: State, meter: Arc<Meter>, on_change: Box<dyn Fn(u64) + Send + Sync>) -> Self {
        Self { disk: Mutex::new(disk), state: RwLock::new(state), meter, on_change }
    }

    /// The version of the last change: `metadata.resourceVersion` of a list.
    pub fn version(&self) -> u64 {
        self.read().version
    }

    /// One object.
    pub fn object(&self, key: &ObjectKey) -> Option<Arc<Object>> {
        self.read().objects.get(key).cloned()
    }

    /// All objects of a scope.
    pub fn list(&self, scope: Scope<'_>) -> List {
        let state = self.read();
        let first = ObjectKey::new(scope.resource, scope.namespace.unwrap_or_default(), "");
        let range = state.objects.range(first..).take_while(|(key, _)| scope.has(key));
        List { version: state.version, objects: range.map(|(_, object)| object.clone()).collect() }
    }

    /// Changes of a scope after version `since`, of at most `limit` of all changes. There may be more if the answer's version is
    /// not [`Store::version`].
    ///
    /// # Errors
    /// They aren't remembered any more, or `since` is not a version of this store's.
    pub fn changes(&self, scope: Scope<'_>, since: u64, limit: usize) -> Result<Changes, WatchError> {
        let state = self.read();
        if since > state.version {
            return Err(WatchError::Ahead { since, current: state.version });
        }
        let mut version = since;
        let mut changes = Vec::new();
        let mut all = state.history.since(since)?;
        for change in all.by_ref().take(limit) {
            version = change.version();
            if scope.has(&change.object.key) {
                changes.push(change.clone());
            }
        }
        if all.next().is_none() {
            version = state.version;
        }
        Ok(Changes { version, changes })
    }

    /// A fact of the node.
    pub fn fact(&self, name: &str) -> Option<Arc<[u8]>> {
        self.read().facts.get(name).cloned()
    }

    /// All facts of the node whose names begin like this.
    pub fn facts(&self, prefix: &str) -> Vec<(Arc<str>, Arc<[u8]>)> {
        let state = self.read();
        let range = state
            .facts
            .range::<str, _>((Bound::Included(prefix), Bound::Unbounded))
            .take_while(|(name, _)| name.starts_with(prefix));
        range.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// Writes a batch, and with it what was about to be written. When this returns, it is durable: now it may be acknowledged.
    ///
    /// # Errors
    /// Nothing of the batch happened: an object isn't as expected, or the disk refused. In the latter case it may all the same be
    /// there, wholly, if the agent ends before the disk could be written again.
    pub fn commit(&self, now: Instant, batch: Batch) -> Result<Committed, CommitError> {
        let mut disk = self.disk();
        let (plan, transaction) = {
            let mut state = self.write();
            let plan = state.plan(batch)?;
            if plan.rows.is_empty() {
                let objects = state.apply(plan);
                return Ok(self.committed(state, objects));
            }
            let own: Vec<_> = plan.rows.iter().filter_map(Row::record).collect();
            let superseded = own.into_iter().filter_map(|uid| state.pending.unmark(&uid)).collect();
            let transaction = Transaction::begin(&mut state, &plan.rows, superseded, |pending| pending.take(now));
            (plan, transaction)
        };
        Ok(self.run(&mut disk, now, plan, transaction)?)
    }

    /// Writes in memory only: statuses and objects of volatile resources. Never waits. What isn't as expected is not written, and
    /// nobody is told.
    ///
    /// # Errors
    /// It has to be committed. Nothing of it happened.
    pub fn post(&self, batch: Batch) -> Result<(), InvalidWrite> {
        let mut state = self.write();
        state.check_volatile(&batch)?;
        if state.committing {
            state.deferred.push_back(batch);
            return Ok(());
        }
        let before = state.version;
        post_now(&mut state, batch);
        let version = state.version;
        drop(state);
        if version != before {
            (self.on_change)(version);
        }
        Ok(())
    }

    /// Keeps a pod's record. It is written with others, by [`advance`](Self::advance) or [`commit`](Self::commit).
    pub fn persist(&self, now: Instant, uid: &str, record: Vec<u8>, urgency: Urgency) {
        let uid: Arc<str> = uid.into();
        let mut state = self.write();
        state.records.insert(uid.clone(), record.into());
        state.pending.mark(now, uid, urgency);
    }

    /// Drops a pod's record, in the same way.
    pub fn forget(&self, now: Instant, uid: &str) {
        let mut state = self.write();
        if state.records.remove(uid).is_some() || state.committing {
            state.pending.mark(now, uid.into(), Urgency::Soon);
        }
    }

    /// Is there something [urgent](Urgency::Soon) of a pod that isn't on the disk yet? Who shows nothing of a pod as long as there is has shown nothing
    /// that a power cut takes back.
    pub fn is_pending(&self, uid: &str) -> bool {
        let state = self.read();
        state.pending.is_urgent(uid) || state.writing.iter().any(|written| **written == *uid)
    }

    /// Did the disk refuse the last transaction? What waits then waits for an unknown time.
    pub fn is_refused(&self) -> bool {
        self.read().pending.retry_at().is_some()
    }

    /// When [`advance`](Self::advance) has something to write; ask again after each call of anything else.
    pub fn next_wake(&self) -> Option<Instant> {
        let state = self.read();
        let reserve = state.is_reserve_low().then(|| state.pending.retry_at().unwrap_or(Instant::ZERO));
        reserve.into_iter().chain(state.pending.next_wake()).min()
    }

    /// Writes the records that are due, if any.
    ///
    /// # Errors
    /// The disk refused. They stay pending; [`next_wake`](Self::next_wake) says when to try again.
    pub fn advance(&self, now: Instant) -> Result<(), DiskError> {
        if self.next_wake().is_none_or(|due| due > now) {
            return Ok(());
        }
        self.write_records(now, |pending| pending.take(now))
    }

    /// Writes all records that wait, whenever they are due: before the agent ends.
    ///
    /// # Errors
    /// The disk refused. They stay pending.
    pub fn flush(&self, now: Instant) -> Result<(), DiskError> {
        self.write_records(now, |pending| pending.take_all())
    }

    /// Ends it in good order, so that the next start has nothing to put right. It need not be called: a store that is just
    /// dropped loses only what [`flush`](Self::flush) would have written.
    ///
    /// # Errors
    /// The disk refused.
    pub fn close(self, now: Instant) -> Result<(), DiskError> {
        self.flush(now)?;
        self.disk().close()
    }

    /// What was written since the store was opened.
    pub fn written(&self) -> Written {
        self.meter.read()
    }

    fn write_records(
        &self,
        now: Instant,
        take: impl FnOnce(&mut Pending) -> Vec<(Arc<str>, Due)>,
    ) -> Result<(), DiskError> {
        let mut disk = self.disk();
        let transaction = Transaction::begin(&mut self.write(), &[], Vec::new(), take);
        if transaction.rows.is_empty() {
            return Ok(());
        }
        self.run(&mut disk, now, Plan::default(), transaction).map(drop)
    }

    /// Writes a transaction and applies what was planned with it; `state.committing` is set.
    fn run(&self, disk: &mut Disk, now: Instant, plan: Plan, transaction: Transaction) -> Result<Committed, DiskError> {
        let before = self.meter.read().flash_bytes;
        let written = match disk.is_open() {
            true => disk.write(&transaction.rows),
            false => {
                // Of two rows the later one counts.
                let mut rows = self.read().all_rows();
                rows.extend(transaction.rows.iter().cloned());
                disk.rebuild(&rows)
            }
        };
        let bytes = self.meter.read().flash_bytes - before;
        let mut state = self.write();
        state.committing = false;
        state.writing.clear();
        let result = match written {
            Ok(()) => {
                let uids = transaction.rows.iter().filter_map(|row| match row {
                    Row::Record(uid, record) => Some((uid.clone(), record.is_some())),
                    Row::Object(..) | Row::Fact(..) => None,
                });
                state.pending.succeeded(now, uids, bytes);
                state.reserved = transaction.reserved;
                Ok(state.apply(plan))
            }
            Err(error) => {
                state.pending.failed(now, transaction.taken);
                Err(error)
            }
        };
        for batch in std::mem::take(&mut state.deferred) {
            post_now(&mut state, batch);
        }
        match result {
            Ok(objects) => Ok(self.committed(state, objects)),
            Err(error) => {
                let version = state.version;
                drop(state);
                (self.on_change)(version);
                Err(error)
            }
        }
    }

    fn committed(&self, state: RwLockWriteGuard<'_, State>, objects: Vec<Arc<Object>>) -> Committed {
        let version = state.version;
        drop(state);
        (self.on_change)(version);
        Committed { version, objects }
    }

    fn disk(&self) -> MutexGuard<'_, Disk> {
        self.disk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Scope<'_> {
    fn has(&self, key: &ObjectKey) -> bool {
        key.resource() == self.resource && self.namespace.is_none_or(|namespace| key.namespace() == namespace)
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("version", &self.version()).field("written", &self.written()).finish()
    }
}

/// What goes to the disk at once.
struct Transaction {
    rows: Vec<Row>,
    /// Pending records that are in it, to be put back if it fails.
    taken: Vec<(Arc<str>, Due)>,
    /// Versions that are reserved once it is written.
    reserved: u64,
}

impl Transaction {
    /// With the rows of a plan, the records that are due, and a reservation if one is needed.
    fn begin(
        state: &mut State,
        planned: &[Row],
        superseded: Vec<(Arc<str>, Due)>,
        take: impl FnOnce(&mut Pending) -> Vec<(Arc<str>, Due)>,
    ) -> Self {
        let mut taken = take(&mut state.pending);
        let records = taken.iter().map(|(uid, _)| Row::Record(uid.clone(), state.records.get(uid).cloned()));
        let mut rows: Vec<Row> = planned.iter().cloned().chain(records).collect();
        let mut reserved = state.reserved;
        if state.is_reserve_low() {
            reserved = state.version.saturating_add(RESERVE);
            rows.push(reserve_row(reserved));
        }
        taken.extend(superseded);
        state.committing = !rows.is_empty();
        state.writing = taken.iter().map(|(uid, _)| uid.clone()).collect();
        Self { rows, taken, reserved }
    }
}

fn post_now(state: &mut State, batch: Batch) {
    if let Ok(plan) = state.plan(batch) {
        state.apply(plan);
    }
}
