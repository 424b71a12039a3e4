//! Images: a Wasm file, or a directory with modules and files.
//!
//! In a directory the entry module is the one that the file `entrypoint` names (a path relative to the directory, then default
//! arguments, split at spaces), or else the only module there is. Every other module can be started by its name, looked up
//! along `PATH` as a command would be.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

/// Where commands are looked up when the container has no `PATH`.
pub(crate) const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The file of a directory image that names its entry module.
const ENTRYPOINT: &str = "entrypoint";

/// Folders below folders that are searched for modules.
const MAX_DEPTH: usize = 8;

/// Bytes of a module. It is read into memory, and compiling takes a multiple of its size.
const MAX_MODULE: u64 = 256 << 20;

/// Bytes of the file `entrypoint`.
const MAX_ENTRYPOINT: u64 = 64 << 10;

/// Why something is no image. Each message names the file and, where there is one, the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImageError {
    /// Nothing is there.
    #[error("{path}: not found; give a .wasm file or a directory with one")]
    NotFound {
        /// The file.
        path: PathBuf,
    },
    /// Something is there that can't be read.
    #[error("{path}: {source}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is neither a file nor a directory.
    #[error("{path}: a {kind}, not a file; give a .wasm file or a directory with one")]
    NotAFile {
        /// The file.
        path: PathBuf,
        /// What it is instead.
        kind: &'static str,
    },
    /// It is bigger than a module may be.
    #[error("{path}: bigger than the {limit} bytes that this node takes; remove debug information, or split it")]
    TooBig {
        /// The file.
        path: PathBuf,
        /// The bound.
        limit: u64,
    },
    /// It is no Wasm.
    #[error("{path}: not a Wasm file ({found}); build the program for wasm32-wasip2 or wasm32-wasip1")]
    NotWasm {
        /// The file.
        path: PathBuf,
        /// What it is instead.
        found: String,
    },
    /// Its text form has a mistake.
    #[error("{path}: {detail}")]
    Text {
        /// The file.
        path: PathBuf,
        /// Line and mistake.
        detail: String,
    },
    /// It is cut off.
    #[error("{path}: truncated: {detail}; copy or build it again")]
    Truncated {
        /// The file.
        path: PathBuf,
        /// Where it ends.
        detail: String,
    },
    /// It is Wasm, but not valid.
    #[error("{path}: not valid: {detail}")]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The validator's words.
        detail: String,
    },
    /// It wants something that this node doesn't have.
    #[error(
        "{path}: imports `{import}`, which this node does not provide; it has WASI 0.2 (without wasi:http), WASI preview 1 and husk:lifecycle"
    )]
    UnknownImport {
        /// The file.
        path: PathBuf,
        /// Interface, or module and field.
        import: String,
    },
    /// It wants something that this node has, in another form.
    #[error("{path}: imports `{import}` with another type than this node provides: {detail}")]
    WrongImport {
        /// The file.
        path: PathBuf,
        /// Interface, or module and field.
        import: String,
        /// What differs.
        detail: String,
    },
    /// It can't be started.
    #[error("{path}: has no entry: {wanted}; build it as a program, not as a library")]
    NoEntry {
        /// The file.
        path: PathBuf,
        /// What is missing.
        wanted: &'static str,
    },
    /// A directory without modules.
    #[error("{path}: no Wasm module in this directory; put a .wasm file into it")]
    NoModule {
        /// The directory.
        path: PathBuf,
    },
    /// A directory with modules but without a word which one to start.
    #[error(
        "{path}: {count} modules and no file `entrypoint` that names the one to start, for example with the line `{example}`"
    )]
    NoEntrypoint {
        /// The directory.
        path: PathBuf,
        /// How many.
        count: usize,
        /// One of them.
        example: String,
    },
    /// The file `entrypoint` names no module.
    #[error("{path}: names `{entry}`, which is no Wasm module of this image; give a path relative to the image")]
    BadEntrypoint {
        /// The file.
        path: PathBuf,
        /// What it names.
        entry: String,
    },
    /// The file was changed after the image was opened.
    #[error("{path}: changed since the image was opened; open it again")]
    Changed {
        /// The file.
        path: PathBuf,
    },
}

