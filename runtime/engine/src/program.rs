//! A compiled module, linked against what the node provides and ready to be instantiated any number of times.

use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use husk_core::io::Outcome;
use wasmtime::component::{self, Component};
use wasmtime::{Module, Precompiled, Store};
use wasmtime_wasi::p2::bindings::CommandPre;

use crate::cache::Cache;
use crate::compiler::precompiled;
use crate::guest::Guest;
use crate::image::{ImageError, ModuleFile};
use crate::lifecycle;
use crate::outcome::Ended;

/// The imports of all guests.
pub(crate) struct Linkers {
    pub(crate) core: wasmtime::Linker<Guest>,
    pub(crate) component: component::Linker<Guest>,
}

/// A module that can be started.
pub(crate) struct Program {
    entry: Entry,
    /// It imports the lifecycle interface's signals.
    pub(crate) handles_signals: bool,
}

enum Entry {
    /// A core module with `_start`.
    Core(wasmtime::InstancePre<Guest>),
    /// A component with `wasi:cli/run`.
    Component(CommandPre<Guest>),
}

impl Program {
    /// Takes a module's code from the cache and links it.
    pub(crate) fn load(
        engine: &wasmtime::Engine,
        linkers: &Linkers,
        cache: &Cache,
        file: &ModuleFile,
    ) -> Option<Result<Arc<Self>, ImageError>> {
        let code = Code::load(engine, cache, file)?;
        Some(code.link(engine, linkers, file).map(Arc::new))
    }

    /// Compiles and links a module, and keeps its code. Takes seconds for a big module.
    pub(crate) fn compile(
        engine: &wasmtime::Engine,
        linkers: &Linkers,
        cache: Option<&Cache>,
        file: &ModuleFile,
    ) -> Result<Arc<Self>, ImageError> {
        let code = precompiled(engine, &file.read()?)
            .map_err(|error| ImageError::Invalid { path: file.path.clone(), detail: error.root_cause().to_string() });
        let program = code.and_then(|code| Self::of_code(engine, linkers, cache, &code, file));
        give_back_memory();
        program
    }

    /// The same with what another process wrote into a file.
    pub(crate) fn of_file(
        engine: &wasmtime::Engine,
        linkers: &Linkers,
        cache: Option<&Cache>,
        mut code: File,
        file: &ModuleFile,
    ) -> Result<Arc<Self>, ImageError> {
        let mut bytes = Vec::new();
        let read = code.rewind().and_then(|()| code.read_to_end(&mut bytes));
        read.map_err(|error| ImageError::compiler(file, &error))?;
        Self::of_code(engine, linkers, cache, &bytes, file)
    }

    fn of_code(
        engine: &wasmtime::Engine,
        linkers: &Linkers,
        cache: Option<&Cache>,
        code: &[u8],
        file: &ModuleFile,
    ) -> Result<Arc<Self>, ImageError> {
        // What is on the disk need not stay in memory; it may be gone from there already, for others that were kept.
        let kept = cache.and_then(|cache| keep(cache, file, code)).and_then(|kept| Code::open(engine, &kept).ok());
        let code = kept.map_or_else(|| Code::read(engine, code), Ok);
        let code =
            code.map_err(|error| ImageError::Compiler { path: file.path.clone(), detail: format!("{error:#}") })?;
        code.link(engine, linkers, file).map(Arc::new)
    }

    /// Instantiates the module in a store and runs it to its end.
    pub(crate) async fn run(&self, store: &mut Store<Guest>) -> Ended {
        match self.call(&mut *store).await {
            Ok(code) => Ended { outcome: Outcome::Code(code), detail: None },
            Err(error) => Ended::from_error(&error),
        }
    }

    async fn call(&self, store: &mut Store<Guest>) -> wasmtime::Result<i32> {
        match &self.entry {
            Entry::Core(pre) => {
                let instance = pre.instantiate_async(&mut *store).await?;
                let start = instance.get_typed_func::<(), ()>(&mut *store, "_start")?;
                start.call_async(store, ()).await?;
                Ok(0)
            }
            Entry::Component(pre) => {
                let command = pre.instantiate_async(&mut *store).await?;
                let result = command.wasi_cli_run().call_run(store).await?;
                Ok(i32::from(result.is_err()))
            }
        }
    }
}

/// Keeps compiled code, and says where. Without it all goes on, and the module is compiled again some day.
fn keep(cache: &Cache, file: &ModuleFile, code: &[u8]) -> Option<PathBuf> {
    let kept = cache.store(&file.digest, code);
    kept.inspect_err(|error| tracing::warn!("{}: compiled code could not be kept: {error}", file.path.display())).ok()
}

/// Gives the system back what compiling took. glibc keeps it for the threads that did that, a hundred MB of a big module, and they
/// may not compile again for months.
fn give_back_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it is given no memory of ours, and any thread may call it at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}

enum Code {
    Core(Module),
    Component(Component),
}

