//! Images: a Wasm file, or a directory with modules and files.
//!
//! In a directory the entry module is the one that the file `entrypoint` names (a path relative to the directory, then default
//! arguments, split at spaces), or else the only module there is. Every other module can be started by its name, looked up
//! along `PATH` as a command would be.

mod file;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use self::file::{is_module, read, read_bounded};

/// Where commands are looked up when the container has no `PATH`.
pub(crate) const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The file of a directory image that names its entry module.
const ENTRYPOINT: &str = "entrypoint";

/// Folders below folders that are searched for modules.
const MAX_DEPTH: usize = 8;

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
    /// To compile it takes more than the node gives to that.
    #[error(
        "{path}: to compile it takes more than {most}, which is the most that one module may take; build it smaller, or raise that (husk.compileTimeout and husk.compileMemory of an agent)"
    )]
    TooCostly {
        /// The file.
        path: PathBuf,
        /// The bound.
        most: String,
    },
    /// The process that was to compile it can't, which is not the module's fault as far as is known.
    #[error("{path}: could not be compiled: {detail}")]
    Compiler {
        /// The file.
        path: PathBuf,
        /// Why.
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

impl ImageError {
    pub(crate) fn compiler(module: &ModuleFile, error: &std::io::Error) -> Self {
        Self::Compiler { path: module.path.clone(), detail: error.to_string() }
    }

    /// The image is whole and what is in it is valid; it can't be compiled here, or not now.
    pub fn is_of_compiler(&self) -> bool {
        matches!(self, Self::TooCostly { .. } | Self::Compiler { .. })
    }
}

/// What an image says of itself beside its files, as the configuration of an OCI image does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImageConfig {
    /// Name of the program of an image that is one file; the file's own if it is empty.
    pub name: String,
    /// `Entrypoint`: a module of the image and arguments that it always has. If it is empty, what
    /// [`cmd`](Self::cmd) or the files say.
    pub entrypoint: Vec<String>,
    /// `Cmd`: arguments unless the container has its own.
    pub cmd: Vec<String>,
    /// `Env`.
    pub env: Vec<(String, String)>,
    /// `WorkingDir`.
    pub working_dir: Option<String>,
    /// `User`, as it is written.
    pub user: Option<String>,
}

/// A program with its files. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Image(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// Of a directory image: the directory, without symbolic links in its path.
    root: Option<PathBuf>,
    entry: Entry,
    env: Vec<(String, String)>,
    working_dir: Option<String>,
    user: Option<String>,
    /// Modules of a directory image by their path in the image, `/bin/tool.wasm`.
    modules: BTreeMap<String, ModuleFile>,
    id: String,
}

/// What is started unless the container says otherwise.
#[derive(Clone, Debug)]
struct Entry {
    module: ModuleFile,
    /// Arguments that it always has.
    args: Vec<String>,
    /// Arguments if the container has none.
    default_args: Vec<String>,
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
    /// Bytes of a module, at most.
    pub const MAX_MODULE: u64 = file::MAX_MODULE;

