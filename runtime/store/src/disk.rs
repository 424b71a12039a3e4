//! The tables in redb, and how they are opened, written and written anew.

use std::io;
use std::sync::Arc;

use redb::{Database, DatabaseError, ReadableDatabase, ReadableTable, StorageError, TableDefinition, TableError};

use crate::error::{DiskError, OpenError, is_full};
use crate::key::ObjectKey;
use crate::medium::{Medium, RawFile};
use crate::meter::{Meter, Metered};
use crate::object::Object;
use crate::overlay::Overlay;

/// Version of the store's format. A newer agent reads all versions before; an older one sets the store aside.
const FORMAT: u8 = 1;

/// `resource NUL namespace NUL name` to an [`Object`].
const OBJECTS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("husk.objects");
/// A pod's uid to its record.
const RECORDS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("husk.records");
/// Facts by name. [`FORMAT_FACT`] is in every version of the format.
const META: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("husk.meta");

pub(crate) const FORMAT_FACT: &str = "store.format";

/// Everything is in memory anyway; redb needs but the pages of a transaction.
const CACHE: usize = 1 << 20;

/// What a file may have in vain. Small things take up to four times their size in redb's pages.
const SLACK: u64 = 4 << 20;

/// The first bytes of every redb file.
const MAGIC: &[u8] = b"redb\x1A\x0A\xA9\x0D\x0A";

/// A row to write; to delete without a value.
#[derive(Clone, Debug)]
pub(crate) enum Row {
    Object(ObjectKey, Option<Arc<Object>>),
    Record(Arc<str>, Option<Arc<[u8]>>),
    Fact(Arc<str>, Option<Arc<[u8]>>),
}

impl Row {
    /// The pod whose record it is.
    pub(crate) fn record(&self) -> Option<Arc<str>> {
        match self {
            Self::Record(uid, _) => Some(uid.clone()),
            Self::Object(..) | Self::Fact(..) => None,
        }
    }
}

/// What was read from a disk.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    /// Of the file.
    pub(crate) size: u64,
    pub(crate) objects: Vec<Arc<Object>>,
    pub(crate) records: Vec<(Arc<str>, Arc<[u8]>)>,
    pub(crate) facts: Vec<(Arc<str>, Arc<[u8]>)>,
}

impl Loaded {
    /// Is most of the file empty? redb gives nothing back before it is closed in good order, which a device seldom does.
    pub(crate) fn is_sparse(&self) -> bool {
        let objects = self.objects.iter().map(|object| object.weight() as u64);
        let records = self.records.iter().map(|(_, record)| record.len() as u64);
        self.size > SLACK + 6 * objects.chain(records).sum::<u64>()
    }

    pub(crate) fn fact(&self, name: &str) -> Option<&[u8]> {
        self.facts.iter().find(|(fact, _)| &**fact == name).map(|(_, value)| &**value)
    }

    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        Some(u64::from_le_bytes(self.fact(name)?.try_into().ok()?))
    }
}

/// A store's file could not be used for what it holds. A reason for people.
#[derive(Debug)]
pub(crate) struct Damage(pub(crate) String);

/// Why a file was not opened.
#[derive(Debug)]
enum Refusal {
    Damaged(Damage),
    Disk(io::Error),
}

#[derive(Debug)]
pub(crate) struct Disk {
    /// None after a failure: what redb has in memory and what is on the disk may differ from then on. Dropped, and so written,
    /// before the medium's lock is let go.
    database: Option<Database>,
    medium: Box<dyn Medium>,
    meter: Arc<Meter>,
}

impl Disk {
    pub(crate) fn new(medium: Box<dyn Medium>, meter: Arc<Meter>) -> Self {
        Self { database: None, medium, meter }
    }

    pub(crate) fn medium(&self) -> &dyn Medium {
        &*self.medium
    }

    /// Opens the file that is there and reads all of it. `None` if there is none.
    pub(crate) fn load(&mut self) -> Result<Result<Option<Loaded>, Damage>, OpenError> {
        let file = match self.medium.open() {
            Ok(Some(file)) => file,
            Ok(None) => return Ok(Ok(None)),
            Err(error) => return Err(self.open_error("open it", error)),
        };
        match self.load_file(file) {
            Ok((database, loaded)) => {
                self.database = Some(database);
                Ok(Ok(Some(loaded)))
            }
            Err(Refusal::Damaged(damage)) => Ok(Err(damage)),
            Err(Refusal::Disk(error)) if is_full(&error) => self.load_without_writing(),
            Err(Refusal::Disk(error)) => Err(self.open_error("open it", error)),
        }
    }