/// A program with its files. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Image(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// Of a directory image: the directory, without symbolic links in its path.
    root: Option<PathBuf>,
    entry: ModuleFile,
    default_args: Vec<String>,
    /// Modules of a directory image by their path in the image, `/bin/tool.wasm`.
    modules: BTreeMap<String, ModuleFile>,
    id: String,
}

/// A module of an image.
#[derive(Clone, Debug)]
pub(crate) struct ModuleFile {
    pub(crate) path: PathBuf,
    /// `toolbox` for `toolbox.wasm`: what the guest sees as `argv[0]`.
    pub(crate) name: String,
    /// SHA-256 of the file.
    pub(crate) digest: [u8; 32],
}

impl Image {
    /// Opens a `.wasm` file, its text form (`.wat`), or a directory image, and looks whether it can be one at all.
    /// [`Engine::prepare`](crate::Engine::prepare) validates it in full.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ImageError> {
        let path = path.as_ref();
        let metadata = fs::metadata(path).map_err(|error| unreadable(path, error))?;
        if metadata.is_dir() { Self::open_directory(path) } else { Self::open_file(path) }
    }

    fn open_file(path: &Path) -> Result<Self, ImageError> {
        let entry = ModuleFile::open(path)?;
        let id = format!("sha256:{}", hex(&entry.digest));
        let inner = Inner { root: None, entry, default_args: Vec::new(), modules: BTreeMap::new(), id };
        Ok(Self(Arc::new(inner)))
    }

    fn open_directory(path: &Path) -> Result<Self, ImageError> {
        let root = path.canonicalize().map_err(|error| unreadable(path, error))?;
        let mut modules = BTreeMap::new();
        collect(&root, &root, MAX_DEPTH, &mut modules)?;
        let (entry, default_args) = entry_of(path, &root, &modules)?;
        let mut hash = Sha256::new();
        for (name, module) in &modules {
            hash.update(name);
            hash.update([0]);
            hash.update(module.digest);
        }
        let id = format!("sha256:{}", hex(&hash.finalize()));
        Ok(Self(Arc::new(Inner { root: Some(root), entry, default_args, modules, id })))
    }

    /// Digest of its modules (`imageID`): `sha256:` and 64 hexadecimal digits.
    pub fn id(&self) -> &str {
        &self.0.id
    }

    /// Name of the entry module, without `.wasm`.
    pub fn entry_name(&self) -> &str {
        &self.0.entry.name
    }

    /// The directory of a directory image.
    pub(crate) fn root(&self) -> Option<&Path> {
        self.0.root.as_deref()
    }

    /// All modules, the entry first.
    pub(crate) fn modules(&self) -> impl Iterator<Item = &ModuleFile> {
        let entry = &self.0.entry;
        std::iter::once(entry).chain(self.0.modules.values().filter(move |module| module.digest != entry.digest))
    }

    /// The module and `argv` of a container with this `command` and `args`. A command that is a module of the image starts that
    /// one; any other starts the entry module, which sees the command as its own name (multi-call programs go by it).
    pub(crate) fn resolve(&self, command: &[String], args: &[String], path: &str) -> (&ModuleFile, Vec<String>) {
        match command.first() {
            Some(name) => {
                let argv = command.iter().chain(args).cloned().collect();
                (self.find(name, path).unwrap_or(&self.0.entry), argv)
            }
            None => {
                let args = if args.is_empty() { &self.0.default_args } else { args };
                let argv = std::iter::once(&self.0.entry.name).chain(args).cloned().collect();
                (&self.0.entry, argv)
            }
        }
    }

    /// A module of the image by the name of a command.
    fn find(&self, name: &str, path: &str) -> Option<&ModuleFile> {
        let at = |place: String| {
            let place = place.replace("//", "/");
            self.0.modules.get(&place).or_else(|| self.0.modules.get(&format!("{place}.wasm")))
        };
        if name.contains('/') {
            return at(format!("/{}", name.trim_start_matches("./").trim_start_matches('/')));
        }
        path.split(':').chain(["/"]).find_map(|folder| at(format!("{folder}/{name}")))
    }
}

impl ModuleFile {
    fn open(path: &Path) -> Result<Self, ImageError> {
        let bytes = read(path)?;
        Ok(Self::new(path, &bytes))
    }

