//! Compiled code on disk.
//!
//! A file's name says what it is compiled from (SHA-256 of the module), for which engine (its compatibility hash), and what it
//! contains (SHA-256 of itself). The last is checked before anything of it is used, so a file that was damaged, or cut off by a
//! power failure, is compiled anew. Native code is run without further checks: the directory must be the node's own and closed to
//! everybody else, or it isn't used. It doesn't grow without end: code for other engines goes when new code comes, and so does
//! what was unused the longest when there is too much of it.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::fs::{self, File};
use std::hash::{Hash, Hasher};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use rustix::fs::{Mode, OFlags};
use sha2::{Digest as _, Sha256};

use crate::image::hex;
use crate::split;

/// Owner only.
const PRIVATE: u32 = 0o700;

/// A directory with compiled code.
#[derive(Debug)]
pub(crate) struct Cache {
    directory: PathBuf,
    /// Bytes of code that are kept.
    limit: u64,
    /// Of the engine, in hexadecimal digits.
    compatibility: String,
}

/// Why a directory can't be the cache.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CacheError {
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: io::Error },
    #[error(
        "{path}: others can write to it, or it belongs to somebody else; compiled code is only kept in a directory of one's own with mode 0700"
    )]
    NotPrivate { path: PathBuf },
}

impl Cache {
    /// Opens the directory, made if it isn't there.
    pub(crate) fn open(directory: &Path, limit: u64, engine: &wasmtime::Engine) -> Result<Self, CacheError> {
        let failed = |source| CacheError::Io { path: directory.to_path_buf(), source };
        fs::DirBuilder::new().recursive(true).mode(PRIVATE).create(directory).map_err(failed)?;
        if !is_private(&fs::metadata(directory).map_err(failed)?) {
            return Err(CacheError::NotPrivate { path: directory.to_path_buf() });
        }
        let mut hasher = Sha256Hasher(Sha256::new());
        engine.precompile_compatibility_hash().hash(&mut hasher);
        split::VERSION.hash(&mut hasher);
        let compatibility = hex(&hasher.0.finalize()[..16]);
        Ok(Self { directory: directory.to_path_buf(), limit, compatibility })
    }

    /// The compiled code of a module, if it is there and undamaged.
    pub(crate) fn load(&self, module: &[u8; 32]) -> Option<PathBuf> {
        let prefix = self.prefix(module);
        for entry in fs::read_dir(&self.directory).ok()?.flatten() {
            let name = entry.file_name();
            let Some(digest) = name.to_str().and_then(|name| name.strip_prefix(&prefix)?.strip_suffix(SUFFIX)) else {
                continue;
            };
            match check(&entry.path(), digest) {
                Ok(()) => return Some(entry.path()),
                Err(error) => {
                    tracing::warn!(
                        "{}: compiled code is not taken ({error}); it is built again",
                        entry.path().display()
                    );
                    let _ = fs::remove_file(entry.path());
                }
            }
        }
        None
    }

