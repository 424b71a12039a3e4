//! All of it in memory, and what a batch makes of it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::batch::{Batch, Expect, Write};
use crate::disk::{Row, format_row};
use crate::error::{CommitError, Conflict, InvalidWrite};
use crate::history::History;
use crate::key::ObjectKey;
use crate::object::{Change, ChangeKind, Object};
use crate::pending::Pending;

/// How many versions are reserved on the disk ahead of use, so that those of changes that are only in memory are never given
/// again. Each start skips what is left of it.
pub(crate) const RESERVE: u64 = 1 << 20;

/// What an API server takes at most in one request.
const MAX_OBJECT: usize = 3 << 20;
/// Far more than the record of a pod with the most containers.
const MAX_RECORD: usize = 3 << 20;

pub(crate) const RESERVED_FACT: &str = "store.reserved";

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) objects: BTreeMap<ObjectKey, Arc<Object>>,
    pub(crate) records: BTreeMap<Arc<str>, Arc<[u8]>>,
    pub(crate) facts: BTreeMap<Arc<str>, Arc<[u8]>>,
    pub(crate) history: History,
    pub(crate) pending: Pending,
    /// The version of the last change.
    pub(crate) version: u64,
    /// Versions up to this one are reserved on the disk.
    pub(crate) reserved: u64,
    /// Resources whose objects are never on the disk.
    pub(crate) volatile: Vec<String>,
    /// A transaction is being written: its versions are given, so nothing else may change an object meanwhile.
    pub(crate) committing: bool,
    /// Pods whose records are in it. They wait no more, and aren't on the disk yet.
    pub(crate) writing: Vec<Arc<str>>,
    /// What was posted meanwhile.
    pub(crate) deferred: VecDeque<Batch>,
}

/// What a batch changes, worked out before anything is.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) rows: Vec<Row>,
    pub(crate) changes: Vec<Change>,
    /// One for each write of an object: as it is afterwards, a deleted one as it was.
    pub(crate) objects: Vec<Arc<Object>>,
}

impl State {
    /// What the batch would change, with versions from the next one on.
    pub(crate) fn plan(&self, batch: Batch) -> Result<Plan, CommitError> {
        let mut draft = Draft { state: self, touched: BTreeMap::new(), version: self.version, plan: Plan::default() };
        for write in batch.writes {
            check(&write)?;
            draft.write(write)?;
        }
        Ok(draft.plan)
    }

    /// Changes what was planned, in memory.
    pub(crate) fn apply(&mut self, plan: Plan) -> Vec<Arc<Object>> {
        for change in plan.changes {
            self.version = change.version();
            match change.kind {
                ChangeKind::Deleted => self.objects.remove(&change.object.key),
                ChangeKind::Added | ChangeKind::Modified => {
                    self.objects.insert(change.object.key.clone(), change.object.clone())
                }
            };
            self.history.push(Arc::new(change));
        }
        for row in plan.rows {
            match row {
                Row::Object(..) => {}
                // What was persisted while this was written is newer.
                Row::Record(uid, _) if self.pending.is_marked(&uid) => {}
                Row::Record(uid, value) => drop(set(&mut self.records, uid, value)),
                Row::Fact(name, value) => drop(set(&mut self.facts, name, value)),
            }
        }
        plan.objects
    }

    /// Everything that belongs on the disk.
    pub(crate) fn all_rows(&self) -> Vec<Row> {
        let objects = self.objects.values().filter(|object| !self.is_volatile(object.key.resource()));
        let objects = objects.map(|object| Row::Object(object.key.clone(), Some(object.clone())));
        let records = self.records.iter().map(|(uid, record)| Row::Record(uid.clone(), Some(record.clone())));
        let facts = self.facts.iter().map(|(name, value)| Row::Fact(name.clone(), Some(value.clone())));
        objects.chain(records).chain(facts).chain([format_row(), reserve_row(self.reserved)]).collect()
    }

    /// Half of the reserved versions are used.
    pub(crate) fn is_reserve_low(&self) -> bool {
        self.reserved.saturating_sub(self.version) < RESERVE / 2
    }

    pub(crate) fn is_volatile(&self, resource: &str) -> bool {
        self.volatile.iter().any(|volatile| volatile == resource)
    }

    /// A batch that needs no disk; otherwise says what needs it.
    pub(crate) fn check_volatile(&self, batch: &Batch) -> Result<(), InvalidWrite> {
        batch.writes.iter().try_for_each(|write| {
            check(write)?;
            match write {
                Write::Status { .. } => Ok(()),
                Write::Put { key, .. } | Write::Delete { key, .. } if self.is_volatile(key.resource()) => Ok(()),
                Write::Put { key, .. } | Write::Delete { key, .. } => Err(InvalidWrite::NeedsDisk(key.to_string())),
                Write::Record { uid, .. } | Write::Forget { uid } => {
                    Err(InvalidWrite::NeedsDisk(format!("the record of pod {uid}")))
                }
                Write::Fact { name, .. } => Err(InvalidWrite::NeedsDisk(format!("fact {name}"))),
            }
        })
    }
}

struct Draft<'a> {
    state: &'a State,
    touched: BTreeMap<ObjectKey, Option<Arc<Object>>>,
    version: u64,
    plan: Plan,
}