    /// On a full disk: pods have to run all the same. What redb has to put right goes to memory, and the disk stays closed.
    fn load_without_writing(&self) -> Result<Result<Option<Loaded>, Damage>, OpenError> {
        let file = self.medium.open().map_err(|error| self.open_error("open it", error))?;
        match file.map(|file| self.load_file(Box::new(Overlay::new(file)))).transpose() {
            Ok(loaded) => Ok(Ok(loaded.map(|(_, loaded)| loaded))),
            Err(Refusal::Damaged(damage)) => Ok(Err(damage)),
            Err(Refusal::Disk(error)) => Err(self.open_error("open it", error)),
        }
    }

    /// Is there anything to write to?
    pub(crate) fn is_open(&self) -> bool {
        self.database.is_some()
    }

    /// Writes all rows in one transaction. They are durable when this returns; after an error they may or may not be there, and
    /// the disk has to be rebuilt.
    pub(crate) fn write(&mut self, rows: &[Row]) -> Result<(), DiskError> {
        let Some(database) = &self.database else {
            return Err(self.error(io::Error::other("it is closed").into()));
        };
        match write(database, rows) {
            Ok(()) => {
                self.meter.transaction();
                Ok(())
            }
            Err(error) => {
                self.database = None;
                Err(self.error(error))
            }
        }
    }

    /// Writes a new file with these rows and puts it in place of the one that is there.
    ///
    /// After a failed write or sync nobody knows what is on the disk: the system's cache may have what the disk has not, and a
    /// later sync says nothing of it. So nothing of the old file is trusted, and nothing of it is needed.
    pub(crate) fn rebuild(&mut self, rows: &[Row]) -> Result<(), DiskError> {
        self.database = None;
        let built = self.build(rows);
        if built.is_err() {
            self.medium.discard();
        }
        self.database = Some(built.map_err(|error| self.error(error))?);
        self.meter.transaction();
        Ok(())
    }

    /// Ends it in good order.
    pub(crate) fn close(&mut self) -> Result<(), DiskError> {
        match self.database.take().map(Database::close) {
            None | Some(Ok(())) => Ok(()),
            Some(Err(error)) => Err(self.error(error.into())),
        }
    }

    pub(crate) fn open_error(&self, doing: &'static str, error: io::Error) -> OpenError {
        OpenError::Io { name: self.medium.name(), doing, error }
    }

    fn load_file(&self, file: Box<dyn RawFile>) -> Result<(Database, Loaded), Refusal> {
        let size = check_magic(&*file)?;
        let database = self.database_of(file)?;
        let loaded = Loaded { size, ..read(&database)? };
        Ok((database, loaded))
    }

    fn build(&self, rows: &[Row]) -> Result<Database, redb::Error> {
        let database = self.database_of(self.medium.create()?)?;
        write(&database, rows)?;
        self.medium.publish()?;
        Ok(database)
    }

    fn database_of(&self, file: Box<dyn RawFile>) -> Result<Database, DatabaseError> {
        Database::builder()
            .set_cache_size(CACHE)
            // Without it a file that was closed in good order is trusted, and redb may panic when it shouldn't have been.
            .set_check_integrity_on_open(true)
            .create_with_backend(Metered::new(file, self.meter.clone()))
    }

    fn error(&self, error: redb::Error) -> DiskError {
        let error = match error {
            redb::Error::Io(error) => error,
            other => io::Error::other(other.to_string()),
        };
        DiskError { name: self.medium.name(), error }
    }
}

/// Is it a redb file at all? Says its size.
fn check_magic(file: &dyn RawFile) -> Result<u64, Refusal> {
    let len = file.size().map_err(Refusal::Disk)?;
    if len == 0 {
        return Err(damaged("it is empty"));
    }
    let mut start = [0; MAGIC.len()];
    if len < MAGIC.len() as u64 {
        return Err(damaged(format!("it is cut off after {len} bytes")));
    }
    file.read(0, &mut start).map_err(|error| damaged(format!("it can't be read: {error}")))?;
    match start {
        start if start == MAGIC => Ok(len),
        [0, 0, 0, 0, 0, 0, 0, 0, 0] => Err(damaged("its beginning is nothing but zeros")),
        _ => Err(damaged("it is not a store of Husk's but a file of another kind")),
    }
}

