//! Where a store's bytes are: a file, or what a test puts in its place.

use std::fmt::Debug;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::error::OpenError;

/// How many damaged stores are kept, the newest ones.
const KEPT_ASIDE: usize = 3;

/// An open file of a store.
pub trait RawFile: Debug + Send + Sync {
    /// How long it is.
    fn size(&self) -> io::Result<u64>;
    /// Reads exactly this many bytes from there.
    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()>;
    /// Writes all of it there; the file grows if it has to.
    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()>;
    /// Cuts it or makes it longer by zeros.
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// Returns when everything written is durable.
    fn sync(&self) -> io::Result<()>;
}

/// A place with a name for one store.
pub trait Medium: Debug + Send + Sync {
    /// What to call the store in messages.
    fn name(&self) -> String;
    /// The store's file, if there is one.
    fn open(&self) -> io::Result<Option<Box<dyn RawFile>>>;
    /// An empty file that isn't the store's yet.
    fn create(&self) -> io::Result<Box<dyn RawFile>>;
    /// Makes the created file the store's in place of another, at once and durably; files that are open stay what they are.
    fn publish(&self) -> io::Result<()>;
    /// Removes the created file.
    fn discard(&self);
    /// Gives the store's file another name, under which it is kept, and says which. That name has the next number.
    fn set_aside(&self) -> io::Result<String>;
    /// The highest number of files set aside, 0 if there are none.
    fn set_aside_number(&self) -> io::Result<u64>;
}

/// A file in a directory, locked against other agents for as long as this exists. Made with mode 0600: there are secrets in it.
#[derive(Debug)]
pub(crate) struct FileMedium {
    path: PathBuf,
    directory: PathBuf,
    /// Locked; the lock goes with the process, however it ends.
    lock: File,
}

impl FileMedium {
    pub(crate) fn new(path: &Path) -> Result<Self, OpenError> {
        let directory = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        let failed = |doing| move |error| OpenError::Io { name: path.display().to_string(), doing, error };
        // A file of its own: the store's file can be replaced while it is in use.
        let mut lock = options().open(beside(path, ".lock")).map_err(failed("create its lock file"))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut pid = String::new();
                let _ = lock.take(16).read_to_string(&mut pid);
                return Err(OpenError::InUse { path: path.to_owned(), by: pid.trim().parse().ok() });
            }
            Err(TryLockError::Error(error)) => return Err(failed("lock it")(error)),
        }
        // The process is for the message to a second agent only: a full disk is no reason to stop here.
        let _ = lock.set_len(0).and_then(|()| lock.rewind()).and_then(|()| writeln!(lock, "{}", std::process::id()));
        Ok(Self { path: path.to_owned(), directory, lock })
    }

    fn sync_directory(&self) -> io::Result<()> {
        File::open(&self.directory)?.sync_all()
    }

    /// Numbers of the files that were set aside, in order.
    fn numbers(&self) -> io::Result<Vec<u64>> {
        let prefix = beside(&self.path, ".corrupt-");
        let prefix = prefix.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let names = fs::read_dir(&self.directory)?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut numbers: Vec<u64> = names.filter_map(|name| name.strip_prefix(&prefix)?.parse().ok()).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    fn aside(&self, number: u64) -> PathBuf {
        beside(&self.path, &format!(".corrupt-{number}"))
    }
}

impl Drop for FileMedium {
    fn drop(&mut self) {
        // A process that was forked this moment has the file open as well, and closing it here would not be enough.
        let _ = self.lock.unlock();
    }
}

impl Medium for FileMedium {
    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn open(&self) -> io::Result<Option<Box<dyn RawFile>>> {
        match OpenOptions::new().read(true).write(true).open(&self.path) {
            Ok(file) => Ok(Some(Box::new(PlainFile(file)))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn create(&self) -> io::Result<Box<dyn RawFile>> {
        let file = options().truncate(true).open(beside(&self.path, ".new"))?;
        Ok(Box::new(PlainFile(file)))
    }

    fn publish(&self) -> io::Result<()> {
        fs::rename(beside(&self.path, ".new"), &self.path)?;
        self.sync_directory()
    }

    fn discard(&self) {
        let _ = fs::remove_file(beside(&self.path, ".new"));
    }

    fn set_aside(&self) -> io::Result<String> {
        let mut numbers = self.numbers()?;
        let next = numbers.last().map_or(1, |last| last.saturating_add(1));
        let path = self.aside(next);
        fs::rename(&self.path, &path)?;
        self.sync_directory()?;
        numbers.push(next);
        for old in &numbers[..numbers.len().saturating_sub(KEPT_ASIDE)] {
            let _ = fs::remove_file(self.aside(*old));
        }
        Ok(path.display().to_string())
    }

    fn set_aside_number(&self) -> io::Result<u64> {
        Ok(self.numbers()?.last().copied().unwrap_or(0))
    }
}

#[derive(Debug)]
struct PlainFile(File);

impl RawFile for PlainFile {
    fn size(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(out, offset)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write_all_at(data, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).mode(0o600);
    options
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