impl Draft<'_> {
    fn write(&mut self, write: Write) -> Result<(), Conflict> {
        match write {
            Write::Put { key, uid, body, expect } => self.put(key, &uid, body, expect)?,
            Write::Status { key, status, expect } => self.status(key, status, expect)?,
            Write::Delete { key, expect } => self.delete(key, expect)?,
            Write::Record { uid, bytes } => self.plan.rows.push(Row::Record(uid.into(), Some(bytes.into()))),
            Write::Forget { uid } => self.plan.rows.push(Row::Record(uid.into(), None)),
            Write::Fact { name, value } => self.plan.rows.push(Row::Fact(name.into(), value.map(Into::into))),
        }
        Ok(())
    }

    fn put(&mut self, key: ObjectKey, uid: &str, body: Vec<u8>, expect: Expect) -> Result<(), Conflict> {
        let before = self.current(&key, expect)?;
        let same_pod = before.as_ref().filter(|before| &*before.uid == uid);
        // As upstream: what changes nothing is no change.
        if let Some(before) = same_pod.filter(|before| *before.body == *body) {
            self.plan.objects.push(before.clone());
            return Ok(());
        }
        let status = same_pod.and_then(|before| before.status.clone());
        self.version += 1;
        let object = Object { key: key.clone(), uid: uid.into(), version: self.version, body: body.into(), status };
        let object = Arc::new(object);
        if !self.state.is_volatile(key.resource()) {
            self.plan.rows.push(Row::Object(key, Some(object.clone())));
        }
        self.changed(object, before);
        Ok(())
    }

    fn status(&mut self, key: ObjectKey, status: Vec<u8>, expect: Expect) -> Result<(), Conflict> {
        let before = self.current(&key, expect)?.ok_or(Conflict::NotFound(key))?;
        if before.status.as_deref() == Some(&*status) {
            self.plan.objects.push(before);
            return Ok(());
        }
        self.version += 1;
        let object = Object { version: self.version, status: Some(status.into()), ..(*before).clone() };
        self.changed(Arc::new(object), Some(before));
        Ok(())
    }

    fn delete(&mut self, key: ObjectKey, expect: Expect) -> Result<(), Conflict> {
        let Some(before) = self.current(&key, expect)? else { return Ok(()) };
        self.version += 1;
        let object = Arc::new(Object { version: self.version, ..(*before).clone() });
        if !self.state.is_volatile(key.resource()) {
            self.plan.rows.push(Row::Object(key.clone(), None));
        }
        self.touched.insert(key, None);
        self.plan.objects.push(object.clone());
        self.plan.changes.push(Change { kind: ChangeKind::Deleted, object, previous: Some(before) });
        Ok(())
    }

    fn changed(&mut self, object: Arc<Object>, previous: Option<Arc<Object>>) {
        let kind = if previous.is_some() { ChangeKind::Modified } else { ChangeKind::Added };
        self.touched.insert(object.key.clone(), Some(object.clone()));
        self.plan.objects.push(object.clone());
        self.plan.changes.push(Change { kind, object, previous });
    }

    fn current(&self, key: &ObjectKey, expect: Expect) -> Result<Option<Arc<Object>>, Conflict> {
        let current = match self.touched.get(key) {
            Some(touched) => touched.clone(),
            None => self.state.objects.get(key).cloned(),
        };
        match (expect, &current) {
            (Expect::Any, _) | (Expect::Absent, None) | (Expect::Present, Some(_)) => Ok(current),
            (Expect::Absent, Some(_)) => Err(Conflict::Exists(key.clone())),
            (Expect::Present | Expect::Version(_), None) => Err(Conflict::NotFound(key.clone())),
            (Expect::Version(expected), Some(object)) if object.version == expected => Ok(current),
            (Expect::Version(expected), Some(object)) => {
                Err(Conflict::Version { key: key.clone(), expected, found: object.version })
            }
        }
    }
}

pub(crate) fn reserve_row(reserved: u64) -> Row {
    Row::Fact(RESERVED_FACT.into(), Some(reserved.to_le_bytes().into()))
}

fn set(map: &mut BTreeMap<Arc<str>, Arc<[u8]>>, key: Arc<str>, value: Option<Arc<[u8]>>) -> Option<Arc<[u8]>> {
    match value {
        Some(value) => map.insert(key, value),
        None => map.remove(&key),
    }
}

fn check(write: &Write) -> Result<(), InvalidWrite> {
    let within = |what: &dyn ToString, size: usize, limit: usize| match size <= limit {
        true => Ok(()),
        false => Err(InvalidWrite::TooLarge { what: what.to_string(), size, limit }),
    };
    match write {
        Write::Put { key, .. } | Write::Status { key, .. } | Write::Delete { key, .. } if !key.is_valid() => {
            Err(InvalidWrite::Key(key.clone()))
        }
        Write::Put { key, body, .. } => within(key, body.len(), MAX_OBJECT),
        Write::Status { key, status, .. } => within(key, status.len(), MAX_OBJECT),
        Write::Record { uid, bytes } => within(&format!("the record of pod {uid}"), bytes.len(), MAX_RECORD),
        Write::Fact { name, .. } if name.starts_with("store.") => Err(InvalidWrite::ReservedFact(name.clone())),
        Write::Delete { .. } | Write::Forget { .. } | Write::Fact { .. } => Ok(()),
    }
}
