//! The simulated machine.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use husk_store::{Medium, RawFile};

const STORE: &str = "store";
const NEW: &str = "new";

/// What goes wrong, until it is mended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// No space: files can't grow and nothing new can be written.
    Full,
    /// The file system became read-only.
    ReadOnly,
    /// A sync fails, and says nothing of it the next time: what it should have made durable stays in the cache only.
    Sync,
    /// Reads fail.
    Read,
}

/// A machine with a disk.
#[derive(Clone, Debug, Default)]
pub(crate) struct Machine(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    names: BTreeMap<String, usize>,
    files: Vec<SimFile>,
    /// Boots so far: files that were opened before can't be used.
    boot: u64,
    /// Operations until the power goes.
    fuse: Option<u64>,
    fault: Option<Fault>,
    operations: u64,
    random: Random,
    on_sync: Hook,
}

#[derive(Default)]
struct Hook(Option<Box<dyn FnMut() + Send>>);

#[derive(Debug, Default)]
struct SimFile {
    durable: Vec<u8>,
    cached: Vec<u8>,
    unsynced: Vec<Unsynced>,
}

#[derive(Clone, Debug)]
enum Unsynced {
    Write(usize, Vec<u8>),
    Len(usize),
}

impl Machine {
    pub(crate) fn medium(&self) -> Box<dyn Medium> {
        Box::new(Handle { machine: self.clone(), boot: self.inner().boot, file: None })
    }

    /// The power goes with the operation after `operations` more.
    pub(crate) fn cut_after(&self, operations: u64) {
        self.inner().fuse = Some(operations);
    }

    /// Is there no power?
    pub(crate) fn is_off(&self) -> bool {
        self.inner().fuse == Some(0)
    }

    /// Power comes back: of what wasn't synced some is there, some isn't, some is torn, whatever came first.
    pub(crate) fn boot(&self, seed: u64) {
        let mut inner = self.inner();
        let inner = &mut *inner;
        inner.random = Random(seed);
        inner.boot += 1;
        inner.fuse = None;
        inner.fault = None;
        for file in &mut inner.files {
            file.lose_power(&mut inner.random);
        }
    }

    pub(crate) fn fail(&self, fault: impl Into<Option<Fault>>) {
        self.inner().fault = fault.into();
    }

    /// Writes, syncs and the like until now.
    pub(crate) fn operations(&self) -> u64 {
        self.inner().operations
    }

    /// Called in each sync.
    pub(crate) fn on_sync(&self, hook: impl FnMut() + Send + 'static) {
        self.inner().on_sync = Hook(Some(Box::new(hook)));
    }

    /// The bytes of the store's file, and of what was set aside.
    pub(crate) fn file(&self, name: &str) -> Option<Vec<u8>> {
        let inner = self.inner();
        inner.names.get(name).map(|file| inner.files[*file].cached.clone())
    }

    pub(crate) fn store_file(&self) -> Option<Vec<u8>> {
        self.file(STORE)
    }

    /// Puts these bytes in the place of the store's file.
    pub(crate) fn replace_store(&self, bytes: Vec<u8>) {
        let mut inner = self.inner();
        inner.files.push(SimFile { durable: bytes.clone(), cached: bytes, unsynced: Vec::new() });
        let file = inner.files.len() - 1;
        inner.names.insert(STORE.into(), file);
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().expect("no panic with the lock")
    }
}

impl Inner {
    /// One operation. Whether it is done if it is the last one, is for the dice.
    fn operate(&mut self) -> io::Result<()> {
        self.operations += 1;
        match &mut self.fuse {
            Some(0) => return Err(off()),
            Some(left) => *left -= 1,
            None => {}
        }
        if self.fault == Some(Fault::ReadOnly) {
            return Err(io::ErrorKind::ReadOnlyFilesystem.into());
        }
        Ok(())
    }

    /// After an operation: did the power go with it?
    fn survived(&self) -> io::Result<()> {
        if self.fuse == Some(0) { Err(off()) } else { Ok(()) }
    }
}

fn off() -> io::Error {
    io::Error::other("the power is off")
}

impl SimFile {
    fn lose_power(&mut self, random: &mut Random) {
        let mut left = std::mem::take(&mut self.unsynced);
        // The disk writes in its own order.
        for i in (1..left.len()).rev() {
            left.swap(i, random.below(i + 1));
        }
        // Sometimes all of it got there, sometimes next to nothing.
        let kept_of_8 = random.below(9);
        for op in left {
            if random.below(8) >= kept_of_8 {
                continue;
            }
            match op {
                Unsynced::Len(len) => self.durable.resize(len, 0),
                Unsynced::Write(offset, data) => {
                    // Torn anywhere: a part from somewhere in it.
                    let (from, to) = match random.below(3) {
                        0 => (random.below(data.len() + 1), random.below(data.len() + 1)),
                        _ => (0, data.len()),
                    };
                    let (from, to) = (from.min(to), from.max(to));
                    write_at(&mut self.durable, offset + from, &data[from..to]);
                }
            }
        }
        self.cached = self.durable.clone();
    }
}

