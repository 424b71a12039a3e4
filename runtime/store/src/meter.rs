//! Between redb and the file: counts what is written, and tells a file that can't be read from a disk that can't be written.

use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use redb::StorageBackend;

use crate::medium::RawFile;

/// What flash is written in at least.
const PAGE: u64 = 4096;

/// What was written since the store was opened, the opening included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Transactions that became durable.
    pub transactions: u64,
    /// Bytes handed to the file.
    pub bytes: u64,
    /// Pages of 4 KiB that a sync had to bring to the disk, in bytes: what flash bears, without the file system's own.
    pub flash_bytes: u64,
    /// Syncs.
    pub syncs: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Meter {
    transactions: AtomicU64,
    bytes: AtomicU64,
    flash_bytes: AtomicU64,
    syncs: AtomicU64,
}

impl Meter {
    pub(crate) fn read(&self) -> Written {
        Written {
            transactions: self.transactions.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
            flash_bytes: self.flash_bytes.load(Relaxed),
            syncs: self.syncs.load(Relaxed),
        }
    }

    pub(crate) fn transaction(&self) {
        self.transactions.fetch_add(1, Relaxed);
    }
}

#[derive(Debug)]
pub(crate) struct Metered {
    file: Box<dyn RawFile>,
    meter: Arc<Meter>,
    unsynced: Mutex<BTreeSet<u64>>,
}

impl Metered {
    pub(crate) fn new(file: Box<dyn RawFile>, meter: Arc<Meter>) -> Self {
        Self { file, meter, unsynced: Mutex::default() }
    }
}

impl StorageBackend for Metered {
    fn len(&self) -> io::Result<u64> {
        self.file.size()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        // What can't be read is lost, whatever the disk gives as its reason; and so it is not taken for a failure to write.
        self.file.read(offset, out).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync()?;
        let pages = std::mem::take(&mut *self.unsynced.lock().unwrap_or_else(PoisonError::into_inner)).len();
        self.meter.flash_bytes.fetch_add(pages as u64 * PAGE, Relaxed);
        self.meter.syncs.fetch_add(1, Relaxed);
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.file.write(offset, data)?;
        let pages = offset / PAGE..(offset + data.len() as u64).div_ceil(PAGE);
        self.unsynced.lock().unwrap_or_else(PoisonError::into_inner).extend(pages);
        self.meter.bytes.fetch_add(data.len() as u64, Relaxed);
        Ok(())
    }
}