    /// Keeps the compiled code of a module, and says where. The file is there whole or not at all.
    pub(crate) fn store(&self, module: &[u8; 32], code: &[u8]) -> io::Result<PathBuf> {
        static ATTEMPTS: AtomicU64 = AtomicU64::new(0);
        let attempt = ATTEMPTS.fetch_add(1, Ordering::Relaxed);
        let unfinished = self.directory.join(format!(".{}-{attempt}{UNFINISHED}", std::process::id()));
        let name = format!("{}{}{SUFFIX}", self.prefix(module), hex(&Sha256::digest(code)));
        let written = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&unfinished)
            .and_then(|mut file| {
                file.write_all(code)?;
                file.sync_all()
            })
            .and_then(|()| fs::rename(&unfinished, self.directory.join(&name)));
        match &written {
            Ok(()) => self.prune(&name),
            Err(_) => drop(fs::remove_file(&unfinished)),
        }
        written.map(|()| self.directory.join(name))
    }

    /// Makes room for the file that was stored now. Code that runs goes on: a file that is mapped lives on without its name.
    fn prune(&self, stored: &str) {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.directory).into_iter().flatten().flatten() {
            let (name, path) = (entry.file_name(), entry.path());
            let name = name.to_str().unwrap_or_default();
            match Kept::of(name) {
                Some(Kept::Code { compatibility }) if compatibility != self.compatibility => {
                    drop(fs::remove_file(path))
                }
                Some(_) => {
                    let Ok(metadata) = entry.metadata() else { continue };
                    let used = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                    files.push(((name == stored, used), metadata.len(), path));
                }
                None => {}
            }
        }
        files.sort_by_key(|(latest, ..)| Reverse(*latest));
        let mut total = 0;
        for (index, (_, bytes, path)) in files.into_iter().enumerate() {
            total += bytes;
            if total > self.limit && index > 0 {
                let _ = fs::remove_file(path);
            }
        }
    }

    /// Removes all code but that of these modules. Bytes that are free now.
    pub(crate) fn clear(&self, used: &HashSet<[u8; 32]>) -> u64 {
        let used: HashSet<String> = used.iter().map(|module| self.prefix(module)).collect();
        let mut freed = 0;
        for entry in fs::read_dir(&self.directory).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let name = name.to_str().unwrap_or_default();
            let is_code = matches!(Kept::of(name), Some(Kept::Code { .. }));
            if !is_code || used.iter().any(|prefix| name.starts_with(prefix.as_str())) {
                continue;
            }
            let bytes = entry.metadata().map_or(0, |metadata| metadata.len());
            freed += fs::remove_file(entry.path()).map_or(0, |()| bytes);
        }
        freed
    }

    /// Forgets what is kept of a module for this engine.
    pub(crate) fn remove(&self, module: &[u8; 32]) {
        let prefix = self.prefix(module);
        for entry in fs::read_dir(&self.directory).into_iter().flatten().flatten() {
            if entry.file_name().to_str().is_some_and(|name| name.starts_with(&prefix)) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    fn prefix(&self, module: &[u8; 32]) -> String {
        format!("{}-{}-", hex(module), self.compatibility)
    }
}

const SUFFIX: &str = ".cwasm";
const UNFINISHED: &str = ".tmp";

/// What a file is, by its name. Others in the directory aren't the cache's.
enum Kept<'a> {
    Code {
        compatibility: &'a str,
    },
    /// Being written, or left behind by a process that ended meanwhile.
    Unfinished,
}

impl<'a> Kept<'a> {
    fn of(name: &'a str) -> Option<Self> {
        if name.starts_with('.') && name.ends_with(UNFINISHED) {
            return Some(Self::Unfinished);
        }
        let mut parts = name.strip_suffix(SUFFIX)?.split('-');
        match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some(_), Some(compatibility), Some(_), None) => Some(Self::Code { compatibility }),
            _ => None,
        }
    }
}

/// Whether it is this user's and closed to everybody else.
fn is_private(metadata: &fs::Metadata) -> bool {
    metadata.uid() == rustix::process::geteuid().as_raw() && metadata.mode() & 0o077 == 0
}

/// Reads a file to the end to see whether it has this digest, and notes that it was used. One that somebody else put there, or
/// may write to, was not compiled here, whatever its digest.
fn check(path: &Path, digest: &str) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let metadata = file.metadata()?;
    if !metadata.is_file() || !is_private(&metadata) {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it is not a file of this user with mode 0600"));
    }
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            read => hash.update(&buffer[..read]),
        }
    }
    if hex(&hash.finalize()) != digest {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "its digest is another one"));
    }
    // For `prune`; where it isn't possible, the time that it was written has to do.
    let _ = file.set_modified(SystemTime::now());
    Ok(())
}

/// SHA-256 as a [`Hasher`]: wasmtime gives its compatibility as something to be hashed, and a name on disk needs a hash that is
/// the same in every run.
struct Sha256Hasher(Sha256);

impl Hasher for Sha256Hasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        let digest = self.0.clone().finalize();
        u64::from_le_bytes(std::array::from_fn(|i| digest[i]))
    }
}