fn write_at(bytes: &mut Vec<u8>, offset: usize, data: &[u8]) {
    if data.is_empty() {
        return;
    }
    if bytes.len() < offset + data.len() {
        bytes.resize(offset + data.len(), 0);
    }
    bytes[offset..offset + data.len()].copy_from_slice(data);
}

/// The medium, or with a number an open file.
#[derive(Debug)]
struct Handle {
    machine: Machine,
    boot: u64,
    file: Option<usize>,
}

impl Handle {
    fn inner(&self) -> io::Result<MutexGuard<'_, Inner>> {
        let inner = self.machine.inner();
        if inner.boot == self.boot { Ok(inner) } else { Err(io::Error::other("of a process that is gone")) }
    }

    fn with_file(&self, file: usize) -> Box<dyn RawFile> {
        Box::new(Self { machine: self.machine.clone(), boot: self.boot, file: Some(file) })
    }

    fn index(&self) -> usize {
        self.file.expect("an open file")
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut inner = self.inner()?;
        inner.operate()?;
        // A rename and the sync of its directory: when the power goes with it, it happened or it didn't.
        if inner.survived().is_ok() || inner.random.below(2) == 0 {
            let file = inner.names.remove(from).ok_or(io::ErrorKind::NotFound)?;
            inner.names.insert(to.into(), file);
        }
        inner.survived()
    }
}

impl Medium for Handle {
    fn name(&self) -> String {
        STORE.into()
    }

    fn open(&self) -> io::Result<Option<Box<dyn RawFile>>> {
        Ok(self.inner()?.names.get(STORE).map(|file| self.with_file(*file)))
    }

    fn create(&self) -> io::Result<Box<dyn RawFile>> {
        let mut inner = self.inner()?;
        inner.operate()?;
        inner.files.push(SimFile::default());
        let file = inner.files.len() - 1;
        inner.names.insert(NEW.into(), file);
        Ok(self.with_file(file))
    }

    fn publish(&self) -> io::Result<()> {
        self.rename(NEW, STORE)
    }

    fn discard(&self) {
        if let Ok(mut inner) = self.inner() {
            inner.names.remove(NEW);
        }
    }

    fn set_aside(&self) -> io::Result<String> {
        let name = format!("corrupt-{}", self.set_aside_number()? + 1);
        self.rename(STORE, &name)?;
        Ok(name)
    }

    fn set_aside_number(&self) -> io::Result<u64> {
        let inner = self.inner()?;
        Ok(inner.names.keys().filter(|name| name.starts_with("corrupt-")).count() as u64)
    }
}

impl RawFile for Handle {
    fn size(&self) -> io::Result<u64> {
        Ok(self.inner()?.files[self.index()].cached.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let inner = self.inner()?;
        if inner.fault == Some(Fault::Read) {
            return Err(io::Error::from_raw_os_error(5));
        }
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        let there = inner.files[self.index()].cached.get(from..from.saturating_add(out.len()));
        out.copy_from_slice(there.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut inner = self.inner()?;
        inner.operate()?;
        if inner.fault == Some(Fault::Full) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let offset = usize::try_from(offset).expect("a small file");
        let file = &mut inner.files[self.index()];
        write_at(&mut file.cached, offset, data);
        file.unsynced.push(Unsynced::Write(offset, data.to_vec()));
        inner.survived()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut inner = self.inner()?;
        inner.operate()?;
        let len = usize::try_from(len).expect("a small file");
        let file = &mut inner.files[self.index()];
        file.cached.resize(len, 0);
        file.unsynced.push(Unsynced::Len(len));
        inner.survived()
    }

    fn sync(&self) -> io::Result<()> {
        let mut inner = self.inner()?;
        inner.operate()?;
        inner.survived()?;
        if let Some(mut hook) = inner.on_sync.0.take() {
            drop(inner);
            hook();
            inner = self.inner()?;
            inner.on_sync.0 = Some(hook);
        }
        let failed = inner.fault == Some(Fault::Sync);
        let file = &mut inner.files[self.index()];
        let unsynced = std::mem::take(&mut file.unsynced);
        if failed {
            // As Linux does it: the pages are clean from now on, and no later sync brings them to the disk.
            return Err(io::Error::from_raw_os_error(5));
        }
        for op in unsynced {
            match op {
                Unsynced::Write(offset, data) => write_at(&mut file.durable, offset, &data),
                Unsynced::Len(len) => file.durable.resize(len, 0),
            }
        }
        Ok(())
    }
}

impl std::fmt::Debug for Hook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hook")
    }
}

/// SplitMix64.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}