    fn new(path: &Path, bytes: &[u8]) -> Self {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Self { path: path.to_path_buf(), name, digest: Sha256::digest(bytes).into() }
    }

    /// Reads the module again: as binary, and the same that was there when the image was opened.
    pub(crate) fn read(&self) -> Result<Vec<u8>, ImageError> {
        let bytes = read(&self.path)?;
        if <[u8; 32]>::from(Sha256::digest(&bytes)) != self.digest {
            return Err(ImageError::Changed { path: self.path.clone() });
        }
        Ok(bytes)
    }
}

/// Reads a module; its text form is turned into the binary one.
fn read(path: &Path) -> Result<Vec<u8>, ImageError> {
    let bytes = read_bounded(path, MAX_MODULE)?;
    if bytes.starts_with(MAGIC) {
        look_for_truncation(path, &bytes)?;
        return Ok(bytes);
    }
    let is_text =
        path.extension().is_some_and(|extension| extension == "wat") || bytes.trim_ascii_start().starts_with(b"(");
    if !is_text {
        return Err(ImageError::NotWasm { path: path.to_path_buf(), found: describe(&bytes) });
    }
    let text = wat::parse_bytes(&bytes)
        .map_err(|error| ImageError::Text { path: path.to_path_buf(), detail: text_mistake(&error.to_string()) })?;
    Ok(text.into_owned())
}

/// Reads a regular file. Others may have no end, or wait for somebody to write.
fn read_bounded(path: &Path, limit: u64) -> Result<Vec<u8>, ImageError> {
    let failed = |error| unreadable(path, error);
    let metadata = fs::metadata(path).map_err(failed)?;
    if let Some(kind) = special(metadata.file_type()) {
        return Err(ImageError::NotAFile { path: path.to_path_buf(), kind });
    }
    let mut bytes = Vec::new();
    if metadata.len() <= limit {
        // Bounded again: it may grow meanwhile.
        fs::File::open(path).and_then(|file| file.take(limit + 1).read_to_end(&mut bytes)).map_err(failed)?;
    }
    if metadata.len().max(bytes.len() as u64) > limit {
        return Err(ImageError::TooBig { path: path.to_path_buf(), limit });
    }
    Ok(bytes)
}

/// What it is, if it isn't a regular file.
fn special(kind: fs::FileType) -> Option<&'static str> {
    let kinds = [
        (kind.is_dir(), "directory"),
        (kind.is_fifo(), "pipe"),
        (kind.is_socket(), "socket"),
        (kind.is_char_device() || kind.is_block_device(), "device"),
    ];
    kinds.into_iter().find(|(is, _)| *is).map(|(_, name)| name)
}

/// The mistake and its place in one line, of a message with the piece of text below it.
fn text_mistake(message: &str) -> String {
    let mut lines = message.lines();
    let mistake = lines.next().unwrap_or_default();
    let mut place =
        lines.find_map(|line| line.trim_start().strip_prefix("-->")).into_iter().flat_map(|at| at.rsplit(':'));
    match (place.next(), place.next()) {
        (Some(column), Some(line)) => format!("line {line}, column {column}: {mistake}"),
        _ => mistake.to_string(),
    }
}

const MAGIC: &[u8] = b"\0asm";

/// What a file is that is no Wasm, for the message.
fn describe(bytes: &[u8]) -> String {
    match bytes {
        [] => "it is empty".into(),
        [0x7f, b'E', b'L', b'F', ..] => "it is a program or precompiled code in ELF format".into(),
        [b'#', b'!', ..] => "it is a script".into(),
        [0x1f, 0x8b, ..] => "it is compressed with gzip".into(),
        [0, ..] if MAGIC.starts_with(bytes) => "it ends in the middle of the magic number".into(),
        _ => {
            let mut found = String::from("it begins with the bytes");
            for byte in bytes.iter().take(4) {
                let _ = write!(found, " {byte:02x}");
            }
            found + ", Wasm begins with 00 61 73 6d"
        }
    }
}

