//! `cargo xtask guests`: compiles every example guest to WebAssembly.
//!
//! Nothing here knows a guest by name. Rust guests are the binaries of the workspace `examples/guests`; a package
//! that wants other targets than WASI preview 2 says so in its manifest:
//!
//! ```toml
//! [package.metadata.husk]
//! targets = ["wasm32-wasip2", "wasm32-wasip1"]
//! ```
//!
//! Guests in C are the folders of `examples/guests` that have `.c` files and no `Cargo.toml`.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use pico_args::Arguments;
use serde_json::Value;

use crate::run::{cargo, output, root, run, run_quietly, target_dir, which};
use crate::toolchain::{Toolchain, WASIP1, WASIP2};
use crate::{Verb, no_more, setup};

pub(crate) const VERB: Verb = Verb {
    name: "guests",
    summary: "Compile the example guests to WebAssembly, into target/guests",
    help: "\
Usage: cargo xtask guests

Compiles what has changed. NAME.wasm is a component for WASI preview 2, NAME.p1.wasm a
core module for preview 1. Rust guests are the binaries of the workspace examples/guests
(`[package.metadata.husk] targets = [...]` asks for more than preview 2), guests in C
are its folders with .c files and no Cargo.toml; they become core modules.",
    run: |arguments: Arguments| {
        no_more(arguments)?;
        setup::targets(&[WASIP2, WASIP1])?;
        build_all()
    },
};

/// Where the modules go.
pub(crate) fn dir() -> PathBuf {
    target_dir().join("guests")
}

/// The folder with the guests' sources.
pub(crate) fn sources() -> PathBuf {
    root().join("examples/guests")
}

/// Compiles all guests. Says only what it did.
pub(crate) fn build_all() -> Result<()> {
    let mut modules = build_all_rust()?;
    setup::clang()?;
    modules.extend(build_all_c()?);
    // A guest that exists no longer must not make tests pass here that fail elsewhere.
    for entry in dir().read_dir()?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.ends_with(".wasm") && !modules.contains(&name) {
            fs::remove_file(entry.path())?;
            eprintln!("guests: {name} is gone");
        }
    }
    Ok(())
}

/// Compiles all guests in Rust, and names their modules.
pub(crate) fn build_all_rust() -> Result<Vec<String>> {
    fs::create_dir_all(dir())?;
    let mut modules = Vec::new();
    for (target, guests) in rust_guests()? {
        modules.extend(build_rust(&target, &guests)?);
    }
    Ok(modules)
}

fn build_all_c() -> Result<Vec<String>> {
    c_folders()?.iter().map(|folder| build_c(folder)).collect()
}

/// The name of a guest's module among all modules.
fn module_name(guest: &str, target: &str) -> String {
    match target {
        WASIP1 => format!("{guest}.p1.wasm"),
        _ => format!("{guest}.wasm"),
    }
}

/// One binary of a package.
struct Binary {
    package: String,
    name: String,
}