impl Code {
    fn load(engine: &wasmtime::Engine, cache: &Cache, file: &ModuleFile) -> Option<Self> {
        let kept = cache.load(&file.digest)?;
        let code = Self::open(engine, &kept);
        code.inspect_err(|error| {
            tracing::warn!("{}: compiled code can't be used ({error:#}); it is built again", file.path.display());
            cache.remove(&file.digest);
        })
        .ok()
    }

    /// Maps code that this node's compiler wrote.
    fn open(engine: &wasmtime::Engine, kept: &Path) -> wasmtime::Result<Self> {
        let kind = wasmtime::Engine::detect_precompiled_file(kept)?;
        // SAFETY: the file is what this node's compiler wrote: its digest was checked or made now, only the node's own user can write
        // to the directory, and the node replaces files there but never changes them.
        unsafe {
            match kind {
                Some(Precompiled::Module) => Module::deserialize_file(engine, kept).map(Self::Core),
                Some(Precompiled::Component) => Component::deserialize_file(engine, kept).map(Self::Component),
                None => Err(wasmtime::Error::msg("it is no compiled code")),
            }
        }
    }

    /// Takes code that this node's compiler has just written.
    fn read(engine: &wasmtime::Engine, code: &[u8]) -> wasmtime::Result<Self> {
        // SAFETY: as above.
        unsafe {
            match wasmtime::Engine::detect_precompiled(code) {
                Some(Precompiled::Module) => Module::deserialize(engine, code).map(Self::Core),
                Some(Precompiled::Component) => Component::deserialize(engine, code).map(Self::Component),
                None => Err(wasmtime::Error::msg("it is no compiled code")),
            }
        }
    }

    fn link(self, engine: &wasmtime::Engine, linkers: &Linkers, file: &ModuleFile) -> Result<Program, ImageError> {
        match self {
            Self::Core(module) => {
                let handles_signals = lifecycle::module_handles_signals(&module);
                let pre = linkers.core.instantiate_pre(&module).map_err(|error| core_import_error(&error, file))?;
                let start = module.get_export("_start").and_then(|export| export.func().cloned());
                if start.is_none_or(|start| start.params().len() + start.results().len() > 0) {
                    let wanted = "it exports no function `_start` without parameters and results";
                    return Err(ImageError::NoEntry { path: file.path.clone(), wanted });
                }
                Ok(Program { entry: Entry::Core(pre), handles_signals })
            }
            Self::Component(component) => {
                let handles_signals = lifecycle::component_handles_signals(&component, engine);
                let names: Vec<String> =
                    component.component_type().imports(engine).map(|(name, _)| name.to_string()).collect();
                let pre = linkers
                    .component
                    .instantiate_pre(&component)
                    .map_err(|error| component_import_error(&error, &names, file))?;
                let wanted = "it exports no `wasi:cli/run`";
                let pre = CommandPre::new(pre).map_err(|_| ImageError::NoEntry { path: file.path.clone(), wanted })?;
                Ok(Program { entry: Entry::Component(pre), handles_signals })
            }
        }
    }
}

fn core_import_error(error: &wasmtime::Error, file: &ModuleFile) -> ImageError {
    let path = file.path.clone();
    match error.downcast_ref::<wasmtime::UnknownImportError>() {
        Some(unknown) => {
            ImageError::UnknownImport { path, import: format!("{}::{}", unknown.module(), unknown.name()) }
        }
        None => {
            let import = quoted(&error.to_string()).unwrap_or_else(|| "something".into());
            ImageError::WrongImport { path, import, detail: error.root_cause().to_string() }
        }
    }
}

/// wasmtime says which import it is about in words only; the component's own list of imports is matched against them.
fn component_import_error(error: &wasmtime::Error, names: &[String], file: &ModuleFile) -> ImageError {
    let words = error.to_string();
    let path = file.path.clone();
    let import = names
        .iter()
        .find(|name| words.contains(&format!("`{name}`")))
        .cloned()
        .or_else(|| quoted(&words))
        .unwrap_or_else(|| "something".into());
    let detail = format!("{:#}", error);
    if !is_provided(&import) {
        return ImageError::UnknownImport { path, import };
    }
    ImageError::WrongImport { path, import, detail }
}

/// Whether the linker has an interface of this name, whatever the types in it.
fn is_provided(import: &str) -> bool {
    const PACKAGES: &[&str] = &["cli", "clocks", "filesystem", "io", "random", "sockets"];
    let Some((name, version)) = import.split_once('@') else { return false };
    match name.split_once('/').map(|(package, _)| package).and_then(|package| package.split_once(':')) {
        Some(("wasi", package)) => PACKAGES.contains(&package) && version.starts_with("0.2."),
        Some(("husk", "lifecycle")) => version.starts_with("0.1."),
        _ => false,
    }
}

/// The first word in backticks.
fn quoted(text: &str) -> Option<String> {
    text.split('`').nth(1).map(String::from)
}