/// Walks the sections, which modules and components have in the same form, so that a file that is cut off is called so.
fn look_for_truncation(path: &Path, bytes: &[u8]) -> Result<(), ImageError> {
    let truncated = |detail: String| ImageError::Truncated { path: path.to_path_buf(), detail };
    if bytes.len() < 8 {
        return Err(truncated(format!("it ends after {} bytes, within the header", bytes.len())));
    }
    let mut at = 8;
    while at < bytes.len() {
        let section = at;
        at += 1;
        let size = leb128(bytes, &mut at)
            .ok_or_else(|| truncated(format!("it ends within the header of the section at byte {section}")))?;
        let left = bytes.len() - at;
        if size > left {
            return Err(truncated(format!(
                "the section at byte {section} is {size} bytes long, the file has {left} left"
            )));
        }
        at += size;
    }
    Ok(())
}

/// An unsigned LEB128 number of at most 32 bits; none at the end of the file. One that is malformed is left to the validator.
fn leb128(bytes: &[u8], at: &mut usize) -> Option<usize> {
    let mut value = 0usize;
    for shift in [0, 7, 14, 21, 28] {
        let byte = *bytes.get(*at)?;
        *at += 1;
        value |= usize::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    Some(0)
}

/// Finds the modules of a directory image. Symbolic links are followed as long as they stay inside.
fn collect(
    root: &Path,
    folder: &Path,
    depth: usize,
    modules: &mut BTreeMap<String, ModuleFile>,
) -> Result<(), ImageError> {
    let entries = fs::read_dir(folder).map_err(|error| unreadable(folder, error))?;
    for entry in entries {
        let path = entry.map_err(|error| unreadable(folder, error))?.path();
        let Ok(target) = path.canonicalize() else { continue };
        if !target.starts_with(root) {
            continue;
        }
        if target.is_dir() {
            // A folder reached through a link is found at its own place as well, and links can go in circles.
            if depth > 0 && !path.is_symlink() {
                collect(root, &path, depth - 1, modules)?;
            }
        } else if target.is_file() && is_module(&target) {
            let inside = path.strip_prefix(root).unwrap_or(&path);
            modules.insert(format!("/{}", inside.display()), ModuleFile::open(&path)?);
        }
    }
    Ok(())
}

fn is_module(path: &Path) -> bool {
    if path.extension().is_some_and(|extension| extension == "wasm" || extension == "wat") {
        return true;
    }
    let mut magic = [0; 4];
    fs::File::open(path).and_then(|mut file| file.read_exact(&mut magic)).is_ok() && magic == MAGIC
}

fn entry_of(
    path: &Path,
    root: &Path,
    modules: &BTreeMap<String, ModuleFile>,
) -> Result<(ModuleFile, Vec<String>), ImageError> {
    let file = root.join(ENTRYPOINT);
    if file.exists() && !file.is_dir() {
        let text = read_bounded(&file, MAX_ENTRYPOINT)?;
        let text = String::from_utf8_lossy(&text);
        let mut words = text.lines().next().unwrap_or_default().split_whitespace().map(String::from);
        let entry = words.next().unwrap_or_default();
        let inside = format!("/{}", entry.trim_start_matches("./").trim_start_matches('/'));
        let module = modules.get(&inside).or_else(|| modules.get(&format!("{inside}.wasm")));
        let module = module.ok_or(ImageError::BadEntrypoint { path: path.join(ENTRYPOINT), entry })?;
        return Ok((module.clone(), words.collect()));
    }
    let mut distinct: Vec<&ModuleFile> = modules.values().collect();
    distinct.sort_by_key(|module| module.digest);
    distinct.dedup_by_key(|module| module.digest);
    match distinct.as_slice() {
        [] => Err(ImageError::NoModule { path: path.to_path_buf() }),
        // Of several names (links) for the only module, a regular file is the one it was built as.
        [_] => {
            let own = modules.values().find(|module| !module.path.is_symlink()).or_else(|| modules.values().next());
            own.map(|module| (module.clone(), Vec::new())).ok_or(ImageError::NoModule { path: path.to_path_buf() })
        }
        [..] => Err(ImageError::NoEntrypoint {
            path: path.to_path_buf(),
            count: distinct.len(),
            example: modules.keys().next().map(|name| name.trim_start_matches('/').to_string()).unwrap_or_default(),
        }),
    }
}

fn unreadable(path: &Path, source: std::io::Error) -> ImageError {
    match source.kind() {
        std::io::ErrorKind::NotFound => ImageError::NotFound { path: path.to_path_buf() },
        _ => ImageError::Unreadable { path: path.to_path_buf(), source },
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