/// Per target, the binaries to build for it.
fn rust_guests() -> Result<BTreeMap<String, Vec<Binary>>> {
    let manifest = sources().join("Cargo.toml");
    let mut guests: BTreeMap<String, Vec<Binary>> = BTreeMap::new();
    if !manifest.is_file() {
        return Ok(guests);
    }
    let mut query = cargo();
    query.args(["metadata", "--no-deps", "--format-version", "1", "--manifest-path"]).arg(&manifest);
    let metadata: Value = serde_json::from_str(&output(&mut query)?).context("cargo metadata wrote no JSON")?;
    for package in array(&metadata["packages"]) {
        let asked = &package["metadata"]["husk"]["targets"];
        let targets: Vec<&str> = match asked.as_array() {
            Some(targets) => targets.iter().filter_map(Value::as_str).collect(),
            None => vec![WASIP2],
        };
        for binary in array(&package["targets"]).iter().filter(|target| array(&target["kind"]).contains(&"bin".into()))
        {
            for target in &targets {
                if ![WASIP1, WASIP2].contains(target) {
                    bail!("{}: guests can't be built for {target}, only for {WASIP2} and {WASIP1}", package["name"]);
                }
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                let binary = Binary { package: text(&package["name"]), name: text(&binary["name"]) };
                guests.entry((*target).to_owned()).or_default().push(binary);
            }
        }
    }
    Ok(guests)
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn build_rust(target: &str, guests: &[Binary]) -> Result<Vec<String>> {
    let builds = dir().join("build");
    let mut build = Toolchain::require(target)?.cargo(target);
    build.args(["build", "--release", "--target", target, "--bins"]);
    build.arg("--manifest-path").arg(sources().join("Cargo.toml")).arg("--target-dir").arg(&builds);
    for guest in guests {
        build.args(["--package", &guest.package]);
    }
    run_quietly(&mut build).with_context(|| format!("the guests for {target}"))?;
    let publish_one = |guest: &Binary| {
        let built = builds.join(target).join("release").join(format!("{}.wasm", guest.name));
        publish(&built, module_name(&guest.name, target))
    };
    guests.iter().map(publish_one).collect()
}

fn c_folders() -> Result<Vec<PathBuf>> {
    let places = [sources(), root().join("tests/guests")];
    let entries = places.iter().flat_map(|place| place.read_dir().into_iter().flatten());
    let mut folders: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    folders.retain(|folder| folder.is_dir() && !folder.join("Cargo.toml").exists() && !c_files(folder).is_empty());
    folders.sort();
    Ok(folders)
}

fn c_files(folder: &Path) -> Vec<PathBuf> {
    let files = folder.read_dir().into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<_> = files.filter(|file| file.extension().is_some_and(|extension| extension == "c")).collect();
    files.sort();
    files
}

fn build_c(folder: &Path) -> Result<String> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let built = dir().join("build").join(format!("{name}.c.wasm"));
    let headers = root().join("guest-sdk/include");
    if !is_older(&built, folder)? && !is_older(&built, &headers)? {
        return publish(&built, module_name(&name, WASIP1));
    }
    let clang = Clang::find().context("no C compiler for Wasm; `cargo xtask setup` installs one")?;
    fs::create_dir_all(dir().join("build"))?;
    let mut compile = clang.command();
    compile.args(["-O2", "-Wall", "-Wextra", "-Werror", "-I"]).arg(headers).args(c_files(folder)).arg("-o").arg(&built);
    run(&mut compile).with_context(|| format!("the guest {name}"))?;
    publish(&built, module_name(&name, WASIP1))
}

/// Whether a file is missing, or older than anything in a folder.
fn is_older(file: &Path, folder: &Path) -> Result<bool> {
    let Ok(built) = file.metadata().and_then(|metadata| metadata.modified()) else { return Ok(true) };
    for entry in folder.read_dir()? {
        if entry?.metadata()?.modified()? > built {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Copies a module to where it is looked for, if it is not there already, and hands its name back.
fn publish(built: &Path, name: String) -> Result<String> {
    let module = fs::read(built).with_context(|| format!("could not read {}", built.display()))?;
    let place = dir().join(&name);
    if fs::read(&place).is_ok_and(|present| present == module) {
        return Ok(name);
    }
    // Moved there when it is complete: a test may be looking.
    let stage = dir().join(format!("{name}.new"));
    fs::write(&stage, &module)?;
    fs::rename(&stage, &place).with_context(|| format!("could not write {}", place.display()))?;
    eprintln!("guests: {name} ({} kB)", module.len().div_ceil(1000));
    Ok(name)
}

/// A C compiler that makes core modules for WASI preview 1.
pub(crate) struct Clang {
    pub(crate) program: PathBuf,
}

impl Clang {
    /// A wasi-sdk if one is named, else the distribution's clang if all that belongs to it is there.
    pub(crate) fn find() -> Option<Self> {
        if let Some(sdk) = env::var_os("WASI_SDK_PATH") {
            let program = PathBuf::from(sdk).join("bin/clang");
            return program.is_file().then_some(Self { program });
        }
        let libc = Path::new("/usr/lib/wasm32-wasi/crt1-command.o");
        let builtins = Path::new("/usr/lib/llvm-14/lib/clang/14.0.6/lib/wasi/libclang_rt.builtins-wasm32.a");
        let complete = libc.is_file() && builtins.is_file() && which("wasm-ld-14").is_some();
        which("clang-14").filter(|_| complete).map(|program| Self { program })
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("--target=wasm32-wasi");
        command
    }
}