fn read(database: &Database) -> Result<Loaded, Refusal> {
    let transaction = database.begin_read().map_err(redb::Error::from)?;
    let meta = transaction.open_table(META).map_err(|error| match error {
        TableError::Storage(error) => Refusal::from(redb::Error::from(error)),
        _ => damaged("it is a database of another application"),
    })?;
    let format = meta.get(FORMAT_FACT).map_err(redb::Error::from)?.map(|value| value.value().to_vec());
    match format.as_deref() {
        Some([FORMAT]) => {}
        Some([version]) => {
            return Err(damaged(format!(
                "it has format version {version}, this agent knows {FORMAT}: it is from a newer one"
            )));
        }
        _ => return Err(damaged("it doesn't say its format version")),
    }
    let facts = meta.iter().map_err(redb::Error::from)?;
    let facts = facts.map(|row| row.map(|(name, value)| (name.value().into(), value.value().into())));
    let facts = facts.collect::<Result<_, _>>().map_err(redb::Error::from)?;
    let records = transaction.open_table(RECORDS).map_err(redb::Error::from)?;
    let records = records.iter().map_err(redb::Error::from)?;
    let records = records.map(|row| row.map(|(uid, record)| (uid.value().into(), record.value().into())));
    let records = records.collect::<Result<_, _>>().map_err(redb::Error::from)?;
    let mut objects = Vec::new();
    for row in transaction.open_table(OBJECTS).map_err(redb::Error::from)?.iter().map_err(redb::Error::from)? {
        let (key, value) = row.map_err(redb::Error::from)?;
        let object = ObjectKey::from_bytes(key.value()).and_then(|key| Object::from_bytes(key, value.value()));
        let unreadable = || damaged(format!("its object {} is unreadable", String::from_utf8_lossy(key.value())));
        objects.push(Arc::new(object.ok_or_else(unreadable)?));
    }
    Ok(Loaded { size: 0, objects, records, facts })
}

fn write(database: &Database, rows: &[Row]) -> Result<(), redb::Error> {
    // One sync for each transaction: a page that didn't get to the disk is found by its checksum and the transaction before counts.
    // Quick repair would take half as many bytes again, each time, and all is read and checked at the start anyway.
    let transaction = database.begin_write()?;
    {
        let mut objects = transaction.open_table(OBJECTS)?;
        let mut records = transaction.open_table(RECORDS)?;
        let mut meta = transaction.open_table(META)?;
        for row in rows {
            match row {
                Row::Object(key, Some(object)) => drop(objects.insert(&*key.to_bytes(), &*object.to_bytes())?),
                Row::Object(key, None) => drop(objects.remove(&*key.to_bytes())?),
                Row::Record(uid, Some(record)) => drop(records.insert(&**uid, &**record)?),
                Row::Record(uid, None) => drop(records.remove(&**uid)?),
                Row::Fact(name, Some(value)) => drop(meta.insert(&**name, &**value)?),
                Row::Fact(name, None) => drop(meta.remove(&**name)?),
            }
        }
    }
    Ok(transaction.commit()?)
}

/// The row that says the format.
pub(crate) fn format_row() -> Row {
    Row::Fact(FORMAT_FACT.into(), Some([FORMAT].into()))
}

fn damaged(why: impl Into<String>) -> Refusal {
    Refusal::Damaged(Damage(why.into()))
}

impl From<DatabaseError> for Refusal {
    fn from(error: DatabaseError) -> Self {
        redb::Error::from(error).into()
    }
}

impl From<redb::Error> for Refusal {
    fn from(error: redb::Error) -> Self {
        match error {
            // Of redb's own, or of a read: see `Metered`.
            redb::Error::Io(error) if error.kind() == io::ErrorKind::InvalidData => damaged(error.to_string()),
            redb::Error::Io(error) => Self::Disk(error),
            redb::Error::Corrupted(why) => damaged(format!("it is damaged: {why}")),
            other => damaged(other.to_string()),
        }
    }
}

impl From<StorageError> for Refusal {
    fn from(error: StorageError) -> Self {
        redb::Error::from(error).into()
    }
}