    /// Opens a `.wasm` file, its text form (`.wat`), or a directory image, and looks whether it can be one at all.
    /// [`Engine::prepare`](crate::Engine::prepare) validates it in full.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ImageError> {
        Self::open_with(path, ImageConfig::default())
    }

    /// Opens a file or directory that has a configuration beside it.
    pub fn open_with(path: impl AsRef<Path>, config: ImageConfig) -> Result<Self, ImageError> {
        let path = path.as_ref();
        let metadata = fs::metadata(path).map_err(|error| unreadable(path, error))?;
        if metadata.is_dir() { Self::open_directory(path, config) } else { Self::open_file(path, config) }
    }

    fn open_file(path: &Path, config: ImageConfig) -> Result<Self, ImageError> {
        let mut module = ModuleFile::open(path)?;
        if !config.name.is_empty() {
            module.name = config.name;
        }
        let id = format!("sha256:{}", hex(&module.digest));
        let entry = Entry { module, args: Vec::new(), default_args: config.cmd };
        let (env, working_dir, user) = (config.env, config.working_dir, config.user);
        Ok(Self(Arc::new(Inner { root: None, entry, env, working_dir, user, modules: BTreeMap::new(), id })))
    }

    fn open_directory(path: &Path, config: ImageConfig) -> Result<Self, ImageError> {
        let root = path.canonicalize().map_err(|error| unreadable(path, error))?;
        let mut modules = BTreeMap::new();
        collect(&root, &root, MAX_DEPTH, &mut modules)?;
        let entry = match configured_entry(path, &config, &modules)? {
            Some(entry) => entry,
            None => {
                let (module, default_args) = entry_of(path, &root, &modules)?;
                let default_args = if config.cmd.is_empty() { default_args } else { config.cmd };
                Entry { module, args: Vec::new(), default_args }
            }
        };
        let mut hash = Sha256::new();
        for (name, module) in &modules {
            hash.update(name);
            hash.update([0]);
            hash.update(module.digest);
        }
        let id = format!("sha256:{}", hex(&hash.finalize()));
        let (env, working_dir, user) = (config.env, config.working_dir, config.user);
        Ok(Self(Arc::new(Inner { root: Some(root), entry, env, working_dir, user, modules, id })))
    }

    /// The user that its containers are unless they say otherwise, as the image has it written: `USER[:GROUP]`.
    pub fn user(&self) -> Option<&str> {
        self.0.user.as_deref()
    }

    /// Digest of its modules (`imageID`): `sha256:` and 64 hexadecimal digits.
    pub fn id(&self) -> &str {
        &self.0.id
    }

    /// Name of the entry module, without `.wasm`.
    pub fn entry_name(&self) -> &str {
        &self.0.entry.module.name
    }

    /// Its environment, which a container's own is added to.
    pub(crate) fn env(&self) -> &[(String, String)] {
        &self.0.env
    }

    /// Its working directory, unless the container has its own.
    pub(crate) fn working_dir(&self) -> Option<&str> {
        self.0.working_dir.as_deref()
    }

    /// The directory of a directory image.
    pub fn root(&self) -> Option<&Path> {
        self.0.root.as_deref()
    }

    /// All modules, the entry first.
    pub(crate) fn modules(&self) -> impl Iterator<Item = &ModuleFile> {
        let entry = &self.0.entry.module;
        std::iter::once(entry).chain(self.0.modules.values().filter(move |module| module.digest != entry.digest))
    }

    /// The module and `argv` of a container with this `command` and `args`. A command that is a module of the image starts that
    /// one; any other starts the entry module, which sees the command as its own name (multi-call programs go by it).
    pub(crate) fn resolve(&self, command: &[String], args: &[String], path: &str) -> (&ModuleFile, Vec<String>) {
        let entry = &self.0.entry;
        match command.first() {
            Some(name) => {
                let argv = command.iter().chain(args).cloned().collect();
                (find(&self.0.modules, name, path).unwrap_or(&entry.module), argv)
            }
            None => {
                let args = if args.is_empty() { &entry.default_args } else { args };
                let argv = std::iter::once(&entry.module.name).chain(&entry.args).chain(args).cloned().collect();
                (&entry.module, argv)
            }
        }
    }
}

/// A module of an image by the name of a command.
fn find<'a>(modules: &'a BTreeMap<String, ModuleFile>, name: &str, path: &str) -> Option<&'a ModuleFile> {
    let at = |place: String| {
        let place = place.replace("//", "/");
        modules.get(&place).or_else(|| modules.get(&format!("{place}.wasm")))
    };
    if name.contains('/') {
        return at(format!("/{}", name.trim_start_matches("./").trim_start_matches('/')));
    }
    path.split(':').chain(["/"]).find_map(|folder| at(format!("{folder}/{name}")))
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

/// The entry that the configuration names. As for a Linux image, `Cmd` is the command where there is no `Entrypoint`; unless it names
/// no module, then it is arguments for the one that the files name.
fn configured_entry(
    path: &Path,
    config: &ImageConfig,
    modules: &BTreeMap<String, ModuleFile>,
) -> Result<Option<Entry>, ImageError> {
    let search = config.env.iter().find(|(name, _)| name == "PATH").map_or(DEFAULT_PATH, |(_, path)| path);
    match (config.entrypoint.split_first(), config.cmd.split_first()) {
        (Some((name, args)), _) => match find(modules, name, search) {
            Some(module) => {
                let (module, args, default_args) = (module.clone(), args.to_vec(), config.cmd.clone());
                Ok(Some(Entry { module, args, default_args }))
            }
            None => Err(ImageError::BadEntrypoint { path: path.join("Entrypoint"), entry: name.clone() }),
        },
        (None, Some((name, args))) => Ok(find(modules, name, search).map(|module| {
            let (module, default_args) = (module.clone(), args.to_vec());
            Entry { module, args: Vec::new(), default_args }
        })),
        (None, None) => Ok(None),
    }
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
